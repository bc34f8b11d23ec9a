"""What changed between two versions, from their manifests alone.

::

    diff_manifests(version 2, version 5)
    -> rows +100, fragments added 7 8, removed 1, changed 3 (deletions 0 -> 5), columns added x, removed y
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema


@dataclass(frozen=True, slots=True)
class Difference:
    """`changed` fragments: what is different, in words. `columns_changed`: "was -> is". `config`: keys with both values."""

    rows: int
    added: tuple[int, ...]
    removed: tuple[int, ...]
    changed: Mapping[int, str] = field(default_factory=dict)
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_changed: Mapping[str, str] = field(default_factory=dict)
    indices_added: tuple[str, ...] = ()
    indices_removed: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)


def diff_manifests(old: Manifest, new: Manifest) -> Difference:
    """What is in `new` and was not in `old`, and the other way round."""
    before = {fragment.id: fragment for fragment in old.fragments}
    after = {fragment.id: fragment for fragment in new.fragments}
    changes = {number: _change(before[number], after[number]) for number in sorted(before.keys() & after.keys())}
    columns_before, columns_after = _columns(old.schema), _columns(new.schema)
    segments_before = {index.uuid: index.name for index in old.indices}
    segments_after = {index.uuid: index.name for index in new.indices}
    common = columns_before.keys() & columns_after.keys()
    keys = sorted({*old.config, *new.config})
    return Difference(
        rows=new.num_rows - old.num_rows,
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed={number: text for number, text in changes.items() if text},
        columns_added=tuple(columns_after[item] for item in sorted(columns_after.keys() - common)),
        columns_removed=tuple(columns_before[item] for item in sorted(columns_before.keys() - common)),
        columns_changed={
            columns_before[item]: columns_after[item]
            for item in sorted(common)
            if columns_before[item] != columns_after[item]
        },
        indices_added=tuple(segments_after[item] for item in segments_after if item not in segments_before),
        indices_removed=tuple(segments_before[item] for item in segments_before if item not in segments_after),
        config={
            key: f"{old.config.get(key, '-')} -> {new.config.get(key, '-')}"
            for key in keys
            if old.config.get(key) != new.config.get(key)
        },
    )


def _change(old: Fragment, new: Fragment) -> str:
    parts = []
    if old.num_deleted_rows != new.num_deleted_rows:
        parts.append(f"deletions {old.num_deleted_rows} -> {new.num_deleted_rows}")
    elif old.deletion_file != new.deletion_file:
        parts.append("other deletion file")
    if old.files != new.files:
        parts.append(f"files {len(old.files)} -> {len(new.files)}")
    return ", ".join(parts)


def _columns(schema: Schema) -> dict[int, str]:
    """Field id -> path, type and nullability in one word."""
    return {
        item.id: f"{schema.path_of(item.id)}: {item.logical_type}{'' if item.nullable else ' not null'}"
        for item in schema.fields
    }
