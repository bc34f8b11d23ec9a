"""The errors of attempts that are not removed: they have landed, or that is unknown."""

from __future__ import annotations

from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError
from lance_core.io.store import Store


def nobody_knows(store: Store, identity: str, attempt: str) -> CommitStateUnknownError:
    """Of a put that may still land."""
    return CommitStateUnknownError(
        f"{store.uri}: a commit was about to publish attempt {attempt} of {identity}, and it is unknown whether its put "
        "is still in flight",
        uri=store.uri,
        cure="Commit again: this settles it at once, whatever the other commit did.",
    )


def has_landed(store: Store, identity: str, version: int) -> IncompatibleConflictError:
    """Of work that is in a version."""
    return IncompatibleConflictError(
        f"{store.uri}: {identity} has landed as version {version}; there is nothing to abort",
        uri=store.uri,
        version=version,
        cure="To take its rows back, delete them or restore an older version.",
    )
