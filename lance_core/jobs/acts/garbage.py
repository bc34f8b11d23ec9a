"""Garbage collection: find the files and records of dead attempts and commits by name, and remove them at once."""

from __future__ import annotations

import logging

from lance_core.io.resolve import resolve_store
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.maintenance import GarbageSpec
from lance_core.publish.collect import collect_garbage

log = logging.getLogger(__name__)


def garbage(spec: GarbageSpec, runner: Runner | None = None) -> Report:
    """Report {"dry_run", "num_files", "bytes", "attempts", "abandoned", "unknown"}."""
    store = resolve_store(spec.uri, spec.resolved_options())
    found = collect_garbage(store, dry_run=spec.dry_run, abandon_after=spec.abandon_after_seconds)
    for path in found.files:
        log.info("%s %s", "would remove" if spec.dry_run else "removed", path)
    facts = found.to_dict()
    return Report(spec.kind, {**facts, "num_files": len(facts.pop("files"))})
