"""Read every page of a version and report errors: compare the contents of files with their metadata and the manifest.

::

    page_damages(reader, schema)     Damage("price", "data/a.lance: column 'price', page 2: chunk 7 ends behind its page")
                                     Damage("id", "fragment 3 has no file with the column 'id', which is not nullable")

One damage for each column of each file at most. What is outside of data files is checked in `validate`.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.errors import FormatError, NotFoundError
from lance_core.file.check import Damage, damages
from lance_core.format.schema import Field, Schema


def page_damages(reader: FragmentReader, schema: Schema) -> Iterator[Damage]:
    """What is wrong with the data files of a fragment, as the table's `schema` has their columns. Raises StoreError."""
    fragment = reader.fragment
    held: set[int] = set()
    try:
        sources = reader.sources(schema)
    except (FormatError, NotFoundError) as error:
        yield Damage("", str(error))
        return
    for file, part in sources:
        held |= {item.id for item in part.fields}
        try:
            opened = reader.open(file)
        except (FormatError, NotFoundError) as error:
            yield Damage("", str(error))
            continue
        yield from damages(opened, part, num_rows=fragment.physical_rows)
    for field in schema.top_level:
        lost = _required(schema, field, held)
        if lost is not None and fragment.physical_rows:
            yield Damage(field.name, f"fragment {fragment.id} has no file with the non-nullable column {lost!r}")


def _required(schema: Schema, field: Field, held: set[int]) -> str | None:
    """A field at or below `field` that no file has and that cannot be null, as no struct around it can."""
    if field.nullable or field.id in held:
        return None
    children = schema.children(field.id)
    if not children:
        return field.name
    # A parent is stored with any of its fields.
    return next((found for child in children if (found := _required(schema, child, held)) is not None), None)
