"""The names under which each storage option of a cloud may be given: the official library's, in order of preference.

::

    AWS["access_key_id"]     aws_access_key_id, access_key_id
    GOOGLE["key_file"]       google_service_account, service_account, google_service_account_path, ...
    AZURE["sas_token"]       azure_storage_sas_key, azure_storage_sas_token, sas_key, sas_token

Both engines, assumed roles and the DynamoDB client ask by the name on the left, so that a spelling is accepted everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

Spellings = Mapping[str, tuple[str, ...]]
Picker = Callable[[str], "str | None"]

_UNSIGNED = ("skip_signature", "anon")

AWS: Spellings = MappingProxyType(
    {
        "access_key_id": ("aws_access_key_id", "access_key_id"),
        "secret_access_key": ("aws_secret_access_key", "secret_access_key"),
        "session_token": ("aws_session_token", "aws_token", "session_token", "token"),
        "region": ("aws_region", "region", "aws_default_region", "default_region"),
        "endpoint": ("aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint"),
        "virtual_hosted_style_request": ("aws_virtual_hosted_style_request", "virtual_hosted_style_request"),
        "s3_express": ("aws_s3_express", "s3_express"),
        "server_side_encryption": ("aws_server_side_encryption",),
        "sse_kms_key_id": ("aws_sse_kms_key_id",),
        "sse_bucket_key_enabled": ("aws_sse_bucket_key_enabled",),
        "unsigned": ("aws_skip_signature", *_UNSIGNED),
        "unsigned_payload": ("aws_unsigned_payload", "unsigned_payload"),
        "profile": ("aws_profile", "profile"),
        "provider_scheme": ("aws_provider_scheme",),
        "dynamodb_endpoint": ("dynamodb_endpoint",),
        "role_arn": ("aws_role_arn",),
        "role_session_name": ("aws_role_session_name",),
        "external_id": ("aws_external_id",),
        "role_seconds": ("aws_role_seconds",),
        "sts_endpoint": ("aws_sts_endpoint",),
    }
)

GOOGLE: Spellings = MappingProxyType(
    {
        "key_file": (
            "google_service_account",
            "service_account",
            "google_service_account_path",
            "service_account_path",
            "google_application_credentials",
            "application_credentials",
        ),
        "key": ("google_service_account_key", "service_account_key"),
        "token": ("google_storage_token",),
        "identity": ("google_identity",),
        "impersonate": ("google_impersonate",),
        "project": ("google_project", "project"),
        "endpoint": ("google_endpoint", "gcs_endpoint"),
        "unsigned": _UNSIGNED,
    }
)

AZURE: Spellings = MappingProxyType(
    {
        "account_name": ("azure_storage_account_name", "account_name"),
        "account_key": (
            "azure_storage_account_key",
            "azure_storage_access_key",
            "azure_storage_master_key",
            "master_key",
            "account_key",
            "access_key",
        ),
        "client_id": ("azure_storage_client_id", "azure_client_id", "client_id"),
        "client_secret": ("azure_storage_client_secret", "azure_client_secret", "client_secret"),
        "tenant_id": (
            "azure_storage_tenant_id",
            "azure_storage_authority_id",
            "azure_tenant_id",
            "azure_authority_id",
            "tenant_id",
            "authority_id",
        ),
        "sas_token": ("azure_storage_sas_key", "azure_storage_sas_token", "sas_key", "sas_token"),
        "token": ("azure_storage_token", "bearer_token", "token"),
        "use_emulator": ("azure_storage_use_emulator", "object_store_use_emulator", "use_emulator"),
        "connection_string": ("azure_storage_connection_string", "connection_string"),
        "endpoint": ("azure_storage_endpoint", "azure_endpoint", "endpoint"),
        "use_fabric_endpoint": ("azure_use_fabric_endpoint", "use_fabric_endpoint"),
        "msi_endpoint": ("azure_msi_endpoint", "azure_identity_endpoint", "identity_endpoint", "msi_endpoint"),
        "object_id": ("azure_object_id", "object_id"),
        "msi_resource_id": ("azure_msi_resource_id", "msi_resource_id"),
        "federated_token_file": ("azure_federated_token_file", "federated_token_file"),
        "use_azure_cli": ("azure_use_azure_cli", "use_azure_cli"),
        "disable_tagging": ("azure_disable_tagging", "disable_tagging"),
        "unsigned": _UNSIGNED,
    }
)


def names_in(spellings: Spellings) -> frozenset[str]:
    """Return every name under which an option of this cloud may be given."""
    return frozenset(name for names in spellings.values() for name in names)


def picker(options: Mapping[str, str], spellings: Spellings) -> Picker:
    """Return a function from an option to its text, by its first spelling that is given and not empty; None without one.

    >>> picker({"access_key_id": "AK"}, AWS)("access_key_id")
    'AK'
    """

    def pick(option: str) -> str | None:
        return next((options[name] for name in spellings[option] if options.get(name)), None)

    return pick
