"""Verify index segments. One with checksums is trusted: its bytes are those that were written. Any other is checked for
its structure, and the rows that it finds are tested again, unless the user asks to compare it with all rows it covers.

::

    may_open(snapshot,  index, coverage, trust)             False: comparing it would cost more than this scan spares
    ensure_verified(snapshot, index, coverage, opened, trust)   True: what it finds is right, and nothing is missing
                                                            False: only its structure is; test again what it finds
    CorruptFileError                                        it says something else than the rows do

`compare` does it without asking, for `validate` and for sealing. (ADR 042.)
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.dataset.indexing.folder import folder_of, training_batches
from lance_core.dataset.indexing.fragment_reuse import behind, moves_of
from lance_core.dataset.scan.index_policy import DEFAULT_POLICY, IndexPolicy
from lance_core.dataset.scan.plan import FragmentTask, Picked, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import selected_offsets
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.row_offsets import is_living
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import (
    CommitError,
    CorruptFileError,
    FormatError,
    InputError,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedFeatureError,
)
from lance_core.expr import Expr
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import column_of
from lance_core.index.base import ID, IndexFolder
from lance_core.index.checksums import CHUNK
from lance_core.io.cache import shared_cache
from lance_core.rowids.bitmap import bitmap_array
from lance_core.rowids.selection import AddressSet
from lance_core.shortage import ARROW_ERRORS
from lance_core.table.coverage import is_address_based

T = TypeVar("T")
Progress = Callable[[int, int], None]
UNREADABLE = (FormatError, NotFoundError, StoreError, CommitError, InputError, OSError, *ARROW_ERRORS)
"""What a damaged segment may raise: Arrow's kernels refuse what its files should never hold, such as a null page number. A
shortage of memory is not among them: it says nothing about the segment."""
MOST_ROWS = 1 << 18
MOST_BYTES = 16 << 20
_TEXT_ROWS = 1 << 15
_VECTOR_BYTES = 4 << 20
_NOTE_BYTES, _BYTES_A_SUM = 512, CHUNK // 36
_TESTED_ROWS = 1 << 16
_LEAST_PASS, _MOST_PASS = 256 << 20, 1 << 30
_SLOW_SECONDS = 5.0
_LOG = logging.getLogger("lance_core.index")


class Comparable(Protocol):
    """An open segment."""

    @property
    def streams(self) -> bool:
        """Whether all rows come in one call; see `OpenIndex`."""

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Raises CorruptFileError when it does not match the rows (value, id); see `OpenIndex`."""


