"""Finding and opening versions: which manifests a table has, and what is in one.

::

    _versions/18446744073709551613.manifest      version 2      latest_version -> 2
    _versions/18446744073709551614.manifest      version 1      list_versions  -> 1, 2
    _versions/latest_version_hint.json           advisory: written after a commit where names come in no order

The listing decides what the latest version is: hints go stale, and a listing of one folder is one request.

Manifests of old releases have no row counts, or wrong ones. Such are taken from the files (the rows of deletion files, too),
and whatever is committed on top of such a version carries them::

    written by 0.7     physical_rows absent                    counted in the footer of the fragment's first data file
    written by 0.8.0   physical_rows there, sometimes wrong    counted again: such a manifest does not say who wrote it
    since 0.8.15       the manifest says it                    nothing to do
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from lance_core.commit import naming
from lance_core.commit.deletion_files import decode_deletions, deletion_file_path
from lance_core.errors import AlreadyExistsError, CorruptFileError, FormatError, LanceError, NotFoundError
from lance_core.fetch import ByteRange
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.format.version import FileVersion
from lance_core.io.abilities import ListsInOrder
from lance_core.io.cache import shared_cache
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.table.features import check_readable
from lance_core.wire.file import decode_file_descriptor, decode_legacy_metadata
from lance_core.wire.manifest_file import decode_manifest_file


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """One manifest of a table: version number, path, size in bytes, seconds since the epoch when it was written."""

    version: int
    path: str
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class OpenVersion:
    """A manifest as read: with its path, its size in bytes, and its inline transaction (serialized) if it has one.

    `tag` stands for its content where the listing that named it gives one: the same tag in a later listing, the same bytes.
    Elsewhere `data` is the content of a file that is not large, so that the same bytes, read again, are not decoded again.
    """

    manifest: Manifest
    path: str
    size: int
    transaction: bytes | None
    tag: str | None = None
    data: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def scheme(self) -> naming.NamingScheme:
        """How its file is named."""
        parsed = naming.parse_manifest_name(self.path.rsplit("/", 1)[-1])
        return naming.NamingScheme.V2 if parsed is None else parsed[1]


@dataclass(frozen=True, slots=True)
class Listing:
    """The attached versions as one listing had them: the path of each number."""

    paths: Mapping[int, str]

    @property
    def numbers(self) -> Sequence[int]:
        """Ascending."""
        return sorted(self.paths)

    def open_newest(self, store: Store) -> OpenVersion | None:
        """The newest version that it has, or a newer one where that was pruned since; None when there is no table."""
        if not self.paths:
            return open_newest(store)
        version = max(self.paths)
        try:
            return open_path(store, version, self.paths[version])
        except NotFoundError:
            return _open_latest(store)


def list_once(store: Store) -> Listing:
    """One listing, for a caller that asks several things of it."""
    return Listing(_paths(store.list_names(f"{naming.VERSIONS}/")))


def latest_version(store: Store) -> int:
    """The number of the newest version. NotFoundError when the store holds no Lance table."""
    return _latest(store).version


def find_latest_version(store: Store) -> int | None:
    """The number of the newest version, None when there is no table."""
    found = _find_latest(store)
    return None if found is None else found.version


def list_versions(store: Store) -> Sequence[VersionEntry]:
    """Every attached version, ascending. Empty when there is no table."""
    entries = []
    for entry in store.list(f"{naming.VERSIONS}/"):
        parsed = naming.parse_manifest_name(entry.path[len(naming.VERSIONS) + 1 :])
        if parsed is not None:
            entries.append(VersionEntry(parsed[0], entry.path, entry.size, entry.modified))
    return sorted(entries, key=lambda entry: entry.version)


def version_numbers(store: Store) -> Sequence[int]:
    """The numbers of all attached versions, ascending."""
    return list_once(store).numbers


def manifest_paths(store: Store) -> list[tuple[int, str]]:
    """Number and path of every attached version, ascending."""
    return sorted(list_once(store).paths.items())


def load_manifest(store: Store, version: int | None = None) -> Manifest:
    """The manifest of a version, of the newest one when `version` is None, checked to be readable.

    Raises NotFoundError (no table, no such version), CorruptFileError, UnsupportedVersionError, UnsupportedFeatureError.
    """
    return open_version(store, version).manifest


def open_version(store: Store, version: int | None = None) -> OpenVersion:
    """Like `load_manifest`, with the file's path and size and the inline transaction."""
    if version is None:
        return _open_latest(store)
    if version & naming.DETACHED_BIT:
        return open_path(store, version, naming.manifest_path(version))
    for scheme in reversed(naming.NamingScheme):  # V2 first: it is what every table of the last years has
        with suppress(NotFoundError):
            return open_path(store, version, naming.manifest_path(version, scheme))
    known = version_numbers(store)
    if not known:
        raise not_a_table(store)
    raise NotFoundError(
        f"{store.uri} has no version {version}: it has {len(known)} versions from {known[0]} to {known[-1]}",
        uri=store.uri,
        version=version,
        cure="Old versions may have been cleaned up.",
    )


def open_or_none(store: Store, version: int) -> OpenVersion | None:
    try:
        return open_version(store, version)
    except NotFoundError:
        return None


OpenAt = Callable[[Store, int], OpenVersion | None]


class KnownVersions:
    """`open_or_none` that remembers: for one commit, many of whose members ask for the same versions."""

    def __init__(self) -> None:
        self._known: dict[int, OpenVersion] = {}

    def __call__(self, store: Store, version: int) -> OpenVersion | None:
        found = self._known.get(version) or open_or_none(store, version)
        if found is not None:
            self._known[version] = found
        return found


