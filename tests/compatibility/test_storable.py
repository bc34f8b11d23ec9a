"""Storable types: every door refuses what files of a version cannot hold; what is accepted, the official library keeps."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.file.single_file import LanceFileWriter
from tests.compatibility import storable

SAMPLED, SHARE = 40, 2000
PAIR = pa.list_(pa.struct([pa.field("x", pa.int32())]), 2)
REFUSED = {
    "map": ("2.1", pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int32())), "data_storage_version='2.2'"),
    "fixed structs, 2.1": ("2.1", pa.array([[{"x": 1}, {"x": 2}]] * 3, PAIR), "Make it a list"),
    "fixed structs": ("2.2", pa.array([[{"x": 1}, {"x": 2}]] * 3, PAIR), "Make it a list"),
    "fixed texts": ("2.2", pa.array([["a", "b"]] * 3, pa.list_(pa.string(), 2)), "Make it a list"),
    "no bytes": ("2.3", pa.array([b""] * 3, pa.binary(0)), "data_storage_version='2.2'"),
    "no items": ("2.2", pa.array([[]] * 3, pa.list_(pa.int32(), 0)), "Cast the column"),
}
Door = Callable[[str, pa.Table, str], Any]


def _beside(act: Callable[[Any, pa.Table], Any]) -> Door:
    """A door of a table that is there, with an id."""

    def door(uri: str, rows: pa.Table, version: str) -> Any:
        return act(lance_core.write_dataset(rows.select(["id"]), uri, data_storage_version=version), rows)

    return door


DOORS: dict[str, Door] = {
    "create": lambda uri, rows, version: lance_core.write_dataset(rows, uri, data_storage_version=version),
    "create without rows": lambda uri, rows, version: lance_core.write_dataset(
        rows.slice(0, 0), uri, data_storage_version=version
    ),
    "fragments": lambda uri, rows, version: lance_core.fragment.write_fragments(rows, uri, data_storage_version=version),
    "overwrite": _beside(lambda table, rows: lance_core.write_dataset(rows, table.uri, mode="overwrite")),
    "add a column of nulls": _beside(lambda table, rows: table.add_columns(rows.schema.field("c"))),
    "add a stream": _beside(lambda table, rows: table.add_columns(rows.select(["c"]).to_reader())),
    "merge": _beside(lambda table, rows: table.merge(rows, "id")),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", REFUSED)
def test_no_door_takes_what_a_version_cannot_hold(name: str, door: str, tmp_path: Path) -> None:
    version, column, cure = REFUSED[name]
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "c": column})
    with pytest.raises(InputError, match="column 'c' has type") as caught:
        DOORS[door](str(tmp_path / "t"), rows, version)
    assert cure in str(caught.value)
    if (tmp_path / "t" / "_versions").exists():
        assert lance.dataset(tmp_path / "t").schema.names == ["id"]


POINT = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])
FIXED = pa.list_(POINT, 2)
ONE, TWO = {"x": 1, "y": "a"}, {"x": None, "y": "b"}
NULL_LISTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "in a list": (pa.list_(FIXED), [[None, [ONE, TWO]], [[TWO, ONE]]]),
    "of one item, in a large list": (pa.large_list(pa.list_(POINT, 1)), [[None, [ONE]], [[TWO]]]),
    "in two lists": (pa.list_(pa.list_(FIXED)), [[[[ONE, TWO], None]], [], None]),
    "in a struct in a list": (pa.list_(pa.struct([("f", FIXED)])), [[{"f": None}, {"f": [TWO, ONE]}], [{"f": [ONE, TWO]}]]),
}
NULLS_BESIDE: dict[str, tuple[pa.DataType, list[Any]]] = {
    "structs": (pa.list_(FIXED), [[[None, TWO]], [[ONE, TWO]]]),
    "rows and no items": (pa.list_(FIXED), [None, [], [[ONE, TWO]]]),
    "one item each": (pa.list_(FIXED), [[None], [[ONE, TWO]], [None], [[TWO, ONE]]]),
    "of one field": (pa.list_(pa.list_(pa.struct([("x", pa.int32())]), 2)), [[None, [{"x": 1}, None]], None]),
}


@pytest.mark.parametrize("name", NULL_LISTS)
def test_null_fixed_size_lists_in_lists_are_refused_where_nobody_reads_them(name: str, tmp_path: Path) -> None:
    kind, values = NULL_LISTS[name]
    rows = pa.table({"id": range(len(values)), "c": pa.array(values, kind)})
    uri = str(tmp_path / "t")
    ds = lance_core.write_dataset(rows.slice(0, 0), uri, data_storage_version="2.3")
    with pytest.raises(InputError, match=r"column 'c' has type .*null fixed-size list"):
        lance_core.write_dataset(rows, uri, mode="append")
    with pytest.raises(InputError, match=r"column 'c' has type .*null fixed-size list"):
        lance_core.write_dataset(rows, str(tmp_path / "new"), data_storage_version="2.3")
    assert lance.dataset(uri).count_rows() == 0
    assert ds.versions() == lance_core.dataset(uri).versions()
    lance.write_dataset(rows, tmp_path / "theirs", data_storage_version="2.3")
    with pytest.raises(Exception, match="incompatible validity"):
        lance.dataset(tmp_path / "theirs").to_table()
    assert lance_core.dataset(str(tmp_path / "theirs")).to_table().equals(rows)


@pytest.mark.parametrize("name", NULLS_BESIDE)
def test_other_nulls_around_fixed_size_lists_are_kept(name: str, tmp_path: Path) -> None:
    kind, values = NULLS_BESIDE[name]
    rows = pa.table({"id": range(len(values)), "c": pa.array(values, kind)})
    lance_core.write_dataset(rows, str(tmp_path), data_storage_version="2.3")
    theirs = lance.dataset(tmp_path)
    assert theirs.to_table()["c"].to_pylist() == values
    assert theirs.to_table(offset=1, limit=2)["c"].to_pylist() == values[1:3]
    assert theirs.take([len(values) - 1, 0])["c"].to_pylist() == [values[-1], values[0]]


@pytest.mark.parametrize("name", ["map", "fixed texts"])
def test_single_files_have_the_same_rule(name: str, tmp_path: Path) -> None:
    version, column, _ = REFUSED[name]
    with (
        pytest.raises(InputError, match="column 'c' has type"),
        LanceFileWriter(tmp_path / "f.lance", version=version) as writer,
    ):
        writer.write_batch(pa.table({"c": column}))


def test_what_was_written_before_is_read_and_grows(tmp_path: Path) -> None:
    """A table of the official library with a column that readers cannot put beside others still gets further columns."""
    column = REFUSED["fixed structs"][1]
    lance.write_dataset(pa.table({"id": [1, 2, 3], "c": column}), tmp_path, data_storage_version="2.2")
    table = lance_core.dataset(str(tmp_path))
    assert table.to_table()["c"].to_pylist() == column.to_pylist()
    table.add_columns({"n": "id + 1"})
    assert lance_core.dataset(str(tmp_path)).to_table(columns=["n"])["n"].to_pylist() == [2, 3, 4]


def test_a_column_alone_is_stored_and_gets_no_neighbour(tmp_path: Path) -> None:
    rows = pa.table({"c": REFUSED["fixed structs"][1]})
    table = lance_core.write_dataset(rows, str(tmp_path), data_storage_version="2.2")
    assert lance.dataset(tmp_path).to_table().equals(rows)
    with pytest.raises(InputError, match="beside other columns"):
        table.add_columns(pa.field("n", pa.int64()))


@pytest.mark.parametrize("target", ["uri", "handle"])
def test_an_overwrite_without_rows_is_judged_by_the_version_of_the_table(target: str, tmp_path: Path) -> None:
    rows = pa.table({"c": pa.array([[[{"x": 1}, {"x": 2}]]], pa.list_(PAIR))})
    operation = lance_core.LanceOperation.Overwrite(rows.schema, [])
    for version in ("2.2", "2.3"):
        uri = str(tmp_path / version)
        table = lance_core.write_dataset(pa.table({"a": [1]}), uri, data_storage_version=version)
        to = uri if target == "uri" else table
        if version == "2.2":
            with pytest.raises(InputError, match=r"column 'c\.item' has type"):
                lance_core.LanceDataset.commit(to, operation, read_version=1)
            assert lance_core.dataset(uri).schema.names == ["a"]
        else:
            lance_core.LanceDataset.commit(to, operation, read_version=1)
            lance_core.write_dataset(rows, uri, mode="append")
            assert lance.dataset(uri).to_table().to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("library", [lance, lance_core])
@pytest.mark.parametrize("values", [["", "a", None, "b"], ["a", None], [None, "", ""], [7, None, 0], [b"", None]])
def test_a_dictionary_has_each_item_once(library: Any, values: list[Any], tmp_path: Path) -> None:
    """Files of 2.0 store a null as an item behind the others, which is none of the dictionary's."""
    column = pa.array(values).dictionary_encode()
    library.write_dataset(pa.table({"c": column}), str(tmp_path), data_storage_version="2.0")
    found = lance_core.dataset(str(tmp_path)).to_table()["c"]
    assert found.to_pylist() == values
    assert [chunk.dictionary.to_pylist() for chunk in found.chunks] == [column.dictionary.to_pylist()]
    assert lance_core.dataset(str(tmp_path)).take([1, 0])["c"].to_pylist() == [values[1], values[0]]


