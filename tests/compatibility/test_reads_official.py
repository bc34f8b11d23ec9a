"""Tables written by the official library, read equal by us: whole, projected, filtered, cut, taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_core
from lance_core.errors import FilterError, InputError, NotFoundError
from tests.dataset.dataset_tables import flat, mixed, same

Build = Callable[[str], lance.LanceDataset]


def _fragments(uri: str) -> lance.LanceDataset:
    return lance.write_dataset(mixed(500), uri, max_rows_per_file=120)


def _deleted(uri: str) -> lance.LanceDataset:
    ds = _fragments(uri)
    ds.delete("id % 3 = 1 or (id >= 120 and id < 240)")
    ds.delete("id = 499")
    return ds


def _many_deleted(uri: str) -> lance.LanceDataset:
    ds = lance.write_dataset(mixed(20_000), uri)
    ds.delete("id % 2 = 0")
    return ds


def _evolved(uri: str) -> lance.LanceDataset:
    ds = _fragments(uri)
    ds.add_columns({"twice": "id * 2", "loud": "upper(name)"})
    ds.drop_columns(["flag", "blob"])
    lance.write_dataset(mixed(50, first=500).select(["id", "name"]), uri, mode="append")
    ds = lance.dataset(uri)
    ds.alter_columns({"path": "small", "name": "tiny"})
    ds.add_columns(pa.field("later", pa.int32()))
    return ds


def _updated(uri: str) -> lance.LanceDataset:
    ds = _fragments(uri)
    ds.update({"name": "'new'"}, where="id % 10 = 3")
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(mixed(30, first=490, seed=3))
    return lance.dataset(uri)


def _stable(uri: str) -> lance.LanceDataset:
    ds = lance.write_dataset(mixed(300), uri, max_rows_per_file=100, enable_stable_row_ids=True)
    ds.update({"name": "'new'"}, where="id % 10 = 3")
    ds.delete("id % 7 = 0")
    ds.optimize.compact_files(target_rows_per_fragment=200)
    return lance.dataset(uri)


def _compacted(uri: str) -> lance.LanceDataset:
    ds = _deleted(uri)
    ds.optimize.compact_files()
    return ds


def _version(name: str) -> Build:
    return lambda uri: lance.write_dataset(mixed(500), uri, max_rows_per_file=200, data_storage_version=name)


def _version_2_0(uri: str) -> lance.LanceDataset:
    # Null structs came with 2.1.
    table = mixed(500)
    points = pc.if_else(table["point"].is_null(), pa.scalar({"x": 0.0, "label": None}, table["point"].type), table["point"])
    table = table.set_column(table.column_names.index("point"), "point", points)
    return lance.write_dataset(table, uri, max_rows_per_file=200, data_storage_version="2.0")


BUILDS: dict[str, Build] = {
    "fragments": _fragments,
    "deleted": _deleted,
    "many_deleted": _many_deleted,
    "evolved": _evolved,
    "updated": _updated,
    "stable": _stable,
    "compacted": _compacted,
    "v2_0": _version_2_0,
    "v2_1": _version("2.1"),
    "empty": lambda uri: lance.write_dataset(mixed(0), uri),
}


@pytest.fixture(scope="module", params=sorted(BUILDS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    uri = str(tmp_path_factory.mktemp(request.param) / "t.lance")
    theirs = BUILDS[request.param](uri)
    return lance_core.dataset(uri), lance.dataset(theirs.uri)


def test_whole(pair) -> None:
    ours, theirs = pair
    assert ours.version == theirs.version
    assert ours.count_rows() == theirs.count_rows()
    same(ours.to_table(), theirs.to_table())


def test_batches(pair) -> None:
    ours, theirs = pair
    batches = list(ours.to_batches(batch_size=64))
    assert all(0 < batch.num_rows <= 64 for batch in batches)
    same(pa.Table.from_batches(batches, schema=ours.schema), theirs.to_table())


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["name", "id"]},
        {"columns": ["point.label", "id"]},
        {"columns": ["id"], "with_row_id": True},
        {"columns": ["id"], "with_row_id": True, "with_row_address": True},
        {"columns": ["_rowid", "_rowaddr", "name"]},
        {"columns": ["_row_created_at_version", "_row_last_updated_at_version", "id"]},
        {"columns": [], "with_row_id": True},
        {"columns": {"double": "id * 2", "low": "lower(name)", "lab": "point.label"}},
        {"columns": ["id"], "limit": 7},
        {"columns": ["id"], "limit": 130, "offset": 115},
        {"columns": ["id"], "offset": 10_000},
        {"columns": ["id"], "limit": 0},
        {"filter": "id % 5 = 2"},
        {"filter": "id = 77"},
        {"filter": "id < 0"},
        {"filter": "name = 'alpha' and x > 0", "columns": ["id", "vector"]},
        {"filter": "point.x > 100 and point.label = 'p1'", "columns": ["point.x", "id"]},
        {"filter": "name is null or ts > timestamp '2020-01-10 00:00:00'", "columns": ["tags", "ts"]},
        {"filter": "array_has(tags, '2')", "columns": ["id"], "limit": 20, "offset": 5},
        {"filter": "_rowid < 100 and id > 3", "columns": ["id"], "with_row_id": True},
        {"filter": "name = 'new'", "columns": ["id", "name"]},
        {"filter": pc.field("id") > 450, "columns": ["id", "name"]},
    ],
    ids=str,
)
def test_scans(pair, options) -> None:
    ours, theirs = pair
    same(ours.to_table(**options), theirs.to_table(**options))
    batches = list(ours.to_batches(batch_size=33, **options))
    expected = theirs.to_table(**options)
    if expected.num_columns:
        same(pa.Table.from_batches(batches, schema=ours.scanner(**options).projected_schema), expected)
    if "filter" in options:
        assert ours.count_rows(options["filter"]) == theirs.count_rows(options["filter"])


def test_take(pair) -> None:
    ours, theirs = pair
    rows = ours.count_rows()
    if not rows:
        assert ours.take([]).num_rows == 0
        return
    picked = [rows - 1, 0, rows // 2, rows // 2, 3, 1]
    same(ours.take(picked), theirs.take(picked))
    same(ours.take(pa.array(picked), columns=["name", "id"]), theirs.take(picked, columns=["name", "id"]))
    same(ours.take([5], columns={"n": "id + 1"}), theirs.take([5], columns={"n": "id + 1"}))
    same(ours.head(4), theirs.head(4))
    for wrong in ([rows], [-1], [0.5], [[1]]):
        with pytest.raises(InputError):
            ours.take(wrong)


def test_fragments(pair) -> None:
    ours, theirs = pair
    left, right = ours.get_fragments(), theirs.get_fragments()
    assert [f.fragment_id for f in left] == [f.fragment_id for f in right]
    assert [f.count_rows() for f in left] == [f.count_rows() for f in right]
    assert [f.num_deletions for f in left] == [f.num_deletions for f in right]
    for mine, other in zip(left, right):
        same(mine.to_table(columns=["id"]), other.to_table(columns=["id"]))
    if left:
        same(left[-1].take([0, 2], columns=["id"]), right[-1].take([0, 2], columns=["id"]))
        same(
            ours.to_table(columns=["id"], fragments=left[:1]), theirs.scanner(columns=["id"], fragments=right[:1]).to_table()
        )
    ours.validate()


def test_versions(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(flat(10), uri)
    lance.write_dataset(flat(10, first=10), uri, mode="append")
    theirs = lance.write_dataset(flat(3), uri, mode="overwrite")
    theirs.tags.create("two", 2)
    ours = lance_core.dataset(uri)
    for mine, other in zip(ours.versions(), theirs.versions(), strict=True):
        assert {**mine, "timestamp": 0} == {**other, "timestamp": 0}
    assert lance_core.dataset(uri, version=2).count_rows() == 20
    assert lance_core.dataset(uri, version="two").version == 2
    assert ours.checkout_version(1).count_rows() == 10
    moments = [entry["timestamp"] for entry in ours.versions()]
    assert lance_core.dataset(uri, asof=moments[1].astimezone()).version == 2
    for wrong in (9, "nope"):
        with pytest.raises(NotFoundError):
            lance_core.dataset(uri, version=wrong)
    with pytest.raises(NotFoundError):
        lance_core.dataset(uri, asof="1999-01-01")


def test_wrong_questions(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(flat(10), uri)
    ours = lance_core.dataset(uri)
    for options in (
        {"columns": ["nope"]},
        {"columns": ["id", "id"]},
        {"columns": "id"},
        {"columns": [1]},
        {"limit": -1},
        {"offset": -1},
        {"batch_size": 0},
        {"nearest": {"column": "id"}},
        {"full_text_query": "a"},
        {"order_by": ["nope"]},
        {"index_segments": ["a"]},
        {"blob_handling": "some"},
    ):
        with pytest.raises(InputError):
            ours.to_table(**options)
    for wrong in ("nope = 1", "id = 'x'", "id"):
        with pytest.raises(FilterError):
            ours.to_table(filter=wrong)
    with pytest.raises(TypeError):
        ours.to_table(colums=["id"])
    with pytest.raises(NotFoundError, match="not a Lance table"):
        lance_core.dataset(str(tmp_path / "nothing"))
    with pytest.raises(InputError):
        lance_core.dataset(uri, version=1, asof="2024-01-01")


def test_every_option_of_the_official_scanner_is_known(tmp_path: Path) -> None:
    import inspect

    ours = lance_core.write_dataset(flat(3), tmp_path / "t.lance")
    for verb in ("scanner", "to_table", "to_batches", "to_pandas"):
        for name in inspect.signature(getattr(lance.LanceDataset, verb)).parameters:
            if name not in ("self", "kwargs"):
                getattr(ours, verb)(**{name: None})
