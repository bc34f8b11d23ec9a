"""The sequences that a fragment holds inline, decoded."""

from __future__ import annotations

from lance_core.format.fragment import ExternalFile
from lance_core.rowids.message import decode_row_ids, decode_versions
from lance_core.rowids.sequence import RowIdSequence
from lance_core.rowids.versions import VersionSequence


def row_ids_of(stored: bytes | ExternalFile | None) -> RowIdSequence | None:
    """The row ids, None where none are stored."""
    assert not isinstance(stored, ExternalFile)
    return None if stored is None else decode_row_ids(stored)


def versions_of(stored: bytes | ExternalFile | None) -> VersionSequence | None:
    """The versions, None where none are stored."""
    assert not isinstance(stored, ExternalFile)
    return None if stored is None else decode_versions(stored)
