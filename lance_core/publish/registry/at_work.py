"""Commits that are at work, or were killed: those with a claim, and those whose fence says that they need none."""

from __future__ import annotations

from lance_core.io.store import Store
from lance_core.publish.registry.claims import Claim, list_claims
from lance_core.publish.registry.fences import list_fences


def commits_at_work(store: Store) -> list[Claim]:
    """Every commit that has said what it is about to publish, and not that it has ended. Only for people to look at."""
    claims = list_claims(store)
    known = {claim.commit for claim in claims}
    alone = [
        Claim(fence.commit, (), (identity,), fence.since, attempts={identity: attempt})
        for (identity, attempt), fence in list_fences(store).items()
        if fence.alone and fence.commit not in known
    ]
    return claims + alone
