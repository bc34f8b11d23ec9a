"""Parts of the commit loop for callers that have a loop of their own: judge and rebase without a put, or put once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lance_core.commit import naming
from lance_core.commit.committed import AlsoJudge, Committed
from lance_core.commit.loop import CommitLoop
from lance_core.commit.manifests import OpenAt, OpenVersion, open_or_none
from lance_core.commit.put_manifest import require_put_if_absent
from lance_core.commit.rebase import Rebased
from lance_core.errors import StoreError
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction


def rebase_onto(
    store: Store,
    transaction: Transaction,
    newest: OpenVersion,
    *,
    attempt: str | None = None,
    also_judge: AlsoJudge | None = None,
    open_at: OpenAt = open_or_none,
) -> Rebased:
    """A planned transaction brought up to `newest`: judged against everything in between and rebased if necessary.

    Nothing is published. `open_at` opens a version, for a caller that asks for the same ones again. Raises what
    `commit_transaction` raises for conflicts; PartlyLandedError when it has landed.
    """
    loop = CommitLoop(
        store, transaction, options=None, source=None, strict=False, attempt=attempt, before_put=lambda _: None
    )
    loop.also_judge, loop.open_at = also_judge, open_at
    return loop.rebased(newest)


def publish_on(
    store: Store,
    transaction: Transaction,
    newest: OpenVersion,
    *,
    attempt: str,
    strict: bool = False,
    on_doubt: Callable[[], None] = lambda: None,
) -> Committed | None:
    """Put a transaction that was planned on `newest` as the version behind it, once; None when the number is taken, or when
    that is not known yet: then `on_doubt` is called.

    Its file is the one of `attempt`, which was written when it was staged: nothing but the manifest is written. Raises what
    `commit_in_detail` raises.
    """
    require_put_if_absent(store)
    loop = CommitLoop(
        store, transaction, options=None, source=None, strict=strict, attempt=attempt, before_put=lambda _: None
    )
    loop.opened = loop.newest = newest
    loop.on_doubt = on_doubt
    name = naming.transaction_name(transaction.read_version, f"{transaction.uuid}.{attempt}")
    loop.early.there = frozenset((naming.transaction_path(name),))
    try:
        done = loop.try_once()
    except StoreError as error:
        raise loop.doubtful(error) from error
    if done is None or done.manifest.timestamp_ns == loop.tried_at:
        return done
    return replace(done, already=True)  # another commit of this attempt had put it
