"""A `lance` connection in every form Airflow keeps connections in, and the hook over it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from airflow.sdk import Connection

from airflow_lance.connection import parse_connection
from airflow_lance.hooks.lance import LanceHook, _probe
from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store

Define = Callable[[str, str], None]
OPTIONS = {"region": "eu-west-1", "aws_secret_access_key": "hush-hush-hush"}
EXTRA = {"base_uri": "s3://lake/tables", "spark_conn_id": "cluster", "storage_options": OPTIONS}


def _uri_form() -> str:
    options = quote(json.dumps(OPTIONS), safe="")
    return f"lance://?base_uri={quote('s3://lake/tables', safe='')}&spark_conn_id=cluster&storage_options={options}"


FORMS = {
    "json": json.dumps({"conn_type": "lance", "extra": EXTRA}),
    "json, extra as text": json.dumps({"conn_type": "lance", "extra": json.dumps(EXTRA)}),
    "json, base uri as host": json.dumps({"conn_type": "lance", "host": "s3://lake/tables", "extra": EXTRA}),
    "uri": _uri_form(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_says_the_same(form: str, connection: Define) -> None:
    connection("lake", form)
    hook = LanceHook("lake")
    assert hook.get_uri("flights.lance") == "s3://lake/tables/flights.lance"
    assert hook.storage_options() == OPTIONS
    assert hook.spark_conn_id() == "cluster"


def test_login_and_password_are_the_clouds_credentials() -> None:
    parsed = parse_connection(Connection(conn_id="c", conn_type="lance", host="s3://lake", login="me", password="hush"))
    assert parsed.storage_options == {"aws_access_key_id": "me", "aws_secret_access_key": "hush"}
    assert "hush" in parsed.secrets
    assert "hush" not in repr(parsed)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"storage_options": "not json: hush"}, "expected a JSON object"),
        ({"storage_options": ["hush"]}, "expected a JSON object, got list"),
        ({"storage_options": {"a": ["hush"]}}, "storage_options.a"),
        ({"base_uri": 3}, "extra.base_uri: expected a string"),
        ({"base_uri": "data/lake"}, "neither a uri nor an absolute path"),
    ],
)
def test_a_wrong_field_is_named_and_never_quoted(extra: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_connection(Connection(conn_id="lake", conn_type="lance", extra=json.dumps(extra)))
    assert words in str(caught.value)
    assert "'lake'" in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("table", ["s3://other/t.lance", "/data/t.lance", "memory://t", "file:///data/t.lance"])
def test_a_full_uri_needs_no_connection(table: str) -> None:
    assert LanceHook().get_uri(table) == table
    assert LanceHook().storage_options(table) == {}
    assert LanceHook().spark_conn_id(table) == "spark_default"


def test_a_name_needs_a_base_uri(connection: Define) -> None:
    connection("empty", json.dumps({"conn_type": "lance"}))
    with pytest.raises(InputError, match="has no base uri"):
        LanceHook("empty").get_uri("t.lance")
    with pytest.raises(InputError, match="is outside the connection's base uri"):
        LanceHook("empty").get_uri("../t.lance")
    with pytest.raises(InputError, match="name is empty"):
        LanceHook("empty").get_uri(" ")


def test_a_connection_that_was_asked_for_by_name_must_exist() -> None:
    from airflow.sdk.exceptions import AirflowNotFoundException

    with pytest.raises(AirflowNotFoundException):
        LanceHook("nowhere").get_uri("/data/t.lance")


def test_connection_test_lists_and_probes(tmp_path: Path, connection: Define) -> None:
    connection("lake", json.dumps({"conn_type": "lance", "host": str(tmp_path)}))
    worked, message = LanceHook("lake").test_connection()
    assert worked, message
    assert "conditional put is conditional" in message
    assert list(tmp_path.iterdir()) == []


def test_connection_test_says_what_is_wrong(connection: Define) -> None:
    connection("lake", json.dumps({"conn_type": "lance"}))
    assert LanceHook("lake").test_connection() == (
        False,
        "The connection has no base uri. Set base_uri, for example s3://bucket/tables or /data/lake.",
    )
    connection("odd", json.dumps({"conn_type": "lance", "host": "nosuchscheme://x"}))
    worked, message = LanceHook("odd").test_connection()
    assert not worked
    assert "nosuchscheme" in message


class LyingStore:
    """A store whose conditional put is not conditional: what the test is there to find."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._inner.put(path, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_store_that_lets_both_writers_through_fails_the_test(tmp_path: Path) -> None:
    worked, message = _probe(LyingStore(resolve_store(str(tmp_path))))  # type: ignore[arg-type]
    assert not worked
    assert "commits could be lost" in message
    assert list(tmp_path.iterdir()) == []


