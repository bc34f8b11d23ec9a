"""A manifest: the complete description of one version of a table (`lance.table.Manifest`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion, parse_storage_version

FLAG_DELETION_FILES = 1
FLAG_STABLE_ROW_IDS = 2
FLAG_V2_FORMAT_DEPRECATED = 4
FLAG_TABLE_CONFIG = 8
FLAG_BASE_PATHS = 16
FLAG_NO_TRANSACTION_FILE = 32
FLAG_DATA_OVERLAYS = 64
FLAG_COVERING_INDEX = 128
FLAG_MIXED_FILE_VERSIONS = 256
FLAG_STABLE_ROW_ID_REUSE = 512
FLAG_TAGGED_FRAGMENT_REUSE = 1024
FLAG_ZONE_SEED_DRAFT = 2048
FLAG_MANAGED_BLOBS = 16384
FLAG_NON_REUSABLE_FIELD_IDS = 32768
FLAG_ZONE_WRITE_SEED = 65536
SECONDS_END = 253_402_300_800
"""The year 10000: a manifest's time is at or after 1970 and before it, in seconds."""


@dataclass(frozen=True, slots=True)
class WriterVersion:
    """Which library wrote a version."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class BasePath:
    """Another place where files of this table may live."""

    id: int
    path: str
    name: str | None = None
    is_dataset_root: bool = False

    def clashes_with(self, other: BasePath) -> bool:
        """Whether both cannot be registered: same name, same path, or same id (0 asks for any)."""
        same_name = self.name is not None and self.name == other.name
        return same_name or self.path == other.path or self.id == other.id != 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a table.

    `timestamp_ns` is nanoseconds since the epoch (UTC). `indices` come from the manifest file's index section.
    `max_fragment_id` is a high-water mark, None while no fragment ever existed. `unknown` keeps protobuf fields this
    release does not know.
    """

    schema: Schema
    fragments: Sequence[Fragment]
    version: int
    timestamp_ns: int = 0
    writer_version: WriterVersion | None = None
    indices: tuple[IndexMetadata, ...] = ()
    reader_feature_flags: int = 0
    writer_feature_flags: int = 0
    max_fragment_id: int | None = None
    transaction_file: str = ""
    next_row_id: int = 0
    data_storage_version: str = "2.2"
    file_format: str = "lance"
    config: Mapping[str, str] = field(default_factory=dict)
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    branch: str | None = None
    tag: str = ""
    version_aux_data: int = 0
    max_allocated_field_id: int | None = None
    unknown: bytes = b""

    @property
    def file_version(self) -> FileVersion:
        """Storage version for new data files."""
        return parse_storage_version(self.data_storage_version)

    @property
    def uses_stable_row_ids(self) -> bool:
        """Whether `_rowid` is a stable id rather than an address."""
        return bool(self.reader_feature_flags & FLAG_STABLE_ROW_IDS)

    @property
    def num_rows(self) -> int:
        """Rows a reader sees."""
        return FragmentList.of(self.fragments).num_rows
