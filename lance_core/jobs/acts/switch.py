"""Switch a column to another definition: it and its shadow change names in one version, and each keeps its index.

::

    vector        version "1", index a       ->      vector        version "2", index b
    vector_next   version "2", index b               vector_next   version "1", index a

Indices belong to fields, not to names, so a reader has the old column with the old index or the new one with the new index.
Rolled back is the same, to version "1". What is asked is a state, so it is done once however often it is asked.
"""

from __future__ import annotations

import logging
import uuid as uuids
from dataclasses import replace
from typing import Any

from lance_core.commit.identities import request_property
from lance_core.computed.declaration import declaration_of, in_order
from lance_core.computed.unseen import unseen_rows
from lance_core.dataset import LanceDataset
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.errors import GateFailedError, InputError
from lance_core.format.declared import is_declared
from lance_core.format.schema import Field, Schema
from lance_core.jobs.acts.recall import measure_recall
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.switch import SwitchColumnSpec
from lance_core.table.operations.project import Project
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)


class _SwitchedError(Exception):
    """Another one did it in the meantime."""


def switch(spec: SwitchColumnSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "switched"}, with what was measured of an index. GateFailedError for a shadow that is not ready."""
    snapshot = open_snapshot(spec.uri, storage_options=spec.resolved_options())
    snapshot = replace(snapshot, noted=request_property(spec.kind, spec.asked))
    schema = snapshot.manifest.schema
    if version_of(_field(schema, spec.column)) == spec.version:
        return _report(spec, snapshot.version, switched=False)
    _check_shadow(snapshot, spec)
    measured: dict[str, Any] = {}
    if spec.min_recall is not None:
        table = LanceDataset.from_snapshot(snapshot)
        measured = measure_recall(table, spec.shadow_name, k=spec.k, sample=spec.sample, search=spec.search)
        if measured["recall"] < spec.min_recall:
            raise GateFailedError(
                f"the index on {spec.shadow_name!r} of {spec.uri} finds {measured['recall']:.1%} of the {spec.k} nearest of "
                f"{measured['queries']:,} rows, fewer than {spec.min_recall:.1%}",
                uri=spec.uri,
                version=snapshot.version,
                cure="Build it with other parameters, search with more nprobes, or lower min_recall.",
            )
    try:
        committed = commit_with_retry(snapshot, lambda current: _stage(current, spec))[0]
    except _SwitchedError:
        return _report(spec, open_snapshot(spec.uri, storage_options=spec.resolved_options()).version, switched=False)
    return _report(spec, committed.version, switched=True, **measured)


def version_of(item: Field) -> str | None:
    """The version that a column is declared with; None where it is not declared."""
    return declaration_of(item).version if is_declared(item) else None


def _check_shadow(snapshot: Snapshot, spec: SwitchColumnSpec) -> None:
    found = version_of(_field(snapshot.manifest.schema, spec.shadow_name))
    if found != spec.version:
        raise InputError(
            f"neither {spec.column!r} nor {spec.shadow_name!r} of {spec.uri} is declared with version {spec.version!r}",
            uri=spec.uri,
            version=snapshot.version,
            cure=f"Declare {spec.shadow_name!r} with that version and refresh it.",
        )
    rows, total = unseen_rows(snapshot)[spec.shadow_name], snapshot.manifest.num_rows
    if rows > spec.max_stale_share * total:
        raise GateFailedError(
            f"column {spec.shadow_name!r} of {spec.uri} is not ready: no refresh has seen {rows:,} of {total:,} rows "
            "as they are",
            uri=spec.uri,
            version=snapshot.version,
            cure="Refresh it, and switch then; or allow some with max_stale_share.",
        )


def _stage(snapshot: Snapshot, spec: SwitchColumnSpec) -> StagedEdit:
    schema = snapshot.manifest.schema
    one, other = _field(schema, spec.column), _field(schema, spec.shadow_name)
    if version_of(one) == spec.version:
        raise _SwitchedError
    if version_of(other) != spec.version:
        raise InputError(f"column {spec.shadow_name!r} of {spec.uri} was declared otherwise in the meantime", uri=spec.uri)
    names = {one.id: other.name, other.id: one.name}
    fields = tuple(replace(item, name=names.get(item.id, item.name)) for item in schema.fields)
    changed = replace(schema, fields=fields)
    in_order(changed)
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), Project(changed, preserves_nullability=True)))


def _field(schema: Schema, name: str) -> Field:
    found = next((item for item in schema.top_level if item.name == name), None)
    if found is None:
        raise InputError(
            f"the table has no column {name!r}", cure=f"Its columns: {', '.join(item.name for item in schema.top_level)}."
        )
    return found


def _report(spec: SwitchColumnSpec, version: int, *, switched: bool, **measured: Any) -> Report:
    log.info("column %s of %s: %s at version %d", spec.column, spec.uri, "switched" if switched else "as it was", version)
    return Report(spec.kind, {"version": version, "column": spec.column, "switched": switched, **measured})
