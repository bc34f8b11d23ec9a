"""Verbs of ours and of the official library, taking turns on one table: equal content after each step, both validate."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.edit.delete import stage_delete
from lance_core.errors import AlreadyExistsError, FilterError, InputError, NotFoundError, RetryableConflictError
from tests.dataset.dataset_tables import flat, mixed, same, snapshot_of_files


def check(uri: str) -> None:
    """Both libraries open the table, find it valid, and read the same rows with the same ids."""
    ours, theirs = lance_core.dataset(uri), lance.dataset(uri)
    theirs.validate()
    ours.validate()
    assert ours.version == theirs.version
    same(ours.to_table(), theirs.to_table())
    columns = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    same(ours.to_table(columns=columns), theirs.to_table(columns=columns))


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = str(tmp_path / "t.lance")
    lance_core.write_dataset(mixed(400), path, max_rows_per_file=100, enable_stable_row_ids=request.param)
    return path


def test_delete(uri: str) -> None:
    ds = lance_core.dataset(uri)
    assert ds.delete("id % 3 = 0 or id < 120") == {"num_deleted_rows": 214}
    assert ds.count_rows() == 186
    check(uri)
    assert len(ds.get_fragments()) == 3
    assert ds.delete("id > 1000") == {"num_deleted_rows": 0}
    lance.dataset(uri).delete("id = 200")
    ds.delete("id = 202")
    check(uri)
    with pytest.raises(FilterError):
        ds.delete("nope = 1")
    with pytest.raises(InputError):
        ds.delete(None)
    ds.truncate_table()
    assert ds.count_rows() == 0
    check(uri)


def test_delete_on_a_stale_handle_is_rebased(uri: str) -> None:
    stale = lance_core.dataset(uri)
    lance.dataset(uri).delete("id = 5")
    lance.write_dataset(mixed(10, first=400), uri, mode="append")
    assert stale.delete("id in (6, 7, 401)") == {"num_deleted_rows": 2}
    check(uri)
    assert lance_core.dataset(uri).count_rows() == 407


def test_many_deletions_become_a_bitmap(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(flat(20_000), path)
    ds.delete("id % 3 != 0")
    check(path)
    assert [name.suffix for name in (Path(path) / "_deletions").iterdir()] == [".bin"]


def test_update(uri: str) -> None:
    ds = lance_core.dataset(uri)
    assert ds.update({"name": "'new'", "x": "x * 2"}, where="id % 10 = 1") == {"num_rows_updated": 40}
    check(uri)
    assert ds.count_rows("name = 'new'") == 40
    lance.dataset(uri).update({"small": "1"}, where="id < 50")
    ds.checkout_latest()
    ds.update({"flag": "null"}, where="id < 150")
    check(uri)
    ds.update({"id": "id + 1000"})
    check(uri)
    assert ds.count_rows("id >= 1000") == 400
    before = snapshot_of_files(Path(uri))
    for updates, error in (
        ({"nope": "1"}, InputError),
        ({"id": "name || 'x'"}, InputError),
        ({}, InputError),
        ({"id": "("}, FilterError),
    ):
        with pytest.raises(error):
            ds.update(updates)
    assert snapshot_of_files(Path(uri)) == before


def test_update_to_null_where_none_may_be(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    ds = lance_core.write_dataset(flat(5).cast(schema), tmp_path / "t.lance")
    before = snapshot_of_files(tmp_path)
    with pytest.raises(InputError):
        ds.update({"id": "null"}, where="id = 3")
    assert snapshot_of_files(tmp_path) == before


def test_columns(uri: str) -> None:
    ds = lance_core.dataset(uri)
    ds.delete("id % 50 = 7")
    ds.add_columns({"twice": "id * 2", "loud": "upper(name)", "constant": "'k'"})
    check(uri)
    lance.dataset(uri).add_columns({"thrice": "id * 3"})
    ds.checkout_latest()
    ds.add_columns(pa.field("later", pa.list_(pa.struct([("a", pa.int32())]))))
    check(uri)
    ds.add_columns(lambda batch: pa.record_batch({"length": pa.compute.binary_length(batch["name"])}), ["name"])
    check(uri)
    ds.drop_columns(["flag", "point.x"])
    check(uri)
    ds.alter_columns({"path": "twice", "name": "double"}, {"path": "small", "data_type": pa.int32(), "name": "tiny"})
    check(uri)
    ds.alter_columns({"path": "id", "nullable": False})
    check(uri)
    ds.insert(ds.to_table(limit=10))
    check(uri)
    lance.dataset(uri).drop_columns(["loud"])
    lance.dataset(uri).optimize.compact_files()
    ds.checkout_latest()
    check(uri)
    assert ds.schema.field("tiny").type == pa.int32()
    assert not ds.schema.field("id").nullable


def test_wrong_column_changes_change_nothing(uri: str) -> None:
    ds = lance_core.dataset(uri)
    before = snapshot_of_files(Path(uri))

    def broken(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.num_rows:
            raise RuntimeError("no")
        return pa.record_batch({"y": pa.nulls(0, pa.int64())})

    with pytest.raises(RuntimeError):
        ds.add_columns(broken)
    for transforms in ({"id": "1"}, {}, 7, {"y": "nope"}, lambda batch: 3):
        with pytest.raises(InputError):
            ds.add_columns(transforms)
    for names in (["nope"], [], ["point.x", "point.label"], ds.schema.names):
        with pytest.raises(InputError):
            ds.drop_columns(names)
    for change in (
        {"path": "nope", "name": "a"},
        {"path": "id", "name": "x"},
        {"path": "name", "nullable": False},
        {"path": "name", "data_type": pa.int32()},
        {"path": "point", "data_type": pa.int32()},
        {"name": "a"},
    ):
        with pytest.raises(InputError):
            ds.alter_columns(change)
    assert snapshot_of_files(Path(uri)) == before


def test_restore(uri: str) -> None:
    ds = lance_core.dataset(uri)
    ds.delete("id < 100")
    ds.insert(mixed(20, first=400))
    old = ds.checkout_version(1)
    old.restore()
    assert old.version == 4
    check(uri)
    assert old.count_rows() == 400
    ds.checkout_latest()
    ds.insert(mixed(5, first=500))
    check(uri)
    ds.restore()
    assert ds.version == 5


def test_tags(uri: str) -> None:
    ds = lance_core.dataset(uri)
    ds.delete("id = 1")
    ds.tags.create("one", 1)
    ds.tags.create("two")
    ds.tags.create("again", "one")
    theirs = lance.dataset(uri)
    assert ds.tags.list() == theirs.tags.list()
    assert lance.dataset(uri, version="two").version == 2
    ds.tags.update("one", 2)
    assert theirs.tags.get_version("one") == 2 == ds.tags.get_version("one")
    ds.tags.delete("one")
    assert sorted(theirs.tags.list()) == ["again", "two"]
    with pytest.raises(AlreadyExistsError):
        ds.tags.create("two", 1)
    for call in (lambda: ds.tags.delete("one"), lambda: ds.tags.update("one", 1), lambda: ds.tags.create("x", 99)):
        with pytest.raises(NotFoundError):
            call()
    for name in ("", "../x", "a/b", ".hidden"):
        with pytest.raises(InputError):
            ds.tags.create(name, 1)


def test_drop(uri: str, tmp_path: Path) -> None:
    lance_core.LanceDataset.drop(uri)
    assert not Path(uri).exists()
    with pytest.raises(NotFoundError):
        lance_core.LanceDataset.drop(uri)
    lance_core.LanceDataset.drop(uri, ignore_not_found=True)
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "me.txt").write_text("x")
    with pytest.raises(NotFoundError):
        lance_core.LanceDataset.drop(tmp_path / "keep")
    assert (tmp_path / "keep" / "me.txt").exists()


def test_a_conflict_is_planned_again_and_leaves_nothing_behind(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_core.dataset.write import retry as edit

    ds = lance_core.dataset(uri)
    real, calls = edit.commit_transaction, []

    def lose_once(store, transaction, **options):
        calls.append(transaction.read_version)
        if len(calls) == 1:
            lance.dataset(uri).delete("id = 3")
            raise RetryableConflictError("lost")
        return real(store, transaction, **options)

    monkeypatch.setattr(edit, "commit_transaction", lose_once)
    assert ds.delete("id < 5") == {"num_deleted_rows": 4}
    assert calls == [1, 2]
    check(uri)
    assert len(list((Path(uri) / "_deletions").iterdir())) == 2


def test_log(uri: str) -> None:
    ds = lance_core.dataset(uri)
    ds.delete("id = 1")
    ds.update({"name": "'a'"}, where="id = 2")
    assert [t.operation.name for t in ds.get_transactions()] == ["Update", "Delete", "Overwrite"]
    assert lance.dataset(uri).read_transaction(2) is not None
    assert ds.read_transaction(2).operation.predicate == "id = 1"


def _step(uri: str, rng: random.Random, next_id: list[int]) -> None:
    """One random edit by one of the two libraries, through the names they share."""
    library = rng.choice([lance, lance_core])
    ds = library.dataset(uri)
    low = rng.randrange(max(next_id[0], 1))
    kind = rng.choice(["append", "delete", "update", "compact", "append", "overwrite", "add", "restore"])
    if kind == "append" or ds.count_rows() == 0:
        rows = rng.randrange(1, 60)
        columns = ds.schema.names
        table = mixed(rows, first=next_id[0])
        table = table.select([name for name in columns if name in table.schema.names])
        next_id[0] += rows
        library.write_dataset(table, uri, mode="append", max_rows_per_file=rng.choice([10, 1000]))
    elif kind == "delete":
        ds.delete(f"id >= {low} and id < {low + rng.randrange(1, 40)} or id % 11 = {rng.randrange(11)}")
    elif kind == "update":
        ds.update({"name": f"'u{low}'"}, where=f"id > {low} and id % 3 = 0")
    elif kind == "compact":
        lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=rng.choice([50, 500]))
    elif kind == "overwrite":
        library.write_dataset(mixed(30, first=next_id[0]), uri, mode="overwrite")
        next_id[0] += 30
    elif kind == "add":
        name = f"c{ds.version}"
        ds.add_columns({name: "id + 1"})
        library.dataset(uri).drop_columns([name])
    elif kind == "restore":
        library.dataset(uri, version=rng.randrange(max(1, ds.version - 3), ds.version + 1)).restore()


def _history(path: Path, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    uri = str(path / f"{seed}.lance")
    lance_core.write_dataset(mixed(50), uri, max_rows_per_file=20, enable_stable_row_ids=bool(seed % 2))
    next_id = [50]
    for _ in range(steps):
        _step(uri, rng, next_id)
        check(uri)


@pytest.mark.parametrize("seed", range(6))
def test_alternating_histories(tmp_path: Path, seed: int) -> None:
    _history(tmp_path, seed, 15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_long_alternating_histories(tmp_path: Path, seed: int) -> None:
    _history(tmp_path, seed, 30)


def test_staging_a_delete_changes_nothing_visible(uri: str) -> None:
    ds = lance_core.dataset(uri)
    edit = stage_delete(ds.snapshot, "id < 10")
    assert (edit.transaction.operation.name, edit.result) == ("Delete", {"num_deleted_rows": 10})
    assert lance_core.dataset(uri).version == 1
    check(uri)
