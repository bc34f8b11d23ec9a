"""Credentials from the clouds' own Airflow connections; the clouds' providers are stood in for, by what they are asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from airflow_lance.hooks.lance import LanceHook
from lance_core.errors import InputError

Define = Callable[[str, str], None]


def _lance(define: Define, base_uri: str, **extra: str) -> LanceHook:
    define("lake", json.dumps({"conn_type": "lance", "extra": {"base_uri": base_uri, **extra}}))
    return LanceHook("lake")


def _module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    parts = name.split(".")
    for depth in range(2, len(parts)):
        package = ModuleType(".".join(parts[:depth]))
        package.__path__ = []  # type: ignore[attr-defined]
        if package.__name__ not in sys.modules:
            monkeypatch.setitem(sys.modules, package.__name__, package)
    module = ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)


def test_an_aws_connection_gives_keys_token_and_region(connection: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    held = SimpleNamespace()

    class AwsGenericHook:
        region_name = "eu-west-1"
        conn_config = SimpleNamespace(endpoint_url=None)

        def __init__(self, *, aws_conn_id: str, client_type: str) -> None:
            assert (aws_conn_id, client_type) == ("aws_default", "s3")

        def get_session(self, *, region_name: str) -> Any:
            return SimpleNamespace(get_credentials=lambda: held)

        def get_credentials(self, *, region_name: str) -> Any:
            return SimpleNamespace(access_key="AK", secret_key="a secret", token="of a role")

    _module(monkeypatch, "airflow.providers.amazon.aws.hooks.base_aws", AwsGenericHook=AwsGenericHook)
    hook = _lance(connection, "s3://lake", aws_conn_id="aws_default")
    assert hook.storage_options() == {
        "aws_access_key_id": "AK",
        "aws_secret_access_key": "a secret",
        "aws_session_token": "of a role",
        "region": "eu-west-1",
    }
    assert {"a secret", "of a role"} <= {*hook.settings.secrets}
    assert hook.get_uri("t.lance") == "s3://lake/t.lance"
    # Keys of a pod or an instance expire in an hour or a few: each process requests its own.
    held.refresh_needed = lambda: False
    assert _lance(connection, "s3://lake", aws_conn_id="aws_default").storage_options() == {"region": "eu-west-1"}


def test_an_aws_role_travels_as_a_role_and_its_keys_are_never_frozen(
    connection: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen keys of a role expire after an hour, in the middle of a long job and on every executor."""

    class AwsGenericHook:
        region_name = "eu-west-1"
        conn_config = SimpleNamespace(
            endpoint_url=None,
            role_arn="arn:aws:iam::1:role/writer",
            assume_role_method="assume_role",
            assume_role_kwargs={"ExternalId": "outside", "DurationSeconds": 3600},
            aws_access_key_id="AK",
            aws_secret_access_key="a secret",
            aws_session_token=None,
        )

        def __init__(self, **_: Any) -> None:
            pass

        def get_credentials(self, *, region_name: str) -> Any:
            return SimpleNamespace(access_key="ASIA", secret_key="frozen", token="of the role")

    _module(monkeypatch, "airflow.providers.amazon.aws.hooks.base_aws", AwsGenericHook=AwsGenericHook)
    expected = {
        "aws_role_arn": "arn:aws:iam::1:role/writer", "aws_external_id": "outside", "aws_role_seconds": "3600",
        "aws_access_key_id": "AK", "aws_secret_access_key": "a secret", "region": "eu-west-1",
    }  # fmt: skip
    assert _lance(connection, "s3://lake", aws_conn_id="aws_default").storage_options() == expected
    # A role that is assumed in a way that only the hook knows is assumed by the hook, once.
    monkeypatch.setattr(AwsGenericHook.conn_config, "assume_role_method", "assume_role_with_saml")
    frozen = _lance(connection, "s3://lake", aws_conn_id="aws_default").storage_options()
    assert (frozen["aws_access_key_id"], "aws_role_arn" in frozen) == ("ASIA", False)


