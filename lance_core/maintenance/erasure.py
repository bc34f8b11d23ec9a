"""Erasure: remove the rows that a filter selects from every branch and version; a report lists what still holds them.

::

    each branch, then the main line:   delete -> rewrite the fragments that held them -> rebuild the indices -> clean up
                                       and remove values of declared columns that wait for a refresh, or are cached
    then look:                         every version that is left, deleted rows included; files of no version; clones
    the report:                        {"is_gone": True, "holders": [], ..., "signature": {"algorithm": "HMAC-SHA256", ...}}

Each step is done once for an identity, so an erasure that was killed goes on where it stood. A deletion file holds positions
of rows and none of their values.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid as uuids
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from lance_core.commit.manifests import version_numbers
from lance_core.commit.naming import COLUMNS, DATA, data_path
from lance_core.computed.cache import cached_columns, remove_cached
from lance_core.computed.declaration import caching_columns
from lance_core.computed.results import is_waiting
from lance_core.dataset.refs.branches import MAIN, branch_names, place_of
from lance_core.dataset.refs.clones import cloned_versions
from lance_core.dataset.refs.tags import list_tags
from lance_core.dataset.scan.sinks import count_matching
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot, snapshot_of
from lance_core.errors import InputError, LanceError
from lance_core.format.fragment import Fragment
from lance_core.io.many import delete_all
from lance_core.io.store import Store
from lance_core.jobs import api
from lance_core.jobs.specs.definition import DropIndexSpec
from lance_core.jobs.specs.edits import CompactSpec, DeleteSpec
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.indices import OptimizeIndicesSpec
from lance_core.jobs.specs.maintenance import CleanupSpec
from lance_core.jobs.specs.secret import reveal_all
from lance_core.jobs.specs.spec import JobSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.table_id import table_id_of

ALGORITHM = "HMAC-SHA256"


@dataclass(frozen=True)
class Holder:
    """What still has the rows, or may have them (`num_rows` None). `kind`: version, file, staged, clone."""

    line: str
    kind: str
    name: str
    num_rows: int | None
    why: str


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """What is to be erased, and how far to go.

    `retrain_indices`: rebuild every index, because an index keeps values of rows that are deleted; an index that a
    branch shares with the main line is dropped on the branch. `delete_unverified`:
    files of no version go at once; only when no other writer is at work.
    """

    uri: str
    predicate: str
    identity: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    retrain_indices: bool = True
    delete_unverified: bool = False


def erase(erasure: Erasure, *, options: Mapping[str, Any]) -> dict[str, Any]:
    """Carry it out; the report, unsigned. InputError for an empty filter, and whatever deleting and cleaning up raise."""
    if not erasure.predicate.strip():
        raise InputError("erasure: predicate is empty", cure="Pass an SQL filter of the rows to erase.")
    identity = erasure.identity or random_identity()
    store = api.open_store(erasure.uri, options)
    done: list[dict[str, Any]] = []
    for line in (*branch_names(store), MAIN):
        uri = erasure.uri if line == MAIN else place_of(store, line).uri
        deleted = _publish(DeleteSpec(uri=uri, predicate=erasure.predicate), erasure, identity, options)
        dropped = _drop_inherited(uri, options) if erasure.retrain_indices else []
        _publish(CompactSpec(uri=uri, materialize_deletions_threshold=0.0), erasure, identity, options)
        if erasure.retrain_indices:
            _publish(OptimizeIndicesSpec(uri=uri, retrain=True), erasure, identity, options)
        told = {"rows_deleted": deleted["rows_deleted"], "outcome": _outcome(deleted), "indices_dropped": dropped}
        done.append({"line": line, "uri": uri, **told})
    for facts in done:
        cleanup = CleanupSpec(
            uri=facts["uri"], older_than_seconds=0, retain_versions=1, delete_unverified=erasure.delete_unverified
        )
        facts["cleanup"] = api.run(cleanup, options=options)
        facts["computed_values_removed"] = _remove_computed(facts["uri"], options)
    holders = find_holders(erasure.uri, erasure.predicate, options=options)
    return {
        "uri": erasure.uri,
        "table_id": table_id_of(store),
        "predicate": erasure.predicate,
        "identity": identity,
        "asked": dict(erasure.asked),
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "lines": done,
        "indices_built_anew": erasure.retrain_indices,
        "holders": [asdict(holder) for holder in holders],
        "is_gone": not any(holder.num_rows for holder in holders),
    }


def find_holders(uri: str, predicate: str, *, options: Mapping[str, Any]) -> list[Holder]:
    """Look at every version of every line, deleted rows included; at files of no version, staged work and known clones."""
    store = api.open_store(uri, options)
    return [
        holder for line in (MAIN, *branch_names(store)) for holder in _of_line(store, line, predicate, reveal_all(options))
    ]


def sign(report: Mapping[str, Any], key: bytes, *, key_id: str = "") -> dict[str, Any]:
    """The report with a signature over all of it. InputError for a key that is too short to be one."""
    if len(key) < 16:
        raise InputError(f"the signing key has {len(key)} bytes", cure="Use at least 16 random bytes.")
    unsigned = {name: value for name, value in report.items() if name != "signature"}
    return {**unsigned, "signature": {"algorithm": ALGORITHM, "key_id": key_id, "value": _mac(unsigned, key, key_id)}}


def is_signed_by(report: Mapping[str, Any], key: bytes) -> bool:
    """Whether the report was signed with this key and not changed since."""
    signature = report.get("signature") or {}
    unsigned = {name: value for name, value in report.items() if name != "signature"}
    expected = _mac(unsigned, key, str(signature.get("key_id", "")))
    return signature.get("algorithm") == ALGORITHM and hmac.compare_digest(expected, str(signature.get("value", "")))


def _mac(report: Mapping[str, Any], key: bytes, key_id: str) -> str:
    text = json.dumps([key_id, report], sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _publish(spec: JobSpec, erasure: Erasure, identity: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """One step, once: a try that comes later finds it was committed."""
    step = str(uuids.uuid5(uuids.NAMESPACE_OID, json.dumps([identity, spec.uri, spec.kind])))
    staged = api.run(replace(spec, identity=step, asked=dict(erasure.asked), on_clear="skip"), options=options)
    return api.commit(spec.uri, [staged], options=options, max_attempts=None)


def _drop_inherited(uri: str, options: Mapping[str, Any]) -> list[str]:
    """Drop a branch's indices whose files are the main line's: they name rows by address, which would keep fragments."""
    manifest = open_snapshot(uri, storage_options=reveal_all(options)).manifest
    names = sorted({index.name for index in manifest.indices if index.base_id is not None})
    for name in names:
        api.run(DropIndexSpec(uri=uri, name=name), options=options)
    return names


def _remove_computed(uri: str, options: Mapping[str, Any]) -> int:
    """Remove values of declared columns: those that wait to be published, and those of lasting caches, which no refresh that
    is under way puts back. They would be computed again."""
    snapshot = open_snapshot(uri, storage_options=reveal_all(options))
    entries = list(snapshot.store.list(f"{COLUMNS}/"))
    paths = [entry.path for entry in entries if is_waiting(entry)]
    delete_all(snapshot.store, paths)
    return len(paths) + remove_cached(snapshot.store, {*caching_columns(snapshot.manifest.schema), *cached_columns(entries)})


def _outcome(result: Mapping[str, Any]) -> str:
    return ", ".join(sorted(set(result["identities"].values())))


def _of_line(root: Store, line: str, predicate: str, options: Mapping[str, str]) -> Iterator[Holder]:
    store = place_of(root, None if line == MAIN else line)
    counted: dict[Any, int] = {}
    referenced: set[str] = set()
    numbers = version_numbers(store)
    for number in numbers:
        snapshot = snapshot_of(store, version=number, storage_options=options)
        referenced |= {data_path(file.path) for item in snapshot.manifest.fragments for file in item.files}
        try:
            rows = _physical_rows(snapshot, predicate, counted)
        except LanceError as error:
            yield Holder(line, "version", str(number), None, f"it cannot be checked: {error}")
            continue
        if rows:
            yield Holder(line, "version", str(number), rows, _why(root, line, number, newest=max(numbers)))
    for entry in store.list(f"{DATA}/"):
        if entry.path not in referenced:
            yield Holder(line, "file", entry.path, None, "no version refers to it; a writer may be active")
    for entry in store.list(f"{COLUMNS}/"):
        if is_waiting(entry) or entry.path.endswith(".values"):
            yield Holder(line, "file", entry.path, None, "computed values for the next refresh; one may be under way")
    for staged in list_staged(store):
        yield Holder(line, "staged", f"{staged.identity}.{staged.attempt}", None, "staged work that was not committed")
    for number, uri in cloned_versions(store, options).items():
        clone = open_snapshot(uri, storage_options=options)
        rows = _physical_rows(clone, predicate, {})
        if rows:
            yield Holder(line, "clone", uri, rows, f"it was cloned from version {number}; erase the rows there as well")


def _physical_rows(snapshot: Snapshot, predicate: str, counted: dict[Any, int]) -> int:
    """Rows that match, deleted ones included: a fragment that several versions have is read once."""
    total = 0
    for fragment in snapshot.manifest.fragments:
        key = tuple((file.base_id, file.path) for file in fragment.files)
        if key not in counted:
            counted[key] = count_matching(_alone(snapshot, fragment), predicate)
        total += counted[key]
    return total


def _alone(snapshot: Snapshot, fragment: Fragment) -> Snapshot:
    whole = replace(snapshot.manifest, fragments=(replace(fragment, deletion_file=None),))
    return Snapshot(snapshot.store, whole, snapshot.storage_options)


def _why(root: Store, line: str, number: int, *, newest: int) -> str:
    """What keeps a version from being cleaned up."""
    tags = [tag.name for tag in list_tags(root).values() if (tag.branch or MAIN) == line and tag.version == number]
    if tags:
        return f"kept by the tag {', '.join(tags)}"
    return (
        "the newest version: rows were added in the meantime"
        if number == newest
        else "kept by the cleanup, because a branch or clone reads it"
    )
