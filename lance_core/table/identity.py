"""The identity of rows: stable ids and the versions that wrote them, for fragments that enter a table.

    a new fragment of 10 rows at next_row_id 30, committed as version 4
        row_ids = Range(30, 40)     created_at = last_updated_at = 10 x version 4

Rows that an update moved bring their ids along; they keep the version that created them. (Spec: row lineage; FORMAT D.5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lance_core.errors import CorruptFileError, InputError
from lance_core.format.fragment import ExternalFile, Fragment
from lance_core.rowids.message import decode_row_ids, decode_versions, encode_row_ids, encode_versions
from lance_core.rowids.sequence import RowIdSequence, concat_sequences, range_sequence
from lance_core.rowids.versions import VersionSequence, constant_versions, versions_of


def num_row_ids(fragment: Fragment) -> int:
    """How many row ids the fragment carries inline; -1 when they are in a file of their own."""
    if isinstance(fragment.row_ids, ExternalFile):
        return -1
    return 0 if fragment.row_ids is None else len(decode_row_ids(fragment.row_ids))


def is_complete(fragment: Fragment) -> bool:
    """Whether each physical row has a row id."""
    return num_row_ids(fragment) in (-1, fragment.physical_rows)


def with_row_ids(fragment: Fragment, *, next_row_id: int) -> tuple[Fragment, int]:
    """The fragment with an id for each physical row, and the next free id. Ids it already has belong to its first rows."""
    have = num_row_ids(fragment)
    missing = fragment.physical_rows - have
    if have == -1 or missing == 0:
        return fragment, next_row_id
    if missing < 0:
        raise InputError(f"a fragment of {fragment.physical_rows} rows carries {have} row ids")
    fresh = range_sequence(next_row_id, missing)
    sequence = fresh if have == 0 else concat_sequences([_row_ids(fragment), fresh])
    return replace(fragment, row_ids=encode_row_ids(sequence)), next_row_id + missing


def with_new_versions(fragment: Fragment, version: int) -> Fragment:
    """All rows created and last updated by `version`."""
    stamp = encode_versions(constant_versions(fragment.physical_rows, version))
    return replace(fragment, last_updated_at_versions=stamp, created_at_versions=stamp)


def with_updated(fragment: Fragment, version: int) -> Fragment:
    """All rows last updated by `version`; who created them stays."""
    stamp = encode_versions(constant_versions(fragment.physical_rows, version))
    return replace(fragment, last_updated_at_versions=stamp)


def with_updated_offsets(fragment: Fragment, offsets: Sequence[int], version: int) -> Fragment:
    """The rows at `offsets` (physical) last updated by `version`; the others keep theirs, 1 where nobody wrote it down."""
    stored, rows = fragment.last_updated_at_versions, fragment.physical_rows
    known = _versions(fragment, stored) if isinstance(stored, bytes) else constant_versions(rows, 1)
    if len(offsets) and max(offsets) >= rows:
        raise InputError(f"offset {max(offsets)} is not within the {rows} rows of fragment {fragment.id}")
    return replace(fragment, last_updated_at_versions=encode_versions(known.with_rows(offsets, version)))


def with_moved_versions(fragment: Fragment, *, num_moved: int, sources: Iterable[Fragment], version: int) -> Fragment:
    """The first `num_moved` rows keep the version that created them in `sources`; all are last updated by `version`."""
    if num_moved <= 0:
        return with_new_versions(fragment, version)
    updated = encode_versions(constant_versions(fragment.physical_rows, version))
    if fragment.created_at_versions is not None:
        return replace(fragment, last_updated_at_versions=updated)
    ids = _row_ids(fragment).to_array()
    created = np.full(fragment.physical_rows, version, dtype=np.uint64)
    created[:num_moved] = _created_at(ids[:num_moved], sources)
    return replace(fragment, last_updated_at_versions=updated, created_at_versions=encode_versions(versions_of(created)))


def _created_at(ids: npt.NDArray[np.uint64], sources: Iterable[Fragment]) -> npt.NDArray[np.uint64]:
    """The creating version of each id, looked up in the fragments the rows came from; 1 where nobody knows."""
    found = np.ones(len(ids), dtype=np.uint64)
    for source in sources:
        if not isinstance(source.row_ids, bytes) or not isinstance(source.created_at_versions, bytes):
            continue
        sequence = _row_ids(source)
        _check_length(source, "row ids", len(sequence))
        versions = _versions(source, source.created_at_versions)
        if not len(sequence):
            continue
        source_ids = sequence.to_array()
        order = np.argsort(source_ids, kind="stable")
        position = np.minimum(np.searchsorted(source_ids, ids, sorter=order), len(order) - 1)
        row = order[position]
        hit = source_ids[row] == ids
        found[hit] = versions.at(row[hit])
    return found


def _versions(fragment: Fragment, stored: bytes) -> VersionSequence:
    versions = decode_versions(stored)
    _check_length(fragment, "row versions", len(versions))
    return versions


def _check_length(fragment: Fragment, what: str, length: int) -> None:
    """What stands beside the rows is as long as they are, as readers require it."""
    if length != fragment.physical_rows:
        raise CorruptFileError(f"fragment {fragment.id} has {length} {what} for {fragment.physical_rows} rows")


def _row_ids(fragment: Fragment) -> RowIdSequence:
    assert isinstance(fragment.row_ids, bytes)
    return decode_row_ids(fragment.row_ids)
