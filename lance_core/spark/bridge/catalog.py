"""What Spark's catalog asks: tables and namespaces by name, in a folder of any store or behind a REST catalog.

::

    spark.sql.catalog.lake            lancecore.spark.LanceCatalog
    spark.sql.catalog.lake.uri        s3://lake | https://catalog:2333
    spark.sql.catalog.lake.token      for a REST catalog; every other setting is an option of the store (region, ...)

    catalog.load {"id": ["sales", "orders"], "version": "7" | "golden"}  ->  {"exists", "schema", "at", "options", ...}

What is not there is an answer, because Spark has errors of its own for that; everything else is this library's error.
"""

from __future__ import annotations

import datetime as dt
import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_core.catalog.interface import LanceNamespace
from lance_core.catalog.locate import declare_table, find_table
from lance_core.catalog.requests import (
    CreateNamespaceRequest,
    DescribeNamespaceRequest,
    DropNamespaceRequest,
    DropTableRequest,
)
from lance_core.commit.manifests import find_latest_version
from lance_core.errors import AlreadyExistsError, InputError, NotFoundError, UnsupportedFeatureError
from lance_core.io.options import KNOWN_OPTIONS
from lance_core.io.resolve import resolve_store
from lance_core.namespace import all_namespaces, all_tables, connect, connect_to
from lance_core.spark.bridge.column_properties import with_properties
from lance_core.spark.bridge.metadata_tables import metadata_table
from lance_core.spark.options import parse_options
from lance_core.spark.searches import TableSearch, at_version
from lance_core.spark.table_reader import open_read_snapshot, read_schema

Request = Mapping[str, Any]
Answer = Mapping[str, Any]

_ADDRESS = ("uri", "root", "path")
_SETTINGS = (*_ADDRESS, "token", "impl")
_VERSION_PROPERTIES = ("data_storage_version", "file_format_version")
_OF_SPARK = frozenset({"provider", "owner", "external", "is_managed_location", "table_type", "comment"})
"""Properties that Spark passes of itself."""


def open_catalog(settings: Mapping[str, str]) -> tuple[LanceNamespace, dict[str, str]]:
    """The catalog and the options of its store. InputError names a setting that is unknown or missing."""
    given = {name.lower(): str(value) for name, value in settings.items()}
    storage: dict[str, str] = {}
    headers: dict[str, str] = {}
    for name in [*given]:
        plain = name.removeprefix("storage.")
        if name.startswith("header."):
            headers[name] = given.pop(name)
        elif plain in KNOWN_OPTIONS:
            storage[plain] = given.pop(name)
    unknown = sorted(set(given) - {*_SETTINGS})
    if unknown:
        near = difflib.get_close_matches(unknown[0], [*_SETTINGS, *sorted(KNOWN_OPTIONS)], n=2)
        guess = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(_SETTINGS)}, and options of the store."
        raise InputError(f"unknown setting {unknown[0]!r} of a lance catalog", cure=guess)
    address = next((given[name] for name in _ADDRESS if given.get(name)), "")
    if not address:
        raise InputError(
            "a lance catalog needs the setting uri", cure="Pass a folder such as s3://lake, or a server's address."
        )
    if given.get("impl") == "rest" or headers:
        token = {"header.Authorization": f"Bearer {given['token']}"} if given.get("token") else {}
        return connect("rest", {"uri": address, **token, **headers}), storage
    return connect_to(address, storage_options=storage, token=given.get("token")), storage


def _load(request: Request) -> Answer:
    """Also a table's branch, and what stands behind a table's name: `orders.branch_x`, `orders.versions`, a search."""
    client, storage = open_catalog(request["catalog"])
    parts = [str(part) for part in request["id"]]
    search = TableSearch.parse(parts[-1])
    if search is not None:
        return _searched(client, storage, parts[:-1], request, search)
    found = _opened(client, storage, parts, request)
    if found is not None:
        return found
    *table, last = parts
    if not table:
        return {"exists": False}
    if last.startswith("branch_"):
        return _opened(client, storage, table, {**request, "branch": last.removeprefix("branch_")}) or {"exists": False}
    options = _options_of(client, storage, table, request)
    rows = None if options is None else metadata_table(last, options)
    return {"exists": False} if rows is None else {"exists": True, **rows}


