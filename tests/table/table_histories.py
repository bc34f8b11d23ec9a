"""Histories that the official library writes, and the reading of their manifests and transactions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from lance_core.format.manifest import Manifest
from lance_core.table.transaction import Transaction
from lance_core.wire.manifest_file import ManifestFile, decode_manifest_file
from lance_core.wire.transaction import decode_transaction


def rows(count: int = 100, start: int = 0) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table({"a": list(numbers), "b": [str(i) for i in numbers]})


def read_history(uri: Path) -> list[ManifestFile]:
    """All versions, oldest first."""
    paths = sorted((uri / "_versions").glob("*.manifest"), reverse=True)
    return [decode_manifest_file(path.read_bytes()) for path in paths]


def transaction_of(file: ManifestFile) -> Transaction:
    assert file.transaction is not None
    return decode_transaction(file.transaction)


def source_of(history: list[ManifestFile], transaction: Transaction) -> Manifest | None:
    if transaction.operation.name != "Restore":
        return None
    version = transaction.operation.version  # type: ignore[attr-defined]
    return next(item.manifest for item in history if item.manifest.version == version)


def reopen(uri: Path) -> Any:
    return lance.dataset(str(uri))


def create(uri: Path, *, stable: bool, version: str | None = None) -> None:
    lance.write_dataset(rows(), str(uri), max_rows_per_file=10, enable_stable_row_ids=stable, data_storage_version=version)


def append(uri: Path) -> None:
    lance.write_dataset(rows(), str(uri), mode="append")


def evolve(uri: Path) -> None:
    append(uri)
    reopen(uri).create_scalar_index("a", "BTREE")
    reopen(uri).create_scalar_index("b", "ZONEMAP")
    reopen(uri).delete("a = 3")
    reopen(uri).delete("a >= 10 and a < 20")
    reopen(uri).update({"b": "'x'"}, where="a = 25")
    upsert = pa.table({"a": [30, 1000], "b": ["p", "q"]})
    reopen(uri).merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(upsert)
    reopen(uri).add_columns({"c": "a + 1"})
    reopen(uri).drop_columns(["c"])
    reopen(uri).add_columns({"d": "a + 2"})
    reopen(uri).alter_columns({"path": "d", "name": "e"})


def maintain(uri: Path) -> None:
    append(uri)
    reopen(uri).create_scalar_index("a", "BTREE")
    reopen(uri).create_scalar_index("b", "BITMAP")
    reopen(uri).delete("a % 7 = 3")
    reopen(uri).optimize.compact_files()
    reopen(uri).optimize.optimize_indices()
    append(uri)
    reopen(uri).optimize.optimize_indices(num_indices_to_merge=0)
    reopen(uri).update({"a": "a + 5000"}, where="a = 41")
    reopen(uri).optimize.compact_files(target_rows_per_fragment=1000)
    reopen(uri).drop_index("a_idx")


def configure(uri: Path) -> None:
    reopen(uri).update_config({"x": "y", "z": "w"})
    reopen(uri).delete_config_keys(["x"])
    reopen(uri).update_metadata({"owner": "us"})
    reopen(uri).update_schema_metadata({"s": "1"})
    reopen(uri).update_field_metadata({"a": {"unit": "m"}})
    reopen(uri).add_columns(pa.schema([pa.field("n", pa.int32())]))
    reopen(uri).alter_columns({"path": "a", "data_type": pa.int32()})


def replace_all(uri: Path) -> None:
    append(uri)
    lance.write_dataset(rows(30), str(uri), mode="overwrite")
    lance.dataset(str(uri), version=1).restore()
    append(uri)
    reopen(uri).delete("true")
    append(uri)
    lance.write_dataset(rows(30), str(uri), mode="overwrite", data_storage_version="2.1")
    lance.write_dataset(rows(30), str(uri), mode="append", data_storage_version="2.2")


def rewrite_columns(uri: Path) -> None:
    reopen(uri).create_scalar_index("b", "BTREE")
    reopen(uri).add_columns(pa.schema([pa.field("n", pa.int32())]))
    partial = pa.table({"a": [25, 27], "b": ["x", "y"]})
    reopen(uri).merge_insert("a").when_matched_update_all().execute(partial)
    table = reopen(uri)
    merged, schema = table.get_fragment(1).merge_columns({"z": "a + 5"})
    fragments = [merged if item.fragment_id == 1 else item.metadata for item in table.get_fragments()]
    lance.LanceDataset.commit(str(uri), lance.LanceOperation.Merge(fragments, schema), read_version=table.version)
    table = reopen(uri)
    updated, fields = table.get_fragment(0).update_columns(pa.table({"a": [3], "b": ["u"]}), left_on="a")
    update = lance.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns")
    lance.LanceDataset.commit(str(uri), update, read_version=table.version)


HISTORIES: dict[str, Callable[[Path], None]] = {
    "evolve": evolve,
    "maintain": maintain,
    "configure": configure,
    "replace_all": replace_all,
    "rewrite_columns": rewrite_columns,
}