def test_every_type_goes_through_every_door() -> None:
    doors = {}
    for case in storable.cases():
        doors.setdefault((case[0], case[2]), set()).add(storable.door_of(case))
    assert all(found == {*storable.WRITERS} for found in doors.values())


@pytest.mark.parametrize("kind", ["string_view", "binary_view"])
@pytest.mark.parametrize("door", storable.WRITERS)
def test_views_go_through_every_door(door: str, kind: str, tmp_path: Path) -> None:
    """Views in a struct, of which Arrow picks no rows."""
    rows = storable.rows_of(("pair", kind), "nulls", 7)
    storable.WRITERS[door](rows, str(tmp_path / "t"), "2.2")
    assert lance.dataset(tmp_path / "t").to_table()["c"].to_pylist() == rows["c"].to_pylist()


def test_accepted_types_are_kept_by_the_official_library() -> None:
    """A sample of the sweep: opened, scanned, taken, appended to and compacted there."""
    drawn = 42 if os.environ.get("CI") else random.randrange(len(storable.cases()) - SAMPLED)
    seed = int(os.environ.get("LANCE_TEST_SEED") or drawn)
    print(f"seed {seed}")
    found = [*storable.sweep(seed, SAMPLED)]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(storable.cases()), SHARE))
def test_all_types_in_all_versions(first: int) -> None:
    found = [*storable.sweep(first, SHARE)]
    assert not found, "\n".join(found)
