"""Feature flags: what a reader and a writer must know to touch a version of a table.

    reader word 3 = 1 | 2       has deletion files, has stable row ids

Most flags follow from the manifest and are computed anew for each version; a few stay once they were set. A flag that is not
in the tables below means something this library does not know, and it must keep its hands off. (Spec: feature flags;
FORMAT C.5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.format.fragment import Fragment
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
    FLAG_ZONE_WRITE_SEED,
    Manifest,
)

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
    FLAG_ZONE_WRITE_SEED: "zone map seeds",
    FLAG_MANAGED_BLOBS: "managed blobs",
    FLAG_NON_REUSABLE_FIELD_IDS: "field ids that are never used again",
}
KNOWN_FLAGS = sum(_KNOWN)
# Set in one word only, these two would let a reader and a writer disagree about the data.
_PAIRED = (FLAG_MIXED_FILE_VERSIONS, FLAG_TAGGED_FRAGMENT_REUSE, FLAG_MANAGED_BLOBS)
STICKY_BOTH = FLAG_STABLE_ROW_IDS | FLAG_MIXED_FILE_VERSIONS | FLAG_TAGGED_FRAGMENT_REUSE | FLAG_MANAGED_BLOBS
_STICKY_WRITER = FLAG_NON_REUSABLE_FIELD_IDS


def check_readable(manifest: Manifest, *, uri: str | None = None) -> None:
    """Refuse a version that needs a feature this library does not know. Raises UnsupportedFeatureError, CorruptFileError."""
    _check_known(manifest.reader_feature_flags, "read", manifest, uri)
    for flag in _PAIRED:
        if (manifest.reader_feature_flags ^ manifest.writer_feature_flags) & flag:
            raise CorruptFileError(
                f"version {manifest.version} sets the flag for {_KNOWN[flag]} for readers or for writers only",
                uri=uri,
                version=manifest.version,
                cure="Restore an older version; this manifest is damaged.",
            )


def check_writable(manifest: Manifest, *, uri: str | None = None) -> None:
    """Refuse to commit on top of a version that needs a feature this library does not know."""
    check_readable(manifest, uri=uri)
    _check_known(manifest.writer_feature_flags, "write to", manifest, uri)


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


def has_mixed_versions(fragments: Iterable[Fragment], *, data_storage_version: str) -> bool:
    """Whether any file of these fragments is of another 2.x version than the table's default."""
    return any(
        file.version.text != data_storage_version
        for fragment in fragments
        for file in fragment.files
        if not file.version.is_legacy
    )
