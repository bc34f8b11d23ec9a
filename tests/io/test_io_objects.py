"""Stores through obstore on the repository's own server: the contract, requests, lost replies, retries, forks, options."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import obstore.exceptions as theirs
import pytest

from bench.object_client import RunningServer, object_server
from lance_core.errors import AlreadyExistsError, InputError, NotFoundError, StoreError
from lance_core.fetch import ByteRange
from lance_core.io.objects.options import azure_client, gcs_client, profile_credentials, s3_client
from lance_core.io.objects.store import PAGE, ObjectStore, as_store_error
from lance_core.io.pool import io_pool
from lance_core.io.remote.store import RemoteStore
from lance_core.io.resolve import resolve_store
from tests.io.store_contract import StoreContract


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


def new_store(server: RunningServer, **options: str) -> ObjectStore:
    store = resolve_store(f"s3://b{uuid.uuid4().hex}/tables/t", {**server.options, **options})
    assert isinstance(store, ObjectStore)
    return store


class TestObjects(StoreContract):
    @pytest.fixture
    def store(self, server: RunningServer) -> ObjectStore:
        return new_store(server)


class TestGoogle(StoreContract):
    """Google's XML interface, which obstore speaks."""

    @pytest.fixture
    def store(self, server: RunningServer) -> ObjectStore:
        options = {"google_endpoint": server.endpoint, "skip_signature": "true", "store_engine": "obstore"}
        store = resolve_store(f"gs://b{uuid.uuid4().hex}/tables/t", options)
        assert isinstance(store, ObjectStore)
        return store


def test_each_call_is_the_requests_it_says(server: RunningServer) -> None:
    store = new_store(server)
    assert store.has_put_if_absent
    store.put("data/a", bytes(1000))
    steps = {
        "get": (lambda: store.get("data/a"), {"GET": 1}),
        "ranges": (
            lambda: store.get_ranges("data/a", [ByteRange(0, 10), ByteRange(10, 20), ByteRange(500, 510)]),
            {"GET": 3},
        ),
        "size": (lambda: store.size("data/a"), {"HEAD": 1}),
        "put": (lambda: store.put("data/b", b"x"), {"PUT": 1}),
        "absent": (lambda: store.put_if_absent("data/c", b"x"), {"PUT-IF-ABSENT": 1}),
        "names": (lambda: store.list_names("data/"), {"LIST": 1}),
        "list": (lambda: list(store.list("")), {"LIST": 1}),
        "many": (lambda: store.delete_many([f"data/{number}" for number in range(2500)]), {"DELETE-MANY": 3}),
    }
    for name, (action, expected) in steps.items():
        with server.watch() as seen:
            action()
        assert dict(seen.operations) == expected, name


def test_a_bucket_is_tried_out_once_for_all_its_stores(server: RunningServer) -> None:
    bucket = f"b{uuid.uuid4().hex}"
    with server.watch() as seen:
        for table in ("t", "u"):
            store = resolve_store(f"s3://{bucket}/{table}", server.options)
            assert store.has_put_if_absent
            assert store.child("below").has_put_if_absent
        assert resolve_store(f"s3://{bucket}/t", {**server.options, "region": "eu-west-1"}).has_put_if_absent
    assert seen.operations["PUT-IF-ABSENT"] == 2
    assert seen.requests == 3


def test_parts_go_side_by_side_and_memory_is_bounded(server: RunningServer) -> None:
    store = new_store(server)
    server.set_speed(latency_ms=60, megabytes_per_second=0)
    try:
        with server.watch() as seen:
            writer = store.open_writer("big")
            for number in range(60):
                writer.write(bytes([number]) * (1 << 20))
            assert list(store.list("")) == []
            writer.close()
    finally:
        server.set_speed(latency_ms=0, megabytes_per_second=0)
    assert seen.operations["PART"] == 6
    assert seen.operations["HEAD"] == 0
    assert seen.width >= 3
    (middle,) = store.get_ranges("big", [ByteRange((20 << 20) - 1, (20 << 20) + 1)])
    assert bytes(middle) == bytes([19, 20])


