"""What a `lance` connection says, read from any form Airflow keeps connections in.

::

    JSON   {"conn_type": "lance", "extra": {"base_uri": "s3://lake/tables", "spark_conn_id": "spark_default",
                                            "storage_options": {"region": "eu-west-1", "access_key_id": "...", ...}}}
    URI    lance://?base_uri=s3%3A%2F%2Flake%2Ftables&spark_conn_id=spark_default&storage_options=%7B%22region%22...%7D
    form   base uri, default Spark connection, storage options (JSON); login and password as in the table below

`aws_conn_id`, `gcp_conn_id` or `azure_conn_id` take the credentials from that connection (`airflow_lance.cloud`).
`catalog_uri` names a catalog in which tables have names (`airflow_lance.named_tables`).
`base_uri` may also stand in the host field (`"host": "/data/lake"`). No Airflow import, no IO.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from lance_core.errors import InputError

if TYPE_CHECKING:
    from airflow_lance.named_tables import CatalogSettings

_HAS_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")

# A form has a masked password field and nothing else that is masked: it carries the one credential of each cloud.
_LOGIN_OPTIONS: Mapping[str, tuple[str, str]] = {
    "s3": ("aws_access_key_id", "aws_secret_access_key"),
    "s3a": ("aws_access_key_id", "aws_secret_access_key"),
    "az": ("account_name", "account_key"),
    "abfs": ("account_name", "account_key"),
    "abfss": ("account_name", "account_key"),
    "memory": ("login", "password"),
}


class ConnectionLike(Protocol):
    """The fields of an Airflow connection that are read here."""

    conn_id: str
    host: str | None
    schema: str | None
    login: str | None
    password: str | None

    @property
    def extra_dejson(self) -> dict[str, Any]:
        """The connection's extra as an object."""


@dataclass(frozen=True)
class LanceConnection:
    """A parsed connection. `storage_options` may hold secrets; `secrets` are the values to mask in logs."""

    base_uri: str = ""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark_conn_id: str = ""
    cloud_conn_ids: Mapping[str, str] = field(default_factory=dict)
    catalog: CatalogSettings | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values of all options that are not known to be plain."""
        from lance_core.jobs.specs.plain_options import is_plain_option

        options = (value for name, value in self.storage_options.items() if value and not is_plain_option(name, value))
        return (*options, *(() if self.catalog is None else self.catalog.secrets))

    def is_named(self, table: str) -> bool:
        """Whether a table is given by its name in the connection's catalog."""
        return self.catalog is not None and not is_full_uri(table.strip())

    def table_uri(self, table: str) -> str:
        """The uri of a table: `table` itself when it is a uri or an absolute path, else a place below `base_uri`."""
        name = table.strip()
        if not name:
            raise InputError("the table's name is empty", cure="Pass a name below the connection's base uri, or a full uri.")
        if is_full_uri(name):
            return name.rstrip("/") or name
        if ".." in name.split("/"):
            raise InputError(f"table {table!r} is outside the connection's base uri", cure="Pass a full uri instead.")
        if not self.base_uri:
            raise InputError(
                f"table {table!r} is not a full uri, and the connection has no base uri",
                cure="Set base_uri on the lance connection, or pass the table's full uri.",
            )
        return f"{self.base_uri.rstrip('/')}/{name.strip('/')}"


def plain_uri(uri: Any) -> Any:
    """A table's uri as text, of a text, a `Path` or an `ObjectStoragePath`; what Airflow resolves later is left as it is."""
    return path_text(uri) if isinstance(uri, os.PathLike) or is_object_path(uri) else uri


def path_text(path: Any) -> str:
    """A path as text: of a text, a `Path`, or an `ObjectStoragePath` without its own connection."""
    if is_object_path(path):
        if getattr(path, "conn_id", None):
            raise InputError(
                f"{path} refers to the connection {path.conn_id!r}, but jobs do not read connections",
                cure="Remove the connection from the path, and configure its credentials on the machine that runs the job.",
            )
        scheme = str(path.protocol)
        return str(path.path) if scheme in ("file", "local", "") else f"{scheme}://{str(path.path).lstrip('/')}"
    return os.fspath(path) if isinstance(path, os.PathLike) else str(path)


