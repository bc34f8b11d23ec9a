"""The manifest's metadata of an index: one entry per index segment (`lance.table.IndexMetadata`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of an index segment, its path below `_indices/{uuid}/` and its size in bytes."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class IndexDetails:
    """A protobuf Any: the type url and the serialized details message."""

    type_url: str
    value: bytes

    @property
    def kind(self) -> str:
        """Last component of the type url without its package: `"BTreeIndexDetails"`. Packages moved over time."""
        return self.type_url.rsplit("/", 1)[-1].rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """One index segment.

    `fragment_bitmap` is None when the coverage is unknown. `created_at` is milliseconds since the epoch.
    """

    uuid: str
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    fragment_bitmap: frozenset[int] | None = None
    details: IndexDetails | None = None
    index_version: int | None = None
    created_at: int | None = None
    base_id: int | None = None
    files: tuple[IndexFile, ...] = ()
    covering_fields: tuple[int, ...] = ()
    clustering_id: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: bytes = b""


@dataclass(frozen=True, slots=True)
class RewrittenIndex:
    """An index segment whose row addresses were translated into a new segment."""

    old_id: str
    new_id: str
    new_index_details: IndexDetails | None = None
    new_index_version: int = 0
    new_index_files: tuple[IndexFile, ...] = ()