FEDERATED = {"type": "external_account", "audience": "//iam"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"key_path": "/sa.json"}, {"google_service_account": "/sa.json"}),
        ({"keyfile_dict": '{"type": "t"}'}, {"google_service_account_key": '{"type": "t"}'}),
        ({"keyfile_dict": {"type": "t"}}, {"google_service_account_key": '{"type": "t"}'}),
        ({"credential_config_file": "/f.json"}, {"google_service_account": "/f.json"}),
        ({"credential_config_file": FEDERATED}, {"google_service_account_key": json.dumps(FEDERATED)}),
        ({"is_anonymous": True}, {"skip_signature": "true"}),
        ({}, {"google_identity": "default"}),
        ({"impersonation_chain": "a@p,b@p"}, {"google_identity": "default", "google_impersonate": "a@p,b@p"}),
        (
            {"impersonation_chain": ["a@p", "b@p"], "key_path": "/sa.json"},
            {"google_service_account": "/sa.json", "google_impersonate": "a@p,b@p"},
        ),
        ({"key_secret_name": "kept"}, {"google_storage_token": "ya29.token"}),
    ],
    ids=["path", "key", "mapping", "federation", "its-content", "nobody", "machine", "chain", "key-and-chain", "secret"],
)
def test_a_google_connection_gives_an_identity_and_a_token_only_where_it_must(
    fields: dict[str, Any], expected: dict[str, str], connection: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    class GoogleBaseHook:
        def __init__(self, *, gcp_conn_id: str) -> None:
            assert gcp_conn_id == "google"

        def _get_field(self, name: str) -> Any:
            return fields.get(name)

        def get_credentials(self) -> Any:
            return SimpleNamespace(token="ya29.token")

    _module(monkeypatch, "airflow.providers.google.common.hooks.base_google", GoogleBaseHook=GoogleBaseHook)
    assert _lance(connection, "gs://lake", gcp_conn_id="google").storage_options() == expected


def test_a_wasb_connection_gives_account_and_key_or_a_principal(connection: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    _module(monkeypatch, "airflow.providers.microsoft.azure.hooks.wasb")
    connection("wasb_default", json.dumps({"conn_type": "wasb", "login": "acct", "password": "key"}))
    hook = _lance(connection, "az://lake", azure_conn_id="wasb_default")
    assert hook.storage_options() == {"account_name": "acct", "account_key": "key"}
    principal = {"conn_type": "wasb", "host": "https://acct.blob.core.windows.net", "login": "client", "password": "s"}
    connection("wasb_default", json.dumps({**principal, "extra": {"tenant_id": "t"}}))
    assert _lance(connection, "az://lake", azure_conn_id="wasb_default").storage_options() == {
        "azure_tenant_id": "t", "azure_client_id": "client", "azure_client_secret": "s", "account_name": "acct",
    }  # fmt: skip


def test_the_connections_own_options_win_and_a_missing_provider_is_named(
    connection: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    _module(monkeypatch, "airflow.providers.microsoft.azure.hooks.wasb")
    connection("wasb_default", json.dumps({"conn_type": "wasb", "login": "acct", "password": "key"}))
    extra = {"azure_conn_id": "wasb_default", "storage_options": json.dumps({"account_name": "other"})}
    assert _lance(connection, "az://lake", **extra).storage_options()["account_name"] == "other"
    monkeypatch.setitem(sys.modules, "airflow.providers.amazon.aws.hooks.base_aws", None)
    with pytest.raises(InputError, match="apache-airflow-providers-amazon is not installed"):
        _lance(connection, "s3://lake", aws_conn_id="aws_default").storage_options()


def test_a_hook_reads_and_writes_tables_by_name(connection: Define, tmp_path: Any) -> None:
    import pyarrow as pa

    hook = _lance(connection, str(tmp_path))
    hook.write(pa.table({"id": [1, 2]}), "t.lance")
    hook.write(pa.table({"id": [3]}), "t.lance", mode="append")
    assert hook.dataset("t.lance").to_table()["id"].to_pylist() == [1, 2, 3]
    assert hook.dataset("t.lance", version=1).count_rows() == 2
    hook.write(pa.table({"id": [1]}), "sales/day.lance")
    assert hook.list_tables() == ["sales/day.lance", "t.lance"]
    assert all(map(hook.table_exists, hook.list_tables()))
    (tmp_path / "folder").mkdir()
    assert not hook.table_exists("folder")
    assert not hook.table_exists("nowhere.lance")