class KeepsListings:
    """A folder that several hosts mount: a name that was not there when it was listed is not shown for a while."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._kept = inner, dict[str, list[str]]()

    def list_names(self, folder: str) -> list[str]:
        return self._kept.setdefault(folder, [*self._inner.list_names(folder)])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_store_whose_listings_lag_fails_the_test(tmp_path: Path) -> None:
    worked, message = _probe(KeepsListings(resolve_store(str(tmp_path))))  # type: ignore[arg-type]
    assert not worked
    assert "does not show what was put" in message
    assert list(tmp_path.iterdir()) == []


def test_airflows_own_command_tests_the_connection(tmp_path: Path, connection: Define) -> None:
    connection("lake", json.dumps({"conn_type": "lance", "host": str(tmp_path)}))
    worked, message = Connection.from_json(
        json.dumps({"conn_type": "lance", "host": str(tmp_path)}), "lake"
    ).test_connection()
    assert worked, message


def test_the_command_line_tests_the_connection(tmp_path: Path, connection: Define, airflow_database: None) -> None:
    connection("lake", json.dumps({"conn_type": "lance", "host": str(tmp_path)}))
    shown = subprocess.run(
        [sys.executable, "-m", "airflow", "connections", "test", "lake"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Connection success" in shown.stdout, shown.stdout + shown.stderr[-2000:]


def test_a_connection_may_come_from_a_file(tmp_path: Path) -> None:
    from airflow.secrets.local_filesystem import load_connections_dict

    path = tmp_path / "connections.json"
    path.write_text(json.dumps({"lake": {"conn_type": "lance", "extra": EXTRA}}))
    parsed = parse_connection(load_connections_dict(str(path))["lake"])
    assert (parsed.base_uri, parsed.storage_options, parsed.spark_conn_id) == ("s3://lake/tables", OPTIONS, "cluster")


def test_an_operators_own_secrets_are_masked_too() -> None:
    from airflow.sdk.log import redact

    from airflow_lance.operators.append import LanceAppendOperator

    operator = LanceAppendOperator(
        task_id="a",
        uri="/data/t.lance",
        source={"format": "jdbc", "options": {"url": "jdbc:x", "password": "quiet-quiet-quiet"}},
        storage_options={"token": {"env": "TOKEN"}, "region": "eu-west-2"},
    )
    operator.render_template_fields({})  # type: ignore[arg-type]
    assert operator.store_options() == operator.storage_options
    assert redact("quiet-quiet-quiet in eu-west-2") == "*** in eu-west-2"


def test_secrets_are_masked_in_logs(connection: Define) -> None:
    from airflow.sdk.log import redact

    connection("lake", json.dumps({"conn_type": "lance", "extra": EXTRA}))
    assert LanceHook("lake").storage_options()["aws_secret_access_key"] == "hush-hush-hush"
    assert "hush-hush-hush" not in str(redact("the key is hush-hush-hush, region eu-west-1"))
    assert "eu-west-1" in str(redact("the key is hush-hush-hush, region eu-west-1"))


@pytest.mark.parametrize(("base", "status", "said"), [("lake", 0, "Connection success!"), ("", 1, "has no base uri")])
def test_the_command_prints_what_the_page_says(
    base: str, status: int, said: str, tmp_path: Path, connection: Callable[[str, str], None]
) -> None:
    place = str(tmp_path / base) if base else ""
    connection("tried", json.dumps({"conn_type": "lance", "extra": {"base_uri": place}}))
    command = [sys.executable, "-m", "airflow", "connections", "test", "tried"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout
    assert "Connection failed!" in done.stdout or not status
    assert "conditional put" not in done.stdout, "the command says no more of a success: change the page"
    page = (Path(__file__).parents[2] / "docs" / "connections.md").read_text(encoding="utf-8")
    assert "`Connection success!` and nothing else, or `Connection failed!` and the answer" in page
