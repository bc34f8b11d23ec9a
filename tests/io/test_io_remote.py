"""Remote stores: the contract over fsspec's memory file system, options, errors, and S3 through moto where it is here."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import fsspec
import pytest

from lance_core.errors import AlreadyExistsError, InputError, NotFoundError, PreconditionError, StoreError, StoreRefusedError
from lance_core.fetch import ByteRange
from lance_core.io.answers import NoAnswerError
from lance_core.io.remote import options as remote_options
from lance_core.io.remote.errors import Redactor, TransientError, as_store_error, retrying
from lance_core.io.remote.store import RemoteStore
from lance_core.io.resolve import resolve_store
from tests.io.moto_server import moto_server
from tests.io.store_contract import StoreContract


class _ExclusiveMemory:
    """fsspec's memory file system with a `mode="create"` that is really exclusive."""

    def __init__(self) -> None:
        self._fs = fsspec.filesystem("memory")
        self._lock = threading.Lock()

    def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
        with self._lock:
            if mode == "create" and self._fs.exists(path):
                raise FileExistsError(path)
            self._fs.pipe_file(path, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fs, name)


class TestRemoteMemory(StoreContract):
    @pytest.fixture
    def store(self) -> RemoteStore:
        root = f"/{uuid.uuid4().hex}/t"
        return RemoteStore(_ExclusiveMemory, root=root, uri=f"fsspec://memory{root}", conditional=None)

    def test_conditional_put_is_tried_out(self, store: RemoteStore) -> None:
        assert store.has_put_if_absent
        assert list(store.list("")) == []

        class Ignores(_ExclusiveMemory):
            def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
                super().pipe_file(path, data)

        careless = RemoteStore(Ignores, root="/x", uri="s3://x", conditional=None)
        assert not careless.has_put_if_absent
        with pytest.raises(PreconditionError):
            careless.put_if_absent("a", b"x")

    def test_a_forgotten_writer_publishes_nothing(self, store: RemoteStore) -> None:
        writer = store.open_writer("big")
        writer.write(bytes(40 << 20))
        del writer
        assert list(store.list("")) == []


class _ServerError(Exception):
    def __init__(self, code: str, status: int) -> None:
        super().__init__(f"{code}: key=hunter2hunter2")
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (_ServerError("SlowDown", 503), TransientError),
        (_ServerError("NoSuchKey", 404), NotFoundError),
        (_ServerError("PreconditionFailed", 412), AlreadyExistsError),
        (_ServerError("AccessDenied", 403), StoreRefusedError),
        (FileExistsError("x"), AlreadyExistsError),
        (FileNotFoundError("x"), NotFoundError),
        (ConnectionResetError("x"), NoAnswerError),
        (TimeoutError(), NoAnswerError),
        (ValueError("odd"), StoreError),
    ],
)
def test_errors_are_typed_and_hold_no_secrets(error: Exception, kind: type[Exception]) -> None:
    found = as_store_error(error, "a/b", uri="s3://x", redact=Redactor({"aws_secret_access_key": "hunter2hunter2"}))
    assert type(found) is kind
    assert "hunter2" not in str(found)
    wrapped = OSError(5, "wrapped")
    wrapped.__cause__ = error
    if isinstance(error, _ServerError):
        assert type(as_store_error(wrapped, "a/b", uri="s3://x", redact=Redactor({}))) is kind


def test_transient_errors_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_core.io.remote.errors.time.sleep", lambda seconds: None)
    tries = []

    def third_time_lucky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise TransientError("slow down")
        return "done"

    assert retrying(third_time_lucky) == "done"
    tries.clear()

    def denied() -> None:
        tries.append(1)
        raise StoreError("no")

    with pytest.raises(StoreError):
        retrying(denied)
    assert len(tries) == 1


def test_options_become_arguments() -> None:
    s3 = remote_options.s3_arguments(
        {
            "aws_access_key_id": "K",
            "secret_access_key": "S",
            "region": "eu-west-1",
            "aws_endpoint": "http://minio:9000",
            "request_timeout": "30s",
            "virtual_hosted_style_request": "false",
        }
    )
    assert (s3["key"], s3["secret"], s3["endpoint_url"]) == ("K", "S", "http://minio:9000")
    assert s3["client_kwargs"] == {"region_name": "eu-west-1"}
    assert s3["config_kwargs"]["read_timeout"] == 30
    assert s3["config_kwargs"]["s3"] == {"addressing_style": "path"}
    assert remote_options.s3_arguments({"skip_signature": "true"})["anon"]
    assert remote_options.gcs_arguments({"service_account": "/sa.json"})["token"] == "/sa.json"
    assert remote_options.gcs_arguments({"google_service_account_key": '{"a": 1}'})["token"] == {"a": 1}
    assert remote_options.azure_arguments({"account_name": "a", "sas_token": "t"}) == {"account_name": "a", "sas_token": "t"}
    for bad in ({"timeout": "soon"}, {"client_max_retries": "many"}):
        with pytest.raises(InputError):
            remote_options.s3_arguments(bad)


@pytest.mark.parametrize("uri", ["s3://key:secret@bucket/t", "s3:///t", "s3://bucket/t?x=1", "s3+ddb://bucket/t"])
def test_bad_uris(uri: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_store(uri)
    assert "key:secret" not in str(caught.value)


@pytest.fixture(scope="module")
def moto_endpoint() -> Iterator[str]:
    pytest.importorskip("s3fs")
    with moto_server() as endpoint:
        yield endpoint


class TestS3(StoreContract):
    @pytest.fixture
    def store(self, moto_endpoint: str) -> RemoteStore:
        bucket = f"b{uuid.uuid4().hex}"
        options = {
            "aws_access_key_id": "testing",
            "aws_secret_access_key": "testing-secret",
            "aws_region": "eu-west-1",
            "aws_endpoint": moto_endpoint,
            "store_engine": "fsspec",
        }
        fsspec.filesystem("s3", **remote_options.s3_arguments(options)).mkdir(bucket)
        store = resolve_store(f"s3://{bucket}/tables/t", options)
        assert isinstance(store, RemoteStore)
        return store

    def test_a_whole_object_is_one_request(self, store: RemoteStore) -> None:
        store.put("a", b"x")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(store._fs), "_info", None)  # a HEAD
            assert bytes(store.get("a")) == b"x"

    def test_multipart(self, store: RemoteStore) -> None:
        writer = store.open_writer("big")
        for number in range(45):
            writer.write(bytes([number]) * (1 << 20))
        assert list(store.list("")) == []
        writer.close()
        assert store.size("big") == 45 << 20
        (middle,) = store.get_ranges("big", [ByteRange((20 << 20) - 1, (20 << 20) + 1)])
        assert bytes(middle) == bytes([19, 20])

    def test_wrong_bucket_and_no_secrets(self, store: RemoteStore, moto_endpoint: str) -> None:
        missing = resolve_store(
            f"s3://no-{uuid.uuid4().hex}/t",
            {"aws_endpoint": moto_endpoint, "access_key_id": "a", "secret_access_key": "hunter2!"},
        )
        with pytest.raises((NotFoundError, StoreError)) as caught:
            missing.put("a", b"x")
        assert "hunter2" not in str(caught.value)
