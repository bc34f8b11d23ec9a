"""What changed between two versions, for people: fragments with rows and bytes, columns, indices, configuration."""

from __future__ import annotations

from collections.abc import Mapping

from lance_core.commit.manifests import load_manifest
from lance_core.dataset.maintain.compact_plan import bytes_of
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.maintenance.facts.history import schema_changes
from lance_core.maintenance.facts.writers import Json, shown
from lance_core.table.coverage import SYSTEM_INDICES

MAX_ITEMS = 200


def diff_page(store: Store, before: int, after: int) -> Json:
    """Return what is different in `after`. Raises NotFoundError when one of the versions is gone."""
    old, new = load_manifest(store, before), load_manifest(store, after)
    return {
        "from": _summary(old),
        "to": _summary(new),
        "fragments": _fragments(old, new),
        "schema": schema_changes(old.schema, new.schema),
        "indices": _changes(_indices(old), _indices(new), key="name"),
        "config": _changes(
            {name: shown(text) for name, text in old.config.items()},
            {name: shown(text) for name, text in new.config.items()},
            key="key",
        ),
    }


def _summary(manifest: Manifest) -> Json:
    return {
        "version": manifest.version,
        "timestamp": manifest.timestamp_ns / 1e9,
        "rows": manifest.num_rows,
        "fragments": len(manifest.fragments),
        "bytes": sum(map(bytes_of, manifest.fragments)),
    }


def _fragments(old: Manifest, new: Manifest) -> Json:
    before = {item.id: item for item in old.fragments}
    after = {item.id: item for item in new.fragments}
    added = [after[number] for number in sorted(after.keys() - before.keys())]
    removed = [before[number] for number in sorted(before.keys() - after.keys())]
    both = sorted(before.keys() & after.keys())
    changed = [(before[number], after[number]) for number in both if before[number] != after[number]]
    items = [_item("added", None, item) for item in added[:MAX_ITEMS]]
    items += [_item("removed", item, None) for item in removed[:MAX_ITEMS]]
    items += [_item("changed", was, item) for was, item in changed[:MAX_ITEMS]]
    return {
        "added": len(added),
        "removed": len(removed),
        "changed": len(changed),
        "rows_added": sum(item.num_rows for item in added),
        "rows_removed": sum(item.num_rows for item in removed),
        "rows_deleted": sum(max(was.num_rows - item.num_rows, 0) for was, item in changed),
        "bytes_added": sum(map(bytes_of, added)),
        "bytes_removed": sum(map(bytes_of, removed)),
        "items": items[:MAX_ITEMS],
    }


def _item(change: str, before: Fragment | None, after: Fragment | None) -> Json:
    known = after if after is not None else before
    assert known is not None
    return {
        "id": known.id,
        "change": change,
        "rows_before": None if before is None else before.num_rows,
        "rows_after": None if after is None else after.num_rows,
        "bytes_before": None if before is None else bytes_of(before),
        "bytes_after": None if after is None else bytes_of(after),
        "files": len(known.files),
    }


def _indices(manifest: Manifest) -> dict[str, str]:
    segments: dict[str, list[str]] = {}
    for index in manifest.indices:
        if index.name not in SYSTEM_INDICES:
            segments.setdefault(index.name, []).append(index.uuid)
    # The segments' ids are part of what is compared: a rebuilt index is another one with the same number of segments.
    return {
        name: f"{len(uuids)} segment{'' if len(uuids) == 1 else 's'} ({', '.join(sorted(item[:8] for item in uuids)[:4])})"
        for name, uuids in segments.items()
    }


def _changes(before: Mapping[str, str], after: Mapping[str, str], *, key: str) -> list[Json]:
    found: list[Json] = []
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was != now:
            change = "added" if was is None else "removed" if now is None else "altered"
            found.append({key: name, "change": change, "before": was, "after": now})
    return found
