"""Translate the official library's storage options to those of an obstore client. Pure, except for reading a profile.

::

    s3   aws_access_key_id=K region=eu-west-1      -> access_key_id=K, region=eu-west-1
    gs   google_service_account=/sa.json           -> service_account=/sa.json
    az   azure_storage_connection_string=…         -> account_name, account_key, endpoint

AWS credentials of a profile in `~/.aws`: static keys are read here, others through botocore where it is installed.

::

    [default]                              aws_access_key_id=AK   -> access_key_id=AK, region of ~/.aws/config
    [work] sso_session, role_arn, …        -> botocore signs in, and is called again before the keys expire

A machine without such files, or whose environment names keys, a web identity or a container, is left to obstore's own chain.
"""

from __future__ import annotations

import configparser
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from lance_core.errors import InputError
from lance_core.io.aws_role import as_provided, role_of
from lance_core.io.google_identity import identity_of
from lance_core.io.options import is_true
from lance_core.io.remote.options import check_provider, duration
from lance_core.io.spellings import AWS, AZURE, GOOGLE, Picker, picker

Options = Mapping[str, str]
Kind = Literal["s3", "gs", "az"]

_EMULATOR_ACCOUNT = "devstoreaccount1"
_EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_EMULATOR_ENDPOINT = "http://127.0.0.1:10000/devstoreaccount1"
_GOOGLE = "https://storage.googleapis.com"
_NOBODY = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
_KEYS = ("access_key_id", "secret_access_key", "session_token")
_TOTAL_SECONDS = 600.0
_STALL_SECONDS = 120.0


@dataclass(frozen=True)
class ClientOptions:
    """What a client of one cloud is made with. `credentials` is requested keys that expire."""

    kind: Kind
    config: dict[str, Any] = field(repr=False)
    client: dict[str, Any] = field(repr=False)
    credentials: Callable[[], Any] | None = field(default=None, repr=False)
    endpoint: str | None = None
    """The address that the options name instead of the cloud's own."""


def s3_client(options: Options) -> ClientOptions:
    """For `obstore.store.S3Store`."""
    pick = picker(options, AWS)
    config: dict[str, Any] = {}
    _take(config, pick, *_KEYS, "region")
    endpoint = pick("endpoint")
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        # obstore panics over it, which no `except Exception` catches.
        raise InputError("the endpoint of an S3 store has no scheme", cure="Write https://host:port.")
    _set(config, "endpoint", endpoint)
    _take(config, pick, "server_side_encryption", "sse_kms_key_id")
    _take_flags(config, pick, "sse_bucket_key_enabled", "unsigned_payload", "s3_express", "virtual_hosted_style_request")
    check_provider(options, has_keys="access_key_id" in config)
    if is_true(pick("unsigned")):
        return ClientOptions("s3", {**config, "skip_signature": True}, _client(options, endpoint), endpoint=endpoint)
    role = role_of(options)
    if role is not None:
        own = {name: value for name, value in config.items() if name not in _KEYS}
        return ClientOptions("s3", own, _client(options, endpoint), role, endpoint)
    if "access_key_id" in config:
        return ClientOptions("s3", config, _client(options, endpoint), endpoint=endpoint)
    found = profile_credentials(pick("profile"))
    merged = {**found.config, **config}
    return ClientOptions("s3", merged, _client(options, endpoint), found.provider, endpoint)


def gcs_client(options: Options) -> ClientOptions:
    """For `obstore.store.GCSStore`."""
    pick = picker(options, GOOGLE)
    config: dict[str, Any] = {}
    identity = None if is_true(pick("unsigned")) else identity_of(options)
    path = pick("key_file") if identity is None else None
    if path is not None:
        config[_kind_of_key_file(path)] = path
    key = pick("key") if identity is None else None
    if key is not None and not _is_json(key):
        raise InputError("storage option google_service_account_key is not JSON")
    _set(config, "service_account_key", key)
    _set(config, "bearer_token", pick("token"))
    endpoint = pick("endpoint")
    _set(config, "base_url", endpoint)
    if is_true(pick("unsigned")):
        # Its own option for this is checked by reads only: writes would ask the machine's metadata server for a token.
        config = {"service_account_key": json.dumps({**_NOBODY, "gcs_base_url": config.get("base_url", _GOOGLE)})}
    return ClientOptions("gs", config, _client(options, endpoint), identity, endpoint)


def azure_client(options: Options, *, account: str | None = None) -> ClientOptions:
    """For `obstore.store.AzureStore`. `account` is the one that the uri names."""
    pick = picker(options, AZURE)
    config: dict[str, Any] = _of_connection_string(pick("connection_string"))
    if is_true(pick("use_emulator")):
        config |= {"account_name": _EMULATOR_ACCOUNT, "account_key": _EMULATOR_KEY, "endpoint": _EMULATOR_ENDPOINT}
    _set(config, "account_name", account)
    _take(config, pick, "account_name", "account_key", "client_id", "client_secret", "tenant_id")
    sas = pick("sas_token")
    _set(config, "sas_key", None if sas is None else sas.lstrip("?"))
    _take(config, pick, "token", "federated_token_file", "object_id", "msi_resource_id")
    _take_flags(config, pick, "use_azure_cli", "use_fabric_endpoint", "disable_tagging")
    if pick("msi_endpoint"):
        raise InputError(
            "the endpoint of a managed identity cannot be set by a storage option",
            cure="Set IDENTITY_ENDPOINT in the environment.",
        )
    endpoint = pick("endpoint")
    _set(config, "endpoint", None if endpoint is None else endpoint if "://" in endpoint else f"https://{endpoint}")
    if is_true(pick("unsigned")):
        config["skip_signature"] = True
    return ClientOptions("az", config, _client(options, config.get("endpoint")), endpoint=config.get("endpoint"))


