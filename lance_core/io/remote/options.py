"""From the official library's storage option names to the arguments of each fsspec file system. Pure.

::

    s3   aws_access_key_id=K region=eu-west-1      -> key=K, client_kwargs={"region_name": "eu-west-1"}
    gcs  google_service_account=/sa.json           -> token="/sa.json"
    abfs azure_storage_account_name=a sas_token=t  -> account_name="a", sas_token="t"

Options of other backends are left out; names nobody knows were refused before (`lance_core.io.options`), and those that a
backend has but that cannot be handed to its file system are refused here: nothing that was requested is ignored in silence.

Ways to sign in to Azure that its file system has no option for, as credentials of `azure.identity` (extra `azure`).

::

    bearer_token=ey…                                      a token somebody else fetched
    use_azure_cli=true                                    whoever `az login` signed in
    federated_token_file=/var/run/…  client_id  tenant_id workload identity of a pod
    msi_resource_id=…  or  object_id=…                    one of a machine's managed identities

Without any of them, and without a key, the file system asks Azure's default chain, which ends at the managed identity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from lance_core.errors import InputError
from lance_core.io.aws_role import role_of
from lance_core.io.google_identity import identity_of
from lance_core.io.options import is_true
from lance_core.io.spellings import AWS, AZURE, GOOGLE, picker

Options = Mapping[str, str]

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|seconds?|minutes?)?\s*")
_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "second": 1, "seconds": 1, "minute": 60, "minutes": 60}

_CONNECTIONS = 64
"""The library's own 10 serve all threads of a process."""

# The well-known account of every Azure storage emulator; it is public and opens nothing but an emulator.
_EMULATOR_ACCOUNT = "devstoreaccount1"


def s3_arguments(options: Options) -> dict[str, Any]:
    """For `s3fs.S3FileSystem`."""
    pick = picker(options, AWS)
    client: dict[str, Any] = {}
    _set(client, "region_name", pick("region"))
    if is_true(options.get("allow_invalid_certificates")):
        client["verify"] = False
    config: dict[str, Any] = {"retries": {"max_attempts": max_retries(options) + 1, "mode": "standard"}}
    config["max_pool_connections"] = _CONNECTIONS
    _set(config, "connect_timeout", duration(options, "connect_timeout"))
    _set(config, "read_timeout", duration(options, "request_timeout", "timeout"))
    virtual = pick("virtual_hosted_style_request")
    if virtual is not None:
        config["s3"] = {"addressing_style": "virtual" if is_true(virtual) else "path"}
    _set(config, "user_agent_extra", options.get("user_agent"))
    proxy = options.get("proxy_url")
    if proxy is not None:
        config["proxies"] = {"http": proxy, "https": proxy}
    if is_true(pick("unsigned_payload")):
        config["s3"] = {**config.get("s3", {}), "payload_signing_enabled": False}
    extra: dict[str, Any] = {}
    if is_true(pick("sse_bucket_key_enabled")):
        extra["BucketKeyEnabled"] = True
    _set(extra, "ServerSideEncryption", pick("server_side_encryption"))
    _set(extra, "SSEKMSKeyId", pick("sse_kms_key_id"))
    arguments: dict[str, Any] = {"client_kwargs": client, "config_kwargs": config, "s3_additional_kwargs": extra}
    arguments["max_concurrency"] = 1  # otherwise a HEAD goes before each whole object, to cut it into ranges
    check_provider(options, has_keys=bool(pick("access_key_id")))
    _refuse(
        options, "S3", "proxy_ca_certificate", "proxy_excludes", cure="Set AWS_CA_BUNDLE or NO_PROXY in the environment."
    )
    _set(arguments, "key", pick("access_key_id"))
    _set(arguments, "secret", pick("secret_access_key"))
    _set(arguments, "token", pick("session_token"))
    role = role_of(options)
    if role is not None and not is_true(pick("unsigned")):
        arguments |= {"key": None, "secret": None, "token": None, "session": role.session()}
    _set(arguments, "endpoint_url", pick("endpoint"))
    _set(arguments, "profile", pick("profile"))
    if is_true(pick("unsigned")):
        arguments["anon"] = True
    return arguments


