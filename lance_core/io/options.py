"""Names of storage options: the official library's, mapped to what each backend's file system takes.

::

    {"aws_access_key_id": "...", "region": "eu-west-1"}  on s3://   -> key, client_kwargs.region_name

A name that no backend knows is refused, with the nearest names that exist: a misspelt option must not be ignored, and its
value (which may be a secret) must not be shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from lance_core.errors import InputError

CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "request_timeout",
        "timeout",
        "user_agent",
        "proxy_url",
        "download_retry_count",
        "client_max_retries",
        "client_retry_timeout",
        "io_threads",
    }
)

S3_OPTIONS = frozenset(
    {
        "aws_access_key_id",
        "access_key_id",
        "aws_secret_access_key",
        "secret_access_key",
        "aws_session_token",
        "aws_token",
        "session_token",
        "token",
        "aws_region",
        "region",
        "aws_default_region",
        "default_region",
        "aws_endpoint",
        "aws_endpoint_url",
        "endpoint",
        "endpoint_url",
        "aws_virtual_hosted_style_request",
        "virtual_hosted_style_request",
        "aws_s3_express",
        "s3_express",
        "aws_server_side_encryption",
        "aws_sse_kms_key_id",
        "aws_sse_bucket_key_enabled",
        "aws_skip_signature",
        "skip_signature",
        "aws_unsigned_payload",
        "unsigned_payload",
        "aws_profile",
        "profile",
        "anon",
        "dynamodb_endpoint",
    }
)

GCS_OPTIONS = frozenset(
    {
        "google_service_account",
        "service_account",
        "google_service_account_path",
        "service_account_path",
        "google_service_account_key",
        "service_account_key",
        "google_application_credentials",
        "application_credentials",
        "google_storage_token",
        "google_project",
        "project",
        "google_endpoint",
        "gcs_endpoint",
    }
)

AZURE_OPTIONS = frozenset(
    {
        "azure_storage_account_name",
        "account_name",
        "azure_storage_account_key",
        "azure_storage_access_key",
        "azure_storage_master_key",
        "master_key",
        "account_key",
        "access_key",
        "azure_storage_client_id",
        "azure_client_id",
        "client_id",
        "azure_storage_client_secret",
        "azure_client_secret",
        "client_secret",
        "azure_storage_tenant_id",
        "azure_storage_authority_id",
        "azure_tenant_id",
        "azure_authority_id",
        "tenant_id",
        "authority_id",
        "azure_storage_sas_key",
        "azure_storage_sas_token",
        "sas_key",
        "sas_token",
        "azure_storage_token",
        "bearer_token",
        "azure_storage_use_emulator",
        "use_emulator",
        "azure_storage_connection_string",
        "connection_string",
        "azure_endpoint",
        "azure_storage_endpoint",
        "use_azure_cli",
    }
)

HDFS_OPTIONS = frozenset({"hdfs_user", "user", "kerb_ticket"})

MANIFEST_STORE_URL = "manifest_store_url"
"""Ours: the SQLAlchemy url of a database that manifests are published through, on whatever store the table lies."""

KNOWN_OPTIONS = frozenset({MANIFEST_STORE_URL}) | CLIENT_OPTIONS | S3_OPTIONS | GCS_OPTIONS | AZURE_OPTIONS | HDFS_OPTIONS


def checked_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """The options with lower-case names; InputError for a name no backend knows, naming near matches, never values."""
    if not options:
        return {}
    checked = {}
    for name, value in options.items():
        lowered = str(name).lower()
        if lowered not in KNOWN_OPTIONS:
            near = difflib.get_close_matches(lowered, sorted(KNOWN_OPTIONS), n=3, cutoff=0.6)
            cure = f"Did you mean {' or '.join(near)}?" if near else "Options are named as in the official Lance library."
            raise InputError(f"unknown storage option {name!r}", cure=cure)
        checked[lowered] = value if isinstance(value, str) else _as_text(value)
    return checked


def _as_text(value: object) -> str:
    # Connection forms deliver numbers and booleans; the option names are those of a text protocol.
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def is_true(value: str | None) -> bool:
    """Whether an option's text means yes."""
    return value is not None and value.strip().lower() in ("1", "true", "yes", "on")
