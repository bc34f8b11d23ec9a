"""The kind of an index of an old release, and the metric of one of vectors, which are in its files instead of the manifest.

::

    0.4 to 0.29    IVF_PQ in one file       a protobuf message at the end of index.idx (`index/vector/old_file.py`)
    0.10 to 0.13   IVF_HNSW_SQ              files of version 0.1 (there, too)
    0.17 to 6.1    index.idx, auxiliary.idx in today's layout; metadata `lance:index` says kind and metric
    since 7.0      the manifest says it     nothing to do
    0.9 to 0.19    indices of values        the names of the files tell the kind

`with_details` completes an entry; an entry that is complete stays as it is.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from lance_core.dataset.indexing.folder import folder_of
from lance_core.dataset.indexing.vector_build import VECTOR_DETAILS
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError
from lance_core.format.index import IndexDetails, IndexMetadata
from lance_core.format.index_details import Hnsw, QuantizerDetails, VectorDetails
from lance_core.index.base import IndexFolder
from lance_core.index.vector.old_file import GRAPHS_KEY, old_message
from lance_core.index.vector.segment import INDEX, INDEX_KEY, IVF_KEY, STORAGE, STORAGE_KEY
from lance_core.io.cache import shared_cache
from lance_core.table.coverage import SYSTEM_INDICES
from lance_core.wire.index import encode_details

_METRICS = ("l2", "cosine", "dot", "hamming")
_QUANTIZERS = ("flat", "pq", "sq", "rq")
_KINDS = {"tokens.lance": "Inverted", "page_lookup.lance": "BTree", "bitmap_page_lookup.lance": "Bitmap"}
_NOTE_BYTES = 512


def lacks_details(snapshot: Snapshot, index: IndexMetadata) -> bool:
    """Whether the entry may be of a vector index without its kind."""
    if index.details is not None and (index.details.kind != VECTOR_DETAILS or index.details.value):
        return False
    if index.name in SYSTEM_INDICES or len(index.fields) != 1 or index.fields[0] not in snapshot.manifest.schema.by_id:
        return False
    return snapshot.manifest.schema.by_id[index.fields[0]].logical_type.startswith("fixed_size_list:")


def with_details(snapshot: Snapshot, index: IndexMetadata) -> IndexMetadata:
    """The entry of an index with its details, from its files where the manifest has none."""
    is_of_vectors = lacks_details(snapshot, index)
    if not is_of_vectors and (index.details is not None or index.name in SYSTEM_INDICES):
        return index
    folder = folder_of(snapshot, index)
    key = (*folder.key, "old details")
    found: tuple[IndexDetails | None, bool] | None = shared_cache().get(key)
    if found is None:
        found = _details_in(folder) if is_of_vectors else (_details_by_name(snapshot, index, folder), True)
        shared_cache().put(key, found, _NOTE_BYTES)
    details, is_readable = found
    if details is None or not is_of_vectors:
        return replace(index, details=details)
    return replace(index, details=details, index_version=max(index.index_version or 0, 1) if is_readable else 0)


def _details_by_name(snapshot: Snapshot, index: IndexMetadata, folder: IndexFolder) -> IndexDetails | None:
    field = snapshot.manifest.schema.by_id.get(index.fields[0]) if len(index.fields) == 1 else None
    try:
        names = {entry.path.rsplit("/", 1)[1] for entry in folder.store.list(f"{folder.path}/")}
    except (LanceError, OSError):
        return None
    kind = next((_KINDS[name] for name in _KINDS if name in names), None)
    if field is None or kind is None:
        return None
    if kind == "Bitmap" and field.logical_type.startswith(("list", "large_list")):
        kind = "LabelList"
    return IndexDetails(f"/lance.table.{kind}IndexDetails", b"")


def _details_in(folder: IndexFolder) -> tuple[IndexDetails | None, bool]:
    """(the details, whether the layout is today's)."""
    try:
        old = old_message(folder)
        if old is not None:
            return encode_details(old.told.details), old.told.codebook is not None
        opened = folder.open(INDEX)
        told = json.loads(opened.schema.metadata.get(INDEX_KEY, b"{}"))
        texts = json.loads(folder.open(STORAGE).schema.metadata.get(STORAGE_KEY, b"[]"))
        stored = json.loads(texts[0]) if texts else {}
        details = _of_metadata(told, stored)
        if GRAPHS_KEY in opened.schema.metadata:
            is_scalar = details is not None and details.quantizer is not None and details.quantizer.kind == "sq"
            return (None if details is None else encode_details(details)), is_scalar
        is_todays = opened.schema.metadata.get(IVF_KEY, b"").isdigit()
        coded = None if details is None else details.quantizer
        # Releases up to 0.24 called the bits of a product code by another name: nobody searches those.
        is_known = coded is not None and (coded.kind != "pq" or "nbits" in stored)
        return (None if details is None else encode_details(details)), is_todays and is_known
    except (LanceError, OSError, ValueError):
        return None, False


def _of_metadata(told: Any, stored: Any) -> VectorDetails | None:
    words = str(told.get("type", "")).lower().split("_") if isinstance(told, dict) else []
    metric = str(told.get("distance_type", "")).lower() if isinstance(told, dict) else ""
    if not words or words[0] != "ivf" or words[-1] not in _QUANTIZERS or metric not in _METRICS:
        return None
    hnsw = Hnsw(20, 150, 7) if "hnsw" in words else None
    bits = int(stored.get("nbits") or stored.get("num_bits") or 0)
    quantizer = QuantizerDetails(words[-1], bits, int(stored.get("num_sub_vectors") or 0))  # type: ignore[arg-type]
    return VectorDetails(metric, quantizer, hnsw)  # type: ignore[arg-type]
