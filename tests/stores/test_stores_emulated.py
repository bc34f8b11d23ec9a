"""S3 (moto), Azure (Azurite), S3 with DynamoDB, SQL: the store contract, and 8 threads that commit at once on each."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from commit_support import append, create, live_rows, paths
from emulators import azure_store, ddb_uri, rows_of_register, s3_options, s3_store
from store_contract import StoreContract
from test_commit_race import assert_serial

import lance_core
from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.errors import RetryableConflictError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store

THREADS, EACH = 8, 2


class TestAzure(StoreContract):
    @pytest.fixture
    def store(self, azurite_options: dict[str, str]) -> Store:
        return azure_store(azurite_options)


class TestDynamo(StoreContract):
    @pytest.fixture
    def store(self, moto_endpoint: str) -> Store:
        return resolve_store(ddb_uri(moto_endpoint), s3_options(moto_endpoint))


def race(open_store: Callable[[], Store], *, each: int = EACH) -> None:
    """8 threads, each with a store of its own, append; a reader meanwhile sees only whole versions."""
    store = open_store()
    create(store, (1, 2, 3))
    start, failures, done = threading.Barrier(THREADS + 1), [], threading.Event()

    def write(number: int) -> None:
        own = open_store()
        start.wait()
        for turn in range(each):
            try:
                append(own, (1000 + number * each + turn,), read_version=1)
            except RetryableConflictError:  # lost every race: says so, and nothing happened
                append(own, (1000 + number * each + turn,))
            except BaseException as error:
                failures.append(error)

    def read() -> None:
        own = open_store()
        start.wait()
        seen = 0
        while not done.is_set():
            version = load_manifest(own).version
            if version < seen:
                failures.append(AssertionError(f"version {version} after {seen}"))
            seen = version
            time.sleep(0.1)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(THREADS)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert failures == []
    assert live_rows(store) == [1, 2, 3, *range(1000, 1000 + THREADS * each)]
    assert [entry.version for entry in list_versions(store)] == [*range(1, THREADS * each + 2)]
    assert_serial(store)
    assert not [path for path in paths(store) if path.startswith("_versions/") and not path.endswith((".manifest", ".json"))]


def test_race_on_s3(moto_endpoint: str) -> None:
    uri = s3_store(moto_endpoint).uri
    race(lambda: resolve_store(uri, s3_options(moto_endpoint)))


def test_race_on_azure(azurite_options: dict[str, str]) -> None:
    uri = azure_store(azurite_options).uri
    race(lambda: resolve_store(uri, azurite_options))


def test_race_through_dynamodb(moto_endpoint: str) -> None:
    uri = ddb_uri(moto_endpoint)
    race(lambda: resolve_store(uri, s3_options(moto_endpoint)))


def test_race_through_sql(tmp_path: Path) -> None:
    options = {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"}
    race(lambda: resolve_store(tmp_path / "t", options))


@pytest.mark.slow
@pytest.mark.parametrize("place", ["s3", "dynamodb", "sql"])
def test_long_race(moto_endpoint: str, tmp_path: Path, place: str) -> None:
    options = s3_options(moto_endpoint)
    uri = {"s3": s3_store(moto_endpoint).uri, "dynamodb": ddb_uri(moto_endpoint), "sql": str(tmp_path / "t")}[place]
    if place == "sql":
        options = {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"}
    race(lambda: resolve_store(uri, options), each=6)


def test_the_official_library_and_we_share_a_dynamodb_table(moto_endpoint: str) -> None:
    lance = pytest.importorskip("lance")
    pa = pytest.importorskip("pyarrow")
    uri = ddb_uri(moto_endpoint)
    ours = s3_options(moto_endpoint)
    theirs = {**ours, "allow_http": "true"}
    lance.write_dataset(pa.table({"a": [1]}), uri, storage_options=theirs)
    lance_core.write_dataset(pa.table({"a": [2]}), uri, mode="append", storage_options=ours)
    lance.write_dataset(pa.table({"a": [3]}), uri, mode="append", storage_options=theirs)
    lance_core.dataset(uri, storage_options=ours).delete("a = 1")
    for library, options in ((lance, theirs), (lance_core, ours)):
        table = library.dataset(uri, storage_options=options)
        assert table.version == 4
        assert sorted(table.to_table()["a"].to_pylist()) == [2, 3]
        assert table.checkout_version(2).count_rows() == 2
    base = uri.split("://", 1)[1].split("?")[0].split("/", 1)[1]
    rows = [row for row in rows_of_register(moto_endpoint) if row["base_uri"] == base]
    assert [int(row["version"]) for row in rows] == [1, 2, 3, 4]
    assert all(row["path"].startswith(f"{base}/_versions/") and row["path"].endswith(".manifest") for row in rows)
    assert {row["committer"] for row in rows} == {"lancedb"}
    assert all(int(row["size"]) > 0 for row in rows)


def test_a_table_in_the_cloud_with_branches_and_tags(moto_endpoint: str) -> None:
    pa = pytest.importorskip("pyarrow")
    uri, options = ddb_uri(moto_endpoint), s3_options(moto_endpoint)
    table = lance_core.write_dataset(pa.table({"a": [1, 2, 3]}), uri, storage_options=options)
    table.tags.create("first", 1)
    branch = table.create_branch("exp")
    lance_core.write_dataset(pa.table({"a": [4]}), branch.uri, mode="append", storage_options=options)
    again = lance_core.dataset(uri, storage_options=options)
    assert again.checkout_version(("exp", None)).count_rows() == 4
    assert again.count_rows() == 3
    assert again.checkout_version("first").count_rows() == 3
    bases = {row["base_uri"] for row in rows_of_register(moto_endpoint)}
    assert any(base.endswith("/tree/exp") for base in bases)


def test_a_store_that_cannot_write_only_if_absent_refuses_to_commit(tmp_path: Path) -> None:
    from test_stores_external import Careless

    from lance_core.errors import PreconditionError

    store = Careless(uuid.uuid4().hex)
    with pytest.raises(PreconditionError, match="external manifest store"):
        create(store)
    assert not [path for path in paths(store) if path.startswith("_versions/")]
