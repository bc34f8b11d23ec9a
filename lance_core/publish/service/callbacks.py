"""Callbacks of a commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from lance_core.format.manifest import Manifest
from lance_core.publish.model import StagedTransaction
from lance_core.table.transaction import Transaction

IfMoved = Literal["fail", "overwrite"]
Check = Callable[[Sequence[tuple[StagedTransaction, Transaction]], Manifest | None], None]
"""Called with what is about to be published and the newest version, before every publication; raises to refuse."""
ReExecute = Callable[[StagedTransaction, str], StagedTransaction]
"""Plans and stages one identity's work again on the newest version; called while the commit has its turn. The second
argument names the commit that asks."""
Withdraw = Callable[[StagedTransaction, str], object]
"""Gives up what is staged, before it is staged again; the second argument names the commit that asks."""
