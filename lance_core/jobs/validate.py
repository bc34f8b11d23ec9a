"""Validate: a version is checked against itself and against its files."""

from __future__ import annotations

import logging
from typing import ClassVar

from lance_core.dataset.snapshot import open_snapshot
from lance_core.dataset.validate import check_snapshot
from lance_core.jobs.base import Report, Runner
from lance_core.jobs.upkeep_specs import ValidateSpec

log = logging.getLogger(__name__)


class ValidateJob:
    """Carries out a `ValidateSpec`, in this process."""

    kind: ClassVar[str] = "validate"
    needs_runner: ClassVar[bool] = False

    def run(self, spec: ValidateSpec, runner: Runner | None = None) -> Report:
        """Report {"version", "num_rows", "num_fragments", "files_checked"}. CorruptFileError, NotFoundError otherwise."""
        snapshot = open_snapshot(spec.uri, version=spec.version, storage_options=spec.resolved_options())
        checked = check_snapshot(snapshot, deep=spec.deep)
        manifest = snapshot.manifest
        facts = {
            "version": manifest.version,
            "num_rows": manifest.num_rows,
            "num_fragments": len(manifest.fragments),
            "files_checked": checked,
        }
        log.info("%s is whole: %s", spec.uri, facts)
        return Report(self.kind, facts)
