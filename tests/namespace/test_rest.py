"""The REST client against servers that answer wrongly, slowly or with bad intentions; what a location is accepted for."""

from __future__ import annotations

import contextlib
import os
import socketserver
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import lance_core
from lance_core import namespace as ns
from lance_core.errors import (
    AlreadyExistsError,
    InputError,
    LanceError,
    NotFoundError,
    RetryableConflictError,
    StoreError,
    StoreRefusedError,
    UnsupportedFeatureError,
)
from tests.namespace.support import ROWS, Answer, server

TOKEN = "tok-31337-secret"
ASK = ns.DescribeTableRequest(id=["sales", "orders"])


def client(uri: str, **more: str) -> ns.RestNamespace:
    return ns.RestNamespace(uri=uri, **{"header.Authorization": f"Bearer {TOKEN}", **more})


def test_routes_headers_and_bodies_are_those_of_the_specification() -> None:
    seen: list[tuple[str, str, str, Any]] = []

    def answer(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        seen.append((method, path, headers["Authorization"], body))
        return 200, {"location": "s3://b/t", "namespaces": [], "tables": []}

    with server(answer) as uri:
        catalog = client(uri)
        catalog.list_namespaces(ns.ListNamespacesRequest(id=[], limit=3, page_token="p"))
        catalog.list_tables(ns.ListTablesRequest(id=["a", "b c"], include_declared=False))
        catalog.describe_table(ns.DescribeTableRequest(id=["a", "t"], version=3, check_declared=True))
        catalog.declare_table(ns.DeclareTableRequest(id=["t"], properties={"k": "v"}))
        catalog.drop_table(ns.DropTableRequest(id=["t"]))
    bearer = f"Bearer {TOKEN}"
    assert seen == [
        ("GET", "/v1/namespace/%24/list?page_token=p&limit=3", bearer, None),
        ("GET", "/v1/namespace/a%24b%20c/table/list?include_declared=false", bearer, None),
        ("POST", "/v1/table/a%24t/describe?check_declared=true", bearer, {"id": ["a", "t"], "version": 3}),
        ("POST", "/v1/table/t/declare", bearer, {"id": ["t"], "properties": {"k": "v"}}),
        ("POST", "/v1/table/t/drop", bearer, None),
    ]


@pytest.mark.parametrize(
    ("status", "found", "kind"),
    [
        (404, {"error": "no", "code": 4}, NotFoundError),
        (409, {"error": "there", "code": 5}, AlreadyExistsError),
        (409, {"error": "overtaken", "code": 14}, RetryableConflictError),
        (400, {"error": "bad", "code": 13}, InputError),
        (501, {"error": "never", "code": 0}, UnsupportedFeatureError),
        (401, {"error": f"who is {TOKEN}?"}, StoreRefusedError),
        (403, b"<html>", StoreRefusedError),
        (404, b"", NotFoundError),
        (500, {"code": "x", "error": None}, StoreError),
        (200, b"not JSON", StoreError),
        (200, b"[" * 100_000, StoreError),
        (302, {"location": "http://127.0.0.1:9/"}, InputError),
        (307, {"location": "http://127.0.0.1:9/"}, InputError),
    ],
)
def test_a_refusal_is_a_typed_error_without_the_token(status: int, found: Any, kind: type[LanceError]) -> None:
    with server(lambda *_: (status, found)) as uri, pytest.raises(kind) as caught:
        client(uri).declare_table(ns.DeclareTableRequest(id=["t"]))
    assert TOKEN not in str(caught.value) and uri in str(caught.value)
    assert type(caught.value) is kind


def test_reads_are_repeated_and_changes_are_not() -> None:
    asked: list[str] = []

    def answer(method: str, path: str, *_: Any) -> Answer:
        asked.append(path.rpartition("/")[2])
        return (200, {"location": "s3://b/t"}) if len(asked) == 3 else (503, {"error": "busy", "code": 17})

    with server(answer) as uri:
        assert client(uri).describe_table(ASK).location == "s3://b/t"
        assert asked == ["describe"] * 3
        asked.clear()
        with pytest.raises(StoreError) as caught:
            client(uri).declare_table(ns.DeclareTableRequest(id=["t"]))
    assert caught.value.retryable and asked == ["declare"]


def test_a_declaration_whose_answer_was_lost_is_repeated_safely(tmp_path: Path) -> None:
    declared: list[str] = []

    def answer(method: str, path: str, *_: Any) -> Answer:
        if path.endswith("/declare"):
            declared.append(path)
            return (500, {"error": "lost"}) if len(declared) == 1 else (409, {"error": "there", "code": 5})
        return 200, {"location": str(tmp_path / "t")}

    with server(answer) as uri:
        named = {"namespace_client": client(uri), "table_id": ["t"], "storage_options": {"allowed_bases": str(tmp_path)}}
        with pytest.raises(StoreError):
            lance_core.write_dataset(ROWS, **named)  # type: ignore[arg-type]
        assert lance_core.write_dataset(ROWS, **named).count_rows() == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [5, 14])
