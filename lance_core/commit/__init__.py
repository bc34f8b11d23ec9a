"""The log of a table, as any writer of the format keeps it: manifests, transactions, the commit loop."""

from lance_core.errors import CommitConflictError as CommitConflictError

__all__ = ["CommitConflictError"]
