"""Feature flags: what a table asks of whoever reads or writes it. An unknown bit is refused aloud, by its number.

::

    reader 1, writer 1       deletion files                      known, read on
    reader 65536             unknown                             UnsupportedFeatureError: must not be read
    reader 256, writer 0     mixed file versions, half set       CorruptFileError: these come in pairs

(Spec: FORMAT C.5.)
"""

from __future__ import annotations

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.format import manifest as nouns
from lance_core.format.manifest import Manifest

_NAMES = {
    nouns.FLAG_DATA_OVERLAYS: "data overlay files",
    nouns.FLAG_STABLE_ROW_ID_REUSE: "fragment reuse with stable row ids",
}

READABLE_FLAGS = (
    nouns.FLAG_DELETION_FILES
    | nouns.FLAG_STABLE_ROW_IDS
    | nouns.FLAG_V2_FORMAT_DEPRECATED
    | nouns.FLAG_TABLE_CONFIG
    | nouns.FLAG_BASE_PATHS
    | nouns.FLAG_NO_TRANSACTION_FILE
    | nouns.FLAG_COVERING_INDEX
    | nouns.FLAG_MIXED_FILE_VERSIONS
    | nouns.FLAG_TAGGED_FRAGMENT_REUSE
    | nouns.FLAG_ZONE_WRITE_SEED
    | nouns.FLAG_MANAGED_BLOBS
)
WRITABLE_FLAGS = READABLE_FLAGS | nouns.FLAG_NON_REUSABLE_FIELD_IDS
PAIRED_FLAGS = (nouns.FLAG_MIXED_FILE_VERSIONS, nouns.FLAG_TAGGED_FRAGMENT_REUSE, nouns.FLAG_MANAGED_BLOBS)


def check_readable(manifest: Manifest, *, uri: str) -> None:
    """Refuse a version that asks for more than this release can read."""
    _refuse_unknown(manifest.reader_feature_flags & ~READABLE_FLAGS, manifest, uri=uri, verb="read")
    for flag in PAIRED_FLAGS:
        if bool(manifest.reader_feature_flags & flag) != bool(manifest.writer_feature_flags & flag):
            raise CorruptFileError(
                f"version {manifest.version} of {uri} sets feature flag {flag} for only one of readers and writers",
                uri=uri,
                version=manifest.version,
                cure="The manifest is damaged; open an older version, or restore one.",
            )


def check_writable(manifest: Manifest, *, uri: str) -> None:
    """Refuse to commit on a version that asks for more than this release can write."""
    check_readable(manifest, uri=uri)
    _refuse_unknown(manifest.writer_feature_flags & ~WRITABLE_FLAGS, manifest, uri=uri, verb="written to")


def _refuse_unknown(unknown: int, manifest: Manifest, *, uri: str, verb: str) -> None:
    if not unknown:
        return
    bits = [1 << bit for bit in range(unknown.bit_length()) if unknown >> bit & 1]
    named = ", ".join(f"{bit} ({_NAMES[bit]})" if bit in _NAMES else str(bit) for bit in bits)
    raise UnsupportedFeatureError(
        f"version {manifest.version} of {uri} cannot be {verb}: it uses feature flags this release does not know: {named}",
        uri=uri,
        version=manifest.version,
        cure="Use a newer release of this library, or the official library.",
    )
