"""What the tests of jobs that edit tables share: a table, its judge, and names for work."""

from __future__ import annotations

import time
from pathlib import Path

import lance
import pyarrow as pa

from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.identity import make_identity
from lance_core.jobs.specs.spec import CommitSpec, SourceSpec
from lance_core.publish.collect import collect_garbage


def rows(start: int, stop: int, day: int = 0) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "day": pa.array([day] * len(ids), pa.int32()), "x": [i * 0.5 for i in ids]}
    )


def rows_with_column(start: int, stop: int) -> pa.Table:
    return rows(start, stop).append_column("country", pa.array([f"c{i}" for i in range(start, stop)]))


def two_days() -> pa.Table:
    return pa.concat_tables([rows(100, 103, 1), rows(103, 104, 2)])


def make_table(uri: str, *parts: pa.Table, **options: object) -> str:
    """A table made by the official library, a fragment per part."""
    for number, part in enumerate(parts):
        lance.write_dataset(part, uri, mode="append" if number else "create", **options)
    return uri


def source(name: str = "rows", **kwargs: object) -> SourceSpec:
    return SourceSpec(callable=f"{__name__}:{name}", kwargs=kwargs)


def identity(uri: str, key: str = "1") -> str:
    return make_identity(uri, dag_id="d", run_id="r", task_id="t", key=key)


def commit(uri: str, *staged: object, **fields: object) -> dict:
    return run_job(CommitSpec.of(staged, uri=uri, **fields)).to_dict()


def ids(uri: str) -> list[int]:
    table = lance.dataset(uri)
    table.validate()
    return sorted(table.to_table(columns=["id"])["id"].to_pylist())


def leftovers(uri: str) -> set[str]:
    """Files below data/ and _deletions/ that no version of the table refers to, and records of staged work, but for those of
    aborted attempts, whose suspended writers may write on: they go by themselves later."""
    root = Path(uri)
    wanted: set[str] = set()
    for version in lance.dataset(uri).versions():
        for fragment in lance.dataset(uri, version=version["version"]).get_fragments():
            wanted |= {f"data/{file.path}" for file in fragment.data_files()}
            deletion = fragment.deletion_file()
            wanted |= {str(deletion)} if deletion else set()
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    kept = {name for name in found - wanted if name.startswith(("data/", "_deletions/", "_lance_core/staged"))}
    if kept and all(name.startswith("_lance_core/staged") for name in kept):
        collect_garbage(resolve_store(uri), now=time.time() + 9 * 24 * 3600.0)
        kept = {name for name in kept if (root / name).exists()}
    return kept


def with_nulls(share: int) -> pa.Table:
    return pa.table({"id": pa.array([50, 51], pa.int64()), "day": pa.array([9, 9], pa.int32()), "x": [None, 1.0]}).slice(
        0, share
    )
