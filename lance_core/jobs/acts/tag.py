"""Tag: create, move or remove a name for a version. Once by identity: a retry does not undo the work of others."""

from __future__ import annotations

import logging

from lance_core.commit.manifests import latest_version
from lance_core.dataset.refs.tags import TagRef, create_tag, delete_tag, read_tag, tag_names, update_tag
from lance_core.errors import AlreadyExistsError, InputError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.idempotence import is_signed, note_done, signature, was_done, work_identity
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.maintenance import TagSpec

log = logging.getLogger(__name__)


def tag(spec: TagSpec, runner: Runner | None = None) -> Report:
    """Report {"name", "version", "before"}: the current and the previous version of the name, or None."""
    store = resolve_store(spec.uri, spec.resolved_options())
    spec = spec.with_identity(work_identity(spec))
    before = read_tag(store, spec.name) if spec.name in tag_names(store) else None
    if not was_done(store, spec.identity) and not (before and is_signed(before.metadata, spec.identity)):
        _do(store, spec, before)
    note_done(store, spec.identity, version=latest_version(store))
    now = read_tag(store, spec.name).version if spec.name in tag_names(store) else None
    was = None if before is None else before.version
    log.info("tag %s of %s: %s, before %s", spec.name, spec.uri, now, was)
    return Report(spec.kind, {"name": spec.name, "version": now, "before": was})


def _do(store: Store, spec: TagSpec, before: TagRef | None) -> None:
    if spec.action != "delete":
        _point(store, spec, latest_version(store) if spec.version is None else spec.version, before)
    elif before is not None:
        delete_tag(store, spec.name)


def _point(store: Store, spec: TagSpec, version: int, before: TagRef | None) -> None:
    if before is None:
        try:
            create_tag(store, spec.name, version, metadata=signature(spec.identity))
            return
        except AlreadyExistsError:
            before = read_tag(store, spec.name)
    if before.version == version and before.branch is None:
        return
    if spec.action == "create":
        raise InputError(
            f"tag {spec.name!r} refers to version {before.version} of {store.uri}, not to {version}",
            uri=store.uri,
            version=before.version,
            cure='Choose another name, or move it with action="set".',
        )
    update_tag(store, spec.name, version, metadata=signature(spec.identity))
