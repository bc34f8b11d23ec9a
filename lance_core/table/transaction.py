"""A transaction: one operation, the version on which it was planned, and its uuid.

    Transaction(read_version=4, uuid="3f0c...", operation=Append(fragments=(...)))      -> _transactions/4-3f0c....txn

(Spec: transactions; `lance.table.Transaction`.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_core.table.operations.base import Operation


@dataclass(frozen=True, slots=True)
class Transaction:
    """An edit of a table, planned on `read_version` (0: the table did not exist).

    `properties` travel with it into the log; the identity of the writer is one of them.
    """

    read_version: int
    uuid: str
    operation: Operation
    tag: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    unknown: bytes = b""

    @property
    def transaction_properties(self) -> Mapping[str, str]:
        """`properties` by their other name."""
        return self.properties

    @property
    def file_name(self) -> str:
        """Its file below `_transactions/`."""
        return f"{self.read_version}-{self.uuid}.txn"