def test_a_writer_given_up_leaves_no_upload(server: RunningServer) -> None:
    store = new_store(server)
    with server.watch() as seen:
        writer = store.open_writer("big")
        writer.write(bytes(30 << 20))
        writer.abort()
    assert seen.operations["ABORT"] == 1
    assert list(store.list("")) == []
    with pytest.raises(StoreError):
        writer.write(b"x")


def test_a_lost_reply_of_a_conditional_put_is_settled_by_what_is_there(server: RunningServer) -> None:
    store = new_store(server)
    assert store.has_put_if_absent
    server.fail({"operation": "PUT-IF-ABSENT", "contains": "v/1", "status": 503, "after": True})
    store.put_if_absent("v/1", b"ours")
    assert bytes(store.get("v/1")) == b"ours"
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("v/1", b"ours")  # no reply was lost: what is there is somebody else's, whatever it says
    store.put("v/2", b"theirs")
    server.fail({"operation": "PUT-IF-ABSENT", "contains": "v/2", "status": 503})
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("v/2", b"ours")
    # Another conditional put under way is no object that exists.
    server.fail({"operation": "PUT-IF-ABSENT", "contains": "v/3", "status": 409, "code": "ConditionalRequestConflict"})
    store.put_if_absent("v/3", b"ours")
    assert bytes(store.get("v/3")) == b"ours"


def test_persistent_failure_ends_at_one_deadline(server: RunningServer) -> None:
    store = new_store(server, client_max_retries="2", aws_secret_access_key="hunter2hunter2")
    for action in (lambda: store.get("a"), lambda: store.put("a", b"x"), lambda: list(store.list(""))):
        server.fail({"operation": "", "status": 503, "times": 1000})
        with server.watch() as seen:
            server.fail({"operation": "", "status": 503, "times": 1000})
            with pytest.raises(StoreError) as caught:
                action()
        assert seen.requests == 3
        assert "hunter2" not in str(caught.value) + repr(caught.value)
    server.fail()


def test_names_of_a_large_folder_begin_with_one_page(server: RunningServer) -> None:
    store = new_store(server)
    names = [f"{number:05d}" for number in range(PAGE + 5)]
    list(io_pool("").map(lambda name: store.put(f"v/{name}", b""), names))
    with server.watch() as seen:
        first, is_all = store.first_entries("v/")
        assert ([entry.path for entry in first], is_all) == ([f"v/{name}" for name in names[:PAGE]], False)
    assert seen.requests <= 2
    assert list(store.names_after("v/", names[-3])) == names[-2:]
    assert store.first_entries("nothing/") == ([], True)
    assert sorted(store.list_names("v/")) == names


@pytest.mark.parametrize("name", ["a b", "a%20b", "ünï", "a#b", "a+b", "a?b", "day=2026-01-01", "a~b*c", "a&b<c>"])
def test_names_are_taken_as_they_are(server: RunningServer, name: str) -> None:
    store = new_store(server).child(name)
    store.put(f"{name}/{name}", b"1")
    assert [entry.path for entry in store.list("")] == [f"{name}/{name}"]
    assert list(store.list_names(name)) == [name]
    assert bytes(store.get(f"{name}/{name}")) == b"1"
    store.delete_many([f"{name}/{name}", "other"])
    assert list(store.list("")) == []


def test_a_forked_child_does_not_wait_for_ever(server: RunningServer) -> None:
    store = new_store(server)
    store.put("a", b"1")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        text = "nothing"
        try:
            try:
                store.get("a")
            except StoreError as error:
                text = "refused" if "spawn" in str(error) else "unclear"
            fresh = resolve_store(store.uri, server.options)
            text += " fsspec" if isinstance(fresh, RemoteStore) else " obstore"
        finally:
            os.write(write, text.encode())
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"refused fsspec"


