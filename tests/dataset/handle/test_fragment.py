"""What a fragment's handle makes, committed by either library, is what the official library's handle makes."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import lance.fragment as official
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError, InputError, LanceError, NotFoundError, SchemaMismatchError
from lance_core.fragment import FragmentMetadata, LanceFragment, write_fragments
from lance_core.table.operations.append import Append
from lance_core.table.operations.delete import Delete
from lance_core.table.operations.merge import Merge
from lance_core.table.operations.overwrite import Overwrite
from lance_core.table.operations.update import Update, UpdateMode
from tests.dataset.dataset_tables import mixed, same

COLUMNS = ["id", "name", "point", "tags"]


def some(num_rows: int, *, first: int = 0) -> pa.Table:
    """Rows without null structs, which 2.0 does not have."""
    rows = mixed(num_rows, first=first).select(COLUMNS)
    points = pa.array(
        [{"x": float(i), "label": None if i % 3 else "p"} for i in range(num_rows)], rows.schema.field("point").type
    )
    return rows.set_column(2, "point", points)


def table(uri: Path, *, stable: bool = False, version: str | None = None) -> Any:
    rows = some(30)
    return lance_core.write_dataset(
        rows, uri, max_rows_per_file=10, enable_stable_row_ids=stable, data_storage_version=version
    )


def twins(tmp_path: Path, **options: Any) -> tuple[Any, Any]:
    """Two tables with the same rows: ours for our hands, theirs for theirs."""
    table(tmp_path / "theirs", **options)
    return table(tmp_path / "ours", **options), lance.dataset(str(tmp_path / "theirs"))


def check(ours: Any, theirs: Any, system: tuple[str, ...] = ()) -> None:
    names = [*lance.dataset(ours.uri).schema.names, *system]
    same(lance.dataset(ours.uri).to_table(columns=names), lance.dataset(theirs.uri).to_table(columns=names))
    same(lance_core.dataset(ours.uri).to_table(columns=names), lance_core.dataset(theirs.uri).to_table(columns=names))
    lance.dataset(ours.uri).validate()
    lance_core.dataset(ours.uri).validate()


def as_json(fragment: Any) -> Any:
    """A fragment without the names and sizes that differ from one writer to the other."""
    made = json.loads(json.dumps(fragment.to_json()))
    for file in made["files"]:
        file["path"] = file["file_size_bytes"] = None
    if made["deletion_file"] is not None:
        made["deletion_file"]["id"] = None
    return made


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_metadata_as_json(tmp_path: Path, stable: bool) -> None:
    ours = table(tmp_path / "t", stable=stable)
    ours.delete("id = 3")
    theirs = lance.dataset(str(tmp_path / "t"))
    for mine, other in zip(ours.get_fragments(), theirs.get_fragments(), strict=True):
        assert mine.metadata.to_json() == other.metadata.to_json()
        text = json.dumps(mine.metadata.to_json())
        assert FragmentMetadata.from_json(text) == mine.metadata
        assert official.FragmentMetadata.from_json(text).to_json() == other.metadata.to_json()
        assert FragmentMetadata.from_json(json.dumps(other.metadata.to_json())) == mine.metadata
        assert (mine.metadata.num_deletions, mine.deletion_file()) == (other.metadata.num_deletions, other.deletion_file())
    for text in (
        "",
        "{}",
        "[]",
        '{"id": 1, "files": 2, "physical_rows": 3}',
        '{"id": 0, "files": [{}], "physical_rows": 1}',
    ):
        with pytest.raises(InputError):
            FragmentMetadata.from_json(text)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_delete(tmp_path: Path, stable: bool) -> None:
    ours, theirs = twins(tmp_path, stable=stable)
    mine, other = ours.get_fragment(0), theirs.get_fragment(0)
    assert mine.delete("id >= 0") is None and mine.delete_rows(range(10)) is None
    assert mine.delete("id > 100") == mine.metadata == mine.delete_rows([])
    with pytest.raises(InputError, match="no row 10"):
        mine.delete_rows([2, 10])
    changed = [mine.delete("id > 3 AND id < 7"), ours.get_fragment(1).delete_rows([1, 1, 9])]
    expected = [other.delete("id > 3 AND id < 7"), theirs.get_fragment(1).delete_rows([1, 9])]
    assert [as_json(item) for item in changed] == [as_json(item) for item in expected]
    done = lance_core.LanceDataset.commit(ours, Delete(tuple(changed), (2,), "by hand"), ours.version)
    lance.LanceDataset.commit(theirs, lance.LanceOperation.Delete(expected, [2], "by hand"), read_version=theirs.version)
    check(ours, theirs, ("_rowid",))
    again = done.get_fragment(1)
    assert again.delete_rows([1]) == again.metadata, "deleted already"
    assert again.delete_rows([2]).num_deletions == 3
    same(again.take([0, 3]), lance.dataset(theirs.uri).get_fragment(1).take([0, 3]))


def test_merge_and_merge_columns(tmp_path: Path) -> None:
    ours, theirs = twins(tmp_path)
    ours.add_columns({"gone": "id"})
    ours.drop_columns(["gone"])  # its id stays in files, and is not given out again
    theirs.add_columns({"gone": "id"})
    theirs.drop_columns(["gone"])
    right = pa.table({"k": [1, 12, 25, 99], "z": ["a", "b", None, "d"]})
    for make in (
        lambda item: item.merge(right, "id", "k"),
        lambda item: item.merge_columns({"twice": "id * 2"}),
        lambda item: item.merge_columns(lambda batch: pa.record_batch({"thrice": batch.column("id")}), columns=["id"]),
        lambda item: item.merge_columns(pa.RecordBatchReader.from_batches(*rows_of(item))),
    ):
        mine = [make(item) for item in ours.get_fragments()]
        other = [make(item) for item in theirs.get_fragments()]
        assert [as_json(item) for item, _ in mine] == [as_json(item) for item, _ in other]
        assert all(schema == mine[0][1] for _, schema in mine)
        merged = Merge(tuple(item for item, _ in mine), mine[0][1], preserves_nullability=True)
        ours = lance_core.LanceDataset.commit(ours, merged, ours.version)
        operation = lance.LanceOperation.Merge([item for item, _ in other], other[0][1])
        theirs = lance.LanceDataset.commit(theirs, operation, read_version=theirs.version)
        check(ours, theirs)
    assert ours.schema.names == [*COLUMNS, "z", "twice", "thrice", "given"]
    with pytest.raises(InputError, match="already exists"):
        ours.get_fragment(0).merge_columns({"z": "1"})
    with pytest.raises(InputError, match="checkpoint"):
        udf = lance_core.batch_udf(checkpoint_file=tmp_path / "udf.db")(lambda batch: batch)
        ours.get_fragment(0).merge_columns(udf)


def rows_of(fragment: Any) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    batch = pa.record_batch({"given": pa.array(range(fragment.count_rows()), pa.int32())})
    return batch.schema, [batch]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_update_columns(tmp_path: Path, stable: bool, version: str) -> None:
    ours, theirs = twins(tmp_path, stable=stable, version=version)
    for handle in (ours, theirs):
        handle.delete("id = 5")
    right = pa.table(
        {
            "id": [2, 5, 14, 99],
            "name": ["two", "five", None, "none"],
            "point": pa.array(
                [{"x": 2.5, "label": "q"}] + [{"x": None, "label": None}] * 3, ours.schema.field("point").type
            ),
        }
    )
    mine = [item.update_columns(right, "id", with_offsets=True) for item in ours.get_fragments()]
    other = [item.update_columns(right, "id", with_offsets=True) for item in theirs.get_fragments()]
    assert [as_json(item) for item, _, _ in mine] == [as_json(item) for item, _, _ in other]
    assert [fields for _, fields, _ in mine] == [fields for _, fields, _ in other]
    assert [rows for _, _, rows in mine] == [rows for _, _, rows in other]
    update = Update(
        updated_fragments=tuple(item for item, _, _ in mine),
        fields_modified=tuple(mine[0][1]),
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_fragment_offset_bitmaps={item.id: rows for item, _, rows in mine} if stable else {},
    )
    done = lance_core.LanceDataset.commit(ours, update, ours.version)
    operation = lance.LanceOperation.Update(
        updated_fragments=[item for item, _, _ in other],
        fields_modified=other[0][1],
        update_mode="rewrite_columns",
        updated_fragment_offsets={item.id: rows for item, _, rows in other} if stable else None,
    )
    lance.LanceDataset.commit(theirs, operation, read_version=theirs.version)
    check(done, theirs, ("_rowid", "_row_last_updated_at_version"))
    assert done.to_table(columns=["name"], filter="id in (2, 14)").column("name").to_pylist() == ["two", None]
    assert done.to_table(columns=["name"], filter="id = 5").num_rows == 0


def test_update_columns_by_row_id(tmp_path: Path) -> None:
    ours, theirs = twins(tmp_path)
    right = pa.table({"_rowid": pa.array([1, (1 << 32) + 3], pa.uint64()), "name": ["one", "thirteen"]})
    mine = [item.update_columns(right) for item in ours.get_fragments()]
    other = [item.update_columns(right) for item in theirs.get_fragments()]
    assert [as_json(item) for item, _ in mine] == [as_json(item) for item, _ in other]
    done = lance_core.LanceDataset.commit(
        ours, Update(updated_fragments=tuple(item for item, _ in mine), fields_modified=tuple(mine[0][1])), ours.version
    )
    assert done.to_table(columns=["id"], filter="name in ('one', 'thirteen')").column("id").to_pylist() == [1, 13]
    fragment = ours.get_fragment(0)
    for wrong, match in (
        (pa.table({"id": [1], "other": [2]}), "not in this table"),
        (pa.table({"id": [1]}), "no new values"),
        (pa.table({"k": [1], "name": ["x"]}), "no column 'id' among"),
    ):
        with pytest.raises(InputError, match=match):
            fragment.update_columns(wrong, "id")
    with pytest.raises(InputError, match="no column 'nope'"):
        fragment.update_columns(pa.table({"id": [1], "name": ["x"]}), "nope", "id")
    with pytest.raises(SchemaMismatchError):
        fragment.update_columns(pa.table({"id": [1], "tags": [1.5]}), "id")


def test_create(tmp_path: Path) -> None:
    ours = table(tmp_path / "t")
    rows = some(5, first=30)
    mine, other = (kind.create(ours.uri, rows, fragment_id=7) for kind in (LanceFragment, official.LanceFragment))
    assert as_json(mine) == as_json(other)
    assert LanceFragment.create(ours.uri, rows).id == 0
    with pytest.raises(InputError, match="no rows"):
        LanceFragment.create(ours.uri, rows.slice(0, 0))
    for made in (mine, replace(FragmentMetadata.from_json(json.dumps(other.to_json())), id=0)):
        ours = lance_core.LanceDataset.commit(ours, Append((made,)), ours.version)
    same(ours.to_table(offset=30), pa.concat_tables([rows, rows]))
    fresh = LanceFragment.create(ours.uri, pa.table({"zz": [1]}), mode="create")
    assert as_json(fresh) == as_json(official.LanceFragment.create(ours.uri, pa.table({"zz": [1]}), mode="create"))
    schema = lance_core.write_dataset(pa.table({"zz": [1]}), tmp_path / "other").lance_schema
    ours = lance_core.LanceDataset.commit(ours, Overwrite((fresh,), schema), ours.version)
    assert ours.to_table().to_pylist() == lance.dataset(ours.uri).to_table().to_pylist() == [{"zz": 1}]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_create_from_file(tmp_path: Path, version: str) -> None:
    ours = table(tmp_path / "t", version=version)
    rows = some(5, first=30)
    staged = write_fragments(rows.select(COLUMNS[::-1]), ours.uri)
    assert isinstance(staged, list)
    found = LanceFragment.create_from_file(staged[0].files[0].path, ours, 9)
    assert (found.id, found.files, found.physical_rows) == (9, staged[0].files, 5)
    theirs = official.DataFile.create(lance.dataset(ours.uri), staged[0].files[0].path)
    assert ([*found.files[0].fields], [*found.files[0].column_indices]) == (theirs.fields, theirs.column_indices)
    done = lance_core.LanceDataset.commit(ours, Append((found,)), ours.version)
    same(done.to_table(offset=30), rows)
    same(lance.dataset(ours.uri).to_table(offset=30), rows)
    with pytest.raises(NotFoundError):
        LanceFragment.create_from_file("nope.lance", ours, 9)
    other = write_fragments(pa.table({"zz": [1]}), tmp_path / "new", mode="create", data_storage_version=version)
    assert isinstance(other, list)
    name = other[0].files[0].path
    (tmp_path / "t/data" / name).write_bytes((tmp_path / "new/data" / name).read_bytes())
    with pytest.raises(SchemaMismatchError, match="no column 'zz'"):
        LanceFragment.create_from_file(name, ours, 9)
    (tmp_path / "t/data/broken.lance").write_bytes(b"x" * 100)
    with pytest.raises((CorruptFileError, LanceError)):
        LanceFragment.create_from_file("broken.lance", ours, 9)


def test_session_and_handles(tmp_path: Path) -> None:
    ours = table(tmp_path / "t")
    ours.delete("id = 12")
    theirs = lance.dataset(ours.uri)
    mine, other = LanceFragment(ours, 1), official.LanceFragment(theirs, 1)
    for options in ({}, {"columns": ["id"]}, {"columns": ["id"], "with_row_address": True}):
        sessions = [item.open_session(**options) for item in (mine, other)]
        same(*(session.take([0, 2, 8]) for session in sessions))
        same(sessions[0].take([8, 1]), sessions[0].take([1, 8]).take([1, 0]))
    assert mine.physical_rows == other.physical_rows == 10
    assert mine.num_deletions == other.num_deletions == 1
    assert mine.schema.equals(other.schema)
    mine.validate()
    with pytest.raises(InputError, match="no fragment 8"):
        LanceFragment(ours, 8)


NOT_HERE = {
    "partition_expression": "of pyarrow.dataset; not implemented there either",
    "physical_schema": "of pyarrow.dataset; not implemented there either",
}


def test_names() -> None:
    theirs, mine = ({name for name in dir(kind) if name[0] != "_"} for kind in (official.LanceFragment, LanceFragment))
    assert theirs - mine == {*NOT_HERE} and not mine - theirs


@pytest.mark.parametrize(
    "name", ["create_from_file", "merge", "merge_columns", "update_columns", "open_session", "take", "delete"]
)
def test_arguments(name: str) -> None:
    theirs, mine = (inspect.signature(getattr(kind, name)).parameters for kind in (official.LanceFragment, LanceFragment))
    assert [*theirs] == [*mine]
