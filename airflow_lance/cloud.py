"""Credentials of a `lance` connection that names a cloud's own Airflow connection.

::

    {"conn_type": "lance", "extra": {"base_uri": "s3://lake", "aws_conn_id": "aws_default"}}
        -> AwsGenericHook("aws_default"): keys, or the role to assume, or the machine's own identity; region
    {"... ": "gs://lake", "gcp_conn_id": "google_cloud_default"}
        -> GoogleBaseHook: a key file, or the machine's own identity; the accounts to impersonate
    {"... ": "az://lake", "azure_conn_id": "wasb_default"}           -> the fields that WasbHook reads

The hooks are those of the clouds' own providers and are imported when a task needs them. A connection gives an identity and
not its keys of the hour: each process of the job, Spark's executors too, requests keys or tokens itself, and renews them.
Where only the hook can sign in (AWS through SAML or a web identity, Google through a secret manager or an identity
provider), it does so at the start of a task, and what it gets must last as long as the task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from airflow_lance.compat import BaseHook
from lance_core.errors import InputError

_ROLE_ARGUMENTS = {
    "RoleSessionName": "aws_role_session_name", "ExternalId": "aws_external_id", "DurationSeconds": "aws_role_seconds",
}  # fmt: skip
CLOUDS = ("aws_conn_id", "gcp_conn_id", "azure_conn_id")


def cloud_options(conn_ids: Mapping[str, str]) -> dict[str, str]:
    """Storage options of the named connections. InputError when a cloud's provider is not installed."""
    options: dict[str, str] = {}
    for name, conn_id in conn_ids.items():
        options.update({key: str(value) for key, value in _READERS[name](conn_id).items() if value})
    return options


def _aws(conn_id: str) -> dict[str, Any]:
    module = _provider("airflow.providers.amazon.aws.hooks.base_aws", package="apache-airflow-providers-amazon")
    hook = module.AwsGenericHook(aws_conn_id=conn_id, client_type="s3")
    config = hook.conn_config
    found = {"region": hook.region_name, "endpoint": getattr(config, "endpoint_url", None)}
    role = _aws_role(config)
    if role:
        return found | role
    if _is_the_machines(hook, config):
        return found | {"aws_profile": getattr(config, "profile_name", None)}
    keys = hook.get_credentials(region_name=hook.region_name)
    return found | {
        "aws_access_key_id": keys.access_key,
        "aws_secret_access_key": keys.secret_key,
        "aws_session_token": keys.token,
    }


def _aws_role(config: Any) -> dict[str, Any]:
    """The options with which each process assumes the role itself; empty where only the hook can assume it."""
    arguments = dict(getattr(config, "assume_role_kwargs", None) or {})
    method = getattr(config, "assume_role_method", None) or "assume_role"
    if not getattr(config, "role_arn", None) or method != "assume_role" or not arguments.keys() <= _ROLE_ARGUMENTS.keys():
        return {}
    return {
        "aws_role_arn": config.role_arn,
        **{_ROLE_ARGUMENTS[name]: value for name, value in arguments.items()},
        "aws_access_key_id": config.aws_access_key_id,
        "aws_secret_access_key": config.aws_secret_access_key,
        "aws_session_token": config.aws_session_token,
        "aws_profile": getattr(config, "profile_name", None),
    }


def _is_the_machines(hook: Any, config: Any) -> bool:
    """Whether the keys are those of an instance, a container or a pod, which expire: each process asks for its own."""
    if getattr(config, "role_arn", None) or getattr(config, "aws_access_key_id", None):
        return False
    return hasattr(hook.get_session(region_name=hook.region_name).get_credentials(), "refresh_needed")


def _google(conn_id: str) -> dict[str, Any]:
    module = _provider("airflow.providers.google.common.hooks.base_google", package="apache-airflow-providers-google")
    hook = module.GoogleBaseHook(gcp_conn_id=conn_id)
    if hook._get_field("is_anonymous"):
        return {"skip_signature": "true"}
    path, key, federation = (hook._get_field(name) for name in ("key_path", "keyfile_dict", "credential_config_file"))
    if isinstance(federation, Mapping) or str(federation or "").lstrip().startswith("{"):
        key = key or federation
    else:
        path = path or federation
    chain = hook._get_field("impersonation_chain") or ()
    accounts = {"google_impersonate": chain if isinstance(chain, str) else ",".join(chain)}
    if path or key:
        content = json.dumps(dict(key)) if isinstance(key, Mapping) else key
        return accounts | {"google_service_account": path, "google_service_account_key": None if path else content}
    if not (hook._get_field("key_secret_name") or hook._get_field("idp_issuer_url")):
        return accounts | {"google_identity": "default"}
    credentials = hook.get_credentials()
    if not getattr(credentials, "token", None):
        credentials.refresh(import_module("google.auth.transport.requests").Request())
    return {"google_storage_token": credentials.token}


def _azure(conn_id: str) -> dict[str, Any]:
    _provider("airflow.providers.microsoft.azure.hooks.wasb", package="apache-airflow-providers-microsoft-azure")
    connection = BaseHook.get_connection(conn_id)
    extra = connection.extra_dejson
    found: dict[str, Any] = {
        "azure_storage_connection_string": extra.get("connection_string"),
        "azure_storage_sas_token": extra.get("sas_token"),
    }
    if extra.get("tenant_id"):
        found |= {
            "azure_tenant_id": extra["tenant_id"],
            "azure_client_id": connection.login,
            "azure_client_secret": connection.password,
            "account_name": _account(connection.host),
        }
    else:
        found |= {"account_name": _account(connection.host) or connection.login, "account_key": connection.password}
    return found


def _account(host: str | None) -> str:
    """The account of `https://account.blob.core.windows.net`, or the bare name."""
    return (host or "").removeprefix("https://").split(".", 1)[0].strip("/")


def _provider(module: str, *, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"{package} is not installed, but the lance connection refers to one of its connections",
                         cure=f"Install {package}, or pass the credentials as storage_options.") from error  # fmt: skip


_READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "aws_conn_id": _aws,
    "gcp_conn_id": _google,
    "azure_conn_id": _azure,
}
