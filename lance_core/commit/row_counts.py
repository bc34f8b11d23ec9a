"""Row counts of versions that old releases wrote: taken from the files, because their manifests have none, or wrong ones.

::

    written by 0.7     physical_rows absent                    counted in the footer of the fragment's first data file
    written by 0.8.0   physical_rows there, sometimes wrong    counted again: such a manifest does not say who wrote it
    since 0.8.15       the manifest says it                    nothing to do

The same holds for the number of rows in a deletion file. Whatever is committed on top of such a version carries the counts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from lance_core.commit import naming
from lance_core.commit.deletion_files import decode_deletions, deletion_file_path
from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.format.version import FileVersion
from lance_core.io.cache import shared_cache
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.wire.file import decode_file_descriptor, decode_legacy_metadata

_LEGACY_FOOTER = struct.Struct("<QHH4s")
_FOOTER = struct.Struct("<QQQIIHH4s")
_ENTRY = struct.Struct("<QQ")
_NOTE_BYTES = 256


def with_row_counts(store: Store, manifest: Manifest) -> Manifest:
    """The manifest with the number of rows of each fragment: the same one unless an old release wrote it.

    Raises NotFoundError for a data file that is missing, CorruptFileError for one that is damaged.
    """
    if not len(manifest.fragments) or not _may_lack_counts(manifest):
        return manifest
    is_trusted = manifest.writer_version is not None
    wanted = [item for item in manifest.fragments if not is_trusted or _lacks_counts(item)]
    changed = each(store, wanted, _counted)
    if not changed:
        return manifest
    fragments = FragmentList.of(manifest.fragments).edited(replaced={item.id: item for item in changed})
    return replace(manifest, fragments=fragments)


def _may_lack_counts(manifest: Manifest) -> bool:
    """Only tables of legacy files are so old. Releases of the official library from 0.9 on fill in what is missing."""
    writer = manifest.writer_version
    if writer is None:
        return True
    is_new = writer.library == "lance" and not writer.version.startswith("0.8.")
    return manifest.data_storage_version == FileVersion.V0_1.text and not is_new


def _lacks_counts(fragment: Fragment) -> bool:
    deletions = fragment.deletion_file
    return fragment.physical_rows == 0 or (deletions is not None and deletions.num_deleted_rows == 0)


def _counted(store: Store, fragment: Fragment) -> Fragment:
    if not fragment.files or fragment.files[0].base_id is not None:
        return fragment
    rows = _noted(store, naming.data_path(fragment.files[0].path), _rows_of_file)
    file = fragment.deletion_file
    if file is None or file.base_id is not None:
        return replace(fragment, physical_rows=rows)
    gone = _noted(store, deletion_file_path(fragment.id, file), partial(_rows_of_deletions, file_type=file.file_type))
    return replace(fragment, physical_rows=rows, deletion_file=replace(file, num_deleted_rows=gone))


def _noted(store: Store, path: str, count: Callable[[Store, str], int]) -> int:
    return shared_cache().get_or_make(("rows of", store.uri, path), lambda: (count(store, path), _NOTE_BYTES))


def _rows_of_deletions(store: Store, path: str, *, file_type: str) -> int:
    return len(decode_deletions(store.get(path), file_type=file_type, where=f"{store.uri}: {path}"))


def _rows_of_file(store: Store, path: str) -> int:
    size = store.size(path)
    tail = bytes(store.get_ranges(path, [ByteRange(max(0, size - _FOOTER.size), size)])[0])
    if len(tail) < _LEGACY_FOOTER.size or tail[-4:] != b"LANC":
        raise CorruptFileError(f"{store.uri}: {path} does not end with the footer of a Lance file", uri=store.uri)
    position, major, minor, _ = _LEGACY_FOOTER.unpack(tail[-_LEGACY_FOOTER.size :])
    if (major, minor) >= (0, 3) and len(tail) == _FOOTER.size:
        _, _, buffers, _, _, _, _, _ = _FOOTER.unpack(tail)
        first, length = _ENTRY.unpack(_bytes(store, path, buffers, buffers + _ENTRY.size, size))
        return decode_file_descriptor(_bytes(store, path, first, first + length, size)).num_rows
    data = _bytes(store, path, position, size - _LEGACY_FOOTER.size, size)
    (length,) = struct.unpack_from("<I", data) if len(data) >= 4 else (0,)
    offsets = decode_legacy_metadata(data[4 : 4 + length]).batch_offsets
    return offsets[-1] if offsets else 0


def _bytes(store: Store, path: str, start: int, end: int, size: int) -> bytes:
    if not 0 <= start <= end <= size:
        raise CorruptFileError(
            f"{store.uri}: {path}: the footer points at bytes {start} to {end}, but the file has {size}", uri=store.uri
        )
    return bytes(store.get_ranges(path, [ByteRange(start, end)])[0])
