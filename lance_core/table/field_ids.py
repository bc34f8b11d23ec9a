"""Ids for new fields: the next one that no field and no column of the table has.

    schema ids 0, 1    a file still holds 2 (dropped)    ->    next id 3

Without writer flag 32768 a dropped id may come back once no file holds it any more; with it, ids count on from the mark in
the manifest. (Spec: FORMAT C.5, C.6.)
"""

from __future__ import annotations

from lance_core.errors import UnsupportedFeatureError
from lance_core.format.manifest import FLAG_NON_REUSABLE_FIELD_IDS, Manifest

_MAX_FIELD_ID = 2**31 - 1 - 2**20
"""Ids are 32-bit numbers; what is added may be many fields."""


def next_field_id(manifest: Manifest) -> int:
    """The smallest id larger than all that schema and data files use (and the mark, where the table keeps one).

    UnsupportedFeatureError when ids have come to their end: no history of columns does that, a stranger's manifest can.
    """
    largest = manifest.schema.max_field_id
    for fragment in manifest.fragments:
        for file in fragment.files:
            largest = max(largest, *file.fields) if file.fields else largest
    if manifest.writer_feature_flags & FLAG_NON_REUSABLE_FIELD_IDS and manifest.max_allocated_field_id is not None:
        largest = max(largest, manifest.max_allocated_field_id)
    if largest >= _MAX_FIELD_ID:
        raise UnsupportedFeatureError(
            f"the table uses the field id {largest}, so no column can be added: ids end at {_MAX_FIELD_ID}",
            cure="Copy the rows into a new table, which counts its ids from 0.",
        )
    return largest + 1
