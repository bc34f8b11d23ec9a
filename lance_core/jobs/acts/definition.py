"""Jobs that change a table's definition: columns, indices, configuration, the table itself. Each is idempotent.

Each looks first whether its work is there already, so a retry after a kill finds it done and makes no version.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_core.arrow_numpy import no_rows
from lance_core.commit.identities import request_property
from lance_core.commit.manifests import find_latest_version
from lance_core.dataset import LanceDataset, dataset, write_dataset
from lance_core.dataset.edit.description import Description, describe
from lance_core.dataset.snapshot.snapshot import open_snapshot
from lance_core.errors import AlreadyExistsError, NotFoundError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.sources.spark_ddl import parse_ddl
from lance_core.jobs.specs.definition import (
    AlterColumnsSpec,
    CloneSpec,
    CreateTableSpec,
    DescribeSpec,
    DropColumnsSpec,
    DropIndexSpec,
    DropTableSpec,
    TableConfigSpec,
)
from lance_core.jobs.specs.spec import JobSpec

log = logging.getLogger(__name__)


def drop_columns(spec: DropColumnsSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "dropped"}."""
    table = _open(spec)
    present = [name for name in spec.columns if _field(table.schema, name) is not None]
    for name in spec.columns:
        if name not in present:
            near = difflib.get_close_matches(name, table.schema.names, n=2)
            guess = f"; did you mean {' or '.join(near)}?" if near else "."
            columns = ", ".join(table.schema.names)
            log.warning("%s has no column %r, so none was dropped%s Its columns: %s.", spec.uri, name, guess, columns)
    if present:
        table.drop_columns(present)
    return _report(spec.kind, spec, table, dropped=present)


def alter_columns(spec: AlterColumnsSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "altered"}. NotFoundError for a column that exists under neither name."""
    table = _open(spec)
    wanted = [item for item in spec.alterations if not _is_altered(table.schema, item)]
    if wanted:
        table.alter_columns(*({**item, **_types(item)} for item in wanted))
    return _report(spec.kind, spec, table, altered=[str(item["path"]) for item in wanted])


def drop_index(spec: DropIndexSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "dropped"}."""
    table = _open(spec)
    names = sorted({str(index["name"]) for index in table.list_indices()})
    there = spec.name in names
    if there:
        table.drop_index(spec.name)
    else:
        near = difflib.get_close_matches(spec.name, names, n=2)
        guess = f"; did you mean {' or '.join(near)}?" if near else ""
        known = f"Its indices: {', '.join(names)}" if names else "It has no index"
        log.warning("%s has no index %r, so none was dropped%s %s.", spec.uri, spec.name, guess or ".", known)
    return _report(spec.kind, spec, table, dropped=[spec.name] if there else [])


def table_config(spec: TableConfigSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "config"}."""
    table = _open(spec)
    now = table.config()
    changed = {name: value for name, value in spec.values.items() if now.get(name) != value}
    if changed:
        table.update_config(changed)
    return _report(spec.kind, spec, table, config=table.config())


def describe_table(spec: DescribeSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "changed"}. InputError for a column that is not there."""
    table = _open(spec)
    said = Description(text=spec.description, owner=spec.owner, fresh_within=spec.fresh_within)
    columns = {path: _said(words) for path, words in spec.columns.items()}
    now = describe(table.snapshot, said, columns)
    return _report(spec.kind, spec, LanceDataset.from_snapshot(now), changed=now.version != table.version)


def _said(words: str | Mapping[str, str]) -> Description:
    if isinstance(words, str):
        return Description(text=words)
    return Description(text=words.get("description"), owner=words.get("owner"))


def create_table(spec: CreateTableSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "created"}. AlreadyExistsError if a table exists and must not."""
    if find_latest_version(resolve_store(spec.uri, spec.resolved_options())) is not None:
        if spec.if_exists == "fail":
            raise AlreadyExistsError(
                f"{spec.uri} is already a table", uri=spec.uri, cure='Choose another uri, or pass if_exists="skip".'
            )
        return _report(spec.kind, spec, _open(spec), created=False)
    options: dict[str, Any] = {"enable_stable_row_ids": spec.enable_stable_row_ids}
    if spec.data_storage_version is not None:
        options["data_storage_version"] = spec.data_storage_version
    table = write_dataset(
        no_rows(parse_ddl(spec.schema)),
        spec.uri,
        mode="create",
        storage_options=spec.resolved_options(),
        transaction_properties=request_property(spec.kind, spec.asked),
        **options,
    )
    return _report(spec.kind, spec, table, created=True)


def drop_table(spec: DropTableSpec, runner: Runner | None = None) -> Report:
    """Report {"dropped"}."""
    there = find_latest_version(resolve_store(spec.uri, spec.resolved_options())) is not None
    if not there and spec.if_missing == "fail":
        raise NotFoundError(
            f"there is no table at {spec.uri}", uri=spec.uri, cure='Check the uri, or pass if_missing="skip".'
        )
    LanceDataset.drop(spec.uri, storage_options=spec.resolved_options(), ignore_not_found=True)
    log.info("%s of %s: %s", spec.kind, spec.uri, "dropped" if there else "there was none")
    return Report(spec.kind, {"dropped": there})


def clone(spec: CloneSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "target", "cloned"}: a table that is at the target already is left as it is."""
    options = spec.resolved_options()
    source = dataset(spec.uri, version=spec.version, storage_options=options)
    if find_latest_version(resolve_store(spec.target, options)) is not None:
        return _report(spec.kind, spec, source, target=spec.target, cloned=False)
    clone = source.shallow_clone if spec.depth == "shallow" else source.deep_clone
    clone(spec.target, source.version, storage_options=options)
    return _report(spec.kind, spec, source, target=spec.target, cloned=True)


def _open(spec: JobSpec) -> LanceDataset:
    """The table, whose versions say from now on who requested them."""
    snapshot = open_snapshot(spec.uri, storage_options=spec.resolved_options())
    return LanceDataset.from_snapshot(replace(snapshot, noted=request_property(spec.kind, spec.asked)))


def _report(kind: str, spec: JobSpec, table: LanceDataset, **facts: Any) -> Report:
    log.info("%s of %s: version %d, %s", kind, spec.uri, table.version, facts)
    return Report(kind, {"version": table.version, **facts})


def _field(schema: pa.Schema, path: str) -> pa.Field[Any] | None:
    """The field of a dotted path; None when there is none."""
    fields, found = {item.name: item for item in schema}, None
    for part in path.split("."):
        found = fields.get(part)
        if found is None:
            return None
        kind = found.type
        fields = {kind.field(i).name: kind.field(i) for i in range(kind.num_fields)} if pa.types.is_struct(kind) else {}
    return found


def _is_altered(schema: pa.Schema, item: Mapping[str, Any]) -> bool:
    """Whether a field is already as it is wanted: under its new name, of its new type."""
    path, name = str(item["path"]), item.get("name")
    new = path if name is None else ".".join([*path.split(".")[:-1], str(name)])
    found = _field(schema, new)
    if found is None or (new != path and _field(schema, path) is not None):
        return False
    types = _types(item)
    fits_type = "data_type" not in types or found.type == types["data_type"]
    return fits_type and ("nullable" not in item or found.nullable == bool(item["nullable"]))


def _types(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"data_type": parse_ddl(f"x {item['data_type']}").field(0).type} if item.get("data_type") else {}
