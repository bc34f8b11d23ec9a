"""Staged work that came too early: rows appeared since it was planned that it should have known.

::

    replace_where of a day, and somebody appended to that day    -> staged again, so that those rows go as well
    merge by id, and somebody inserted one of its ids            -> staged again, so that the id is there once

To the format an append and such an Update do not conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_core.commit.log.manifests import find_latest_version, load_manifest
from lance_core.commit.log.transactions import read_transaction_file
from lance_core.commit.model import StagedTransaction
from lance_core.commit.registry.ledger import find_landed
from lance_core.dataset.scan.count import count_matching
from lance_core.dataset.scan.plan import plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.to_table import scan_table
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.jobs.staging.edit_fragments import part_of


def is_outdated(store: Store, ref: StagedTransaction, record: Mapping[str, Any], options: Mapping[str, str]) -> bool:
    """Whether staged work misses rows that came after it was planned. False when it has landed."""
    look = _LOOKS.get(str(record.get("kind")))
    newest = find_latest_version(store)
    if look is None or newest is None or newest == ref.read_version:
        return False
    if find_landed(store, ref.uuid, ref.read_version) is not None:
        return False
    snapshot = Snapshot(store, load_manifest(store, newest), options)
    known = _fragments_of(_manifest_at(store, ref.read_version))
    added = [fragment.id for fragment in snapshot.manifest.fragments if fragment.id not in known]
    return bool(added) and look(part_of(snapshot, added), ref, record)


def _matches_predicate(added: Snapshot, ref: StagedTransaction, record: Mapping[str, Any]) -> bool:
    return count_matching(added, str(record["predicate"])) > 0


def _meets_keys(added: Snapshot, ref: StagedTransaction, record: Mapping[str, Any]) -> bool:
    transaction = read_transaction_file(added.store, ref.transaction_path)
    if transaction is None or ref.creates:
        return True
    fragments = tuple(replace(item, id=number) for number, item in enumerate(_new_fragments(transaction.operation)))
    mine = Snapshot(added.store, replace(added.manifest, fragments=fragments), added.storage_options)
    keys = [str(name) for name in record["on"]]
    ours, theirs = (_columns(side, keys) for side in (mine, added))
    return bool(ours.join(theirs, keys=keys, join_type="inner").num_rows)


def _new_fragments(operation: object) -> Sequence[Fragment]:
    found: Sequence[Fragment] = getattr(operation, "new_fragments", ())
    return found


def _columns(snapshot: Snapshot, names: Sequence[str]) -> pa.Table:
    schema = snapshot.manifest.schema
    return scan_table(snapshot, plan_scan(schema, snapshot.manifest.fragments, plan_projection(schema, [*names])))


_LOOKS: Mapping[str, Callable[[Snapshot, StagedTransaction, Mapping[str, Any]], bool]] = {
    "replace_where": _matches_predicate,
    "merge": _meets_keys,
}
"""Whether fragments that came later hold rows that the staged work should have known."""


def _manifest_at(store: Store, version: int) -> Manifest | None:
    try:
        return load_manifest(store, version) if version else None
    except NotFoundError:
        return None


def _fragments_of(manifest: Manifest | None) -> frozenset[int]:
    return frozenset() if manifest is None else frozenset(fragment.id for fragment in manifest.fragments)
