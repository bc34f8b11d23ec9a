"""The table of index kinds this release builds and searches; the order is the order of preference in a search."""

from __future__ import annotations

from lance_core.format.index import IndexDetails
from lance_core.format.index_details import InvertedDetails
from lance_core.index.base import IndexKind
from lance_core.index.over_json import json_kind
from lance_core.index.scalar import bitmap, bloom, btree, label_list, ngram, zone_map
from lance_core.index.text import inverted
from lance_core.wire.index import decode_details

_OF_COLUMNS: tuple[IndexKind, ...] = (
    btree.KIND,
    bitmap.KIND,
    label_list.KIND,
    ngram.KIND,
    zone_map.KIND,
    bloom.KIND,
    inverted.KIND,
)
KINDS: tuple[IndexKind, ...] = (*_OF_COLUMNS, json_kind(_OF_COLUMNS))
_ALIASES = {"FTS": "INVERTED", "LABELLIST": "LABEL_LIST"}


def kind_by_name(name: str) -> IndexKind | None:
    """The kind a user names: `"BTREE"`, in any case."""
    wanted = _ALIASES.get(name.upper(), name.upper())
    return next((kind for kind in KINDS if kind.name == wanted), None)


def kind_by_details(details: str) -> IndexKind | None:
    """The kind of a details message: `"BTreeIndexDetails"`."""
    return next((kind for kind in KINDS if kind.details == details), None)


def holds_list_elements(details: IndexDetails) -> bool:
    """Whether the documents of a full-text index are the elements of lists, which are not searched or built here."""
    found = decode_details(details) if details.kind == inverted.KIND.details else None
    return isinstance(found, InvertedDetails) and found.list_elements_are_documents
