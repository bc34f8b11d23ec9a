"""Replace one attempt of an identity by another that did the same work again."""

from __future__ import annotations

from lance_core.io.store import Store
from lance_core.publish.model import StagedTransaction
from lance_core.publish.registry.attempts import drop_finished
from lance_core.publish.staging.remove import RE_EXECUTION, remove_attempt


def give_up_for_another(store: Store, ref: StagedTransaction, *, own_commit: str | None) -> bool:
    """Make room for another attempt of the same work. Where a put of this one may still be on its way its files stay until
    the identity has landed: that landing is what makes the put lose.

    Whether nobody else has begun to remove it, so that an attempt which is on record may adopt its files.
    """
    removal = remove_attempt(store, ref.identity, ref.attempt, by=RE_EXECUTION, own_commit=own_commit, landed_too=True)
    if removal.left:
        drop_finished(store, ref.identity, ref.attempt)
    return bool(removal.adoptable)


def clear_superseded(store: Store, ref: StagedTransaction) -> None:
    """Remove what was left of such an attempt, now that its identity has landed."""
    remove_attempt(store, ref.identity, ref.attempt, by=RE_EXECUTION, landed_too=True)
