"""Describe a data file that is already in the table's folder: which of the table's fields it holds, and in which columns.

::

    describe_file(snapshot, "0110….lance")     its schema says a, s.x -> DataFile(fields=(0, 3), column_indices=(0, 1), …)

Fields are found by name, because the ids in a file are those of its writer.
"""

from __future__ import annotations

from lance_core.arrow import field_to_arrow
from lance_core.commit.naming import data_path
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import SchemaMismatchError, UnsupportedFeatureError
from lance_core.file.open import ContainerFile, open_file
from lance_core.format.fragment import DataFile
from lance_core.format.schema import NO_PARENT, Field, Schema


def describe_file(snapshot: Snapshot, path: str, *, base_id: int | None = None) -> tuple[DataFile, int]:
    """The entry for a file (path relative to the data folder, or to its base) and its rows.

    Raises NotFoundError, FormatError, SchemaMismatchError when it has a column the table has not, or of another type.
    """
    store, is_root = snapshot.store_of(base_id)
    place = data_path(path) if is_root else path
    size = store.size(place)
    opened = open_file(store, place, size=size)
    if not isinstance(opened, ContainerFile):
        raise UnsupportedFeatureError(f"{place} has the legacy format, whose files do not state their fields")
    own, table = opened.schema, snapshot.manifest.schema
    columns = opened.columns_of_fields
    pairs = [(_find(table, own, field, place).id, columns[field.id]) for field in own.fields if field.id in columns]
    major, minor = opened.metadata.footer.version.data_file_numbers
    fields, indices = zip(*pairs, strict=True) if pairs else ((), ())
    return DataFile(path, tuple(fields), tuple(indices), major, minor, size, base_id), opened.num_rows


def _find(table: Schema, own: Schema, field: Field, path: str) -> Field:
    parent = NO_PARENT if field.parent_id == NO_PARENT else _find(table, own, own.by_id[field.parent_id], path).id
    found = next((item for item in table.children(parent) if item.name == field.name), None)
    if found is None:
        raise SchemaMismatchError(f"{path}: the table has no column {field.name!r}", cure="Add the column first.")
    theirs, ours = field_to_arrow(own, field).type, field_to_arrow(table, found).type
    if not own.children(field.id) and not theirs.equals(ours):
        raise SchemaMismatchError(f"{path}: column {field.name!r} is {theirs}, expected {ours} according to the table")
    return found
