"""Validate a version: check that the manifest is consistent with itself and with the files.

::

    fragment ids unique, files open and of the right length, deletions in range and as many as said
    stable row ids: one for each row, no two rows with the same, none beyond what was given out
    indices: on columns that exist, bitmaps of fragments that exist or existed, files there and of the size written down
    deep: every page decodes, to as many rows and such values as files and schema say; indices say what the rows say

Read every page of a version and report errors: compare the contents of files with their metadata and the manifest.

::

    page_damages(reader, schema)     Damage("price", "data/a.lance: column 'price', page 2: chunk 7 ends behind its page")
                                     Damage("id", "fragment 3 has no file with the column 'id', which is not nullable")

One damage for each column of each file at most. What is outside of data files is checked in `validate`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lance_core.commit.naming import INDICES
from lance_core.dataset.indexing.seal import check_indices
from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import CorruptFileError, FormatError, NotFoundError
from lance_core.file.check import Damage, damages
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import TOMBSTONE, Field, Schema
from lance_core.progress import CountProgress


def check_snapshot(snapshot: Snapshot, *, deep: bool | None = None, progress: CountProgress | None = None) -> int:
    """Check a version: the manifest, and every data and deletion file opened. Returns the number of data files opened.

    `deep`: True also reads every page and compares every index with its rows, False looks at the manifest only.
    Raises CorruptFileError for the first thing that is wrong, NotFoundError for a file that is missing.
    """
    opened = _check_files(snapshot, deep=deep is not False, progress=None if deep else progress)
    if deep:
        for message in page_and_index_damages(snapshot, progress=progress):
            raise CorruptFileError(
                message, uri=snapshot.uri, version=snapshot.version, cure="Restore the file, or an older version."
            )
    return opened


def find_damages(snapshot: Snapshot) -> Iterator[str]:
    """Everything that a deep check finds, one message each. Raises StoreError."""
    try:
        _check_files(snapshot, deep=True, progress=None)
    except (FormatError, NotFoundError) as error:
        yield str(error)
    told = set()
    for message in page_and_index_damages(snapshot):
        if message not in told:
            told.add(message)
            yield message


def page_and_index_damages(snapshot: Snapshot, *, progress: CountProgress | None = None) -> Iterator[str]:
    """What reading all pages finds, and comparing all indices with their rows when the pages are sound."""
    is_sound = True
    fragments = snapshot.manifest.fragments
    for done, fragment in enumerate(fragments, 1):
        try:
            reader = FragmentReader(snapshot, fragment)
        except FormatError as error:
            is_sound = False
            yield str(error)
            continue
        for damage in page_damages(reader, snapshot.manifest.schema):
            is_sound = False
            yield damage.message
        if progress is not None:
            progress(done, len(fragments))
    if is_sound:
        for name in dict.fromkeys(index.name for index in snapshot.manifest.indices):
            try:
                check_indices(snapshot, [name])
            except (FormatError, NotFoundError) as error:
                yield str(error)


def _check_files(snapshot: Snapshot, *, deep: bool, progress: CountProgress | None) -> int:
    manifest = snapshot.manifest
    ids = [fragment.id for fragment in manifest.fragments]
    if len(set(ids)) != len(ids):
        raise CorruptFileError(f"{snapshot.uri}: version {snapshot.version} has a duplicate fragment id", uri=snapshot.uri)
    if ids and manifest.max_fragment_id is not None and max(ids) > manifest.max_fragment_id:
        raise CorruptFileError(
            f"{snapshot.uri}: fragment {max(ids)} is above the largest fragment id {manifest.max_fragment_id}"
        )
    for fragment in manifest.fragments:
        _check_entry(snapshot, fragment)
    for index in manifest.indices:
        _check_index(snapshot, index, deep=deep)
    if not deep:
        return 0
    opened = 0
    live_ids: list[npt.NDArray[np.uint64]] = []
    for done, fragment in enumerate(manifest.fragments, 1):
        reader = FragmentReader(snapshot, fragment)
        opened += check_fragment(reader)
        if reader.row_ids is not None:
            live_ids.append(np.delete(np.asarray(reader.row_ids, np.uint64), reader.deleted))
        if progress is not None:
            progress(done, len(manifest.fragments))
    _check_row_ids(snapshot, live_ids)
    return opened


def _check_row_ids(snapshot: Snapshot, live_ids: list[npt.NDArray[np.uint64]]) -> None:
    if not live_ids:
        return
    ids = np.sort(np.concatenate(live_ids))
    twice = ids[1:][ids[1:] == ids[:-1]]
    if len(twice):
        raise CorruptFileError(f"{snapshot.uri}: two rows have the stable row id {twice[0]}", uri=snapshot.uri)
    if len(ids) and int(ids[-1]) >= snapshot.manifest.next_row_id:
        raise CorruptFileError(
            f"{snapshot.uri}: row id {ids[-1]} was never assigned, the next one is {snapshot.manifest.next_row_id}",
            uri=snapshot.uri,
        )


def _check_index(snapshot: Snapshot, index: IndexMetadata, *, deep: bool) -> None:
    manifest = snapshot.manifest
    where = f"{snapshot.uri}: index {index.name!r} ({index.uuid})"
    unknown = [number for number in index.fields if number not in manifest.schema.by_id]
    if unknown:
        raise CorruptFileError(f"{where} is on field {unknown[0]}, which the schema does not have", uri=snapshot.uri)
    beyond = max(index.fragment_bitmap or (), default=-1)
    if manifest.max_fragment_id is not None and beyond > manifest.max_fragment_id:
        raise CorruptFileError(
            f"{where} covers fragment {beyond}, but the largest fragment id is {manifest.max_fragment_id}"
        )
    if not deep:
        return
    store, _ = snapshot.store_of(index.base_id)
    for file in index.files:
        size = store.size(f"{INDICES}/{index.uuid}/{file.path}")
        if size != file.size_bytes:
            raise CorruptFileError(
                f"{where}: {file.path} has {size} bytes, expected {file.size_bytes} according to the manifest"
            )


def _check_entry(snapshot: Snapshot, fragment: Fragment) -> None:
    seen: set[int] = set()
    for file in fragment.files:
        live = [field for field in file.fields if field != TOMBSTONE]
        if len(set(live)) != len(live) or (file.version.is_legacy and live != sorted(live)):
            raise CorruptFileError(
                f"{snapshot.uri}: {file.path} of fragment {fragment.id} lists unsorted or duplicate field ids: {live[:20]}"
            )
        if seen & set(live):
            raise CorruptFileError(
                f"{snapshot.uri}: fragment {fragment.id} has the same field in two files", uri=snapshot.uri
            )
        seen.update(live)
    if snapshot.manifest.uses_stable_row_ids and fragment.row_ids is None:
        raise CorruptFileError(f"{snapshot.uri}: fragment {fragment.id} has no row ids", uri=snapshot.uri)


def check_fragment(reader: FragmentReader) -> int:
    """Open everything a fragment consists of. Returns the number of data files."""
    fragment = reader.fragment
    for file in fragment.files:
        opened = reader.open(file)
        if opened.num_rows != fragment.physical_rows:
            raise CorruptFileError(
                f"{reader.snapshot.uri}: {file.path} has {opened.num_rows} rows, "
                f"expected {fragment.physical_rows} for fragment {fragment.id} according to the manifest"
            )
    _ = reader.deleted
    if reader.row_ids is not None and len(reader.row_ids) != fragment.physical_rows:
        raise CorruptFileError(f"{reader.snapshot.uri}: fragment {fragment.id} has {len(reader.row_ids)} row ids")
    return len(fragment.files)


def page_damages(reader: FragmentReader, schema: Schema) -> Iterator[Damage]:
    """What is wrong with the data files of a fragment, as the table's `schema` has their columns. Raises StoreError."""
    fragment = reader.fragment
    held: set[int] = set()
    try:
        sources = reader.sources(schema)
    except (FormatError, NotFoundError) as error:
        yield Damage("", str(error))
        return
    for file, part in sources:
        held |= {item.id for item in part.fields}
        try:
            opened = reader.open(file)
        except (FormatError, NotFoundError) as error:
            yield Damage("", str(error))
            continue
        yield from damages(opened, part, num_rows=fragment.physical_rows)
    for field in schema.top_level:
        lost = _required(schema, field, held)
        if lost is not None and fragment.physical_rows:
            yield Damage(field.name, f"fragment {fragment.id} has no file with the non-nullable column {lost!r}")


def _required(schema: Schema, field: Field, held: set[int]) -> str | None:
    """A field at or below `field` that no file has and that cannot be null, as no struct around it can."""
    if field.nullable or field.id in held:
        return None
    children = schema.children(field.id)
    if not children:
        return field.name
    # A parent is stored with any of its fields.
    return next((found for child in children if (found := _required(schema, child, held)) is not None), None)