def exists(store: Store, path: str) -> bool:
    try:
        store.size(path)
    except NotFoundError:
        return False
    return True


def open_newest(store: Store, *, known: OpenVersion | None = None) -> OpenVersion | None:
    """The newest version, None when there is no table: one listing, and one read unless a tag shows that it is `known`."""
    found = _find_latest(store)
    if found is None:
        return None
    if known is not None and found.tag is not None and (found.tag, found.path) == (known.tag, known.path):
        return known  # the number alone is no proof, because a table may have been created again
    try:
        return _open(store, found, known=known)
    except NotFoundError:
        return _open_latest(store)


def write_hint(store: Store, version: int) -> None:
    """Leave the hint file that other libraries use where names come in no order. Best effort: the commit has happened."""
    if isinstance(store, ListsInOrder) and store.lists_in_order:
        return  # the first name of a listing is the newest version; the official library writes no hint there, either
    with suppress(LanceError):
        store.put(naming.HINT_PATH, json.dumps({"version": version}, separators=(",", ":")).encode(), durable=False)


def not_a_table(store: Store) -> NotFoundError:
    return NotFoundError(
        f"{store.uri} is not a Lance table: there is no manifest in {naming.VERSIONS}/",
        uri=store.uri,
        cure="Check the uri, or create the table by writing to it.",
    )


@dataclass(frozen=True, slots=True)
class _Latest:
    """What a listing says of the newest version."""

    version: int
    path: str
    tag: str | None = None


_MOST_KEPT = 1 << 20
_V2_LENGTH = len(naming.manifest_name(1))
_LEGACY_FOOTER = struct.Struct("<QHH4s")
_FOOTER = struct.Struct("<QQQIIHH4s")
_ENTRY = struct.Struct("<QQ")
_NOTE_BYTES = 256


def _paths(names: Iterable[str]) -> dict[int, str]:
    parsed = ((naming.parse_manifest_name(name), name) for name in names)
    return {found[0]: f"{naming.VERSIONS}/{name}" for found, name in parsed if found is not None}


def _find_latest(store: Store) -> _Latest | None:
    names, tags = _names_of_newest(store)
    # V2 names count down: the smallest is the newest. Only it is parsed, because a table may have thousands.
    others = [name for name in names if len(name) != _V2_LENGTH]
    found = _paths([min([name for name in names if len(name) == _V2_LENGTH] if others else names, default="")])
    found = found | _paths(others) if found else _paths(names)
    if not found:
        return None
    version, path = max(found.items())
    return _Latest(version, path, tags.get(path))


def _names_of_newest(store: Store) -> tuple[Sequence[str], Mapping[str, str | None]]:
    """Names among which the newest version is, and tags by path: of a long history on a store that sorts names, two pages.

    V2 names count down from that of version 0, so the first page has the newest. V1 names sort before or behind them.
    """
    folder = f"{naming.VERSIONS}/"
    if not isinstance(store, ListsInOrder):
        return store.list_names(folder), {}
    entries, is_all = store.first_entries(folder)
    tags: dict[str, str | None] = {entry.path: entry.tag for entry in entries}
    names = [path[len(folder) :] for path in tags]
    if is_all:
        return names, tags
    if all(len(name) == _V2_LENGTH and name[0] == "1" for name in names):
        return [*store.names_after(folder, naming.manifest_name(0)), *names], tags
    return store.list_names(folder), {}


def _latest(store: Store) -> _Latest:
    found = _find_latest(store)
    if found is None:
        raise not_a_table(store)
    return found


def _open_latest(store: Store) -> OpenVersion:
    try:
        return _open(store, _latest(store))
    except NotFoundError:
        # Cleaned up or dropped between the listing and the read: look once more.
        return _open(store, _latest(store))


def _open(store: Store, found: _Latest, *, known: OpenVersion | None = None) -> OpenVersion:
    opened = open_path(store, found.version, found.path, known=known)
    return opened if opened.tag == found.tag else replace(opened, tag=found.tag)


def open_path(store: Store, version: int, path: str, *, known: OpenVersion | None = None) -> OpenVersion:
    """Open the manifest at a path, which must be that of `version`; it is not decoded if these are the bytes of `known`."""
    data = bytes(store.get(path))
    if known is not None and known.path == path and known.data == data:
        return known
    try:
        found = decode_manifest_file(data)
    except FormatError as error:
        raise type(error)(f"{store.uri}: {path}: {error}", uri=store.uri, version=version) from error
    if found.manifest.version != version:
        raise CorruptFileError(
            f"{store.uri}: {path} holds the manifest of version {found.manifest.version}", uri=store.uri, version=version
        )
    check_readable(found.manifest, uri=store.uri)
    manifest = _with_row_counts(store, found.manifest)
    kept = data if len(data) <= _MOST_KEPT else None
    return OpenVersion(manifest=manifest, path=path, size=len(data), transaction=found.transaction, data=kept)


def migrate_manifest_names(store: Store) -> int:
    """Give every manifest its V2 name, whose numbers descend, so that a listing begins with the newest; how many got one.

    The newest goes first: from then on writers take the new names. No writer may be at work: two could win one version.
    Killed at any point, it is finished by the next call.
    """
    moved = 0
    for entry in reversed(list_versions(store)):
        target = naming.manifest_path(entry.version, naming.NamingScheme.V2)
        if entry.path == target:
            continue
        with suppress(AlreadyExistsError):  # copied by a call that was killed before it could delete
            store.copy_if_absent(entry.path, target)
        store.delete(entry.path)
        moved += 1
    return moved


def _with_row_counts(store: Store, manifest: Manifest) -> Manifest:
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
