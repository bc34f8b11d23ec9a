"""S3 (moto), Azure (Azurite), GCS (fake-gcs-server), DynamoDB, SQL: the store contract, and 8 threads at once on each."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from tests.commit.commit_support import create, paths
from tests.histories.mixed_worker import Landed, work
from tests.histories.serial_history import assert_serial
from tests.io.store_contract import StoreContract
from tests.stores.emulators import azure_store, ddb_uri, gcs_options, gcs_store, rows_of_register, s3_options, s3_store

THREADS, EACH = 8, 2


ENGINES = ["obstore", "fsspec"]


class TestAzure(StoreContract):
    @pytest.fixture(params=ENGINES)
    def store(self, azurite_options: dict[str, str], request: pytest.FixtureRequest) -> Store:
        return azure_store(azurite_options, request.param)


class TestS3(StoreContract):
    @pytest.fixture
    def store(self, moto_endpoint: str) -> Store:
        return s3_store(moto_endpoint)  # through fsspec: tests/io


class TestDynamo(StoreContract):
    @pytest.fixture
    def store(self, moto_endpoint: str) -> Store:
        return resolve_store(ddb_uri(moto_endpoint), s3_options(moto_endpoint))


class TestGcs(StoreContract):
    @pytest.fixture
    def store(self, gcs_endpoint: str) -> Store:
        return gcs_store(gcs_endpoint)

    def test_multipart(self, store: Store) -> None:
        writer = store.open_writer("big")
        for number in range(45):
            writer.write(bytes([number]) * (1 << 20))
        assert list(store.list("")) == []
        writer.close()
        assert store.size("big") == 45 << 20


def race(uri: str, options: dict[str, str], *, each: int = EACH) -> None:
    """8 threads of mixed verbs on one table; a reader meanwhile sees only whole versions; nothing is lost, all is serial."""
    lance_core.write_dataset(pa.table({"id": [-1, -2], "x": [0, 0]}), uri, storage_options=options)
    start, failures, done = threading.Barrier(THREADS + 1), [], threading.Event()
    landed: dict[int, Landed] = {}

    def write(number: int) -> None:
        start.wait()
        try:
            landed[number] = work((uri, number, each), options)
        except BaseException as error:
            failures.append(error)

    def read() -> None:
        start.wait()
        seen = 0
        while not done.is_set():
            try:
                ds = lance_core.dataset(uri, storage_options=options)
                assert ds.to_table().num_rows == ds.count_rows()
                assert ds.version >= seen, f"version {ds.version} after {seen}"
                seen = ds.version
            except BaseException as error:
                failures.append(error)
                return
            time.sleep(0.1)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(1, THREADS + 1)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert failures == []
    assert_landed(uri, options, [*landed.values()])


def assert_landed(uri: str, options: dict[str, str], landed: list[Landed]) -> None:
    """What every thread did is there, and each version is what its transaction makes of the one before."""
    assert [item.given_up for item in landed] == [0] * THREADS
    ds = lance_core.dataset(uri, storage_options=options)
    ds.validate()
    expected = {-1: 0, -2: 0} | {key: value for item in landed for key, value in item.rows.items()}
    table = ds.to_table()
    assert dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True)) == expected
    assert table.num_rows == len(expected)
    assert {key: value for item in landed for key, value in item.config.items()}.items() <= ds.config().items()
    tags = {name: version for item in landed for name, version in item.tags.items()}
    assert {name: tag["version"] for name, tag in ds.tags.list().items()} == tags
    store = resolve_store(uri, options)
    assert_serial(store)
    assert not [path for path in paths(store) if path.startswith("_versions/") and not path.endswith((".manifest", ".json"))]


def test_race_on_s3(moto_endpoint: str) -> None:
    race(s3_store(moto_endpoint).uri, s3_options(moto_endpoint))


def test_race_on_azure(azurite_options: dict[str, str]) -> None:
    race(azure_store(azurite_options).uri, azurite_options)


def test_race_on_gcs(gcs_endpoint: str) -> None:
    race(gcs_store(gcs_endpoint).uri, gcs_options(gcs_endpoint), each=3)


def test_race_through_dynamodb(moto_endpoint: str) -> None:
    race(ddb_uri(moto_endpoint), s3_options(moto_endpoint))


def test_race_through_sql(tmp_path: Path) -> None:
    race(str(tmp_path / "t"), {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"}, each=4)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["s3", "azure", "gcs", "dynamodb", "sql"])
def test_long_race(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> None:
    if place == "sql":
        race(str(tmp_path / "t"), {"manifest_store_url": f"sqlite:///{tmp_path / 'manifests.db'}"}, each=30)
    elif place == "azure":
        azure = request.getfixturevalue("azurite_options")
        race(azure_store(azure).uri, azure, each=8)
    elif place == "gcs":
        google = request.getfixturevalue("gcs_endpoint")
        race(gcs_store(google).uri, gcs_options(google), each=20)
    else:
        amazon = request.getfixturevalue("moto_endpoint")
        race(s3_store(amazon).uri if place == "s3" else ddb_uri(amazon), s3_options(amazon), each=6)


def test_the_official_library_and_we_share_a_dynamodb_table(moto_endpoint: str) -> None:
    lance = pytest.importorskip("lance")
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
    from lance_core.errors import PreconditionError
    from tests.stores.test_stores_external import Careless

    store = Careless(uuid.uuid4().hex)
    with pytest.raises(PreconditionError, match="external manifest store"):
        create(store)
    assert not [path for path in paths(store) if path.startswith("_versions/")]
