"""Every verb, staged: nothing is published before the commit, and what that publishes is what the verb would have done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.handle.uncommitted import UncommittedVerbs


def rows(*keys: int) -> pa.Table:
    return pa.table({"id": [*keys], "x": [key * 10 for key in keys]})


VERBS: dict[str, Callable[[Any], Any]] = {
    "insert": lambda ds: ds.insert(rows(50, 51)),
    "overwrite": lambda ds: ds.insert(rows(70), mode="overwrite"),
    "delete": lambda ds: ds.delete("id IN (1, 5)"),
    "truncate_table": lambda ds: ds.truncate_table(),
    "update": lambda ds: ds.update({"x": "x + 1"}, where="id % 2 = 0"),
    "replace_where": lambda ds: ds.replace_where("id > 6", rows(7, 80)),
    "add_columns": lambda ds: ds.add_columns({"z": "x * 2"}),
    "add_columns, rows": lambda ds: ds.add_columns(pa.table({"z": [*range(8)]})),
    "merge": lambda ds: ds.merge(pa.table({"id": [1, 3], "z": [7, 8]}), "id"),
    "drop_columns": lambda ds: ds.drop_columns(["x"]),
    "alter_columns": lambda ds: ds.alter_columns({"path": "x", "name": "y", "data_type": pa.int32()}),
    "compact_files": lambda ds: getattr(ds, "optimize", ds).compact_files(),
    "create_scalar_index": lambda ds: ds.create_scalar_index("x", "BTREE"),
    "drop_index": lambda ds: ds.drop_index("id_idx"),
    "update_config": lambda ds: ds.update_config({"a": "1"}),
    "update_metadata": lambda ds: ds.update_metadata({"a": "1"}),
    "update_schema_metadata": lambda ds: ds.update_schema_metadata({"a": "1"}),
    "update_field_metadata": lambda ds: ds.update_field_metadata({"x": {"unit": "m"}}),
    "add_bases": lambda ds: ds.add_bases([lance_core.DatasetBasePath("/elsewhere", "one")]),
}


def make(uri: str) -> lance_core.LanceDataset:
    ds = lance_core.write_dataset(rows(*range(1, 9)), uri, max_rows_per_file=3)
    ds.create_scalar_index("id", "BTREE")
    return lance_core.dataset(uri)


def state(uri: str) -> Any:
    ds = lance_core.dataset(uri)
    ds.validate()
    manifest = ds.snapshot.manifest
    table = lance.dataset(uri).to_table()
    assert table.equals(ds.to_table())
    maps = (dict(manifest.config), dict(manifest.table_metadata), dict(manifest.schema.metadata), manifest.base_paths)
    fields = [(item.id, item.name, item.logical_type, dict(item.metadata)) for item in manifest.schema.fields]
    indices = sorted((index.name, sorted(index.fragment_bitmap or ())) for index in manifest.indices)
    return ds.version, sorted(map(str, table.to_pylist())), maps, fields, indices


def test_every_verb_is_here() -> None:
    verbs = {name for name in dir(UncommittedVerbs) if not name.startswith("_")}
    assert verbs | {"overwrite", "add_columns, rows"} == {*VERBS, "restore"}


@pytest.mark.parametrize("verb", VERBS)
def test_staged_and_committed_is_done(tmp_path: Path, verb: str) -> None:
    staged, done = str(tmp_path / "staged"), str(tmp_path / "done")
    VERBS[verb](make(done))
    ds = make(staged)
    before = state(staged)
    transaction = VERBS[verb](ds.uncommitted)
    if verb != "compact_files":  # it reserves ids
        assert state(staged) == before
    assert ds.version == 2
    lance_core.LanceDataset.commit(ds, transaction)
    assert state(staged) == state(done)


def test_restore(tmp_path: Path) -> None:
    ds = make(str(tmp_path / "t"))
    ds.delete("id = 1")
    transaction = ds.checkout_version(1).uncommitted.restore()
    assert lance_core.dataset(ds.uri).version == 3
    assert lance_core.LanceDataset.commit(ds, transaction).count_rows() == 8


def test_a_merge_has_its_own(tmp_path: Path) -> None:
    ds = make(str(tmp_path / "t"))
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    transaction, counts = builder.execute_uncommitted(rows(8, 9))
    assert counts["num_inserted_rows"] == counts["num_updated_rows"] == 1
    assert lance_core.dataset(ds.uri).version == 2
    assert lance_core.LanceDataset.commit(ds, transaction).count_rows() == 9
