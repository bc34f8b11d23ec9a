"""A file that a commit needed is gone: another commit has landed its member and cleared it, the member was withdrawn, or a
cleanup removed a version that it was compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lance_core.commit.manifests import find_latest_version
from lance_core.errors import IncompatibleConflictError, LanceError, NotFoundError, RetryableConflictError
from lance_core.io.store import Store
from lance_core.publish.model import StagedTransaction
from lance_core.publish.registry.attempts import is_withdrawn
from lance_core.publish.staging.drain import require_counts


def explain_lost_file(
    store: Store, refs: Iterable[StagedTransaction], error: NotFoundError
) -> Mapping[str, IncompatibleConflictError]:
    """Refusals by identity of members that do not count any more: they were withdrawn, or have landed and were cleared.

    RetryableConflictError where all members are there: it is a version that went. The error itself where there is no table.
    """
    if find_latest_version(store) is None:
        raise error
    refusals: dict[str, IncompatibleConflictError] = {}
    for ref in refs:
        try:
            require_counts(store, ref, is_withdrawn=is_withdrawn(store, ref.identity, ref.attempt))
        except IncompatibleConflictError as refusal:
            refusals[ref.identity] = refusal
    if refusals:
        return refusals
    raise _removed(store, error) from error


def _removed(store: Store, error: NotFoundError) -> LanceError:
    return RetryableConflictError(
        f"{store.uri}: versions were removed while the commit compared its work with them ({error})",
        uri=store.uri,
        cure="Commit again. If it comes back, keep versions for longer than the work takes, and check the table with "
        "`lance validate`.",
    )
