"""May an index segment be believed? One with checksums: yes, its bytes are those that were written. Another is compared
with the rows it covers when it is first asked, if it is small; then it is held to the bytes that were compared.

::

    believe(snapshot, index, coverage, opened)      True: what it finds is right, and nothing is missing
                                                    False: too large to compare here; test again what it finds
    CorruptFileError                                it says something else than the rows do

`compare` does it at any size, for `validate` and for sealing. (ADR 034.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Protocol

import numpy as np
import pyarrow as pa

from lance_core.dataset.build_index import column_of, folder_of, training_batches
from lance_core.dataset.fragments import reader_of
from lance_core.dataset.plan import FragmentTask, Picked, plan_scan
from lance_core.dataset.projection import plan_projection
from lance_core.dataset.reuse import behind
from lance_core.dataset.rows import is_living
from lance_core.dataset.scan import selected_offsets
from lance_core.dataset.snapshot import Snapshot
from lance_core.errors import CorruptFileError, LanceError
from lance_core.expr import Expr
from lance_core.format.index import IndexMetadata
from lance_core.index.base import IndexFolder
from lance_core.io.cache import shared_cache
from lance_core.rowids.bitmap import bitmap_array
from lance_core.rowids.selection import AddressSet
from lance_core.table.coverage import is_address_based

UNREADABLE = (LanceError, OSError, pa.ArrowException)
"""What a damaged segment may raise: Arrow's kernels refuse what its files should never hold, such as a null page number."""
MOST_ROWS = 1 << 18
MOST_BYTES = 16 << 20
_TEXT_ROWS = 1 << 15
_VECTOR_BYTES = 4 << 20
_NOTE_BYTES = 256
_ALL: frozenset[int] = frozenset({-1})
_TESTED_ROWS = 1 << 16


class Comparable(Protocol):
    """An open segment."""

    def agree_with(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Raises CorruptFileError when it does not say what the rows do."""


def hold_small(folder: IndexFolder) -> None:
    """Hold a small folder without checksums to the bytes its files have now."""
    if 0 < sum(folder.sizes.values()) <= MOST_BYTES and not folder.is_sealed:
        folder.hold()


def believe(
    snapshot: Snapshot, index: IndexMetadata, coverage: frozenset[int], opened: Comparable, *, at_any_size: bool = False
) -> bool:
    """Whether what the segment says of some fragments is known to be so. Raises CorruptFileError when it is not so."""
    cache, folder = shared_cache(), folder_of(snapshot, index)
    key = (*folder.key, "agrees")
    known: tuple[Comparable, frozenset[int]] | None = cache.get(key)
    done = known[1] if known is not None and known[0] is opened else frozenset[int]()
    if done is _ALL or coverage <= done:
        return True
    if folder.is_sealed:
        cache.put(key, (opened, _ALL), _NOTE_BYTES)
        return True
    if behind(snapshot, index) or not (at_any_size or _is_small(snapshot, index, coverage)):
        return False
    compare(snapshot, index, coverage, opened)
    cache.put(key, (opened, coverage | done), _NOTE_BYTES)
    return True


def left_out(snapshot: Snapshot, index: IndexMetadata, error: Exception, *, strict: bool) -> None:
    """Warn that a segment cannot be searched; CorruptFileError when `strict`. The warning is the caller's caller's."""
    if strict:
        raise CorruptFileError(
            f"index {index.name!r} ({index.uuid}) of {snapshot.uri} cannot be searched: {error}",
            uri=snapshot.uri,
            cure="Build it anew, drop it, or leave strict_index out.",
        ) from error
    warnings.warn(
        f"index {index.name!r} ({index.uuid}) cannot be searched and is left out: {error}", RuntimeWarning, stacklevel=3
    )


def compare(snapshot: Snapshot, index: IndexMetadata, coverage: frozenset[int], opened: Comparable) -> None:
    """Compare a segment with all living rows it covers. Raises CorruptFileError."""
    manifest = snapshot.manifest
    fragments = [fragment for fragment in manifest.fragments if fragment.id in coverage]
    by_id = manifest.uses_stable_row_ids and not is_address_based(index)
    column = column_of(manifest.schema, index.fields[0])
    try:
        opened.agree_with(training_batches(snapshot, column, fragments, "_rowid" if by_id else "_rowaddr"))
    except (ValueError, LookupError, ArithmeticError, TypeError, pa.ArrowException) as error:
        # Whatever a damaged file brings about in the middle of a comparison, it is damage.
        if isinstance(error, CorruptFileError):
            raise
        raise CorruptFileError(f"it cannot be compared with its column: {error}", cure="Build the index anew.") from error


def confirmed(snapshot: Snapshot, part: Expr, rows: AddressSet) -> bool:
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
            raise CorruptFileError("it finds rows that do not match", cure="Build the index anew.")
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
