"""The result of a commit, and the callbacks of its caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lance_core.commit.manifests import OpenVersion
from lance_core.format.manifest import Manifest
from lance_core.table.transaction import Transaction

AlsoJudge = Callable[[Transaction, OpenVersion], None]
"""Looks at a version of others: its transaction and its manifest."""


@dataclass(frozen=True, slots=True)
class Committed:
    """How a commit went. `num_rebased`: versions of others that required a rebase. `already`: it had been committed before.

    `transaction` is the one in the log: an earlier try's, when its put arrived late.
    """

    manifest: Manifest
    transaction: Transaction
    num_rebased: int = 0
    already: bool = False
