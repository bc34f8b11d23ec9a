"""Validate: a version is checked against itself and against its files."""

from __future__ import annotations

import logging
from typing import Any

from lance_core.dataset.indexing.seal import check_indices, seal_indices
from lance_core.dataset.maintain.validate import check_snapshot
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.maintenance import ValidateSpec

log = logging.getLogger(__name__)


def validate(spec: ValidateSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "num_rows", "num_fragments", "files_checked"}, with "indices_checked" (how many segments) and
    "indices_sealed" (their uuids) if requested. Raises CorruptFileError, NotFoundError.
    """
    snapshot = open_snapshot(spec.uri, version=spec.version, storage_options=spec.resolved_options())
    checked = check_snapshot(snapshot, deep=spec.deep)
    manifest = snapshot.manifest
    facts: dict[str, Any] = {
        "version": manifest.version,
        "num_rows": manifest.num_rows,
        "num_fragments": len(manifest.fragments),
        "files_checked": checked,
    }
    facts |= _indices_of(snapshot, spec)
    log.info("%s is valid: %s", spec.uri, facts)
    return Report(spec.kind, facts)


def _indices_of(snapshot: Snapshot, spec: ValidateSpec) -> dict[str, Any]:
    sealed = seal_indices(snapshot) if spec.seal_indices else []
    found: dict[str, Any] = {"indices_sealed": sealed} if spec.seal_indices else {}
    if spec.indices:
        # What was sealed was compared just before.
        found["indices_checked"] = len(sealed) + check_indices(snapshot, without=sealed)
    return found
