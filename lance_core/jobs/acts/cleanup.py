"""Cleanup: remove old versions and the files that only they need. Staged work, tags and decisions stay.

Running it twice, or killing it, does no harm: the next one finishes what it began.
"""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import asdict

from lance_core.dataset.snapshot.snapshot import open_snapshot
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.maintenance import CleanupSpec

log = logging.getLogger(__name__)


def cleanup(spec: CleanupSpec, runner: Runner | None = None) -> Report:
    """Report {"versions", "kept", "bytes_removed", ...}. InputError when a tagged version is in the way."""
    snapshot = open_snapshot(spec.uri, storage_options=spec.resolved_options())
    store = snapshot.store
    seconds = spec.older_than_seconds
    plan = plan_cleanup(
        store,
        older_than=None if seconds is None else dt.timedelta(seconds=seconds),
        retain_versions=spec.retain_versions,
        delete_unverified=spec.delete_unverified,
        error_if_tagged_old_versions=spec.error_if_tagged_old_versions,
        root=snapshot.root,
        storage_options=snapshot.storage_options,
    )
    stats = plan.stats if spec.explain else run_cleanup(store, plan)
    facts = {
        "explain": spec.explain,
        "versions": [entry.version for entry in plan.versions],
        "kept": {str(version): reason for version, reason in plan.kept},
        **asdict(stats),
    }
    log.info("cleanup of %s: %s", spec.uri, facts)
    return Report(spec.kind, facts)
