"""Abort a staged attempt on request: its files are removed by name, and only if no version needs them."""

from __future__ import annotations

from lance_core.io.store import Store
from lance_core.publish.staging.remove import remove_attempt


def abort_attempt(
    store: Store,
    identity: str,
    attempt: str,
    *,
    own_commit: str | None = None,
    certain: bool = False,
    by: str = "abort",
) -> list[str]:
    """Remove an attempt: every file whose name carries it, and its records. Returns the paths of the files removed.

    Doing it again is harmless. Raises IncompatibleConflictError when the attempt has landed, and CommitStateUnknownError
    when it is unknown; nothing is removed then. When a commit was about to publish it, a version that changes no row
    makes that commit lose first. `own_commit` names the caller's own commit, which does not count. `certain=True` is a
    person's word that it has not landed, where the log cannot tell.
    """
    removal = remove_attempt(
        store,
        identity,
        attempt,
        by=by,
        doubt="fence",
        certain=certain,
        own_commit=own_commit,
    )
    return [*removal.files]