def sent_once(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `s3_arguments` for requests that the store repeats: a loop inside of its own would multiply the waits."""
    config = {**arguments["config_kwargs"], "retries": {"max_attempts": 0, "mode": "standard"}}
    return {**arguments, "config_kwargs": config}


def gcs_arguments(options: Options) -> dict[str, Any]:
    """For `gcsfs.GCSFileSystem`."""
    pick = picker(options, GOOGLE)
    arguments: dict[str, Any] = {}
    key = pick("key")
    if key is not None:
        try:
            arguments["token"] = json.loads(key)
        except ValueError:
            raise InputError("storage option google_service_account_key is not JSON") from None
    _set(arguments, "token", pick("key_file") or arguments.get("token"))
    _set(arguments, "token", pick("token") or arguments.get("token"))
    _set(arguments, "project", pick("project"))
    _set(arguments, "endpoint_url", pick("endpoint"))
    _set(arguments, "requests_timeout", duration(options, "request_timeout", "timeout"))
    identity = identity_of(options)
    if identity is not None:
        arguments["token"] = identity.credentials()  # gcsfs renews them
    if is_true(pick("unsigned")):
        arguments["token"] = "anon"
    _refuse_proxies(options, "Google Cloud Storage")
    return arguments


def azure_arguments(options: Options) -> dict[str, Any]:
    """For `adlfs.AzureBlobFileSystem`."""
    pick = picker(options, AZURE)
    arguments: dict[str, Any] = {}
    _set(arguments, "account_name", pick("account_name"))
    for name in ("account_key", "client_id", "client_secret", "tenant_id"):
        _set(arguments, name, pick(name))
    _set(arguments, "sas_token", pick("sas_token"))
    _set(arguments, "connection_string", pick("connection_string"))
    endpoint = pick("endpoint")
    if endpoint is not None:
        arguments["account_host"] = endpoint.split("://", 1)[-1].rstrip("/")
    elif is_true(pick("use_fabric_endpoint")):
        arguments["account_host"] = f"{arguments.get('account_name', '')}.blob.fabric.microsoft.com"
    if is_true(pick("use_emulator")):
        arguments.setdefault("account_name", _EMULATOR_ACCOUNT)
    if is_true(pick("unsigned")):
        arguments["anon"] = True
    _set(arguments, "connection_timeout", _whole_seconds(options, "connect_timeout"))
    _set(arguments, "read_timeout", _whole_seconds(options, "request_timeout", "timeout"))
    _set(arguments, "credential", azure_credential(options))
    _refuse_proxies(options, "Azure")
    return arguments


def oss_arguments(options: Options) -> dict[str, Any]:
    """For `ossfs.OSSFileSystem`."""
    arguments: dict[str, Any] = {}
    _set(arguments, "endpoint", options.get("oss_endpoint"))
    _set(arguments, "key", options.get("oss_access_key_id"))
    _set(arguments, "secret", options.get("oss_secret_access_key"))
    _set(arguments, "token", options.get("oss_security_token"))
    return arguments


def hdfs_arguments(options: Options) -> dict[str, Any]:
    """For `pyarrow`'s HDFS through fsspec."""
    arguments: dict[str, Any] = {}
    _set(arguments, "user", options.get("hdfs_user") or options.get("user"))
    _set(arguments, "kerb_ticket", options.get("kerb_ticket"))
    return arguments


def webhdfs_arguments(options: Options) -> dict[str, Any]:
    """For `webhdfs.WebHdfs`."""
    _refuse(options, "WebHDFS", "kerb_ticket", cure="Use hdfs://, where Hadoop's client signs in.")
    _refuse_proxies(options, "WebHDFS")
    arguments: dict[str, Any] = {}
    _set(arguments, "user", options.get("hdfs_user") or options.get("user"))
    _set(arguments, "connect_seconds", duration(options, "connect_timeout"))
    _set(arguments, "request_seconds", duration(options, "request_timeout", "timeout"))
    return arguments


def no_arguments(options: Options) -> dict[str, Any]:
    """For backends without options of ours."""
    return {}


def _set(target: dict[str, Any], name: str, value: object | None) -> None:
    if value is not None:
        target[name] = value


def max_retries(options: Options) -> int:
    """How often a request is repeated."""
    text = options.get("client_max_retries") or options.get("download_retry_count") or "10"
    if not text.isdigit():
        raise InputError(f"storage option client_max_retries={text!r} is not a number")
    return int(text)


def retry_seconds(options: Options) -> float:
    """For how long a request may be repeated: the option is in seconds, 180 by default."""
    return duration(options, "client_retry_timeout") or 180.0


def _whole_seconds(options: Options, *names: str) -> int | None:
    found = duration(options, *names)
    return None if found is None else max(1, round(found))


def check_provider(options: Options, *, has_keys: bool) -> None:
    """Refuse a way to sign in to AWS that cannot be requested by name."""
    scheme = options.get("aws_provider_scheme")
    if scheme is None or (scheme == "token" and has_keys):
        return
    if scheme == "token":
        raise InputError('aws_provider_scheme="token" needs aws_access_key_id and aws_secret_access_key')
    raise InputError(
        f"storage option aws_provider_scheme={scheme!r} is not supported",
        cure="Omit it to use the default credential chain of AWS (environment, profile, web identity, container, instance).",
    )


def _refuse_proxies(options: Options, where: str) -> None:
    names = ("proxy_url", "proxy_ca_certificate", "proxy_excludes")
    _refuse(options, where, *names, cure="Set HTTPS_PROXY and NO_PROXY in the environment.")


def _refuse(options: Options, where: str, *names: str, cure: str) -> None:
    for name in names:
        if options.get(name):
            raise InputError(f"the file system of {where} does not support the storage option {name}", cure=cure)


def duration(options: Options, *names: str) -> float | None:
    """Seconds of the first of these options that is given."""
    for name in names:
        text = options.get(name)
        if text:
            found = _DURATION.fullmatch(text)
            if found is None:
                raise InputError(f"storage option {name}={text!r} is not a duration", cure="Write for example 30s or 500ms.")
            return float(found.group(1)) * _UNIT_SECONDS[found.group(2) or "s"]
    return None


_FOR_LONG = 1 << 33
"""Seconds since the epoch at which a token that was passed over is said to expire: nobody here can renew it."""


@dataclass(frozen=True)
class BearerToken:
    """A token as a credential; asynchronous, as the file system asks."""

    token: str = field(repr=False)

    async def get_token(self, *scopes: str, **_: Any) -> Any:
        """The token, whatever its scope."""
        return import_module("azure.core.credentials").AccessToken(self.token, _FOR_LONG)

    async def close(self) -> None:
        """Nothing to close."""

    async def __aenter__(self) -> BearerToken:
        return self

    async def __aexit__(self, *_: object) -> None:
        return


def azure_credential(options: Mapping[str, str]) -> Any:
    """What the options ask for, None when they ask for nothing of this."""
    pick = picker(options, AZURE)
    token = pick("token")
    if token is not None:
        return BearerToken(token)
    if is_true(pick("use_azure_cli")):
        return _identity("AzureCliCredential")
    federated = pick("federated_token_file")
    if federated is not None:
        client = pick("client_id")
        tenant = pick("tenant_id")
        return _identity("WorkloadIdentityCredential", client_id=client, tenant_id=tenant, token_file_path=federated)
    if pick("msi_endpoint"):
        raise InputError(
            "the endpoint of a managed identity cannot be set by a storage option",
            cure="Set IDENTITY_ENDPOINT in the environment.",
        )
    chosen = {
        "object_id": pick("object_id"),
        "resource_id": pick("msi_resource_id"),
    }
    wanted = {name: value for name, value in chosen.items() if value is not None}
    return _identity("ManagedIdentityCredential", identity_config=wanted) if wanted else None


def _identity(name: str, **arguments: Any) -> Any:
    try:
        module = import_module("azure.identity.aio")
    except ImportError as error:
        raise InputError(
            f"the package for signing in to Azure is not installed: {error}", cure="Install airflow-provider-lance[azure]."
        ) from error
    try:
        return getattr(module, name)(**arguments)
    except ValueError as error:
        raise InputError(f"Azure's {name} rejected the storage options: {error}") from None