def test_the_engine_can_be_chosen(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "s3://b/t"
    assert isinstance(resolve_store(uri, server.options), ObjectStore)
    assert isinstance(resolve_store(uri, {**server.options, "store_engine": "fsspec"}), RemoteStore)
    monkeypatch.setenv("LANCE_STORE_ENGINE", "fsspec")
    assert isinstance(resolve_store(uri, server.options), RemoteStore)
    assert isinstance(resolve_store(uri, {**server.options, "store_engine": "obstore"}), ObjectStore)
    with pytest.raises(InputError):
        resolve_store(uri, {"store_engine": "botocore"})
    with pytest.raises(InputError):
        resolve_store("hdfs://namenode/t", {"store_engine": "obstore"})


def test_options_become_a_client() -> None:
    s3 = s3_client(
        {
            "aws_access_key_id": "K",
            "secret_access_key": "S",
            "region": "eu-west-1",
            "aws_endpoint": "http://minio:9000",
            "request_timeout": "30s",
            "virtual_hosted_style_request": "false",
            "proxy_url": "http://proxy:3128",
        }
    )
    assert (s3.config["access_key_id"], s3.config["secret_access_key"], s3.endpoint) == ("K", "S", "http://minio:9000")
    assert (s3.config["region"], s3.config["virtual_hosted_style_request"]) == ("eu-west-1", False)
    assert (s3.client["timeout"], s3.client["allow_http"], s3.client["proxy_url"]) == ("30000ms", True, "http://proxy:3128")
    assert s3_client({"skip_signature": "true"}).config["skip_signature"] is True
    assert "K" not in repr(s3)
    text = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=k==;EndpointSuffix=core.windows.net"
    azure = azure_client({"connection_string": text})
    assert azure.config == {"account_name": "a", "account_key": "k==", "endpoint": "https://a.blob.core.windows.net"}
    assert azure_client({"account_name": "a", "sas_token": "?sv=1"}).config == {"account_name": "a", "sas_key": "sv=1"}
    assert gcs_client({"google_service_account_key": '{"a": 1}'}).config == {"service_account_key": '{"a": 1}'}
    with pytest.raises(InputError):
        gcs_client({"google_service_account_key": "hunter2"})
    for bad in ({"timeout": "soon"}, {"aws_provider_scheme": "irsa"}):
        with pytest.raises(InputError):
            s3_client(bad)


def test_profiles_are_read_as_aws_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id=A\naws_secret_access_key=B\n[w]\naws_access_key_id=C\n"
    )
    (tmp_path / "config").write_text("[profile w]\nregion=eu-west-3\n[profile p]\ncredential_process=/bin/true\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert profile_credentials(None).config == {"access_key_id": "A", "secret_access_key": "B"}
    assert profile_credentials("w").config == {"region": "eu-west-3", "access_key_id": "C"}
    with pytest.raises(InputError, match=r"AWS profile .* does not exist"):
        profile_credentials("nobody")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    assert profile_credentials(None).config == {}


def test_a_missing_object_is_told_from_a_failing_store(server: RunningServer) -> None:
    store = new_store(server, client_max_retries="0")
    with pytest.raises(NotFoundError):
        store.get("nothing")
    server.fail({"operation": "GET", "status": 403})
    with pytest.raises(StoreError) as caught:
        store.get("nothing")
    assert not isinstance(caught.value, NotFoundError)
    assert "Debug source" not in str(caught.value)


def test_errors_leave_out_what_only_the_engine_needs() -> None:
    text = (
        "Generic S3 error: Error performing list request: Error performing GET http://127.0.0.1:9/b in 3.3s, after 5 retries"
        ", max_retries: 5, retry_timeout: 180s - HTTP error: error sending request\n\nDebug source:\nReqwest"
    )
    error = as_store_error(theirs.GenericError(text), "", uri="s3://b/far", redact=str)
    assert str(error) == (
        "s3://b/far: Error performing GET http://127.0.0.1:9/b in 3.3s, after 5 retries - HTTP error: error sending request"
    )
