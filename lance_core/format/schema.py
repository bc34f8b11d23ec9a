"""Fields and schemas as the format has them: a flat, pre-order list of fields with ids and parents.

::

    id parent name   logical_type
    0  -1     id     int64
    1  -1     point  struct
    2   1     x      double
    3   1     y      double

Ids are what data files refer to; names and order may change over a table's life. `lance_core.arrow` translates to and
from pyarrow. (Spec: table format, "schema".)

Consistency rules for the fields of a table's schema.

::

    contradiction([id 0 "a", id 1 "a"])         "two columns are named 'a'"
    contradiction([id 0 "a" int64, id 1 "b" below 0])    "field 1 ('b') is below field 0 ('a'), which is of type int64"

Ids and the names of columns say which values are meant: one that occurs twice says nothing. Names may differ by their case
alone, and children of one struct may share a name, as the official library has it: children are distinguished by their ids.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError, UnknownColumnError

NO_PARENT = -1
TOMBSTONE = -2
"""In `DataFile.fields`: the column's field was dropped or replaced; the column is dead."""


class FieldEncoding(enum.IntEnum):
    """`lance.file.Encoding`; only legacy files act on it, all writers keep it."""

    NONE = 0
    PLAIN = 1
    VAR_BINARY = 2
    DICTIONARY = 3
    RLE = 4


@dataclass(frozen=True, slots=True)
class LegacyDictionary:
    """Where a legacy (0.1) file keeps a dictionary field's values: byte offset and length in items.

    `values`: the bytes of each, where they have been read; a table keeps one dictionary for all its files.
    """

    offset: int
    length: int
    values: tuple[bytes, ...] | None = None


# No slots: `called` copies a dictionary, which is what makes opening tables of thousands of columns quick.
@dataclass(frozen=True)
class Field:
    """One field of a schema (`lance.file.Field`)."""

    id: int
    name: str
    parent_id: int
    logical_type: str
    nullable: bool = True
    encoding: FieldEncoding = FieldEncoding.NONE
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    extension_name: str = ""
    dictionary: LegacyDictionary | None = None
    unenforced_primary_key: bool = False
    unenforced_primary_key_position: int = 0
    unenforced_clustering_key: bool = False
    unenforced_clustering_key_position: int = 0
    type: int = 0
    unknown: bytes = b""

    def called(self, name: str, id: int) -> Field:
        """The same field under another name and id; several times cheaper than `replace`."""
        twin = object.__new__(Field)
        values = twin.__dict__
        values.update(self.__dict__)
        values["id"], values["name"] = id, name
        return twin


class _FieldsById(dict[int, Field]):
    def __missing__(self, field_id: int) -> Field:
        raise CorruptFileError(f"field id {field_id} is not in the schema")


@dataclass(frozen=True)
class Schema:
    """A pre-order list of fields plus schema metadata."""

    fields: tuple[Field, ...]
    metadata: Mapping[str, bytes] = field(default_factory=dict)

    @cached_property
    def by_id(self) -> Mapping[int, Field]:
        """Fields keyed by id. Looking up an id that is not there is a CorruptFileError: something refers to no field."""
        return _FieldsById(zip(self.ids, self.fields, strict=True))

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """The ids of all fields, in order."""
        return tuple([item.id for item in self.fields])

    @cached_property
    def _children(self) -> Mapping[int, tuple[Field, ...]]:
        if {item.parent_id for item in self.fields} <= {NO_PARENT}:
            return {NO_PARENT: self.fields}
        children: dict[int, list[Field]] = {}
        for item in self.fields:
            children.setdefault(item.parent_id, []).append(item)
        return {parent: tuple(items) for parent, items in children.items()}

    @cached_property
    def _names(self) -> Mapping[tuple[int, str], Field]:
        """(parent, name) -> the first field of that name."""
        return {(item.parent_id, item.name): item for item in reversed(self.fields)}

    @property
    def top_level(self) -> tuple[Field, ...]:
        """The columns of the table."""
        return self._children.get(NO_PARENT, ())

    def has_column(self, name: str) -> bool:
        """Whether a column of the table has this name."""
        return (NO_PARENT, name) in self._names

    def children(self, parent_id: int) -> tuple[Field, ...]:
        """Direct children of a field, in order."""
        return self._children.get(parent_id, ())

    def descend(self, field_id: int) -> Iterator[Field]:
        """The field and everything below it, in pre-order."""
        yield self.by_id[field_id]
        for child in self.children(field_id):
            yield from self.descend(child.id)

    @cached_property
    def max_field_id(self) -> int:
        """Largest id in use, -1 for an empty schema."""
        return max((item.id for item in self.fields), default=-1)

    def find(self, path: str) -> Field:
        """The field at a dotted path such as `"a.b.c"`; a name that itself holds dots wins as a whole.

        Raises InputError when there is none.
        """
        found = self._find(path, NO_PARENT)
        if found is None:
            raise UnknownColumnError(
                f"field {path!r} is not in the schema",
                cure=f"Known columns: {', '.join(item.name for item in self.top_level)}.",
            )
        return found

    def _find(self, path: str, parent_id: int) -> Field | None:
        found = self._names.get((parent_id, path))
        if found is not None or "." not in path:
            return found
        for item in self.children(parent_id):
            if path.startswith(item.name + "."):
                found = self._find(path[len(item.name) + 1 :], item.id)
                if found is not None:
                    return found
        return None

    def path_of(self, field_id: int) -> str:
        """Dotted path of a field."""
        item = self.by_id[field_id]
        if item.parent_id == NO_PARENT:
            return item.name
        return f"{self.path_of(item.parent_id)}.{item.name}"

    def project(self, field_ids: Iterable[int]) -> Schema:
        """The sub-schema with the named fields, all their descendants and all their ancestors, in schema order."""
        keep: set[int] = set()
        for field_id in field_ids:
            keep.update(item.id for item in self.descend(field_id))
            parent = self.by_id[field_id].parent_id
            while parent != NO_PARENT:
                keep.add(parent)
                parent = self.by_id[parent].parent_id
        return replace(self, fields=tuple(item for item in self.fields if item.id in keep))


