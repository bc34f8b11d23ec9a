"""Row id and version sequences on the wire (`rowids.proto`).

The bytes are walked in `lance_core.rowids.message`, because the draft of a manifest writes them too; this is the door for
everybody above. `row_ids_of` and its siblings take what a Fragment holds.
"""

from __future__ import annotations

from lance_core.errors import UnsupportedFeatureError
from lance_core.format.fragment import ExternalFile
from lance_core.rowids.message import decode_row_ids, decode_versions, encode_row_ids, encode_versions
from lance_core.rowids.sequence import RowIdSequence
from lance_core.rowids.versions import VersionSequence

__all__ = [
    "decode_row_ids",
    "decode_versions",
    "encode_row_ids",
    "encode_versions",
    "row_ids_of",
    "versions_of",
]


def row_ids_of(stored: bytes | ExternalFile | None) -> RowIdSequence | None:
    """The sequence a fragment stores inline; None when it stores none. External ones have to be fetched first."""
    return None if stored is None else decode_row_ids(_inline(stored))


def versions_of(stored: bytes | ExternalFile | None) -> VersionSequence | None:
    """The version sequence a fragment stores inline; None when it stores none."""
    return None if stored is None else decode_versions(_inline(stored))


def _inline(stored: bytes | ExternalFile) -> bytes:
    if isinstance(stored, ExternalFile):
        raise UnsupportedFeatureError(
            f"the row id sequence lies in {stored.path!r}", cure="Fetch its bytes and decode those with `decode_row_ids`."
        )
    return stored
