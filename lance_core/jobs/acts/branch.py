"""Branch: create a branch from a version, or remove one with its files. Once by identity, whatever moved in the
meantime."""

from __future__ import annotations

import logging

from lance_core.commit.manifests import latest_version
from lance_core.dataset.refs.branches import MAIN, BranchRef, branch_names, place_of, read_branch
from lance_core.dataset.snapshot.snapshot import snapshot_of
from lance_core.dataset.versions.clone import create_branch, delete_branch
from lance_core.errors import AlreadyExistsError, InputError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.idempotence import is_signed, note_done, signature, was_done, work_identity
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.maintenance import BranchSpec

log = logging.getLogger(__name__)


def branch(spec: BranchSpec, runner: Runner | None = None) -> Report:
    """Report {"name", "uri", "parent_branch", "parent_version", "changed"}.

    InputError for a branch that exists from another version, or that is referenced; NotFoundError.
    """
    store = resolve_store(spec.uri, spec.resolved_options())
    spec = spec.with_identity(work_identity(spec))
    before = read_branch(store, spec.name) if spec.name in branch_names(store) else None
    changed = not was_done(store, spec.identity) and (_end if spec.action == "delete" else _begin)(store, spec, before)
    now = read_branch(store, spec.name) if spec.name in branch_names(store) else None
    if changed:
        note_done(store, spec.identity, version=latest_version(store))
    facts = {
        "name": spec.name,
        "uri": None if now is None else place_of(store, spec.name).uri,
        "parent_branch": None if now is None else now.parent_branch,
        "parent_version": None if now is None else now.parent_version,
        "changed": changed,
    }
    log.info("branch %s of %s: %s", spec.name, spec.uri, facts)
    return Report(spec.kind, facts)


def _begin(store: Store, spec: BranchSpec, before: BranchRef | None) -> bool:
    if before is not None and is_signed(before.metadata, spec.identity):
        return True  # the ledger was not told any more
    if before is not None and spec.action == "renew":
        before = None
        delete_branch(store, spec.name)
    wanted = spec.tag if spec.tag is not None else (spec.from_branch or MAIN, spec.version)
    snapshot = snapshot_of(store, version=wanted, storage_options=spec.resolved_options())
    if before is None:
        try:
            create_branch(snapshot, spec.name, metadata=signature(spec.identity))
            return True
        except AlreadyExistsError:
            before = read_branch(store, spec.name)
    if (before.parent_branch or MAIN, before.parent_version) != (snapshot.manifest.branch or MAIN, snapshot.version):
        raise InputError(
            f"branch {spec.name!r} of {store.uri} began at version {before.parent_version} of "
            f"{before.parent_branch or MAIN}, not at version {snapshot.version} of {snapshot.manifest.branch or MAIN}",
            uri=store.uri,
            version=before.parent_version,
            cure="Choose another name, or delete the branch first.",
        )
    return False


def _end(store: Store, spec: BranchSpec, before: BranchRef | None) -> bool:
    if before is None:
        return False
    delete_branch(store, spec.name)
    return True
