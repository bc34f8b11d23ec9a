"""Small column files become one: which ones, what stays as it is, and what the official library makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.maintain.column_merge import merge_fragment_files
from lance_core.dataset.maintain.column_merge_plan import ColumnMergeOptions, ColumnMergePlan, plan_column_merges
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.format.fragment import DataFile, DataOverlayFile, Fragment
from lance_core.format.schema import TOMBSTONE, Field, Schema
from lance_core.table.operations.data_replacement import DataReplacement, Replacement

ROWS = 300
PER_FRAGMENT = 100


def schema_of(count: int, **extra: Any) -> Schema:
    return Schema(tuple(Field(number, f"c{number}", -1, "int64", **extra) for number in range(count)))


def fragment_of(*sizes: int | None, version: tuple[int, int] = (2, 1), **extra: Any) -> Fragment:
    """A file of one column for each size."""
    files = tuple(DataFile(f"f{at}.lance", (at,), (0,), *version, file_size_bytes=size) for at, size in enumerate(sizes))
    return Fragment(7, files, 100, **extra)


def plan(fragment: Fragment, most: int, enough: int | None = None, schema: Schema | None = None) -> ColumnMergePlan:
    schema = schema or schema_of(len(fragment.files))
    return plan_column_merges([fragment], schema, ColumnMergeOptions(most, enough), read_version=1)


def chosen(*sizes: int | None, most: int, enough: int | None = None) -> list[int]:
    """Places of the files that are merged."""
    merges = plan(fragment_of(*sizes), most, enough).merges
    return [int(file.path[1:-6]) for merge in merges for file in merge.files]


@pytest.mark.parametrize(
    ("sizes", "most", "enough", "expected"),
    [
        ((900, 8, 4, 2, 2, 1), 6, None, []),
        ((900, 8, 4, 2, 2, 1), 4, None, [3, 4, 5]),
        ((900, 8, 4, 2, 2, 1), 5, 2, [1, 2, 3, 4, 5]),
        ((900, 8, 4, 2, 2, 1), 5, 9, [3, 5]),
        ((900, 800, 700, 2, 1), 4, 2, [3, 4]),
        ((900, 800, 700, 2, 1), 3, None, [2, 3, 4]),
        ((900, 800, 700), 1, None, [0, 1, 2]),
        ((900, None, 4, 2, None), 4, None, [2, 3]),
        ((None, None), 1, None, [0, 1]),
    ],
    ids=["few-enough", "smallest", "until-enough", "no-more-than-allowed", "large-ones-stay", "unless-nothing-else-helps",
         "all-large", "unknown-sizes-stay", "all-unknown"],
)  # fmt: skip
def test_the_smallest_files_are_chosen(
    sizes: tuple[int | None, ...], most: int, enough: int | None, expected: list[int]
) -> None:
    assert chosen(*sizes, most=most, enough=enough) == expected


def test_dead_files_are_the_smallest() -> None:
    fragment = fragment_of(900, 5, 5, 5)
    dead = DataFile("f9.lance", (TOMBSTONE,), (0,), 2, 1, file_size_bytes=10_000)
    (merge,) = plan(Fragment(7, (*fragment.files, dead), 100), 4, schema=schema_of(4)).merges
    assert [file.path for file in merge.files] == ["f1.lance", "f9.lance"]


def test_what_is_left_alone_is_named() -> None:
    overlaid = fragment_of(5, 5, 5, overlays=(DataOverlayFile(b""),))
    assert plan(overlaid, 2).skipped == ((7, "it has overlays"),)
    assert plan(fragment_of(5, 5, 5, version=(0, 1)), 2).skipped == ((7, "its files have version 0.1"),)
    blobs = schema_of(3, metadata={"lance-encoding:blob": b"true"})
    assert plan(fragment_of(5, 5, 5), 2, schema=blobs).skipped == (
        (7, "its other files hold blobs, or parts of one column"),
    )
    assert plan(fragment_of(5, 5, 5), 3).skipped == ()


def test_parts_of_one_column_are_merged_from_version_2_1_on() -> None:
    schema = Schema((Field(0, "s", -1, "struct"), Field(1, "a", 0, "int64"), Field(2, "b", 0, "int64")))
    for version, merges in (((2, 0), 0), ((2, 1), 1)):
        files = tuple(DataFile(f"f{at}.lance", (at,), (0,), *version, file_size_bytes=5) for at in (1, 2))
        assert len(plan(Fragment(7, files, 100), 1, schema=schema).merges) == merges


@pytest.mark.parametrize("options", [{"max_files_per_fragment": 0}, {"enough_files": 0}], ids=["most", "enough"])
def test_at_least_one_file_is_left(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        ColumnMergeOptions(**options)


def rows(version: str) -> pa.Table:
    """A wide vector, a struct, a packed struct, a list of structs; nulls where the version can hold them."""
    packed = {"packed": "true"} if version == "2.0" else {"lance-encoding:packed": "true"}
    kind = pa.struct([("x", pa.int32()), ("y", pa.float32())])
    vector = pa.array(np.arange(ROWS * 64, dtype=np.float32))
    structs = [{"a": i, "t": str(i)} if i % 7 or version == "2.0" else None for i in range(ROWS)]
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("v", pa.list_(pa.float32(), 64)),
            pa.field("s", pa.struct([("a", pa.int32()), ("t", pa.string())])),
            pa.field("p", kind, metadata=packed),
            pa.field("l", pa.list_(pa.struct([("q", pa.int64())]))),
        ]
    )
    return pa.table(
        {
            "id": range(ROWS),
            "v": pa.FixedSizeListArray.from_arrays(vector, 64),
            "s": structs,
            "p": [{"x": i, "y": i / 2} for i in range(ROWS)],
            "l": [[{"q": j} for j in range(i % 3)] if i % 5 else None for i in range(ROWS)],
        },
        schema=schema,
    )


def late_columns(version: str) -> pa.Table:
    """Columns that are added by a join: nested, packed, encoded by a dictionary."""
    table = rows(version)
    return pa.table(
        {
            "id": table["id"],
            "n": [{"u": i, "w": {"z": str(i)}} if i % 4 or version == "2.0" else None for i in range(ROWS)],
            "p2": table["p"],
            "d": pa.array([str(i % 5) for i in range(ROWS)]).dictionary_encode(),
        }
    ).cast(
        pa.schema(
            [
                pa.field("id", pa.int64()),
                pa.field("n", pa.struct([("u", pa.int64()), ("w", pa.struct([("z", pa.string())]))])),
                table.schema.field("p").with_name("p2"),
                pa.field("d", pa.dictionary(pa.int32(), pa.string())),
            ]
        )
    )


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> str:
    """A table by the official library: three fragments of six files each, two indices, every tenth row deleted."""
    uri = str(tmp_path / "t.lance")
    made = lance.write_dataset(
        rows(version), uri, data_storage_version=version, enable_stable_row_ids=request.param, max_rows_per_file=PER_FRAGMENT
    )
    made.create_scalar_index("id", "BTREE")
    for number in range(4):
        lance.dataset(uri).add_columns({f"c{number}": f"id + {number}"})
    lance.dataset(uri).create_scalar_index("c1", "BTREE")
    lance.dataset(uri).delete("id % 10 = 3")
    lance.dataset(uri).merge(late_columns(version), "id")
    return uri


def files(uri: str) -> list[int]:
    return [len(fragment.data_files()) for fragment in lance.dataset(uri).get_fragments()]


def test_nothing_changes_but_the_files(uri: str) -> None:
    before = lance.dataset(uri).to_table(with_row_id=True, with_row_address=True)
    old = lance.dataset(uri)
    assert files(uri) == [6, 6, 6]
    ours = lance_core.dataset(uri)
    metrics = ours.optimize.merge_column_files(max_files_per_fragment=2)
    assert (metrics.fragments, metrics.files_removed, metrics.files_added) == (3, 15, 3)
    assert (ours.version, files(uri)) == (old.version + 1, [2, 2, 2])
    for found in (ours, lance.dataset(uri)):
        found.validate()
        assert found.to_table(with_row_id=True, with_row_address=True).equals(before)
        assert found.take([0, 150, 269]).to_pylist() == old.take([0, 150, 269]).to_pylist()
        assert found.to_table(filter="c1 = 56", columns=["id"])["id"].to_pylist() == [55]
        by_struct = found.to_table(filter="s.a = 55", columns=["n", "c3"])
        assert by_struct.to_pylist() == old.to_table(filter="id = 55", columns=["n", "c3"]).to_pylist()
    for name in ("id_idx", "c1_idx"):
        statistics = lance.dataset(uri).stats.index_stats(name)
        assert (statistics["num_indexed_fragments"], statistics["num_unindexed_rows"]) == (3, 0)
    assert [fragment.fragment_id for fragment in lance.dataset(uri).get_fragments()] == [0, 1, 2]
    assert [fragment.deletion_file() for fragment in lance.dataset(uri).get_fragments()] == [
        fragment.deletion_file() for fragment in old.get_fragments()
    ]


def test_a_second_run_finds_nothing(uri: str) -> None:
    ours = lance_core.dataset(uri)
    assert ours.optimize.merge_column_files().fragments == 0
    ours.optimize.merge_column_files(max_files_per_fragment=3)
    version = ours.version
    assert (ours.optimize.merge_column_files(max_files_per_fragment=3).fragments, ours.version) == (0, version)
    assert files(uri) == [3, 3, 3]


def test_writers_of_both_libraries_go_on(uri: str, version: str) -> None:
    lance_core.dataset(uri).optimize.merge_column_files(max_files_per_fragment=1)
    assert files(uri) == [1, 1, 1]
    expected = lance.dataset(uri).to_table(filter="id >= 10 AND id != 50")
    lance.dataset(uri).delete("id < 10")
    lance_core.dataset(uri).delete("id = 50")
    lance.dataset(uri).add_columns({"late": "c2 * 2"})
    lance_core.dataset(uri).update({"c0": "c0 + 0"}, where="id = 200")
    lance.dataset(uri).optimize.compact_files()
    lance.dataset(uri).validate()
    for found in (lance.dataset(uri), lance_core.dataset(uri)):
        table = found.to_table(columns=expected.column_names).sort_by("id")
        assert table.equals(expected.sort_by("id"))
        assert found.to_table(filter="id = 77", columns=["late"])["late"].to_pylist() == [158]


def test_vectors_are_found_by_their_index(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    vectors = np.random.default_rng(0).random((512, 8), dtype=np.float32)
    lance.write_dataset(pa.table({"id": range(512)}), uri, max_rows_per_file=256)
    lance.dataset(uri).add_columns({"a": "id + 1"})
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 8)
    lance.dataset(uri).merge(pa.table({"id": range(512), "v": column}), "id")
    lance.dataset(uri).create_index("v", "IVF_FLAT", num_partitions=4)
    nearest = {"column": "v", "q": vectors[300], "k": 5, "nprobes": 4}
    before = lance.dataset(uri).to_table(nearest=nearest, columns=["id", "a"])
    lance_core.dataset(uri).optimize.merge_column_files(max_files_per_fragment=1)
    for found in (lance.dataset(uri), lance_core.dataset(uri)):
        assert found.to_table(nearest=nearest, columns=["id", "a"])["id"].to_pylist() == before["id"].to_pylist()
    assert "ANNSubIndex" in lance.dataset(uri).scanner(nearest=nearest).explain_plan()
    assert lance.dataset(uri).stats.index_stats("v_idx")["num_unindexed_rows"] == 0


@pytest.mark.parametrize("version", ["2.1", "2.2"], indirect=True)
def test_files_with_blobs_stay(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "t.lance")
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}) if version == "2.1" else None
    table = pa.table({"id": range(20)})
    if blob is not None:
        table = table.append_column(blob, pa.array([bytes([i]) * 1000 for i in range(20)], pa.large_binary()))
    else:
        table = table.append_column(lance.blob_field("b"), lance.blob_array([bytes([i]) * 1000 for i in range(20)]))
    lance.write_dataset(table, uri, data_storage_version=version, max_rows_per_file=10)
    for number in range(3):
        lance.dataset(uri).add_columns({f"c{number}": f"id + {number}"})
    ours = lance_core.dataset(uri)
    assert ours.optimize.merge_column_files(max_files_per_fragment=1).files_removed == 6
    assert files(uri) == [2, 2]
    assert ours.optimize.merge_column_files(max_files_per_fragment=1).fragments == 0
    for found in (lance.dataset(uri), ours):
        (blob,) = found.take_blobs("b", indices=[13])
        assert blob.read() == bytes([13]) * 1000
        assert found.to_table(columns=["c2"])["c2"].to_pylist() == [i + 2 for i in range(20)]


def test_dropped_and_replaced_columns_go_with_their_files(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": range(20), "x": range(20)}), uri)
    for number in range(3):
        lance.dataset(uri).add_columns({f"a{number}": f"id + {number}", f"b{number}": f"id - {number}"})
    lance.dataset(uri).drop_columns(["a0", "a1", "x"])
    ours = lance_core.dataset(uri)
    before = ours.to_table()
    ours.optimize.merge_column_files(max_files_per_fragment=2)
    (fragment,) = ours.snapshot.manifest.fragments
    live = set(ours.snapshot.manifest.schema.ids)
    assert len(fragment.files) == 2 and set(fragment.files[-1].fields) <= live
    for found in (lance.dataset(uri), lance_core.dataset(uri)):
        found.validate()
        assert found.to_table().equals(before)


def test_a_delete_in_between_is_kept_and_an_append_is_not_touched(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = lance_core.dataset(uri)
    before = ours.to_table()
    lance.dataset(uri).delete("id = 5")
    lance.write_dataset(lance.dataset(uri).to_table(limit=2), uri, mode="append")
    metrics = ours.optimize.merge_column_files(max_files_per_fragment=2)  # planned on the version before both
    assert metrics.fragments == 3
    assert files(uri) == [2, 2, 2, 1]
    lance.dataset(uri).validate()
    found = lance.dataset(uri).to_table()
    assert found.num_rows == before.num_rows - 1 + 2
    assert 5 not in found["id"].to_pylist()


def test_new_values_in_between_are_not_lost(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": range(20)}), uri)
    for number in range(3):
        lance.dataset(uri).add_columns({f"c{number}": f"id + {number}"})
    ours = lance_core.dataset(uri)
    (fragment,) = lance.dataset(uri).get_fragments()
    changed, fields = fragment.update_columns(pa.table({"id": range(20), "c1": [-1] * 20}), left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    lance.LanceDataset.commit(uri, operation, read_version=ours.version)
    ours.optimize.merge_column_files(max_files_per_fragment=1)
    assert lance.dataset(uri).to_table(columns=["c1"])["c1"].to_pylist() == [-1] * 20
    assert files(uri) == [1]


def test_a_failure_leaves_no_file(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_core.dataset.maintain import column_merge

    before = {path for path in Path(uri).rglob("*") if path.is_file()}
    calls: list[int] = []

    def fails(snapshot: Snapshot, merge: Any, *, attempt: str | None = None) -> Fragment:
        calls.append(merge.fragment.id)
        if len(calls) == 3:
            raise OSError("the disk is full")
        return merge_fragment_files(snapshot, merge, attempt=attempt)

    monkeypatch.setattr(column_merge, "merge_fragment_files", fails)
    with pytest.raises(OSError, match="the disk is full"):
        lance_core.dataset(uri).optimize.merge_column_files(max_files_per_fragment=2)
    assert {path for path in Path(uri).rglob("*") if path.is_file()} == before


def test_a_replaced_file_makes_the_replacement_plan_again(tmp_path: Path) -> None:
    """A DataReplacement that was planned on a file that was merged must not land beside it."""
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(10)}), uri)
    for number in range(2):
        lance_core.dataset(uri).add_columns({f"c{number}": f"id + {number}"})
    before = lance_core.dataset(uri)
    (fragment,) = before.snapshot.manifest.fragments
    operation = DataReplacement((Replacement(fragment.id, fragment.files[1]),))
    lance_core.dataset(uri).optimize.merge_column_files(max_files_per_fragment=1)
    with pytest.raises(lance_core.errors.CommitError):
        lance_core.LanceDataset.commit(uri, operation, read_version=before.version)
    assert lance.dataset(uri).to_table(columns=["c0"])["c0"].to_pylist() == [*range(10)]
