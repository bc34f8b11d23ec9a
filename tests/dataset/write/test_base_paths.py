"""Data files in several places, and tables with names of manifests that count up."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError, RetryableConflictError, SchemaMismatchError
from lance_core.io.resolve import resolve_store


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"a": [*range(first, first + count)]})


def bases_of(ds: lance_core.LanceDataset) -> list[int | None]:
    return [file.base_id for fragment in ds.snapshot.manifest.fragments for file in fragment.files]


def test_the_same_calls_put_files_in_the_same_places_in_both_libraries(tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    for library, base in ((lance, lance.DatasetBasePath), (lance_core, lance_core.DatasetBasePath)):
        folder = tmp_path / library.__name__
        uri, one, two = (str(folder / name) for name in ("t", "one", "two"))
        write, few = library.write_dataset, {"max_rows_per_file": 2}
        write(rows(0, 6), uri, initial_bases=[base(one, "one"), base(two, "two", True)], target_bases=["one", two], **few)
        write(rows(6, 2), uri, mode="append", target_bases=["two"])
        write(rows(8, 6), uri, mode="append", target_all_bases=True, **few)
        write(rows(14, 4), uri, mode="append", target_all_bases=False, **few)
        write(rows(18, 1), uri, mode="append")
        library.dataset(uri).delete("a IN (1, 7)")
        states = []
        for version in range(1, 7):
            ds = lance_core.dataset(uri, version=version)
            ds.validate()
            assert ds.to_table().equals(lance.dataset(uri, version=version).to_table())
            states.append((bases_of(ds), ds.to_table().num_rows))
        ds = lance_core.dataset(uri)
        bases = {number: (base.name, base.is_dataset_root) for number, base in ds.base_paths().items()}
        count = {name: len([*(folder / name).rglob("*.lance")]) for name in ("t", "one", "two")}
        found[library.__name__] = (states, bases, count, sorted(ds.to_table()["a"].to_pylist()))
        library.dataset(uri).optimize.compact_files()
        assert lance.dataset(uri).count_rows() == lance_core.dataset(uri).count_rows() == 17
        write(rows(0, 1), uri, mode="overwrite", target_bases=["one"])
        assert bases_of(lance_core.dataset(uri)) == [1]
    assert found["lance"] == found["lance_core"]


def test_a_write_that_fails_leaves_no_file_in_any_place(tmp_path: Path) -> None:
    uri, base = str(tmp_path / "t"), lance_core.DatasetBasePath(str(tmp_path / "one"), "one")
    lance_core.write_dataset(rows(0, 1), uri, initial_bases=[base])
    files = sorted(tmp_path.rglob("*"))

    def batches() -> Any:
        yield from rows(0, 10).to_batches(max_chunksize=2)
        raise SchemaMismatchError("no more")

    with pytest.raises(SchemaMismatchError):
        lance_core.write_dataset(batches(), uri, rows(0, 1).schema, "append", target_all_bases=True, max_rows_per_file=2)
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [path for path in files if path.is_file()]


def test_what_is_refused(tmp_path: Path) -> None:
    uri, base = str(tmp_path / "t"), lance_core.DatasetBasePath(str(tmp_path / "one"), "one")
    with pytest.raises(InputError, match="not a base path"):
        lance_core.write_dataset(rows(0, 1), uri, target_bases=["one"])
    with pytest.raises(InputError, match="twice"):
        lance_core.write_dataset(rows(0, 1), uri, initial_bases=[base, base])
    lance_core.write_dataset(rows(0, 1), uri, initial_bases=[base])
    for options in ({"initial_bases": [base]}, {"target_bases": ["x"]}, {"target_bases": ["one"], "target_all_bases": True}):
        with pytest.raises(InputError):
            lance_core.write_dataset(rows(0, 1), uri, mode="append", **options)
    assert lance_core.dataset(uri).version == 1


def test_fragments_of_one_s_own(tmp_path: Path) -> None:
    uri, base = str(tmp_path / "t"), lance_core.DatasetBasePath(str(tmp_path / "one"), "one")
    ds = lance_core.write_dataset(rows(0, 1), uri, initial_bases=[base])
    transaction = lance_core.fragment.write_fragments(rows(1, 1), ds, target_bases=["one"], return_transaction=True)
    ds = lance_core.LanceDataset.commit(ds, transaction)
    assert bases_of(ds) == [None, 1]
    assert lance.dataset(uri).count_rows() == 2


def test_names_that_count_up(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance_core.write_dataset(rows(0, 1), uri, enable_v2_manifest_paths=False)
    lance.write_dataset(rows(1, 1), uri, mode="append")
    ds = lance_core.write_dataset(rows(2, 1), uri, mode="append")
    names = {path.name for path in (tmp_path / "t" / "_versions").glob("*.manifest")}
    assert names == {"1.manifest", "2.manifest", "3.manifest"}
    assert lance.dataset(uri).count_rows() == 3
    ds.migrate_manifest_paths_v2()
    assert all(len(path.stem) == 20 for path in (tmp_path / "t" / "_versions").glob("*.manifest"))
    assert lance.dataset(uri).version == lance_core.dataset(uri).version == 3


def test_a_merge_writes_to_the_places_it_is_told(tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    for library, base in ((lance, lance.DatasetBasePath), (lance_core, lance_core.DatasetBasePath)):
        folder = tmp_path / library.__name__
        uri, one, two = (str(folder / name) for name in ("t", "one", "two"))
        first = pa.table({"a": [1, 2, 3, 4], "b": [0, 0, 0, 0]})
        library.write_dataset(first, uri, initial_bases=[base(one, "one"), base(two, "two", True)])
        ds, states = library.dataset(uri), []
        for number, place in enumerate(
            ({"target_bases": ["two"]}, {"target_bases": [one]}, {"target_all_bases": False}, {})
        ):
            merge = ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
            for name, value in place.items():
                getattr(merge, name)(value)
            merge.execute(pa.table({"a": [number + 1, number + 10], "b": [number, number]}))
            ours = lance_core.dataset(uri)
            ours.validate()
            states.append((bases_of(ours), sorted(ours.to_table().to_pylist(), key=str)))
            assert ours.to_table().equals(lance.dataset(uri).to_table())
        found[library.__name__] = states
    assert found["lance"] == found["lance_core"]
    ours = lance_core.dataset(str(tmp_path / "lance_core/t"))
    merge = ours.merge_insert("a").when_matched_update_all()
    with pytest.raises(InputError, match="not a base path"):
        merge.target_bases(["three"]).execute(pa.table({"a": [1], "b": [1]}))
    with pytest.raises(InputError, match="cannot be combined"):
        merge.target_all_bases()
    with pytest.raises(InputError, match="not implemented"):
        merge.write_mode("rewrite_columns")
    # A merge that loses takes its files away, wherever they are.
    stale = lance_core.dataset(ours.uri)
    ours.update({"b": "9"}, where="a = 1")
    files = sorted(tmp_path.rglob("*.lance"))
    lost = stale.merge_insert("a").when_matched_update_all().target_bases(["one", stale.uri]).conflict_retries(0)
    with pytest.raises(RetryableConflictError):
        lost.execute(pa.table({"a": [1], "b": [1]}))
    assert sorted(tmp_path.rglob("*.lance")) == files


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_merge_writes_files_of_the_version_it_is_told(tmp_path: Path, version: str) -> None:
    ds = lance_core.write_dataset(pa.table({"a": [1, 2], "b": [0, 0]}), tmp_path / "t", data_storage_version="2.0")
    merge = ds.merge_insert("a").when_matched_update_all().data_storage_version(version)
    merge.execute(pa.table({"a": [2], "b": [5]}))
    versions = {file.version.text for fragment in ds.get_fragments() for file in fragment.data_files()}
    assert versions == {"2.0", version} and ds.data_storage_version == "2.0"
    assert ds.to_table().equals(lance.dataset(ds.uri).to_table())
    with pytest.raises(InputError):
        merge.data_storage_version("legacy")


def test_base_store_params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, one, two = (str(tmp_path / name) for name in ("t", "one", "two"))
    bases = [lance_core.DatasetBasePath(one, "one"), lance_core.DatasetBasePath(two, "two")]
    given: dict[str, Any] = {}

    def resolve(path: str, options: Any) -> Any:
        given[path] = dict(options)
        return resolve_store(path, options)

    monkeypatch.setattr("lance_core.commit.base_paths.resolve_store", resolve)
    options = {"timeout": "30s"}
    params = {one: {"local_fsync": "false"}}
    ds = lance_core.write_dataset(
        rows(0, 4),
        uri,
        initial_bases=bases,
        target_bases=["one", "two"],
        max_rows_per_file=2,
        storage_options=options,
        base_store_params=params,
    )
    expected = {one: {"local_fsync": "false"}, two: options}
    assert given == expected
    for open_again in (
        lambda: ds,
        lambda: lance_core.dataset(uri, storage_options=options, base_store_params=params),
        lambda: lance_core.write_dataset(rows(4, 1), ds, mode="append", target_bases=["one"], base_store_params=params),
        lambda: lance_core.LanceDataset.commit_batch(ds, [ds.uncommitted.insert(rows(5, 1))], base_store_params=params)[
            "dataset"
        ],
        lambda: pickle.loads(pickle.dumps(ds)),
    ):
        given.clear()
        assert open_again().count_rows("a < 4") == 4
        assert given == expected
    with pytest.raises(InputError, match="unknown storage option"):
        lance_core.dataset(uri, base_store_params={one: {"nonsense": "x"}})


def test_an_update_writes_files_of_the_version_it_is_told(tmp_path: Path) -> None:
    found = []
    for library in (lance, lance_core):
        uri = str(tmp_path / library.__name__)
        ds = library.write_dataset(pa.table({"a": [1, 2, 3]}), uri, data_storage_version="2.1")
        ds.update({"a": "a + 10"}, where="a > 1", data_storage_version="2.2")
        ours = lance_core.dataset(uri)
        ours.validate()
        files = [file.version.text for fragment in ours.get_fragments() for file in fragment.data_files()]
        found.append((files, ours.data_storage_version, ours.to_table().to_pydict()))
        assert ours.to_table().equals(lance.dataset(uri).to_table())
    assert found[0] == found[1]
    with pytest.raises(InputError, match="cannot contain files"):
        lance_core.dataset(uri).update({"a": "1"}, data_storage_version="legacy")
