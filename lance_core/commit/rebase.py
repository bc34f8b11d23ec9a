"""Fitting a planned transaction onto what came in between. The only room that does IO for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.errors import RetryableConflictError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Rebased:
    """The transaction as it is to be published, and the files that were written for it."""

    transaction: Transaction
    files: tuple[str, ...] = ()


def rebase(
    store: Store, planned: Transaction, newest: Manifest, *, theirs: Sequence[Transaction], attempt: str | None = None
) -> Rebased:
    """The planned transaction on top of `newest`, given the transactions in between that ask for it."""
    raise RetryableConflictError(f"{planned.operation.name} must be planned again on version {newest.version}")
