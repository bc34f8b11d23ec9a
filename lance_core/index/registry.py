"""The table of index kinds this release builds and searches; the order is the order of preference in a search."""

from __future__ import annotations

from lance_core.index.base import IndexKind
from lance_core.index.scalar import bitmap, bloom, btree, label_list, ngram, zone_map
from lance_core.index.text import inverted

KINDS: tuple[IndexKind, ...] = (
    btree.KIND,
    bitmap.KIND,
    label_list.KIND,
    ngram.KIND,
    zone_map.KIND,
    bloom.KIND,
    inverted.KIND,
)
_ALIASES = {"FTS": "INVERTED"}


def kind_by_name(name: str) -> IndexKind | None:
    """The kind a user names: `"BTREE"`, in any case."""
    wanted = _ALIASES.get(name.upper(), name.upper())
    return next((kind for kind in KINDS if kind.name == wanted), None)


def kind_by_details(details: str) -> IndexKind | None:
    """The kind of a details message: `"BTreeIndexDetails"`."""
    return next((kind for kind in KINDS if kind.details == details), None)
