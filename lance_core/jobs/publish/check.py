"""Check: apply the gates of a commit to all rows of an existing version."""

from __future__ import annotations

from lance_core.dataset.snapshot.snapshot import open_snapshot
from lance_core.jobs.gates.conditions import require_gates
from lance_core.jobs.publish.gates import StagedRows
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.definition import CheckSpec


def check(spec: CheckSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "num_rows", "gates"}: the names of those that passed. GateFailedError for one that did not."""
    snapshot = open_snapshot(spec.uri, version=spec.version, storage_options=spec.resolved_options())
    names = require_gates(
        spec.gates,
        StagedRows((), (snapshot,), is_table=True),
        where=f"{spec.uri} at version {snapshot.version}",
        cure="Correct the rows, restore an earlier version, or change the gate.",
    )
    facts = {"version": snapshot.version, "num_rows": snapshot.manifest.num_rows, "gates": names}
    return Report(spec.kind, facts)
