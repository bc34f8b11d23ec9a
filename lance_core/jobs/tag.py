"""Tag: a name for a version is created, moved or forgotten. Doing it twice is the same as doing it once."""

from __future__ import annotations

import logging
from typing import ClassVar

from lance_core.commit.manifests import latest_version
from lance_core.dataset.tags import create_tag, delete_tag, read_tag, tag_names, update_tag
from lance_core.errors import AlreadyExistsError, InputError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.base import Report, Runner
from lance_core.jobs.upkeep_specs import TagSpec

log = logging.getLogger(__name__)


class TagJob:
    """Carries out a `TagSpec`, in this process."""

    kind: ClassVar[str] = "tag"
    needs_runner: ClassVar[bool] = False

    def run(self, spec: TagSpec, runner: Runner | None = None) -> Report:
        """Report {"name", "version", "before"}: versions the name stands for now and stood for before, or None."""
        store = resolve_store(spec.uri, spec.resolved_options())
        before = read_tag(store, spec.name).version if spec.name in tag_names(store) else None
        version = None
        if spec.action != "delete":
            version = latest_version(store) if spec.version is None else spec.version
            _point(store, spec, version, before)
        elif before is not None:
            delete_tag(store, spec.name)
        log.info("tag %s of %s: %s, before %s", spec.name, spec.uri, version, before)
        return Report(self.kind, {"name": spec.name, "version": version, "before": before})


def _point(store: Store, spec: TagSpec, version: int, before: int | None) -> None:
    if before == version:
        return
    if before is None:
        try:
            create_tag(store, spec.name, version)
            return
        except AlreadyExistsError:
            before = read_tag(store, spec.name).version
    if before == version:
        return
    if spec.action == "create":
        raise InputError(
            f"tag {spec.name!r} stands for version {before} of {store.uri}, not for {version}",
            uri=store.uri,
            version=before,
            cure='Choose another name, or move it with action="set".',
        )
    update_tag(store, spec.name, version)
