"""The verbs that move or mark many rows: seconds side by side, and the peak of memory of a process that does one of them.

Each timed call gets a table of its own, made before it (data files are linked, not copied). Rates are millions of rows of
the table per second, so a verb's ratio is that of the seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

import lance_core
from bench.measure import Case
from bench.verb_calls import VERBS

_PROCESS = r"""
import importlib, json, re, sys
import pyarrow.ipc
from bench.verb_calls import VERBS
library, verb, uri, rows = sys.argv[1:]
VERBS[verb](importlib.import_module(library), uri, rows)
# Not getrusage: its peak counts the process that started this one.
print(json.dumps(int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 1024))
"""


@dataclass(frozen=True)
class _Work:
    """A verb on a table of `rows` rows in fragments of at most `fragment_rows`; `new` rows are merged."""

    name: str
    verb: str
    rows: int
    fragment_rows: int
    new: int = 0


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Delete of scattered rows, compaction, a computed column, an upsert."""
    five, one = int(5_000_000 * scale), int(1_000_000 * scale)
    for work in (
        _Work("delete 10% scattered rows of {rows}", "delete", five, 1 << 20),
        _Work("delete 10% scattered rows of {rows} by modulo", "delete_modulo", five, 1 << 20),
        _Work("compact {rows} rows, 100 fragments into 5", "compact", five, five // 100),
        _Work("add_columns with an expression over {rows} rows", "add_columns", five, 1 << 20),
        _Work("merge_insert of {new} into {rows} rows", "merge_insert", one, 1 << 20, one // 20),
        _Work("merge_insert of {new} into {rows} rows", "merge_insert", one, 1 << 20, one // 500),
    ):
        yield _case(folder, work)


def _case(folder: Path, work: _Work) -> Case:
    source, upserts = folder / f"{work.rows}-{work.fragment_rows}.lance", folder / "upserts.arrow"
    if not source.exists():
        lance.write_dataset(_rows(np.arange(work.rows)), str(source), max_rows_per_file=work.fragment_rows)
    if work.new:
        _write_upserts(upserts, work)

    def uri(contender: str) -> str:
        return str(folder / f"{contender}.lance")

    def renew(contender: str) -> None:
        shutil.rmtree(uri(contender), ignore_errors=True)
        shutil.copytree(source, uri(contender), copy_function=os.link)

    contenders: dict[str, Callable[[], object]] = {
        name: lambda name=name, library=library: VERBS[work.verb](library, uri(name), str(upserts))  # type: ignore[misc]
        for name, library in (("lance_core", lance_core), ("pylance", lance))
    }
    notes = {}
    for name, library in (("lance_core", "lance_core"), ("pylance", "lance")):
        renew(name)
        notes[f"peak MiB, {name}"] = _peak(library, work.verb, uri(name), str(upserts))
    label = work.name.format(rows=work.rows, new=work.new)
    return Case(label, contenders, rows=work.rows, before=renew, check=_same_tables, notes=notes)


def _peak(library: str, verb: str, uri: str, upserts: str) -> float:
    """The most memory (MiB, resident) that a fresh process held which did nothing else."""
    command = [sys.executable, "-c", _PROCESS, library, verb, uri, upserts]
    peak: float = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return peak


def _rows(ids: np.ndarray) -> pa.Table:
    rng = np.random.default_rng(1)
    names = rng.integers(0, 1_000_000, len(ids)).astype("U7")
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "value": pa.array(rng.normal(size=len(ids))),
            "small": pa.array(rng.integers(0, 100, len(ids)), pa.int32()),
            "name": pa.array(np.char.add("name ", names)),
        }
    )


def _write_upserts(path: Path, work: _Work) -> None:
    """Half of the ids are in the table, half are new."""
    half = work.new // 2
    known = np.random.default_rng(2).choice(work.rows, half, replace=False)
    table = _rows(np.concatenate([known, np.arange(work.rows, work.rows + half)]))
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def _same_tables(results: Mapping[str, object]) -> None:
    """What the contenders' tables hold must be equal, whatever the order of the rows."""
    tables = {name: _sorted(made.to_table()) for name, made in results.items()}  # type: ignore[attr-defined]
    if not tables["lance_core"].equals(tables["pylance"]):
        raise AssertionError("the tables differ")


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by("id").combine_chunks()