def _searched(
    client: LanceNamespace, storage: Mapping[str, str], parts: Sequence[str], request: Request, search: TableSearch
) -> Answer:
    """A search of a table, or of one of its branches."""
    table = [*parts]
    branch: dict[str, str] = {}
    options = _options_of(client, storage, table, request)
    if options is None and len(table) > 1 and table[-1].startswith("branch_"):
        branch = {"branch": table.pop().removeprefix("branch_")}
        options = _options_of(client, storage, table, request)
    if options is None:
        return {"exists": False}
    from lance_core.spark.types import spark_schema

    chosen = {**request, **branch}
    parsed = at_version(parse_options({**options, **_selected(options, chosen)}), search)
    snapshot = open_read_snapshot(parsed)
    return {
        "exists": True,
        "schema": spark_schema(search.schema(snapshot.visible_schema)).json(),
        "at": json.dumps({"place": snapshot.uri, "version": snapshot.version}),
        "options": {**options, "search": search.text},
        "properties": {"provider": "lance"},
    }


def _opened(client: LanceNamespace, storage: Mapping[str, str], parts: Sequence[str], request: Request) -> Answer | None:
    options = _options_of(client, storage, parts, request)
    if options is None:
        return None
    parsed = parse_options({**options, **_selected(options, request)})
    chosen = any(name in request for name in ("version", "asof", "branch"))
    try:
        snapshot = open_read_snapshot(parsed)
    except NotFoundError:
        if chosen:
            raise
        return None  # a name that was declared and has no table yet
    from lance_core.spark.types import spark_schema

    branch = {"branch": request["branch"]} if "branch" in request else {}
    return {
        "exists": True,
        "schema": spark_schema(read_schema(parsed, snapshot=snapshot)).json(),
        "at": json.dumps({"place": snapshot.uri, "version": snapshot.version}),
        "options": {**options, **branch, "allowEmpty": "true"},
        "properties": {
            **{name: str(value) for name, value in snapshot.manifest.config.items()},
            "provider": "lance",
            "location": snapshot.uri,
            "version": str(snapshot.version),
        },
    }


def _options_of(
    client: LanceNamespace, storage: Mapping[str, str], parts: Sequence[str], request: Request
) -> dict[str, str] | None:
    try:
        where = find_table(client, parts, storage)
    except NotFoundError:
        return None
    return {"path": where.uri, **{name: text for name, text in where.storage_options.items() if name in KNOWN_OPTIONS}}