def test_the_loser_of_a_race_for_a_name_gets_its_location(tmp_path: Path, code: int) -> None:
    def answer(method: str, path: str, *_: Any) -> Answer:
        return (409, {"code": code}) if path.endswith("/declare") else (200, {"location": str(tmp_path / "t")})

    with server(answer) as uri:
        found = ns.declare_table(client(uri), ["t"], {"allowed_bases": str(tmp_path)})
    assert (found.uri, found.is_new) == (str(tmp_path / "t"), False)
    gone = server(lambda method, path, *_: (409 if path.endswith("/declare") else 404, {}))
    with gone as uri, pytest.raises(AlreadyExistsError):  # a namespace has the name
        ns.declare_table(client(uri), ["t"])


def test_a_provider_renews_the_token() -> None:
    seen: list[tuple[str, str]] = []

    class Renewed(ns.DynamicContextProvider):
        def provide_context(self, info: dict[str, str]) -> dict[str, str]:
            return {"headers.Authorization": f"Bearer {info['operation']} {len(seen)}", "other": "x"}

    def answer(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        seen.append((headers["Authorization"], path))
        return 200, {"location": "s3://b/t"}

    with server(answer) as uri:
        catalog = ns.RestNamespace(Renewed(), uri=uri)
        catalog.describe_table(ASK)
        catalog.describe_table(ASK)
    assert [header for header, _ in seen] == ["Bearer describe_table 0", "Bearer describe_table 1"]


@pytest.mark.parametrize(
    "properties",
    [
        {"uri": ""},
        {"uri": "ftp://x"},
        {"uri": "file:///etc/passwd"},
        {"uri": "https://user:pw@host"},
        {"uri": "https://host?token=x"},
        {"uri": "https://host", "token": "x"},
        {"uri": "https://host", "timeout": "soon"},
        {"uri": "https://host", "header.X": "a\r\nInjected: b"},
    ],
)
def test_wrong_properties_are_refused_without_their_values(properties: dict[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        ns.connect("rest", properties)
    assert "Injected" not in str(caught.value)


@pytest.mark.parametrize("part", ["a$b", "..", ".", ""])
def test_a_part_that_would_change_the_route_is_not_sent(part: str) -> None:
    with server(lambda *_: pytest.fail("a request was sent")) as uri, pytest.raises(InputError):
        client(uri).describe_table(ns.DescribeTableRequest(id=["a", part]))


def test_a_server_that_does_not_know_a_question_is_asked_to_declare() -> None:
    def answer(method: str, path: str, *_: Any) -> Answer:
        return (200, {"location": "s3://b/t"}) if path.endswith("/declare") else (406, {"error": "no", "code": 0})

    with server(answer) as uri:
        assert client(uri).declare_table(ns.DeclareTableRequest(id=["a", "t"])).location == "s3://b/t"


def test_a_listing_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_core.namespace.opening.MAX_PAGES", 5)
    asked: list[str] = []

    def answer(method: str, path: str, *_: Any) -> Answer:
        asked.append(path)
        return 200, {"tables": ["t"], "page_token": str(len(asked))}

    with server(answer) as uri, pytest.raises(StoreError, match="pages"):
        [*ns.all_tables(client(uri))]
    assert len(asked) == 5


@pytest.mark.parametrize("place", ["status", "headers", "body", "error", "continue"])
def test_a_server_that_answers_without_end_is_given_up(place: str) -> None:
    """A byte at a time is never silent, and was listened to for as long as it came."""
    whole = {
        "status": (b"", b"HTTP/1.1 200 OK and much more"),
        "headers": (b"HTTP/1.1 200 OK\r\n", b"X-A: b"),
        "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
        "error": (b"HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\n", b" "),
        "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    }[place]
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with contextlib.suppress(OSError):
                self.request.sendall(whole[0])
                while not over.wait(0.02):
                    self.request.sendall(whole[1])

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as held:
        held.daemon_threads = True
        threading.Thread(target=held.serve_forever, daemon=True).start()
        try:
            asking = client(f"http://127.0.0.1:{held.server_address[1]}", timeout="0.5")
            with pytest.raises(StoreError) as caught:
                asking.declare_table(ns.DeclareTableRequest(id=["t"]))
            assert caught.value.retryable
            assert TOKEN not in str(caught.value)
        finally:
            over.set()
            held.shutdown()


def test_a_silent_server_is_a_retryable_error() -> None:
    def answer(*_: Any) -> Answer:
        time.sleep(0.4)
        return 200, {}

    with server(answer) as uri, pytest.raises(StoreError) as caught:
        client(uri, timeout="0.1").declare_table(ns.DeclareTableRequest(id=["t"]))
    assert caught.value.retryable


KEYS = {"aws_access_key_id": "AK", "aws_secret_access_key": "SK"}
MINE = {"aws_access_key_id": "MINE", "aws_secret_access_key": "MINE", "aws_region": "eu-west-1", "request_timeout": "3s"}


def located(location: Any, vended: Mapping[str, str] | None, given: Mapping[str, str]) -> ns.TableLocation:
    found = {"location": location, "storage_options": vended}
    with server(lambda *_: (200, found)) as uri:
        return ns.find_table(client(uri), ["t"], given)


def test_vended_credentials_take_the_place_of_the_callers() -> None:
    soon = str(int(time.time() * 1000) + 60_000)
    found = located("s3://theirs/t", {**KEYS, "expires_at_millis": soon}, MINE)
    # When they end goes with them: an error of a store that names expired keys is then worth a retry.
    assert found.storage_options == {"aws_region": "eu-west-1", "request_timeout": "3s", "expires_at_millis": soon, **KEYS}
    assert found.expires_at == int(soon) / 1000
    assert "SK" not in repr(found)


def test_the_callers_credentials_go_to_places_that_it_named_only() -> None:
    with pytest.raises(InputError, match="allowed_bases"):
        located("s3://theirs/t", None, MINE)
    with pytest.raises(InputError, match="allowed_bases"):
        located("s3://mine-too/t", None, {**MINE, "allowed_bases": "s3://mine"})
    found = located("s3://mine/t", {"aws_region": "us-east-1"}, {**MINE, "allowed_bases": "s3://mine"})
    assert found.storage_options["aws_access_key_id"] == "MINE"
    assert found.storage_options["aws_region"] == "us-east-1"


@pytest.mark.parametrize(
    "option",
    [
        *(
            "aws_profile",
            "aws_role_arn",
            "google_service_account",
            "manifest_store_url",
            "allowed_bases",
            "azure_use_azure_cli",
        ),
        *("proxy_url", "allow_invalid_certificates", "allow_external_blob_outside_bases", "store_engine", "no_such_option"),
    ],
)
def test_a_catalog_does_not_choose_among_what_this_machine_has(option: str) -> None:
    with pytest.raises(InputError, match=option) as caught:
        located("s3://mine/t", {**KEYS, option: "the-value"}, {**MINE, "allowed_bases": "s3://mine"})
    assert "the-value" not in str(caught.value)


def test_an_endpoint_needs_credentials_of_its_own() -> None:
    given = {**MINE, "allowed_bases": "s3://mine"}
    with pytest.raises(InputError, match="aws_endpoint without credentials"):
        located("s3://mine/t", {"aws_endpoint": "http://evil"}, given)
    assert (
        located("s3://mine/t", {"aws_endpoint": "http://evil", **KEYS}, given).storage_options["aws_access_key_id"] == "AK"
    )
    same = {**given, "aws_endpoint": "http://minio"}
    assert located("s3://mine/t", {"aws_endpoint": "http://minio"}, same).storage_options["aws_endpoint"] == "http://minio"


def test_expired_credentials_are_a_retryable_error() -> None:
    with pytest.raises(StoreError, match="expired") as caught:
        located("s3://b/t", {**KEYS, "expires_at_millis": "1000"}, {})
    assert caught.value.retryable


@pytest.mark.parametrize(
    "location",
    [
        None,
        "",
        "relative/t",
        "file://host/t",
        "s3://user:pw@b/t",
        "s3://mine/../theirs/t",
        "file:///data/../etc",
        7,
        "/etc/t",
    ],
)
def test_a_location_that_is_not_a_place_that_the_caller_named_is_refused(location: Any) -> None:
    with pytest.raises(InputError) as caught:
        located(location, None, {"allowed_bases": "s3://mine /data"})
    assert "pw" not in str(caught.value)


def test_a_folder_of_this_machine_is_opened_where_it_is_allowed(tmp_path: Path) -> None:
    for base in (str(tmp_path), tmp_path.as_uri()):
        assert located(f"file://{tmp_path}/a%20b", None, {"allowed_bases": base}).uri == f"{tmp_path}/a b"


def test_managed_versions_are_refused() -> None:
    found = {"location": "s3://b/t", "managed_versioning": True}
    with server(lambda *_: (200, found)) as uri, pytest.raises(UnsupportedFeatureError, match="versions"):
        ns.find_table(client(uri), ["t"], {"allowed_bases": "s3://b"})


def test_the_client_imports_neither_pyarrow_nor_a_package_for_http() -> None:
    import subprocess
    import sys

    program = (
        "import sys; from lance_core.namespace import RestNamespace, find_table, parse_name\n"
        "print(sorted({'pyarrow', 'pydantic', 'urllib3', 'lance_namespace'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.strip() == "[]"
