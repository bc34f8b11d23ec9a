"""Feature flags: the features that a reader or a writer must support to use a version of a table.

    reader word 3 = 1 | 2       has deletion files, has stable row ids

Most flags follow from the manifest and are computed again for each version; a few stay once they were set. A flag that is
not in the tables below means something this library does not know, and it must keep its hands off. (Spec: feature flags;
FORMAT C.5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata
from lance_core.format.manifest import (
    FLAG_BASE_PATHS,
    FLAG_COVERING_INDEX,
    FLAG_DATA_OVERLAYS,
    FLAG_DELETION_FILES,
    FLAG_MANAGED_BLOBS,
    FLAG_MIXED_FILE_VERSIONS,
    FLAG_NO_TRANSACTION_FILE,
    FLAG_NON_REUSABLE_FIELD_IDS,
    FLAG_STABLE_ROW_IDS,
    FLAG_TABLE_CONFIG,
    FLAG_TAGGED_FRAGMENT_REUSE,
    FLAG_V2_FORMAT_DEPRECATED,
    FLAG_ZONE_SEED_DRAFT,
    FLAG_ZONE_WRITE_SEED,
    Manifest,
)
from lance_core.format.version import FileVersion

_KNOWN = {
    FLAG_DELETION_FILES: "deletion files",
    FLAG_STABLE_ROW_IDS: "stable row ids",
    FLAG_V2_FORMAT_DEPRECATED: "2.x files",
    FLAG_TABLE_CONFIG: "table configuration",
    FLAG_BASE_PATHS: "base paths",
    FLAG_NO_TRANSACTION_FILE: "no transaction file",
    FLAG_COVERING_INDEX: "covering indices",
    FLAG_MIXED_FILE_VERSIONS: "mixed file versions",
    FLAG_TAGGED_FRAGMENT_REUSE: "tagged fragment reuse",
    FLAG_ZONE_SEED_DRAFT: "zone map seeds in a draft of the specification",
    FLAG_MANAGED_BLOBS: "managed blobs",
    FLAG_NON_REUSABLE_FIELD_IDS: "non-reusable field ids",
}
KNOWN_FLAGS = sum(_KNOWN)
# Set in one word only, these would let a reader and a writer disagree about the data.
_PAIRED = {
    FLAG_MIXED_FILE_VERSIONS: "mixed file versions",
    FLAG_TAGGED_FRAGMENT_REUSE: "tagged fragment reuse",
    FLAG_MANAGED_BLOBS: "managed blobs",
    FLAG_ZONE_WRITE_SEED: "zone map seeds",
}
STICKY_BOTH = FLAG_STABLE_ROW_IDS | FLAG_MIXED_FILE_VERSIONS | FLAG_TAGGED_FRAGMENT_REUSE | FLAG_MANAGED_BLOBS
_MOVED = FLAG_ZONE_SEED_DRAFT | FLAG_MANAGED_BLOBS
_KNOWN_WRITERS = ("lance", "lance_core")
_NEWEST_MAJOR = 14
"""The newest release of the official library whose flags were measured."""
_CHECKED_AT_OPEN = 4096
"""Entries of so many fragments are checked when a version is opened; of more, each when it is read."""
_STICKY_WRITER = FLAG_NON_REUSABLE_FIELD_IDS


def check_readable(manifest: Manifest, *, uri: str | None = None) -> None:
    """Refuse a version that needs a feature this library does not know, or that contradicts itself.

    Raises UnsupportedFeatureError, CorruptFileError.
    """
    _check_known(manifest.reader_feature_flags, "read", manifest, uri)
    _check_meaning(manifest.reader_feature_flags | manifest.writer_feature_flags, manifest, uri)
    single = (manifest.reader_feature_flags ^ manifest.writer_feature_flags) & sum(_PAIRED)
    if single:
        name = next(name for flag, name in _PAIRED.items() if single & flag)
        raise _corrupt(manifest, uri, f"sets the flag for {name} for readers or for writers only")
    if manifest.reader_feature_flags & FLAG_NON_REUSABLE_FIELD_IDS:
        raise _corrupt(manifest, uri, "sets the reader flag for non-reusable field ids, which may only be set for writers")
    has_mark = manifest.max_allocated_field_id is not None
    if has_mark != bool(manifest.writer_feature_flags & FLAG_NON_REUSABLE_FIELD_IDS):
        raise _corrupt(manifest, uri, "has a largest field id without its flag, or the flag without the field id")
    fragments = FragmentList.of(manifest.fragments)
    if len(fragments) <= _CHECKED_AT_OPEN:
        _check_row_ids(manifest, not manifest.uses_stable_row_ids or fragments.all_have_row_ids, uri)
        _check_file_versions(manifest, fragments.file_versions, uri)


def check_fragment_entry(manifest: Manifest, fragment: Fragment, *, uri: str | None = None) -> None:
    """What `check_readable` leaves for later in tables of very many fragments: whether an entry fits its table."""
    if len(manifest.fragments) > _CHECKED_AT_OPEN:
        _check_row_ids(manifest, fragment.row_ids is not None, uri)
        _check_file_versions(manifest, frozenset(file.version for file in fragment.files), uri)


def _check_row_ids(manifest: Manifest, has_row_ids: bool, uri: str | None) -> None:
    if manifest.uses_stable_row_ids and not has_row_ids:
        raise _corrupt(manifest, uri, "has stable row ids, but one fragment has none")


def check_writable(manifest: Manifest, *, uri: str | None = None) -> None:
    """Refuse to commit on top of a version that needs a feature this library does not know."""
    check_readable(manifest, uri=uri)
    _check_known(manifest.writer_feature_flags, "write to", manifest, uri)
    is_legacy = manifest.data_storage_version == FileVersion.V0_1.text
    if is_legacy and any(not version.is_legacy for version in FragmentList.of(manifest.fragments).file_versions):
        raise _corrupt(manifest, uri, "declares legacy (0.1) files, but has 2.x files")


def _check_file_versions(manifest: Manifest, found: frozenset[FileVersion], uri: str | None) -> None:
    """Releases about 0.15 and 0.16 wrote legacy files into tables of 2.0 files; row offsets cannot be trusted in those."""
    default = manifest.data_storage_version
    if {version.text for version in found} <= {default}:
        return
    names = ", ".join(version.text for version in sorted(found))
    if len({version.is_legacy for version in found}) > 1:
        raise _corrupt(manifest, uri, f"mixes legacy and 2.x data files ({names})")
    if default == FileVersion.V0_1.text or manifest.reader_feature_flags & FLAG_MIXED_FILE_VERSIONS:
        return
    if any(version.text != default for version in found):
        raise _corrupt(manifest, uri, f"has data files of version {names}, expected only {default}")


def _check_meaning(flags: int, manifest: Manifest, uri: str | None) -> None:
    """A few flags had other meanings in drafts of the specification: only writers that we know mean what we mean."""
    moved = flags & _MOVED
    writer = manifest.writer_version
    if not moved or (writer is not None and writer.library in _KNOWN_WRITERS and _major(writer.version) <= _NEWEST_MAJOR):
        return
    names = ", ".join(f"{flag} ({_KNOWN[flag]})" for flag in _KNOWN if moved & flag)
    who = "an unknown writer" if writer is None else f"{writer.library} {writer.version}"
    raise UnsupportedFeatureError(
        f"cannot read version {manifest.version}: {who} set flag(s) {names}, whose meaning changed between releases",
        uri=uri,
        version=manifest.version,
        cure="Use a release of this library that is newer than the writer.",
    )


def _major(version: str) -> int:
    first = version.split(".")[0]
    return int(first) if first.isdigit() else 1 << 30


def _corrupt(manifest: Manifest, uri: str | None, what: str) -> CorruptFileError:
    return CorruptFileError(
        f"version {manifest.version} {what}",
        uri=uri,
        version=manifest.version,
        cure="Restore an older version; this manifest is damaged.",
    )


def _check_known(flags: int, verb: str, manifest: Manifest, uri: str | None) -> None:
    unknown = flags & ~KNOWN_FLAGS
    if unknown:
        names = ", ".join(str(1 << bit) for bit in range(unknown.bit_length()) if unknown >> bit & 1)
        raise UnsupportedFeatureError(
            f"cannot {verb} version {manifest.version}: it uses feature flag(s) {names}, unknown to this library",
            uri=uri,
            version=manifest.version,
            cure="Use a newer release, or an older version of the table.",
        )


def next_flags(
    ancestors: Iterable[Manifest],
    *,
    has_deletions: bool,
    stable_row_ids: bool,
    has_config: bool,
    has_base_paths: bool,
    has_overlays: bool,
    mixed_versions: bool,
    indices: Sequence[IndexMetadata],
    no_transaction_file: bool = False,
) -> tuple[int, int]:
    """(reader word, writer word) of the next version; `ancestors` are the versions whose lasting flags it inherits."""
    both = writer = 0
    for manifest in ancestors:
        both |= manifest.reader_feature_flags & STICKY_BOTH
        writer |= manifest.writer_feature_flags & _STICKY_WRITER
    both |= FLAG_DELETION_FILES if has_deletions else 0
    both |= FLAG_STABLE_ROW_IDS if stable_row_ids else 0
    both |= FLAG_BASE_PATHS if has_base_paths else 0
    both |= FLAG_DATA_OVERLAYS if has_overlays else 0
    both |= FLAG_MIXED_FILE_VERSIONS if mixed_versions else 0
    both |= FLAG_COVERING_INDEX if any(index.covering_fields for index in indices) else 0
    writer |= both
    writer |= FLAG_TABLE_CONFIG if has_config else 0
    writer |= FLAG_NO_TRANSACTION_FILE if no_transaction_file else 0
    return both, writer


def has_mixed_versions(versions: Iterable[FileVersion], *, data_storage_version: str) -> bool:
    """Whether files of these versions are of another 2.x version than the table's default."""
    return any(version.text != data_storage_version for version in versions if not version.is_legacy)
