"""Staging again what other writers made invalid, while the commit holds the table's lane.

::

    delete staged on version 3, compaction commits version 5     -> the same delete is planned and staged on version 5
    replace_where of a day, and somebody appended to that day    -> staged again, so that those rows go as well

Everything a job needs is in the record its attempt left. What hid secrets there cannot be run from it: such work is left to
its own staging task.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_core.commit.manifests import find_latest_version, load_manifest
from lance_core.commit.model import StagedTransaction
from lance_core.commit.staged import abort_attempt
from lance_core.dataset.inspect import count_matching
from lance_core.dataset.snapshot import Snapshot
from lance_core.errors import LanceError, NotFoundError
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.jobs.base import Runner
from lance_core.jobs.edit import part_of
from lance_core.jobs.registry import job_of, spec_from_plain
from lance_core.jobs.secret import HIDDEN
from lance_core.jobs.spec import CommitSpec, JobSpec
from lance_core.jobs.stage import find_done

log = logging.getLogger(__name__)

REPEATABLE = frozenset({"delete", "update", "replace_where", "compact"})
"""Kinds whose work depends on the rows that are there, and so may have to be done again."""


def may_repeat(record: Mapping[str, Any]) -> bool:
    """Whether work can be staged again from its record."""
    return record.get("kind") in REPEATABLE and HIDDEN not in json.dumps(record)


def stage_again(commit: CommitSpec, identity: str, record: Mapping[str, Any], runner: Runner) -> StagedTransaction:
    """Plan and stage one identity's work on the newest version; its former attempt has been aborted."""
    spec = _spec_of(commit, identity, record)
    log.info("staging %s %s again", spec.kind, identity)
    staged = job_of(spec).run(spec, runner)
    if not isinstance(staged, StagedTransaction):
        raise LanceError(f"a {spec.kind} job staged nothing to commit")
    return staged


def is_outdated(store: Store, commit: CommitSpec, ref: StagedTransaction, record: Mapping[str, Any]) -> bool:
    """Whether a staged replacement misses rows: some that match its predicate came after it was planned.

    To the format an append and a replacement do not conflict; to whoever replaces a day, all of that day's rows must go.
    """
    if record.get("kind") != "replace_where" or not may_repeat(record):
        return False
    newest = find_latest_version(store)
    if newest is None or newest == ref.read_version:
        return False
    done = find_done(store, _spec_of(commit, ref.uuid, record))
    if done is None or done.version is not None:
        return False
    snapshot = Snapshot(store, load_manifest(store, newest), commit.resolved_options())
    known = _fragments_of(_manifest_at(store, ref.read_version))
    added = [fragment.id for fragment in snapshot.manifest.fragments if fragment.id not in known]
    return bool(added) and count_matching(part_of(snapshot, added), str(record["predicate"])) > 0


def withdraw(store: Store, ref: StagedTransaction) -> None:
    """Give up an attempt that is about to be staged again."""
    abort_attempt(store, ref.uuid, ref.attempt)


def _spec_of(commit: CommitSpec, identity: str, record: Mapping[str, Any]) -> JobSpec:
    spec = spec_from_plain({**record, "uri": commit.uri, "identity": identity})
    return replace(spec, storage_options=commit.storage_options)


def _manifest_at(store: Store, version: int) -> Manifest | None:
    try:
        return load_manifest(store, version) if version else None
    except NotFoundError:
        return None


def _fragments_of(manifest: Manifest | None) -> frozenset[int]:
    return frozenset() if manifest is None else frozenset(fragment.id for fragment in manifest.fragments)