PRIMARY_KEY, CLUSTERING_KEY = "lance-schema:unenforced-primary-key", "lance-schema:unenforced-clustering-key"
"""Metadata of a field that say it is a part of such a key of the table; with `:position` behind it, its place there."""
_KEYS = (PRIMARY_KEY, CLUSTERING_KEY)


def is_true(value: bytes | None) -> bool:
    """How flags are written in field metadata."""
    return value is not None and value.strip().lower() in (b"true", b"1", b"yes")


def with_metadata(item: Field, metadata: Mapping[str, bytes]) -> Field:
    """The field with other metadata, and a part of the keys that those newly say or no longer say it is a part of."""
    said, says = ({key: kept[key] for key in kept if key.startswith(_KEYS)} for kept in (item.metadata, metadata))
    if said == says:
        return replace(item, metadata=metadata)
    primary, clustering = (metadata.get(f"{key}:position", b"") for key in (PRIMARY_KEY, CLUSTERING_KEY))
    return replace(
        item,
        metadata=metadata,
        unenforced_primary_key=is_true(metadata.get(PRIMARY_KEY)) or primary.isdigit(),
        unenforced_primary_key_position=int(primary) if primary.isdigit() else 0,
        unenforced_clustering_key=clustering.isdigit(),
        unenforced_clustering_key_position=int(clustering) if clustering.isdigit() else 0,
    )


def primary_key(schema: Schema) -> tuple[Field, ...]:
    """The fields of the table's primary key, which nothing enforces, in their order; empty where it has none."""
    parts = [item for item in schema.fields if item.unenforced_primary_key]
    return tuple(sorted(parts, key=lambda item: item.unenforced_primary_key_position))


def column_of(schema: Schema, field_id: int) -> str:
    """The dotted path of a field."""
    item = schema.by_id[field_id]
    path = [item.name]
    while item.parent_id in schema.by_id:
        item = schema.by_id[item.parent_id]
        path.insert(0, item.name)
    return ".".join(path)


_LEAVES = frozenset({
    "null", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "halffloat", "float", "double",
    "string", "large_string", "binary", "large_binary", "json", "date32", "date64", "time32", "time64", "duration",
    "timestamp", "decimal", "dict", "fixed_size_binary",
})  # fmt: skip
"""The kinds of values that hold no fields. What this release does not know may hold some."""


RESERVED_NAMES = frozenset({"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"})
"""Columns that every table has without storing them. Where one is stored, the official library reads the table no more."""


_MARKS = {
    ".": "a dot leads to a field of a struct",
    "`": "backticks are around names in filters",
    "\0": "other libraries end a name at its zero character",
}
"""What would make a name one that nobody can select."""


def contradiction(fields: Sequence[Field]) -> str:
    """What is wrong with the columns of a table as a sentence without its full stop; "" when nothing is.

    That ids occur once and that parents exist is checked wherever a schema is decoded, in data files too.
    """
    if len({item.name for item in fields if item.id >= 0 and item.parent_id == NO_PARENT}) == len(fields):
        return ""  # columns without children, with names of their own: a table has thousands of them
    names: set[str] = set()
    parents: dict[int, Field] = {}
    for item in fields:
        if item.id < 0:
            return f"field {item.name!r} of the schema has the negative id {item.id}"
        if item.parent_id == NO_PARENT:
            if item.name in names:
                return f"two columns are named {item.name!r}"
            names.add(item.name)
        parent = parents.get(item.parent_id)
        if parent is not None and parent.logical_type.partition(":")[0] in _LEAVES:
            return (
                f"field {item.id} ({item.name!r}) is below field {parent.id} ({parent.name!r}) of type {parent.logical_type}"
            )
        parents[item.id] = item
    return ""


def unusable_name(name: str) -> str:
    """Why a new column of a table cannot have a name, as a sentence without its full stop; "" when it can.

    Columns that have such a name already stay readable. Fields of structs may have any.
    """
    if not name:
        return "a column needs a name, got an empty one"
    if name in RESERVED_NAMES:
        return f"no column can be named {name!r}, which every table has without storing it"
    found = next((mark for mark in _MARKS if mark in name), None)
    return "" if found is None else f"no column can be named {name!r}: {_MARKS[found]}"
