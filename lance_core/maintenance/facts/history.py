"""The versions of a table, newest first: the operation and writer of each, conflicts, and the changes of the schema.

::

    versions_page(store, limit=60)   -> {"newest": 144, "versions": [{"version": 144, "kind": "append", ...}], ...}
    schema_page(store)               -> {"columns": [...], "evolution": [{"version": 12, "changes": [...]}], ...}

Reads as many manifests as versions are requested, and no data file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lance_core.commit.manifests import OpenVersion, open_or_none, version_numbers
from lance_core.commit.transactions import transaction_of
from lance_core.dataset.maintain.compact_plan import bytes_of
from lance_core.dataset.refs.tags import list_tags
from lance_core.errors import FormatError
from lance_core.format.declared import is_evidence
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Schema
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.maintenance.facts.writers import Json, name_of, other_properties, shown, writers_in
from lance_core.table.carried import added_fragments, merges_column_files, rewritten_fragments
from lance_core.table.operations import Append, DataReplacement, Merge, Overwrite, Rewrite, Update
from lance_core.table.transaction import Transaction

MAX_VERSIONS = 200
_KINDS: Mapping[str, str] = {
    "Append": "append",
    "Overwrite": "overwrite",
    "Delete": "delete",
    "Update": "update",
    "Rewrite": "compact",
    "CreateIndex": "index",
    "Merge": "columns",
    "Project": "columns",
    "DataReplacement": "columns",
    "DataOverlay": "columns",
    "UpdateConfig": "config",
    "UpdateBases": "config",
    "ReserveFragments": "config",
    "Restore": "restore",
    "Clone": "restore",
}


@dataclass(frozen=True, slots=True)
class _Read:
    """A version with its transaction, None where the version does not tell it."""

    opened: OpenVersion
    transaction: Transaction | None

    @property
    def version(self) -> int:
        return self.opened.manifest.version

    @property
    def rebased(self) -> int:
        """How many versions were published between what it read and what it wrote."""
        return 0 if self.transaction is None else max(self.version - self.transaction.read_version - 1, 0)


def versions_page(store: Store, *, limit: int = 60, before: int | None = None) -> Json:
    """Return the newest `limit` versions that are older than `before`. Raises NotFoundError when there is no table."""
    numbers = [*version_numbers(store)]
    older = [number for number in numbers if before is None or number < before]
    count = min(max(limit, 1), MAX_VERSIONS)
    # One more than asked, to know what the oldest entry changed.
    found = [item for item in each(store, older[-(count + 1) :], _read) if item is not None]
    rows = {item.version: item.opened.manifest.num_rows for item in found}
    tags: dict[int, list[str]] = {}
    for name, tag in list_tags(store).items():
        tags.setdefault(tag.version, []).append(name)
    before_it = {item.version + 1: item for item in found}
    entries = [_entry(item, before_it.get(item.version), rows, tags) for item in found]
    return {
        "newest": numbers[-1] if numbers else None,
        "more": len(older) > count,
        "versions": entries[::-1][:count],
        "conflicts": _conflicts(found),
    }


def _read(store: Store, version: int) -> _Read | None:
    opened = open_or_none(store, version)
    if opened is None:
        return None
    try:
        return _Read(opened, transaction_of(store, opened))
    except FormatError:
        return _Read(opened, None)  # the version is whole, only its transaction is damaged or too new


def _entry(item: _Read, previous: _Read | None, rows: Mapping[int, int], tags: Mapping[int, list[str]]) -> Json:
    manifest, transaction = item.opened.manifest, item.transaction
    before = 0 if item.version == 1 else rows.get(item.version - 1)
    changed = None if before is None else manifest.num_rows - before
    writers = _writers(item)
    new = None if transaction is None else new_fragments(transaction)
    return {
        "version": item.version,
        "timestamp": manifest.timestamp_ns / 1e9,
        "operation": _name(item),
        "kind": _kind(item, writers, changed=changed),
        "rows": manifest.num_rows,
        "rows_changed": changed,
        "bytes_added": _column_bytes(item, previous) if not new else sum(map(bytes_of, new)),
        "fragments_added": None if new is None else len(new),
        "read_version": None if transaction is None else transaction.read_version,
        "rebased": item.rebased,
        "uuid": None if transaction is None else transaction.uuid,
        "tags": sorted(tags.get(item.version, [])),
        "summary": _summary(_name(item), changed),
        "writers": writers,
        "properties": {}
        if transaction is None
        else {k: shown(v) for k, v in other_properties(transaction.properties).items()},
    }


def _writers(item: _Read) -> list[Json]:
    return [] if item.transaction is None else [*writers_in(item.transaction.properties)]


def _name(item: _Read) -> str | None:
    return None if item.transaction is None else item.transaction.operation.name


def _kind(item: _Read, writers: Sequence[Json], *, changed: int | None) -> str:
    if changed == 0 and merges_column_files(item.transaction):
        return "compact"
    operation = None if item.transaction is None else item.transaction.operation
    if isinstance(operation, Update):
        if "merge" in {writer.get("operation") for writer in writers}:
            return "merge"
        evidence = {field.id for field in item.opened.manifest.schema.top_level if is_evidence(field)}
        if evidence.intersection(operation.fields_modified):
            return "refresh"
    return _KINDS.get(_name(item) or "", "other")


def _summary(operation: str | None, changed: int | None) -> str:
    if operation is None:
        return "the version has no transaction"
    if changed is None:
        return operation
    return f"{changed:+,} rows" if changed else "no row added or removed"


def new_fragments(transaction: Transaction) -> Sequence[Fragment] | None:
    """The fragments that an operation brings along; None for operations without any."""
    operation = transaction.operation
    if isinstance(operation, Rewrite):
        return rewritten_fragments(operation)
    return added_fragments(operation) if isinstance(operation, (Append, Overwrite, Update)) else None


def _column_bytes(item: _Read, previous: _Read | None) -> int | None:
    """Bytes of the files that an operation put beside those of known fragments; None for operations without any."""
    operation = None if item.transaction is None else item.transaction.operation
    if previous is None or not isinstance(operation, (Merge, DataReplacement, Update)):
        return 0 if isinstance(operation, (Append, Overwrite, Rewrite, Update)) else None
    known = {file.path for fragment in previous.opened.manifest.fragments for file in fragment.files}
    files = (file for fragment in item.opened.manifest.fragments for file in fragment.files)
    return sum(file.file_size_bytes or 0 for file in files if file.path not in known)


def _conflicts(found: Iterable[_Read]) -> Json:
    judged = [item for item in found if item.transaction is not None and item.version > 1]
    by_version = {item.version: item for item in judged}
    pairs: Counter[tuple[int, int]] = Counter()
    for item in judged:
        for number in range(item.version - item.rebased, item.version):
            if number in by_version:
                pairs[item.version, number] += 1
    between: dict[str, Json] = {}
    for (mine, other), count in pairs.items():
        entry = _meeting(by_version[mine], by_version[other])
        known = between.setdefault(repr(entry), {**entry, "count": 0})
        known["count"] = int(str(known["count"])) + count
    ordered = sorted(between.values(), key=lambda entry: -int(str(entry["count"])))
    return {"judged": len(judged), "rebased": sum(item.rebased > 0 for item in judged), "between": ordered[:20]}


def _meeting(mine: _Read, other: _Read) -> Json:
    assert mine.transaction is not None
    assert other.transaction is not None
    return {
        "operation": mine.transaction.operation.name,
        "writer": name_of(writers_in(mine.transaction.properties)),
        "other_operation": other.transaction.operation.name,
        "other_writer": name_of(writers_in(other.transaction.properties)),
    }


def schema_page(store: Store, *, limit: int = MAX_VERSIONS) -> Json:
    """Return the columns of the newest version, and in which versions they changed, newest first."""
    numbers = [*version_numbers(store)]
    found = [item for item in each(store, numbers[-limit:], _read) if item is not None]
    evolution: list[Json] = []
    for before, after in pairwise(found):
        changes = schema_changes(before.opened.manifest.schema, after.opened.manifest.schema)
        if changes:
            evolution.append(
                {
                    "version": after.version,
                    "timestamp": after.opened.manifest.timestamp_ns / 1e9,
                    "operation": _name(after),
                    "kind": _kind(after, _writers(after), changed=None),
                    "changes": changes,
                }
            )
    columns = columns_of(found[-1].opened.manifest.schema) if found else []
    complete = bool(numbers) and numbers[0] == 1 and len(numbers) <= limit
    return {"columns": columns, "evolution": evolution[::-1], "complete": complete}


def columns_of(schema: Schema) -> list[Json]:
    """Return every field, nested ones included, in the order of the schema."""
    return [
        {
            "id": item.id,
            "parent": item.parent_id,
            "name": item.name,
            "path": schema.path_of(item.id),
            "type": item.logical_type,
            "nullable": item.nullable,
            "metadata": {name: shown(value.decode("utf-8", "replace")) for name, value in item.metadata.items()},
        }
        for item in schema.fields
    ]


def schema_changes(before: Schema, after: Schema) -> list[Json]:
    """Return which columns were added, removed or altered, by field id."""
    old, new = _described(before), _described(after)
    changes: list[Json] = []
    for number, (path, text) in new.items():
        if number not in old:
            changes.append({"path": path, "change": "added", "before": None, "after": text})
        elif old[number] != (path, text):
            was = old[number][1] if old[number][0] == path else f"{old[number][0]}: {old[number][1]}"
            changes.append({"path": path, "change": "altered", "before": was, "after": text})
    gone = [(path, text) for number, (path, text) in old.items() if number not in new]
    return changes + [{"path": path, "change": "removed", "before": text, "after": None} for path, text in gone]


def _described(schema: Schema) -> dict[int, tuple[str, str]]:
    return {
        item.id: (schema.path_of(item.id), f"{item.logical_type}{'' if item.nullable else ' not null'}")
        for item in schema.fields
    }