@dataclass(frozen=True)
class _Known:
    """The folder a segment is opened from, the fragments for which it was found to be right, or what is wrong in it."""

    folder: IndexFolder
    agreed: frozenset[int] = frozenset()
    wrong: str = ""

    def put(self) -> None:
        """Cached for this process."""
        shared_cache().put((*self.folder.key, "known"), self, _NOTE_BYTES + sum(self.folder.sizes.values()) // _BYTES_A_SUM)


def _known(folder: IndexFolder) -> _Known:
    known: _Known | None = shared_cache().get((*folder.key, "known"))
    return known or _Known(folder)


def pinned_folder(snapshot: Snapshot, index: IndexMetadata, trust: IndexPolicy = DEFAULT_POLICY) -> IndexFolder:
    """The folder to open a segment from. One without checksums is held to the bytes that its files have now, so that what
    is read later, whenever that is, are the bytes that were compared. Raises NotFoundError.
    """
    found = folder_of(snapshot, index)
    folder = _known(found).folder
    if folder is not found and (folder.is_sealed or folder.is_pinned):
        return folder
    if not folder.is_sealed and trust.unsealed != "use":
        folder = found
        folder.hold()
    _Known(folder).put()
    return folder


def drop_verification(folder: IndexFolder) -> None:
    """What is known of a segment, because its checksums were written just now."""
    shared_cache().discard((*folder.key, "known"))


def opened_from(folder: IndexFolder, what: tuple[object, ...], make: Callable[[], tuple[T, int]]) -> T:
    """What `make` opens from this very folder, shared by all snapshots of the process; with its size in the cache."""
    cache, key = shared_cache(), (*folder.key, *what)
    found: tuple[IndexFolder, T] | None = cache.get(key)
    if found is not None and found[0] is folder:
        return found[1]
    opened, size = make()
    cache.put(key, (folder, opened), size)
    return opened


def may_open(snapshot: Snapshot, index: IndexMetadata, coverage: frozenset[int], trust: IndexPolicy) -> bool:
    """Whether a segment may be opened: not when the user skips large ones that were never compared."""
    if trust.unsealed != "skip" or _is_small(snapshot, index, coverage):
        return True
    known = _known(folder_of(snapshot, index))
    if coverage <= known.agreed or known.folder.is_sealed:
        return True
    _LOG.info("index %s (%s) is not used: it has no checksums and was not compared with its rows", index.name, index.uuid)
    return False


def ensure_verified(
    snapshot: Snapshot, index: IndexMetadata, coverage: frozenset[int], opened: Comparable, trust: IndexPolicy
) -> bool:
    """Whether what the segment says of some fragments is known to be so. Raises CorruptFileError when it is not so."""
    folder = pinned_folder(snapshot, index, trust)
    known = _known(folder)
    if known.wrong:
        raise CorruptFileError(known.wrong)
    if coverage <= known.agreed or folder.is_sealed:
        return True
    if trust.unsealed == "use":
        return False
    is_small = _is_small(snapshot, index, coverage)
    began = time.monotonic()
    try:
        compare(snapshot, index, coverage, opened)
    except CorruptFileError as error:
        _Known(folder, known.agreed, str(error)).put()
        raise
    _Known(folder, coverage | known.agreed).put()
    if not is_small:
        _tell(index, time.monotonic() - began)
    return True


def _tell(index: IndexMetadata, seconds: float) -> None:
    level = logging.WARNING if seconds > _SLOW_SECONDS else logging.INFO
    told = "index %s (%s) has no checksums and was compared with its rows in %.1f s; seal_indices() avoids that"
    _LOG.log(level, told, index.name, index.uuid, seconds)


def warn_skipped(snapshot: Snapshot, index: IndexMetadata, error: Exception, trust: IndexPolicy) -> None:
    """Warn that a segment cannot be searched; when strict CorruptFileError, or the error of the store that did not answer.

    The warning is the caller's caller's. A layout that is not known here is no damage: it is only logged.
    """
    if trust.strict and isinstance(error, StoreError):
        raise error
    if trust.strict:
        raise CorruptFileError(
            f"index {index.name!r} ({index.uuid}) of {snapshot.uri} cannot be searched: {error}",
            uri=snapshot.uri,
            cure="Rebuild or drop the index, or omit strict_index.",
        ) from error
    if isinstance(error, UnsupportedFeatureError):
        _LOG.info("index %s (%s) is not used: %s", index.name, index.uuid, error)
        return
    warnings.warn(
        f"index {index.name!r} ({index.uuid}) cannot be searched and is not used: {error}", RuntimeWarning, stacklevel=3
    )


def compare(
    snapshot: Snapshot,
    index: IndexMetadata,
    coverage: frozenset[int],
    opened: Comparable,
    *,
    progress: Progress = lambda done, total: None,
) -> None:
    """Compare a segment with all live rows it covers, a bounded part of them at a time. Raises CorruptFileError.

    `progress(rows read, rows to read)` is called now and then.
    """
    total = sum(fragment.num_rows for fragment in snapshot.manifest.fragments if fragment.id in coverage)
    most = min(max(sum(file.size_bytes for file in index.files) // 4, _LEAST_PASS), _MOST_PASS)
    try:
        batches = _told(_rows_of(snapshot, index, coverage), total, progress)
        for part in [batches] if opened.streams else _parts(batches, most):
            opened.verify_rows(part)
    except (ValueError, LookupError, ArithmeticError, TypeError, *ARROW_ERRORS) as error:
        # Whatever a damaged file brings about in the middle of a comparison, it is damage.
        if isinstance(error, LanceError) and not isinstance(error, InputError):
            raise
        raise CorruptFileError(f"it cannot be compared with its column: {error}", cure="Rebuild the index.") from error


def _rows_of(snapshot: Snapshot, index: IndexMetadata, coverage: frozenset[int]) -> Iterator[pa.RecordBatch]:
    """(value, id) of the live rows a segment covers; their ids as they were when it was built."""
    manifest = snapshot.manifest
    fragments = [fragment for fragment in manifest.fragments if fragment.id in coverage]
    by_id = manifest.uses_stable_row_ids and not is_address_based(index)
    column = column_of(manifest.schema, index.fields[0])
    batches = training_batches(snapshot, column, fragments, "_rowid" if by_id else "_rowaddr")
    moves = moves_of(snapshot) if not by_id and behind(snapshot, index) else None
    if moves is None:
        yield from batches
        return
    for batch in batches:
        before = moves.before(numpy_of(batch.column(ID)), index.dataset_version)
        yield batch.set_column(1, ID, arrow_of(before, pa.uint64()))


def _told(batches: Iterator[pa.RecordBatch], total: int, progress: Progress) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in batches:
        yield batch
        done += batch.num_rows
        progress(done, total)


def _parts(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[list[pa.RecordBatch]]:
    """Batches of together about `most` bytes; one part, an empty one, when there are none."""
    part: list[pa.RecordBatch] = []
    size, is_first = 0, True
    for batch in batches:
        part.append(batch)
        size += batch.nbytes
        if size >= most:
            yield part
            part, size, is_first = [], 0, False
    if part or is_first:
        yield part


def recheck_rows(snapshot: Snapshot, part: Expr, rows: AddressSet) -> bool:
    """Test again the rows that a segment finds exactly. False: they are too many, test them where they are read.

    CorruptFileError: one does not pass, so that others may be missing.
    """
    if any(offsets is None for offsets in rows.fragments.values()):
        return False
    if sum(len(offsets) for offsets in rows.fragments.values() if offsets is not None) > _TESTED_ROWS:
        return False
    schema = snapshot.manifest.schema
    plan = plan_scan(schema, (), plan_projection(schema, ["_rowaddr"]), filter=part)
    for fragment in snapshot.manifest.fragments:
        picked = rows.fragments.get(fragment.id)
        if picked is None:
            continue
        offsets = bitmap_array(picked).astype(np.int64)
        task = FragmentTask(fragment, 0, fragment.num_rows, Picked(offsets, plan))
        living = int(is_living(reader_of(snapshot, fragment).deleted, offsets).sum())
        if len(selected_offsets(snapshot, plan, task)) != living:
            raise CorruptFileError("it returned rows that do not match the query", cure="Rebuild the index.")
    return True


def _is_small(snapshot: Snapshot, index: IndexMetadata, coverage: frozenset[int]) -> bool:
    manifest = snapshot.manifest
    rows = sum(fragment.num_rows for fragment in manifest.fragments if fragment.id in coverage)
    size = sum(file.size_bytes for file in index.files)
    if not index.files or rows > MOST_ROWS or size > MOST_BYTES:
        return False
    kind = manifest.schema.by_id[index.fields[0]].logical_type.split(":")
    if kind[0] == "fixed_size_list" and kind[-1].isdigit():
        return 4 * int(kind[-1]) * rows <= _VECTOR_BYTES
    has_width = not any(name in kind[0] for name in ("string", "binary", "list", "json"))
    return rows <= (MOST_ROWS if has_width else _TEXT_ROWS)