def is_object_path(value: object) -> bool:
    """Whether it is Airflow's `ObjectStoragePath` or another universal path, which need not be a PathLike."""
    return not isinstance(value, str) and hasattr(value, "protocol") and hasattr(value, "path")


def is_full_uri(text: str) -> bool:
    """Whether a text is a complete location: `scheme://...`, or an absolute path."""
    return bool(_HAS_SCHEME.match(text)) or text.startswith("/") or bool(re.match(r"^[A-Za-z]:[\\/]", text))


def parse_connection(connection: ConnectionLike) -> LanceConnection:
    """A connection in any form. InputError when a field has the wrong shape."""
    kind = str(getattr(connection, "conn_type", None) or "")
    if kind.startswith("spark"):
        raise InputError(
            f"connection {connection.conn_id!r} is of type {kind}, expected lance",
            cure=f"Pass it as spark_conn_id={connection.conn_id!r}; lance_conn_id is one of type lance, with the tables' "
            "base uri.",
        )
    extra = connection.extra_dejson
    base_uri = _text(extra, "base_uri", connection) or _host_uri(connection)
    if base_uri and not is_full_uri(base_uri):
        raise InputError(
            f"connection {connection.conn_id!r}: base uri {base_uri!r} is neither a uri nor an absolute path",
            cure="Pass s3://bucket/prefix or /data/lake, because a relative path depends on the folder of the worker.",
        )
    options = _options(extra.get("storage_options"), connection)
    scheme = base_uri.split("://", 1)[0] if _HAS_SCHEME.match(base_uri) else "file"
    login_name, password_name = _LOGIN_OPTIONS.get(scheme, ("", ""))
    if login_name and connection.login:
        options.setdefault(login_name, connection.login)
    if password_name and connection.password:
        options.setdefault(password_name, connection.password)
    clouds = {name: _text(extra, name, connection) for name in ("aws_conn_id", "gcp_conn_id", "azure_conn_id")}
    named = {name: conn_id for name, conn_id in clouds.items() if conn_id}
    spark_conn_id, catalog = _text(extra, "spark_conn_id", connection), _catalog(extra, connection)
    if catalog is not None and catalog.kind == "dir" and not base_uri:
        base_uri = catalog.uri
    return LanceConnection(base_uri, options, spark_conn_id, named, catalog)


def _catalog(extra: Mapping[str, Any], connection: ConnectionLike) -> CatalogSettings | None:
    if not (extra.get("catalog_kind") or extra.get("catalog_uri")):
        return None
    from airflow_lance.named_tables import catalog_settings

    return catalog_settings(
        kind=_text(extra, "catalog_kind", connection),
        uri=_text(extra, "catalog_uri", connection),
        token=_text(extra, "catalog_token", connection),
        properties=_options(extra.get("catalog_properties"), connection, name="catalog_properties"),
        where=f"connection {connection.conn_id!r}",
    )


def _host_uri(connection: ConnectionLike) -> str:
    host, path = connection.host or "", connection.schema or ""
    return f"{host.rstrip('/')}/{path.lstrip('/')}" if host and path else host


def _text(extra: Mapping[str, Any], name: str, connection: ConnectionLike) -> str:
    value = extra.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"connection {connection.conn_id!r}: extra.{name}: expected a string, got {type(value).__name__}")
    return value.strip()


def _options(value: object, connection: ConnectionLike, *, name: str = "storage_options") -> dict[str, str]:
    where = f"connection {connection.conn_id!r}: extra.{name}"
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            # Neither the text nor the parser's message is shown: both may hold a secret.
            raise InputError(f"{where}: expected a JSON object") from None
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: expected a JSON object, got {type(value).__name__}")
    return {str(key): _plain(item, f"{where}.{key}") for key, item in value.items()}


def _plain(value: object, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise InputError(f"{where}: expected a string, a number or a boolean, got {type(value).__name__}")
