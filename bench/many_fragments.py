"""One append of very many fragments, both libraries: `python -m bench.many_fragments --fragments 1000000`.

A process of its own for each: processor time of the commit alone, and its peak of memory over what the process held before,
the fragments included. The official library has no counterpart of the third: the same work staged and committed exactly
once, which looks for every file (they are links to one).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

_LINKS_A_FOLDER = 60_000


def _now() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _held(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def _timed(work: Callable[[], object]) -> dict[str, float]:
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    held, used, began = _held("VmRSS"), _now(), time.perf_counter()
    work()
    return {"cpu": _now() - used, "seconds": time.perf_counter() - began, "peak": _held("VmHWM") - held}


def append(library: Any, place: str, count: int) -> dict[str, dict[str, float]]:
    """Fragments by the public API, all of one file's shape, in one commit."""
    made = library.write_dataset(pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0], "s": ["a", "b", "c"]}), place)
    shape = json.loads(json.dumps(made.get_fragments()[0].metadata.to_json()))
    path = shape["files"][0]["path"]
    fragments = []
    for number in range(count):
        shape["files"][0]["path"] = f"{number:07d}{path[7:]}"
        fragments.append(library.FragmentMetadata.from_json(json.dumps(shape)))
    operation = library.LanceOperation.Append(fragments)
    took = _timed(lambda: library.LanceDataset.commit(place, operation, read_version=1))
    found = library.dataset(place)
    assert (found.version, found.count_rows()) == (2, 3 * count + 3)
    return {"commit": took}


def staged(library: Any, place: str, count: int) -> dict[str, dict[str, float]]:
    """The same, staged and committed exactly once."""
    from lance_core.commit import naming
    from lance_core.format.fragment import Fragment
    from lance_core.io.resolve import resolve_store
    from lance_core.publish.commit import commit_staged
    from lance_core.publish.stage import begin_attempt, finish_attempt
    from lance_core.table.operations import Append
    from lance_core.table.transaction import Transaction

    made = library.write_dataset(pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0], "s": ["a", "b", "c"]}), place)
    store, shape = resolve_store(place, {}), made.get_fragments()[0].metadata.files[0]
    attempt = begin_attempt(store, identity="0f6ab1f3-5c0e-5e7e-9d51-6f3d1f0b6a52", spec={"what": "bench"}, read_version=1)
    fragments, data = [], Path(place, "data")
    for number in range(count):
        file = replace(shape, path=naming.data_file_name(attempt.attempt))
        if number % _LINKS_A_FOLDER == 0:  # file systems allow a file so many names
            source = data / file.path
            source.write_bytes((data / shape.path).read_bytes())
        else:
            os.link(source, data / file.path)
        fragments.append(Fragment(id=0, files=(file,), physical_rows=3))
    transaction = Transaction(1, "bench", Append(fragments))
    kept: list[Any] = []
    took = {"stage": _timed(lambda: kept.append(finish_attempt(store, attempt, transaction, rows=3 * count, bytes=count)))}
    took["commit"] = _timed(lambda: commit_staged(store, kept))
    found = library.dataset(place)
    assert (found.version, found.count_rows()) == (2, 3 * count + 3)
    return took


WORK = {"append": append, "staged": staged}


def main() -> None:
    """Print what each took; or do one of them, as a child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fragments", type=int, default=1_000_000)
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "WORK"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        with tempfile.TemporaryDirectory(prefix="many-fragments-") as folder:
            library = importlib.import_module(given.child[0])
            print(json.dumps(WORK[given.child[1]](library, f"{folder}/t", given.fragments)))
        return
    print(
        f"| one append of {given.fragments:,} fragments | processor time | elapsed | peak |\n|---|---|---|---|", flush=True
    )
    for library, work in (("lance_core", "append"), ("lance", "append"), ("lance_core", "staged")):
        command = [sys.executable, "-m", "bench.many_fragments", "--fragments", str(given.fragments)]
        done = subprocess.run([*command, "--child", library, work], check=True, stdout=subprocess.PIPE, text=True)
        for step, took in json.loads(done.stdout.splitlines()[-1]).items():
            row = f"{took['cpu']:.1f} s | {took['seconds']:.1f} s | {took['peak']:,.0f} MiB"
            print(f"| {library}, {work}: {step} | {row} |", flush=True)


if __name__ == "__main__":
    main()