def _moment(microseconds: int) -> str:
    """Of TIMESTAMP AS OF. InputError for a year that there is not: Spark takes a number for seconds."""
    try:
        return (dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        raise InputError(
            f"TIMESTAMP AS OF: {microseconds} microseconds since 1970 are in no year that there is",
            cure="Spark takes a number for seconds: pass timestamp_micros(...), or a text such as '2026-01-31 12:00:00'.",
        ) from None


def _selected(options: Mapping[str, str], request: Request) -> dict[str, str]:
    """The options for VERSION AS OF a number, a tag or a branch, and TIMESTAMP AS OF microseconds."""
    if "branch" in request:
        return {"branch": str(request["branch"])}
    if "asof" in request:
        return {"asof": _moment(int(request["asof"]))}
    text = str(request.get("version", ""))
    if not text:
        return {}
    if text.isdigit():
        return {"version": text}
    from lance_core.dataset.refs.tags import tag_names

    parsed = parse_options(options)
    is_tag = text in tag_names(resolve_store(parsed.uri, parsed.storage))
    return {"tag": text} if is_tag else {"branch": text}


def _tables(request: Request) -> Answer:
    client, _ = open_catalog(request["catalog"])
    namespace = tuple(request["id"])
    try:
        return {"exists": True, "names": [*all_tables(client, namespace)]}
    except NotFoundError:
        return {"exists": False}


def _namespaces(request: Request) -> Answer:
    client, _ = open_catalog(request["catalog"])
    try:
        return {"exists": True, "names": [*all_namespaces(client, tuple(request["id"]))]}
    except NotFoundError:
        return {"exists": False}


def _describe_namespace(request: Request) -> Answer:
    client, _ = open_catalog(request["catalog"])
    try:
        found = client.describe_namespace(DescribeNamespaceRequest(id=list(request["id"])))
    except NotFoundError:
        return {"exists": False}
    return {"exists": True, "properties": dict(found.properties or {})}


def _create_namespace(request: Request) -> Answer:
    client, _ = open_catalog(request["catalog"])
    properties = {name: text for name, text in request["properties"].items() if name != "owner"}
    try:
        client.create_namespace(CreateNamespaceRequest(id=list(request["id"]), properties=properties or None))
    except AlreadyExistsError:
        return {"created": False}
    return {"created": True}


def _drop_namespace(request: Request) -> Answer:
    client, _ = open_catalog(request["catalog"])
    parts = tuple(request["id"])
    try:
        inside = [*all_tables(client, parts), *all_namespaces(client, parts)]
    except NotFoundError:
        return {"exists": False}
    if inside:
        return {"exists": True, "inside": len(inside)}
    client.drop_namespace(DropNamespaceRequest(id=list(parts)))
    return {"exists": True, "inside": 0}


def _create(request: Request) -> Answer:
    """An empty table; with `"declare": true` the name only, for a statement that brings the rows."""
    client, storage = open_catalog(request["catalog"])
    properties = dict(request["properties"])
    if "location" in properties:
        raise InputError("a lance catalog decides where its tables are", cure="Leave LOCATION out.")
    for unwanted in _OF_SPARK:
        properties.pop(unwanted, None)
    try:
        where = declare_table(client, list(request["id"]), storage)
    except NotFoundError:
        return {"namespace": False}
    options = {name: text for name, text in where.storage_options.items() if name in KNOWN_OPTIONS}
    is_there = find_latest_version(resolve_store(where.uri, options)) is not None
    if is_there and not request.get("replaces"):
        return {"namespace": True, "exists": True}
    version = next((properties.pop(name) for name in _VERSION_PROPERTIES if name in properties), None)
    stable = str(properties.pop("enable_stable_row_ids", "false")).lower() == "true"
    if request.get("declare"):
        more = {} if version is None else {"dataStorageVersion": version}
        if properties or stable:
            named = ", ".join([*properties, *(["enable_stable_row_ids"] if stable else [])])
            raise UnsupportedFeatureError(
                f"CREATE TABLE AS SELECT cannot set {named}", cure="CREATE TABLE first, then INSERT INTO."
            )
        return {
            "namespace": True,
            "exists": is_there,
            "options": {"path": where.uri, **options, **more, "allowEmpty": "true"},
        }
    schema = with_properties(_arrow(request), properties)
    _write_empty(where.uri, options, schema, version=version, stable=stable, properties=properties)
    return {"namespace": True, "exists": False}


def _write_empty(
    uri: str,
    options: Mapping[str, str],
    schema: pa.Schema,
    *,
    version: str | None,
    stable: bool,
    properties: Mapping[str, str],
) -> None:
    from lance_core.arrow_numpy import no_rows
    from lance_core.dataset import write_dataset

    given: dict[str, Any] = {} if version is None else {"data_storage_version": version}
    table = write_dataset(
        no_rows(schema), uri, mode="create", storage_options=dict(options), enable_stable_row_ids=stable, **given
    )
    if properties:
        table.update_config(dict(properties))


def _arrow(request: Request) -> pa.Schema:
    from pyspark.sql.types import StructType

    from lance_core.spark.types import arrow_schema

    return arrow_schema(StructType.fromJson(json.loads(request["schema"])))


def _drop(request: Request) -> Answer:
    client, storage = open_catalog(request["catalog"])
    try:
        find_table(client, list(request["id"]), storage)
        client.drop_table(DropTableRequest(id=list(request["id"])))
    except NotFoundError:
        return {"dropped": False}
    return {"dropped": True}


def _alter(request: Request) -> Answer:
    from lance_core.spark.bridge.alterations import alter

    client, storage = open_catalog(request["catalog"])
    options = _options_of(client, storage, list(request["id"]), request)
    if options is None:
        return {"exists": False}
    parsed = parse_options(options)
    alter(parsed.uri, parsed.storage, request["changes"])
    return {"exists": True}


def _call(request: Request) -> Answer:
    from lance_core.spark.bridge.procedures import call

    client, storage = open_catalog(request["catalog"])
    name = str(request["arguments"].get("table") or "")
    parts = name.split(".")
    options = _options_of(client, storage, parts, request) if name else None
    if options is None:
        raise NotFoundError(
            f"no table {name!r} in the catalog", cure="Pass table => 'namespace.name', as SHOW TABLES has it."
        )
    parsed = parse_options(options)
    return {"rows": call(str(request["procedure"]), parsed.uri, parsed.storage, request["arguments"])}


def _procedures(request: Request) -> Answer:
    from lance_core.spark.bridge.procedures import described

    return {"procedures": described()}


REQUESTS: Mapping[str, Callable[[Request], Answer]] = {
    "catalog.load": _load,
    "catalog.tables": _tables,
    "catalog.namespaces": _namespaces,
    "catalog.describe_namespace": _describe_namespace,
    "catalog.create_namespace": _create_namespace,
    "catalog.drop_namespace": _drop_namespace,
    "catalog.create": _create,
    "catalog.alter": _alter,
    "catalog.drop": _drop,
    "catalog.call": _call,
    "catalog.procedures": _procedures,
}
