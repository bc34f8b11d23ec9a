"""One dictionary for a new legacy (0.1) table: the one that all files share.

    file 1  [a, b]      file 2  [a, b, c]      the table  [a, b, c]

Readers of legacy tables look a dictionary up in the manifest, not in the files, so keys must mean the same in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_core.commit import naming
from lance_core.errors import InputError
from lance_core.file.open import open_file
from lance_core.file.v1.reader import LegacyFile
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Field, LegacyDictionary, Schema
from lance_core.io.store import Store


def with_dictionaries(store: Store, fragments: Sequence[Fragment], schema: Schema) -> Schema:
    """The schema with the values of its dictionary columns, from the files that were staged for it.

    Raises InputError, naming the column, when two files number their values differently.
    """
    if not any(field.logical_type.startswith("dict:") for field in schema.fields):
        return schema
    paths = [naming.data_path(file.path) for fragment in fragments for file in fragment.files]
    files = [file for file in (open_file(store, path) for path in paths) if isinstance(file, LegacyFile)]
    return Schema(tuple(_agreed(field, files) for field in schema.fields), schema.metadata)


def _agreed(field: Field, files: Sequence[LegacyFile]) -> Field:
    if not field.logical_type.startswith("dict:"):
        return field
    found = [values for values in (file.dictionary(field.id) for file in files) if values is not None]
    longest = max(found, key=len, default=None)
    if longest is None:
        return field
    if any(values != longest[: len(values)] for values in found):
        raise InputError(
            f"column {field.name!r} has several dictionaries, but a legacy table has one per column",
            cure="Unify the dictionaries before writing (`unify_dictionaries`), or use storage version 2.2.",
        )
    return replace(field, dictionary=LegacyDictionary(0, len(longest), longest))