def _of_connection_string(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    parts = dict(item.split("=", 1) for item in text.split(";") if "=" in item)
    lowered = {name.strip().lower(): value for name, value in parts.items()}
    found: dict[str, Any] = {}
    _set(found, "account_name", lowered.get("accountname"))
    _set(found, "account_key", lowered.get("accountkey"))
    _set(found, "sas_key", lowered.get("sharedaccesssignature"))
    endpoint = lowered.get("blobendpoint")
    if endpoint is None and "accountname" in lowered:
        scheme, suffix = lowered.get("defaultendpointsprotocol", "https"), lowered.get("endpointsuffix", "core.windows.net")
        endpoint = f"{scheme}://{lowered['accountname']}.blob.{suffix}"
    _set(found, "endpoint", None if endpoint is None else endpoint.rstrip("/"))
    return found


def _kind_of_key_file(path: str) -> str:
    """The option of obstore that reads a key file of this type."""
    try:
        kind = json.loads(Path(path).expanduser().read_text()).get("type")
    except (OSError, ValueError, AttributeError):
        return "service_account"  # the error of whoever reads it says more
    return "application_credentials" if kind == "authorized_user" else "service_account"


def _client(options: Options, endpoint: str | None) -> dict[str, Any]:
    """What the HTTP client is made with: the same for every cloud."""
    total = duration(options, "request_timeout", "timeout")
    client: dict[str, Any] = {"timeout": _milliseconds(_TOTAL_SECONDS if total is None else total)}
    client["read_timeout"] = _milliseconds(_STALL_SECONDS if total is None else total)
    connect = duration(options, "connect_timeout")
    _set(client, "connect_timeout", None if connect is None else _milliseconds(connect))
    if endpoint is not None and endpoint.startswith("http://"):
        client["allow_http"] = True
    if is_true(options.get("allow_invalid_certificates")):
        client["allow_invalid_certificates"] = True
    for name in ("user_agent", "proxy_url", "proxy_ca_certificate", "proxy_excludes"):
        _set(client, name, options.get(name))
    return client


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _flag(text: str | None) -> bool | None:
    return None if text is None else is_true(text)


def _take(config: dict[str, Any], pick: Picker, *names: str) -> None:
    for name in names:
        _set(config, name, pick(name))


def _take_flags(config: dict[str, Any], pick: Picker, *names: str) -> None:
    for name in names:
        _set(config, name, _flag(pick(name)))


def _set(target: dict[str, Any], name: str, value: object | None) -> None:
    if value is not None:
        target[name] = value


_ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


@dataclass(frozen=True)
class ProfileCredentials:
    """What a profile says: entries of a client's configuration, and who to ask for keys that expire."""

    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    provider: Callable[[], Any] | None = field(default=None, repr=False)


def profile_credentials(name: str | None) -> ProfileCredentials:
    """What the named profile says, or the environment's or default one when that is what AWS's own chain would take.

    Raises InputError for a named profile that is not there, or that only botocore, which is not installed, can sign in with.
    """
    chosen = name or os.environ.get("AWS_PROFILE")
    if chosen is None and any(os.environ.get(variable) for variable in _ENVIRONMENT):
        return ProfileCredentials()
    section = _section(chosen or "default")
    if section is None:
        if chosen is None:
            return ProfileCredentials()
        raise InputError(f"AWS profile {chosen!r} does not exist", cure="Check ~/.aws/config and ~/.aws/credentials.")
    config = {"region": section["region"]} if "region" in section else {}
    if "aws_access_key_id" in section and "role_arn" not in section:
        keys = {"access_key_id": "aws_access_key_id", "secret_access_key": "aws_secret_access_key"}
        keys["session_token"] = "aws_session_token"
        return ProfileCredentials(config | {ours: section[theirs] for ours, theirs in keys.items() if theirs in section})
    if not any(key in section for key in ("role_arn", "sso_session", "sso_start_url", "credential_process")):
        return ProfileCredentials(config)
    return ProfileCredentials(config, _through_botocore(chosen))


def _section(name: str) -> Mapping[str, str] | None:
    found: dict[str, str] = {}
    places = (("AWS_CONFIG_FILE", "config", f"profile {name}"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name))
    is_there = False
    for variable, file, title in places:
        path = Path(os.environ.get(variable) or Path.home() / ".aws" / file)
        parser = configparser.RawConfigParser()
        try:
            parser.read(path)
        except (configparser.Error, OSError) as error:
            raise InputError(f"{path} cannot be read: {type(error).__name__}") from None
        for section in (title, name) if name == "default" else (title,):
            if parser.has_section(section):
                is_there = True
                found.update(parser.items(section))
    return found if is_there else None


def _through_botocore(name: str | None) -> Callable[[], Any]:
    try:
        module = import_module("botocore.session")
    except ImportError:
        raise InputError(
            f"AWS profile {name or 'default'!r} uses a role, SSO or a credential process, which needs botocore",
            cure="Install airflow-provider-lance[dynamodb], or pass keys as storage options.",
        ) from None
    credentials = module.Session(profile=name).get_credentials()
    if credentials is None:
        raise InputError(f"AWS profile {name or 'default'!r} has no credentials")

    def provide() -> Mapping[str, Any]:
        # botocore renews expiring credentials on each call.
        return as_provided(credentials.get_frozen_credentials())

    return provide
