"""Every storage option of the official documentation: known, and either handed on or refused aloud, never ignored."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from lance_core.errors import InputError
from lance_core.io.local.store import LocalStore
from lance_core.io.options import KNOWN_OPTIONS, PLAIN_OPTIONS, checked_options, options_of_base
from lance_core.io.remote import options as remote_options
from lance_core.io.resolve import resolve_store

S3 = remote_options.s3_arguments
GCS = remote_options.gcs_arguments
AZURE = remote_options.azure_arguments
KEYS = {"aws_access_key_id": "K", "aws_secret_access_key": "S"}

HANDED_ON: list[tuple[Any, dict[str, str], tuple[str, ...], object]] = [
    (S3, {"aws_region": "r"}, ("client_kwargs", "region_name"), "r"),
    (S3, {"region": "r"}, ("client_kwargs", "region_name"), "r"),
    (S3, {"aws_access_key_id": "k"}, ("key",), "k"),
    (S3, {"access_key_id": "k"}, ("key",), "k"),
    (S3, {"aws_secret_access_key": "k"}, ("secret",), "k"),
    (S3, {"secret_access_key": "k"}, ("secret",), "k"),
    (S3, {"aws_session_token": "k"}, ("token",), "k"),
    (S3, {"session_token": "k"}, ("token",), "k"),
    (S3, {"aws_endpoint": "http://m"}, ("endpoint_url",), "http://m"),
    (S3, {"endpoint": "http://m"}, ("endpoint_url",), "http://m"),
    (S3, {"aws_virtual_hosted_style_request": "true"}, ("config_kwargs", "s3", "addressing_style"), "virtual"),
    (S3, {"virtual_hosted_style_request": "false"}, ("config_kwargs", "s3", "addressing_style"), "path"),
    (S3, {"aws_server_side_encryption": "aws:kms"}, ("s3_additional_kwargs", "ServerSideEncryption"), "aws:kms"),
    (S3, {"aws_sse_kms_key_id": "k"}, ("s3_additional_kwargs", "SSEKMSKeyId"), "k"),
    (S3, {"aws_sse_bucket_key_enabled": "true"}, ("s3_additional_kwargs", "BucketKeyEnabled"), True),
    (S3, {"unsigned_payload": "true"}, ("config_kwargs", "s3", "payload_signing_enabled"), False),
    (S3, {"aws_provider_scheme": "token", **KEYS}, ("key",), "K"),
    (S3, {"connect_timeout": "500ms"}, ("config_kwargs", "connect_timeout"), 0.5),
    (S3, {"timeout": "2m"}, ("config_kwargs", "read_timeout"), 120.0),
    (S3, {"request_timeout": "30"}, ("config_kwargs", "read_timeout"), 30.0),
    (S3, {"client_max_retries": "7"}, ("config_kwargs", "retries", "max_attempts"), 8),
    (S3, {"download_retry_count": "2"}, ("config_kwargs", "retries", "max_attempts"), 3),
    (S3, {"allow_invalid_certificates": "true"}, ("client_kwargs", "verify"), False),
    (S3, {"proxy_url": "http://p"}, ("config_kwargs", "proxies", "https"), "http://p"),
    (S3, {"user_agent": "u"}, ("config_kwargs", "user_agent_extra"), "u"),
    (S3, {"skip_signature": "true"}, ("anon",), True),
    (GCS, {"google_service_account": "/a"}, ("token",), "/a"),
    (GCS, {"service_account": "/a"}, ("token",), "/a"),
    (GCS, {"google_service_account_key": '{"a": 1}'}, ("token",), {"a": 1}),
    (GCS, {"service_account_key": '{"a": 1}'}, ("token",), {"a": 1}),
    (GCS, {"google_application_credentials": "/a"}, ("token",), "/a"),
    (GCS, {"application_credentials": "/a"}, ("token",), "/a"),
    (GCS, {"google_storage_token": "t"}, ("token",), "t"),
    (AZURE, {"azure_storage_account_name": "a"}, ("account_name",), "a"),
    (AZURE, {"account_name": "a"}, ("account_name",), "a"),
    (AZURE, {"azure_storage_account_key": "k"}, ("account_key",), "k"),
    (AZURE, {"account_key": "k"}, ("account_key",), "k"),
    (AZURE, {"azure_client_id": "c"}, ("client_id",), "c"),
    (AZURE, {"client_id": "c"}, ("client_id",), "c"),
    (AZURE, {"azure_client_secret": "c"}, ("client_secret",), "c"),
    (AZURE, {"client_secret": "c"}, ("client_secret",), "c"),
    (AZURE, {"azure_tenant_id": "t"}, ("tenant_id",), "t"),
    (AZURE, {"tenant_id": "t"}, ("tenant_id",), "t"),
    *[
        (AZURE, {name: "s"}, ("sas_token",), "s")
        for name in ("azure_storage_sas_key", "azure_storage_sas_token", "sas_key", "sas_token")
    ],
    (AZURE, {"azure_endpoint": "https://h/x/"}, ("account_host",), "h/x"),
    (AZURE, {"endpoint": "https://h"}, ("account_host",), "h"),
    (AZURE, {"use_fabric_endpoint": "true", "account_name": "a"}, ("account_host",), "a.blob.fabric.microsoft.com"),
    *[
        (AZURE, {name: "true"}, ("account_name",), "devstoreaccount1")
        for name in ("azure_storage_use_emulator", "object_store_use_emulator", "use_emulator")
    ],
    (AZURE, {"timeout": "90s"}, ("read_timeout",), 90),
]


@pytest.mark.parametrize(
    ("arguments", "options", "path", "expected"),
    HANDED_ON,
    ids=lambda value: getattr(value, "__name__", str(value))[:60],
)
def test_options_are_handed_on(arguments: Any, options: dict[str, str], path: tuple[str, ...], expected: object) -> None:
    found: Any = arguments(checked_options({name.upper(): value for name, value in options.items()}))
    for name in path:
        found = found[name]
    assert found == expected


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (S3, {"aws_provider_scheme": "irsa"}),
        (S3, {"aws_provider_scheme": "token"}),
        (S3, {"proxy_ca_certificate": "pem"}),
        (S3, {"proxy_excludes": "example.com"}),
        (GCS, {"proxy_url": "http://p"}),
        (AZURE, {"proxy_url": "http://p"}),
        (AZURE, {"msi_endpoint": "http://169.254.169.254"}),
        (GCS, {"service_account_key": "not json"}),
    ],
)
def test_what_cannot_be_honoured_is_refused(arguments: Any, options: dict[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        arguments(checked_options(options))
    assert "not json" not in str(caught.value)


@pytest.mark.parametrize("name", ["azure_storage_token", "bearer_token", "token"])
def test_a_bearer_token_signs_in_to_azure(name: str) -> None:
    pytest.importorskip("azure.core", reason="the packages of Azure are not installed (extra azure)")
    credential = AZURE(checked_options({name: "ey-secret"}))["credential"]
    assert asyncio.run(credential.get_token("https://storage.azure.com/.default")).token == "ey-secret"
    assert "ey-secret" not in repr(credential)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"azure_use_azure_cli": "true"}, "AzureCliCredential"),
        ({"use_azure_cli": "true"}, "AzureCliCredential"),
        ({"azure_federated_token_file": "/t", "client_id": "c", "tenant_id": "t"}, "WorkloadIdentityCredential"),
        ({"federated_token_file": "/t", "client_id": "c", "tenant_id": "t"}, "WorkloadIdentityCredential"),
        ({"azure_object_id": "o"}, "ManagedIdentityCredential"),
        ({"msi_resource_id": "r"}, "ManagedIdentityCredential"),
    ],
)
def test_identities_of_azure(options: dict[str, str], kind: str) -> None:
    pytest.importorskip("azure.identity", reason="the packages of Azure are not installed (extra azure)")
    assert type(AZURE(checked_options(options))["credential"]).__name__ == kind


def test_options_of_one_base() -> None:
    options = {"account_name": "a", "account_key": "ka", "base_1.account_name": "b", "base_1.account_key": "kb"}
    assert checked_options(options) == {"account_name": "a", "account_key": "ka"}
    assert options_of_base(options, 1) == {"account_name": "b", "account_key": "kb"}
    assert options_of_base(options, 2) == {"account_name": "a", "account_key": "ka"}
    assert options_of_base(options, 2, shared=False) == {}
    assert options_of_base(None, 1) == {}
    with pytest.raises(InputError, match=r"base_1\.acount_name"):
        checked_options({"base_1.acount_name": "hunter2"})


def test_local_writes_without_waiting_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    quick = resolve_store(tmp_path / "quick", {"local_fsync": "false"})
    quick.put("a/b", b"x")
    quick.put_if_absent("a/c", b"x")
    quick.child("d").put("e", b"x")
    assert not synced
    resolve_store(tmp_path / "sure").put("a/b", b"x")
    assert synced
    assert isinstance(quick, LocalStore)
    with pytest.raises(InputError, match="local_fsync"):
        resolve_store(tmp_path, {"local_fsync": "maybe"})


OFFICIAL = [
    "allow_http",
    "block_size",
    "download_retry_count",
    "allow_invalid_certificates",
    "connect_timeout",
    "timeout",
    "user_agent",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "client_max_retries",
    "client_retry_timeout",
    "local_fsync",
    "aws_region",
    "region",
    "aws_access_key_id",
    "access_key_id",
    "aws_secret_access_key",
    "secret_access_key",
    "aws_session_token",
    "session_token",
    "aws_endpoint",
    "endpoint",
    "aws_virtual_hosted_style_request",
    "virtual_hosted_style_request",
    "aws_s3_express",
    "s3_express",
    "aws_server_side_encryption",
    "aws_sse_kms_key_id",
    "aws_sse_bucket_key_enabled",
    "aws_provider_scheme",
    "google_service_account",
    "service_account",
    "google_service_account_key",
    "service_account_key",
    "google_application_credentials",
    "application_credentials",
    "azure_storage_account_name",
    "account_name",
    "azure_storage_account_key",
    "account_key",
    "azure_client_id",
    "client_id",
    "azure_client_secret",
    "client_secret",
    "azure_tenant_id",
    "tenant_id",
    "azure_storage_sas_key",
    "azure_storage_sas_token",
    "sas_key",
    "sas_token",
    "azure_storage_token",
    "bearer_token",
    "token",
    "azure_storage_use_emulator",
    "object_store_use_emulator",
    "use_emulator",
    "azure_endpoint",
    "azure_use_fabric_endpoint",
    "use_fabric_endpoint",
    "azure_msi_endpoint",
    "azure_identity_endpoint",
    "identity_endpoint",
    "msi_endpoint",
    "azure_object_id",
    "object_id",
    "azure_msi_resource_id",
    "msi_resource_id",
    "azure_federated_token_file",
    "federated_token_file",
    "azure_use_azure_cli",
    "use_azure_cli",
    "azure_disable_tagging",
    "disable_tagging",
    "oss_endpoint",
    "oss_access_key_id",
    "oss_secret_access_key",
    "oss_region",
    "oss_security_token",
]
"""The tables of the official documentation's page on object stores, for the stores that there are here."""


def test_the_official_names_are_known_and_documented() -> None:
    assert not sorted(set(OFFICIAL) - KNOWN_OPTIONS)
    text = (Path(__file__).parents[2] / "docs" / "stores.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.partition("## Storage options")[2].splitlines() if line.startswith("| `")]
    named = {
        name for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row) if not name.endswith("_") and name != "_path"
    }
    assert not sorted(named - KNOWN_OPTIONS)
    # A row may say "also without azure_": then the short name is not spelt out.
    short = {name.removeprefix(prefix) for name in named for prefix in ("aws_", "google_", "azure_storage_", "azure_")}
    others = {"azure_identity_endpoint", "identity_endpoint"}
    assert not sorted(set(OFFICIAL) - named - short - others)


def test_secrets_are_never_called_plain() -> None:
    secret = ("key", "secret", "token", "sas", "connection_string", "manifest_store_url", "proxy_url", "password")
    assert PLAIN_OPTIONS <= KNOWN_OPTIONS
    assert not [name for name in PLAIN_OPTIONS if any(word in name for word in secret)]
