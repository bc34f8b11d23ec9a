"""A role is assumed by each process, once for all its stores, and again before its keys expire."""

from __future__ import annotations

import datetime as dt
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError, StoreError, StoreRefusedError
from lance_core.io import aws_role
from lance_core.io.aws_role import AssumedRole, role_of
from lance_core.io.objects.options import s3_client
from lance_core.io.resolve import resolve_store
from tests.io.moto_server import moto_server

pytest.importorskip("botocore")
ROLE = "arn:aws:iam::123456789012:role/writer"
ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>secret{number}</SecretAccessKey>
<SessionToken>token{number}</SessionToken><Expiration>{expires}</Expiration></Credentials>
<AssumedRoleUser><Arn>{role}/s</Arn><AssumedRoleId>x:s</AssumedRoleId></AssumedRoleUser>
</AssumeRoleResult></AssumeRoleResponse>"""
REFUSAL = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>User arn:of:somebody may not assume it</Message></Error></ErrorResponse>"""


class TokenService:
    """AWS's token service on loopback: `seconds` is how long its keys last; None refuses."""

    def __init__(self) -> None:
        self.seconds: float | None = 3600.0
        self.bodies: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                service.bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                status, text = service.answer()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self) -> tuple[int, str]:
        if self.seconds is None:
            return 403, REFUSAL
        expires = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=self.seconds)
        text = ANSWER.format(number=len(self.bodies), expires=expires.strftime("%Y-%m-%dT%H:%M:%SZ"), role=ROLE)
        return 200, text


@pytest.fixture
def service() -> Iterator[TokenService]:
    running = TokenService()
    thread = threading.Thread(target=running.server.serve_forever, daemon=True)
    thread.start()
    yield running
    running.server.shutdown()
    running.server.server_close()
    thread.join()


def _options(service: TokenService, **more: str) -> dict[str, str]:
    keys = {"aws_access_key_id": "AKBASE", "aws_secret_access_key": "the base's secret", "region": "us-east-1"}
    return {**keys, "aws_role_arn": ROLE, "aws_sts_endpoint": service.url, **more}


def _role(service: TokenService, **more: str) -> AssumedRole:
    found = role_of(_options(service, **more))
    assert found is not None
    return found


def test_keys_that_last_are_requested_once(service: TokenService) -> None:
    role = _role(service, aws_external_id="outside", aws_role_seconds="3600", aws_role_session_name="orders")
    assert [role()["access_key_id"] for _ in range(3)] == ["ASIA1"] * 3
    (body,) = service.bodies
    for part in ("ExternalId=outside", "DurationSeconds=3600", "RoleSessionName=orders", "Action=AssumeRole"):
        assert part in body


def test_keys_close_to_their_end_are_renewed(service: TokenService) -> None:
    service.seconds = 60
    role = _role(service)
    first, second = role(), role()
    assert (first["access_key_id"], second["access_key_id"]) == ("ASIA1", "ASIA2")
    assert first["expires_at"] > dt.datetime.now(dt.timezone.utc)


def test_another_process_assumes_the_role_itself(service: TokenService) -> None:
    role = _role(service)
    assert role()["token"] == "token1"
    elsewhere = pickle.loads(pickle.dumps(role))
    assert elsewhere == role
    assert elsewhere()["token"] == "token2"


def test_a_refusal_names_the_role_and_no_secret(service: TokenService) -> None:
    service.seconds = None
    role = _role(service)
    with pytest.raises(StoreRefusedError, match="AccessDenied") as caught:
        role()
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(role)


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
def test_a_table_is_written_and_read_with_the_keys_of_the_role(service: TokenService, engine: str) -> None:
    import botocore.session

    with moto_server() as endpoint:
        client = botocore.session.Session().create_client(
            "s3", region_name="us-east-1", endpoint_url=endpoint, aws_access_key_id="a", aws_secret_access_key="b"
        )
        client.create_bucket(Bucket=f"of-a-role-{engine}")
        more = {"endpoint": endpoint, "store_engine": engine, "allow_http": "true"}
        options, uri = _options(service, **more), f"s3://of-a-role-{engine}/t.lance"
        lance_core.write_dataset(pa.table({"id": [1, 2]}), uri, storage_options=options)
        lance_core.write_dataset(pa.table({"id": [3]}), uri, mode="append", storage_options=options)
        assert lance_core.dataset(uri, storage_options=options).to_table()["id"].to_pylist() == [1, 2, 3]
    assert service.bodies, "the role was assumed"
    if engine == "obstore":
        assert len(service.bodies) == 1, "once for all stores of the process"


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
def test_a_refused_role_is_a_typed_error(service: TokenService, engine: str) -> None:
    service.seconds = None
    options = _options(service, endpoint=service.url, store_engine=engine, allow_http="true", aws_external_id=engine)
    with pytest.raises(StoreRefusedError, match="AccessDenied") as caught:
        lance_core.dataset(f"s3://refused-{engine}/t.lance", storage_options=options)
    assert not caught.value.retryable
    assert "the base's secret" not in str(caught.value)


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
def test_a_token_service_that_does_not_answer_may_be_asked_again(
    service: TokenService, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    nowhere = {"aws_sts_endpoint": "http://127.0.0.1:9", "aws_external_id": f"nowhere {engine}"}
    more = {"endpoint": service.url, "store_engine": engine, "allow_http": "true", "client_max_retries": "0", **nowhere}
    with pytest.raises(StoreError) as caught:
        lance_core.dataset(f"s3://nowhere-{engine}/t.lance", storage_options=_options(service, **more))
    assert caught.value.retryable


def test_a_store_of_fsspec_that_stays_open_gets_new_keys(service: TokenService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are fixed when the store is opened end after an hour, in the middle of a long job."""
    monkeypatch.setattr(aws_role, "_SAID_TO_LAST", dt.timedelta(seconds=1))
    service.seconds = 60
    import botocore.session

    with moto_server() as endpoint:
        client = botocore.session.Session().create_client(
            "s3", region_name="us-east-1", endpoint_url=endpoint, aws_access_key_id="a", aws_secret_access_key="b"
        )
        client.create_bucket(Bucket="long-open")
        more = {"endpoint": endpoint, "store_engine": "fsspec", "allow_http": "true", "aws_external_id": "long"}
        store = resolve_store("s3://long-open/t", _options(service, **more))
        assert service.bodies == [], "opening asks for nothing"
        requested = []
        for number in range(3):
            store.put(f"{number}.bin", b"x")
            requested.append(len(service.bodies))
    assert requested[0] < requested[1] < requested[2]


def test_clients_get_the_role_and_not_its_base_keys(service: TokenService) -> None:
    made = s3_client(_options(service))
    assert isinstance(made.credentials, AssumedRole)
    assert not {"access_key_id", "secret_access_key", "session_token"} & made.config.keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aws_external_id": "x"}, "need aws_role_arn"),
        ({"aws_role_arn": ROLE, "aws_role_seconds": "60"}, "between 900 and 43200"),
        ({"aws_role_arn": ROLE, "aws_access_key_id": "AK"}, "together"),
    ],
    ids=["no-role", "seconds", "half-a-key"],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        role_of(options)
