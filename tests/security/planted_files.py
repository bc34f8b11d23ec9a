"""In a process of its own, with little memory: every verb on a table with one planted file; errors by name.

::

    python tests/security/planted_files.py TABLE sparse "_refs/tags/*.json"    {"open": "", "tag": "UnsupportedFeatureError"}
    python tests/security/planted_files.py TABLE pipe data/extra.lance         a name that no file of the table has

Each verb has a copy of the table, in which a file that matches is replaced by the planted one, or the planted one is added.
Afterwards that file is as it was, and the table must be sound: with its rows where the verb failed.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_core
from lance_core.errors import LanceError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage

MEMORY_BYTES = 3 << 29
SIZE = 40 << 30
SECONDS = 30
ROWS = pa.table({"id": pa.array([5, 100], pa.int64())})


def _stage(uri: str) -> object:
    staged: Any = run_job(DeleteSpec(uri=uri, predicate="id = 6"))
    return run_job(CommitSpec.of([staged], uri=uri))


def _merge(held: Any) -> object:
    return held.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ROWS)


def verbs() -> dict[str, Callable[[str], object]]:
    """What is tried; after "validate" what changes a table."""
    opened: Any = lance_core.dataset
    return {
        "open": opened,
        "rows": lambda uri: opened(uri).to_table(),
        "tags": lambda uri: opened(uri).tags.list(),
        "tag": lambda uri: opened(uri, version="good").count_rows(),
        "branches": lambda uri: opened(uri).branches.list(),
        "branch": lambda uri: opened(uri).checkout_version(("side", None)).count_rows(),
        "log": lambda uri: opened(uri).get_transactions(3),
        "versions": lambda uri: opened(uri).versions(),
        "staged": lambda uri: list_staged(resolve_store(uri)),
        "search": lambda uri: opened(uri).to_table(filter="id = 5"),
        "validate": lambda uri: opened(uri).validate(),
        "append": lambda uri: lance_core.write_dataset(ROWS, uri, mode="append"),
        "overwrite": lambda uri: lance_core.write_dataset(ROWS, uri, mode="overwrite"),
        "delete": lambda uri: opened(uri).delete("id = 7"),
        "update": lambda uri: opened(uri).update({"id": "id + 100"}, where="id = 8"),
        "merge": lambda uri: _merge(opened(uri)),
        "columns": lambda uri: opened(uri).add_columns({"t": "id + 1"}),
        "compact": lambda uri: opened(uri).optimize.compact_files(),
        "index": lambda uri: opened(uri).create_scalar_index("id", "BTREE"),
        "optimize": lambda uri: opened(uri).optimize.optimize_indices(),
        "stage": _stage,
        "new tag": lambda uri: opened(uri).tags.create("more", 1),
        "new branch": lambda uri: opened(uri).create_branch("more"),
        "restore": lambda uri: opened(uri, version=1).restore(),
        "collect": lambda uri: collect_garbage(resolve_store(uri), now=4e9),
        "cleanup": lambda uri: opened(uri).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True),
    }


def main(uri: str, how: str, pattern: str) -> None:
    """Run the verbs and print what each ended with."""
    before = lance_core.dataset(uri).to_table()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _too_long)
    ended = {}
    for number, (name, verb) in enumerate(verbs().items()):
        work = Path(f"{uri}-{number}")
        shutil.copytree(uri, work)
        path, was = _plant(work, pattern, how)
        ended[name] = _ended(verb, str(work))
        _mend(path, was)
        ended[name] += _unsound(str(work), before, has_failed=bool(ended[name]))
        shutil.rmtree(work)
    print(json.dumps(ended))


def _ended(verb: Callable[[str], object], uri: str) -> str:
    signal.alarm(SECONDS)
    try:
        verb(uri)
    except LanceError as error:
        return type(error).__name__
    except BaseException as error:
        return f"ESCAPED {type(error).__name__}: {error!s:.200}"
    finally:
        signal.alarm(0)
    return ""


def _too_long(*_: object) -> None:
    raise RuntimeError(f"waited for {SECONDS} s")


def _plant(table: Path, pattern: str, how: str) -> tuple[Path, bytes | None]:
    """Where it is planted and what was there."""
    found = sorted(table.glob(pattern), key=lambda path: path.stat().st_mtime_ns)
    # The last deletion file is of staged work, which nobody reads.
    path = (found[0] if pattern == "_deletions/*" else found[-1]) if found else table / pattern
    was = path.read_bytes() if found else None
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "sparse":
        with path.open("r+b" if found else "wb") as file:
            file.truncate(SIZE)
        return path, was
    path.unlink(missing_ok=True)
    if how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as made:
            here = os.open(path.parent, os.O_RDONLY)
            made.bind(f"/proc/self/fd/{here}/{path.name}")
            os.close(here)
    return path, was


def _mend(path: Path, was: bytes | None) -> None:
    """Not where a cleanup removed it, or a writer put something of its own there."""
    if path.is_file() and path.stat().st_size < SIZE:
        return
    is_there = path.exists()
    if path.is_dir():
        with suppress(OSError):  # a branch may have been made in it
            path.rmdir()
    elif is_there:
        path.unlink()
    if was is not None and is_there:
        path.write_bytes(was)


def _unsound(uri: str, before: pa.Table, *, has_failed: bool) -> str:
    try:
        now: Any = lance_core.dataset(uri)
        now.validate()
        if has_failed and sorted(now.to_table()["id"].to_pylist()) != sorted(before["id"].to_pylist()):
            return " ESCAPED: other rows"
    except BaseException as error:
        return f" ESCAPED afterwards {type(error).__name__}: {error!s:.300}"
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
