"""A reference to work whose staged records were removed because it landed; a commit answers "already landed" to it."""

from __future__ import annotations

from lance_core.publish.model import StagedTransaction


def landed_reference(uri: str, identity: str, version: int, *, operation: str = "") -> StagedTransaction:
    """Names the identity and the version before its landing; the counts are not known any more and are 0."""
    return StagedTransaction(
        uri=uri,
        identity=identity,
        attempt="",
        read_version=max(version - 1, 0),
        operation=operation,
        num_rows=0,
        num_bytes=0,
        num_fragments=0,
        transaction_path="",
    )
