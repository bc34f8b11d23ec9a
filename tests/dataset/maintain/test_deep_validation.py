"""A deep validation reads every page and calls each damage what it is; what is whole passes, by whomever it was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.maintain.validate import check_snapshot, find_damages
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import CorruptFileError
from lance_core.file.open import ContainerFile, open_file
from lance_core.io.local.store import LocalStore
from lance_core.maintenance.doctor import diagnose

VERSIONS = ("0.1", "2.0", "2.1", "2.2")


def rows(version: str) -> pa.Table:
    point = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.float64())])
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string()), pa.field("l", pa.list_(pa.int16()))]
    columns = [list(range(600)), [f"text {i}" for i in range(600)], [[i, i + 1] for i in range(600)]]
    if version != "0.1":
        fields += [pa.field("p", point, metadata={"lance-encoding:packed": "true"}), blob]
        columns += [[{"x": i, "y": i / 2} for i in range(600)], [None if i % 5 == 0 else b"x" * i for i in range(600)]]
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)], schema=pa.schema(fields)
    )


@pytest.mark.parametrize("library", [lance, lance_core], ids=["theirs", "ours"])
@pytest.mark.parametrize("version", VERSIONS)
def test_whole_tables_pass(tmp_path: Path, version: str, library: object) -> None:
    library.write_dataset(rows(version), tmp_path, data_storage_version=version, max_rows_per_file=250)  # type: ignore[attr-defined]
    dataset = library.dataset(tmp_path)  # type: ignore[attr-defined]
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id % 7 = 3")
    dataset.add_columns({"n": "id + 1"})
    dataset.drop_columns(["text"])
    seen: list[tuple[int, int]] = []
    found = lance_core.dataset(tmp_path)
    assert check_snapshot(found.snapshot, deep=True, progress=lambda *step: seen.append(step)) == 6
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert list(find_damages(found.snapshot)) == []


def damage(root: Path, *fields: str) -> None:
    """Overwrite the first bytes of the first page of each field's first column."""
    dataset = lance_core.dataset(root)
    (path,) = (root / "data").glob("*.lance")
    opened = open_file(LocalStore(root), f"data/{path.name}")
    assert isinstance(opened, ContainerFile)
    raw = bytearray(path.read_bytes())
    for name in fields:
        (field,) = (item for item in dataset.snapshot.manifest.schema.top_level if item.name == name)
        (column,) = opened.columns([opened.columns_of_fields[field.id]])
        start = column.pages[0].buffers[0].start
        raw[start : start + 8] = b"\xff" * 8
    path.write_bytes(raw)


def test_every_bad_column_is_named(tmp_path: Path) -> None:
    lance_core.write_dataset(rows("2.2").select(["id", "text"]), tmp_path)
    damage(tmp_path, "id", "text")
    dataset = lance_core.dataset(tmp_path)
    dataset.validate()
    with pytest.raises(CorruptFileError, match="column 'id', page 0") as caught:
        dataset.validate(deep=True)
    assert caught.value.version == 1
    (found,) = diagnose(str(tmp_path), deep=True)
    assert (found.code, found.size) == ("damaged", 2)
    for name, message in zip(("id", "text"), found.details["findings"], strict=True):
        assert f"column {name!r}, page 0" in message


def changed(root: Path, **changes: object) -> Snapshot:
    """The newest version with another manifest."""
    snapshot = lance_core.dataset(root).snapshot
    return Snapshot(snapshot.store, replace(snapshot.manifest, **changes))  # type: ignore[arg-type]


def test_nulls_where_the_table_allows_none(tmp_path: Path) -> None:
    lance_core.write_dataset(pa.table({"a": [1, None, 3], "b": [1, 2, 3]}), tmp_path)
    schema = lance_core.dataset(tmp_path).snapshot.manifest.schema
    strict = replace(schema, fields=tuple(replace(item, nullable=False) for item in schema.fields))
    (message,) = find_damages(changed(tmp_path, schema=strict))
    assert "'a'" in message
    assert "row 1" in message


def test_required_columns_without_a_file(tmp_path: Path) -> None:
    lance_core.write_dataset(pa.table({"a": [1, 2]}), tmp_path)
    schema = lance_core.dataset(tmp_path).snapshot.manifest.schema
    more = replace(schema.fields[0], id=7, name="late", nullable=False)
    (message,) = find_damages(changed(tmp_path, schema=replace(schema, fields=(*schema.fields, more))))
    assert "no file with the non-nullable column 'late'" in message
    loose = replace(schema, fields=(*schema.fields, replace(more, nullable=True)))
    assert list(find_damages(changed(tmp_path, schema=loose))) == []


@pytest.mark.parametrize(("version", "ids"), [("0.1", (1, 0)), ("2.1", (0, 0))])
def test_field_ids_that_files_must_not_list(tmp_path: Path, version: str, ids: tuple[int, ...]) -> None:
    lance_core.write_dataset(pa.table({"a": [1, 2], "b": [3, 4]}), tmp_path, data_storage_version=version)
    (fragment,) = lance_core.dataset(tmp_path).snapshot.manifest.fragments
    other = replace(fragment, files=(replace(fragment.files[0], fields=ids),))
    with pytest.raises(CorruptFileError, match="unsorted or duplicate field ids"):
        check_snapshot(changed(tmp_path, fragments=(other,)), deep=False)


def test_files_that_are_gone(tmp_path: Path) -> None:
    lance_core.write_dataset(rows("2.1"), tmp_path, max_rows_per_file=300)
    snapshot = lance_core.dataset(tmp_path).snapshot
    gone = snapshot.manifest.fragments[0].files[0].path
    (tmp_path / "data" / gone).unlink()
    assert any(gone in message for message in find_damages(snapshot))


def test_indices_that_say_something_else(tmp_path: Path) -> None:
    """The official library's index over rows that are others now: nothing but the rows themselves tells."""
    root, other = tmp_path / "t", tmp_path / "other"
    lance.write_dataset(pa.table({"a": list(range(5000))}), root)
    lance.dataset(root).create_scalar_index("a", "BTREE")
    lance.write_dataset(pa.table({"a": list(range(1, 5001))}), other)
    (mine,), (theirs,) = (list((place / "data").glob("*.lance")) for place in (root, other))
    mine.write_bytes(theirs.read_bytes())
    snapshot = lance_core.dataset(root).snapshot
    sizes = replace(snapshot.manifest.fragments[0].files[0], file_size_bytes=mine.stat().st_size)
    fragment = replace(snapshot.manifest.fragments[0], files=(sizes,))
    (message,) = find_damages(changed(root, fragments=(fragment,)))
    assert "index" in message
    assert "a_idx" in message
