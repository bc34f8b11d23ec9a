"""Restore: commit an old version as the newest one, exactly once by identity.

It is staged and committed in one go, because there is nothing to compute; strict: nobody's commits are overruled unseen.
"""

from __future__ import annotations

import logging

from lance_core.commit.identities import Asked
from lance_core.commit.manifests import latest_version, load_manifest, open_version
from lance_core.dataset.refs.tags import read_tag
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError, LanceError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.lifecycle import LEASE_SECONDS, clear_dead, find_done, work_of
from lance_core.jobs.runtime.protocols import Runner
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.maintenance import RestoreSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.commit import commit
from lance_core.publish.model import Attempt, CommitResult
from lance_core.publish.publisher import CommitRequest
from lance_core.publish.stage import begin, finish_attempt
from lance_core.publish.table_id import require_known_records
from lance_core.table.operations.restore import Restore
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)


def restore(spec: RestoreSpec, runner: Runner | None = None) -> CommitResult:
    """Publish the old version. IncompatibleConflictError when the table moved; NotFoundError for no such version."""
    store = resolve_store(spec.uri, spec.resolved_options())
    spec = spec if spec.identity else spec.with_identity(random_identity())
    done = find_done(store, spec)
    if done is None:
        require_known_records(store, load_manifest(store))
        target = _target(store, spec)
        base = _base(store, spec)
        clear_dead(store, spec.identity)
        asked = Asked.from_dict(spec.asked).to_dict()
        planned = Attempt(
            identity=spec.identity, spec=work_of(spec), read_version=base, lease_seconds=LEASE_SECONDS, asked=asked
        )
        attempt = begin(store, planned)
        staged = finish_attempt(store, attempt, Transaction(base, spec.identity, Restore(target)), rows=0, bytes=0)
    else:
        staged = done.staged
    try:
        result = commit(store, CommitRequest(refs=(staged,), if_moved=spec.if_moved))
    except CommitStateUnknownError:
        raise
    except LanceError as error:
        if not error.retryable:
            # Kept, it would wait for a commit that can never be; the next try plans again.
            abort_attempt(store, staged.identity, staged.attempt)
        raise
    log.info("%s is at version %d", spec.uri, result.version)
    return result


def _target(store: Store, spec: RestoreSpec) -> int:
    if spec.version is None:
        tag = read_tag(store, spec.tag or "")
        if tag.branch is not None:
            raise IncompatibleConflictError(
                f"tag {tag.name!r} refers to a version of branch {tag.branch!r}",
                uri=store.uri,
                cure="Run the restore on the branch.",
            )
        return tag.version
    return open_version(store, spec.version).manifest.version


def _base(store: Store, spec: RestoreSpec) -> int:
    newest = latest_version(store)
    if spec.expected_version is not None and newest != spec.expected_version and spec.if_moved == "fail":
        raise IncompatibleConflictError(
            f"{store.uri} is at version {newest}, not at the expected version {spec.expected_version}: a restore would undo "
            "the commits in between",
            uri=store.uri,
            version=spec.expected_version,
            other_version=newest,
            operation="Restore",
            cure='Check the newer versions; then pass the newest as expected_version, or pass if_moved="overwrite".',
        )
    return newest
