"""Compare indices with the rows they cover, and seal those without checksums.

::

    check_indices(snapshot)      every segment says what its column says, or CorruptFileError
    seal_indices(snapshot)       the same, then `_indices/{uuid}/checksums` is written: later damage is found at any size

Sealing makes no new version: the file is beside the others, and counts because it is there. (ADR 034.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from lance_core.arrow.to_arrow import value_type_of
from lance_core.dataset.indexing.folder import folder_of, segments_named
from lance_core.dataset.indexing.old_vector_details import with_details
from lance_core.dataset.indexing.scalar_search import usable_segments
from lance_core.dataset.indexing.vector_build import VECTOR_DETAILS
from lance_core.dataset.indexing.vector_search import is_usable
from lance_core.dataset.indexing.verify import Comparable, Progress, compare, drop_verification
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import CommitError, CorruptFileError, FormatError, InputError, NotFoundError, UnsupportedFeatureError
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import column_of
from lance_core.index.base import IndexFolder
from lance_core.index.vector.searcher import OpenVectorIndex


def check_indices(
    snapshot: Snapshot,
    names: Sequence[str] | None = None,
    *,
    without: Collection[str] = (),
    progress: Progress = lambda done, total: None,
) -> int:
    """Compare segments with the rows they cover; all of them are read. Returns how many there were.

    Left out are segments `without` names by uuid, and indices of kinds and layouts this release does not search.
    `progress(rows read, rows to read)` starts again with each segment.
    Raises CorruptFileError, naming the first that is wrong; InputError for a name no index has.
    """
    chosen = [(index, coverage) for index, coverage in _segments(snapshot, names) if index.uuid not in without]
    compared = 0
    for index, coverage in chosen:
        with suppress(UnsupportedFeatureError):
            _compared(snapshot, index, coverage, progress)
            compared += 1
    return compared


def seal_indices(
    snapshot: Snapshot, names: Sequence[str] | None = None, *, progress: Progress = lambda done, total: None
) -> list[str]:
    """Write checksums for segments that have none, each after it was compared with its rows. Returns their uuids.

    Segments that are in another table, or have a layout that is not read, are left out. Raises as `check_indices`; what was
    sealed before stays so.
    """
    sealed = []
    for index, coverage in _segments(snapshot, names):
        if index.base_id is None and not folder_of(snapshot, index).is_sealed:
            try:
                folder = _compared(snapshot, index, coverage, progress)
            except UnsupportedFeatureError:
                continue
            folder.write_pinned_checksums()
            drop_verification(folder)
            sealed.append(index.uuid)
    return sealed


def _segments(snapshot: Snapshot, names: Sequence[str] | None) -> Iterator[tuple[IndexMetadata, frozenset[int]]]:
    for name in names or ():
        segments_named(snapshot, name)
    usable = {segment.index.uuid for found in usable_segments(snapshot).values() for segment in found}
    live = frozenset(FragmentList.of(snapshot.manifest.fragments).ids)
    for index in snapshot.manifest.indices:
        coverage = live & (index.fragment_bitmap or frozenset())
        wanted = (names is None or index.name in names) and bool(coverage)
        if wanted and (index.uuid in usable or is_usable(snapshot, index)):
            yield index, coverage


def _compared(snapshot: Snapshot, index: IndexMetadata, coverage: frozenset[int], progress: Progress) -> IndexFolder:
    """The folder, held to the bytes that were compared."""
    folder = folder_of(snapshot, index)
    try:
        if not folder.is_sealed:
            folder.hold()
        compare(snapshot, index, coverage, _open(snapshot, index, folder), progress=progress)
    except UnsupportedFeatureError:
        raise
    except (FormatError, NotFoundError, InputError, CommitError) as error:  # a store or a memory says nothing about it
        cure = error.cure or "Rebuild the index."
        told = str(error).removesuffix(cure).rstrip()
        raise CorruptFileError(
            f"index {index.name!r} ({index.uuid}) of {snapshot.uri}: {told}", uri=snapshot.uri, cure=cure
        ) from error
    return folder


def _open(snapshot: Snapshot, index: IndexMetadata, folder: IndexFolder) -> Comparable:
    details = with_details(snapshot, index).details
    if details is not None and details.kind == VECTOR_DETAILS:
        return OpenVectorIndex(folder)
    schema = snapshot.manifest.schema
    column = column_of(schema, index.fields[0])
    segments = usable_segments(snapshot)[column]
    kind = next(segment.kind for segment in segments if segment.index.uuid == index.uuid)
    return kind.open(folder, value_type_of(schema, schema.by_id[index.fields[0]]), tuple(column.split(".")))
