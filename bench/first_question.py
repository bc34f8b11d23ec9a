"""The first question to an index of 5,000,000 rows, both libraries: `python -m bench.first_question`.

The official library builds the indices. Each question is asked by a process of its own, to the index as it was built
(without checksums) and after it was sealed. Two figures are taken: what the process took in all, imports included, and
what the same question takes when the process opens the table again and remembers nothing of it. What counts is processor
time, which a busy machine hardly changes. Requests and bytes are counted at the object server, where `--traffic` has the
tables uploaded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import numpy as np
import obstore.store
import pyarrow as pa

import lance_core
from bench.installed import as_installed
from bench.object_client import RunningServer, object_server
from bench.workloads import first_use

DIMENSION = 16
STATES = ("as built", "sealed")
LIBRARIES = ("lance_core", "lance")
VECTORS: dict[str, dict[str, int]] = {"IVF_FLAT": {}, "IVF_SQ": {}, "IVF_PQ": {"num_sub_vectors": 8}, "IVF_RQ": {}}
CHILD = """
import json, sys, resource
def now():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
told = json.loads(sys.argv[1])
import {library} as library
def ask():
    remembers = dict(session=library.Session()) if library.__name__ == "lance" else dict()
    dataset = library.dataset(told["uri"], storage_options=told.get("options"), **remembers)
    if "vector" in told:
        import numpy
        nearest = dict(column="vector", q=numpy.array(told["vector"], numpy.float32), k=10, nprobes=20)
        found = dataset.to_table(columns=[], nearest=nearest, with_row_id=True)
    elif "words" in told:
        found = dataset.to_table(columns=[], full_text_query=told["words"], limit=10, with_row_id=True)
    else:
        found = dataset.to_table(columns=[], filter=told["filter"], with_row_id=True)
    return found.num_rows
rows = ask()
whole, again = now(), []
for _ in range(told["times"]):
    if "lance_core.io.cache" in sys.modules:
        sys.modules["lance_core.io.cache"].shared_cache().clear()
    began = now()
    ask()
    again.append(now() - began)
print(json.dumps([rows, whole, sorted(again)[len(again) // 2] if again else 0.0]))
"""


@dataclass(frozen=True)
class Question:
    """One question to one table; `told` is what the child process is given."""

    title: str
    table: Path
    told: dict[str, Any]


def questions(folder: Path, rows: int) -> Iterator[Question]:
    """The questions; their tables and indices are made where they are not there yet."""
    values = folder / "values.lance"
    if not values.exists():
        lance.write_dataset(first_use._values(np.random.default_rng(7), rows), str(values))
        for kind, column, _ in first_use.VALUES:
            first_use._scalar(str(values), column, kind)
    for kind, column, label in first_use.VALUES:
        value = lance.dataset(values).take([rows // 2], columns=[column]).column(column)[0].as_py()
        yield Question(f"{kind} ({label})", values, {"filter": f"{column} = {value!r}"})
    texts = folder / "texts.lance"
    if not texts.exists():
        lance.write_dataset(first_use._texts(np.random.default_rng(8), rows), str(texts))
        for kind, column in first_use.TEXTS:
            first_use._scalar(str(texts), column, kind)
    yield Question("LABEL_LIST", texts, {"filter": "array_has_all(tags, ['t17', 't18'])"})
    yield Question("NGRAM", texts, {"filter": "contains(text, 'w19998')"})
    yield Question("INVERTED", texts, {"words": "w19997"})
    for kind, options in VECTORS.items():
        table = folder / f"{kind}.lance"
        if not table.exists():
            lance.write_dataset(_vectors(rows), str(table))
            first_use._vector(str(table), kind, num_partitions=256, **options)
        yield Question(kind, table, {"vector": np.linspace(-1, 1, DIMENSION).tolist()})


def _vectors(rows: int) -> pa.Table:
    rng = np.random.default_rng(9)
    values = rng.normal(size=(2000, DIMENSION)).astype(np.float32)[rng.integers(0, 2000, rows)]
    values += rng.normal(size=values.shape).astype(np.float32) * np.float32(0.3)
    return pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)})


def ask(library: str, question: Question, place: dict[str, Any], *, times: int = 0) -> list[float]:
    """(rows, processor seconds of the process, and of each further first question)."""
    told = json.dumps({**question.told, "times": times, **place})
    done = subprocess.run(
        [sys.executable, "-c", CHILD.replace("{library}", library), told],
        check=True,
        capture_output=True,
        text=True,
        env=as_installed(),
    )
    found: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measure(question: Question, repeats: int) -> list[list[float]]:
    """Medians for each library; they are asked in turns, and must find as many rows as each other."""
    place = {"uri": str(question.table)}
    for name in LIBRARIES:
        ask(name, question, place)
    found: dict[str, list[list[float]]] = {name: [] for name in LIBRARIES}
    for _ in range(repeats):
        for name in LIBRARIES:
            found[name].append(ask(name, question, place, times=5))
    medians = [[statistics.median(column) for column in zip(*found[name], strict=True)] for name in LIBRARIES]
    if medians[0][0] != medians[1][0]:
        raise AssertionError(f"{question.title}: {medians[0][0]} rows, the official library finds {medians[1][0]}")
    return medians


def seal(asked: list[Question]) -> None:
    """Write checksums for the indices of all tables."""
    for table in sorted({question.table for question in asked}):
        lance_core.dataset(str(table)).seal_indices()


def traffic(server: RunningServer, question: Question) -> list[str]:
    """Requests, depth and megabytes of the question, for each library."""
    uri = f"s3://bench/{question.table.name}"
    out = []
    for name in LIBRARIES:
        with server.watch() as seen:
            ask(name, question, {"uri": uri, "options": server.options})
        out.append(f"{seen.requests} ({seen.depth}), {seen.num_bytes / 1e6:.2f} MB")
    return out


def upload(server: RunningServer, table: Path) -> None:
    """Put a table's files on the server."""
    options: Any = server.options
    store = obstore.store.from_url("s3://bench", config=options)
    for path in sorted(item for item in table.rglob("*") if item.is_file()):
        obstore.put(store, f"{table.name}/{path.relative_to(table)}", path)


def main() -> None:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="Where tables are, or are made and kept.")
    parser.add_argument("--traffic", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        asked = [*questions(given.folder or Path(scratch), given.rows)]
        print("| index | state | opened again, CPU ms | ratio | fresh process, CPU ms | ratio |\n|---|---|---|---|---|---|")
        for state in STATES:
            if state == "sealed":
                seal(asked)
            for question in asked:
                (_, whole, first), (_, their_whole, their_first) = measure(question, given.repeats)
                again = f"{first * 1e3:.1f} / {their_first * 1e3:.1f} | {first / their_first:.2f}"
                print(
                    f"| {question.title} | {state} | {again} | "
                    f"{whole * 1e3:.0f} / {their_whole * 1e3:.0f} | {whole / their_whole:.2f} |",
                    flush=True,
                )
        if given.traffic:
            with object_server() as server:
                for question in asked:
                    upload(server, question.table)
                    print(f"| {question.title} | {' | '.join(traffic(server, question))} |", flush=True)


if __name__ == "__main__":
    main()
