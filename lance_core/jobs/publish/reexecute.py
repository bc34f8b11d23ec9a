"""Re-execute staged work that other writers made invalid, while the commit holds the table's commit pool.

::

    delete staged on version 3, compaction commits version 5     -> the same delete is planned and staged on version 5
    compaction of groups a b c, somebody deletes rows of b       -> b is rewritten again, a and c are kept
    columns staged on version 3, rows appended as version 4      -> computed for the new fragments, the others are kept

Everything a job needs is in the record its attempt left. The attempt that waits is superseded by the one that is staged in
its place, in one decision; a commit that is killed before leaves it as it was. What hid secrets in that record cannot be
run from it: such work is left to its own staging task.

A record is data from anyone who may write to the table's folder. It is run when its SHA-256 is the one that the commit's
own spec carries (`CommitSpec.digests`), or when `trust.is_plain` says that it can do no more than edit this table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_core.errors import IncompatibleConflictError, LanceError
from lance_core.io.store import Store
from lance_core.jobs.kinds import carry_out, kind_of, refresh_of, spec_from_plain
from lance_core.jobs.publish.trust import is_plain
from lance_core.jobs.runtime.protocols import Runner
from lance_core.jobs.specs.secret import HIDDEN
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.attempts import read_started
from lance_core.publish.model import StagedTransaction
from lance_core.publish.records import work_digest

log = logging.getLogger(__name__)

_DIGEST_DIGITS = 64


def can_reexecute(commit: CommitSpec, identity: str, record: Mapping[str, Any]) -> bool:
    """Whether the commit may stage work again from its record."""
    return not _refusal(commit, identity, record)


def _refusal(commit: CommitSpec, identity: str, record: Mapping[str, Any]) -> str:
    """Why the record must not be run; empty when it may be."""
    if not commit.re_execute:
        return "the commit runs with re_execute=False"
    if not kind_of(record).reexecutes:
        return f"a commit cannot re-execute a job of kind {record.get('kind')!r}"
    places = hidden_places(record)
    if places:
        return (
            f"{', '.join(places)} contained a secret, which records do not keep (as a reference, "
            '{"env": NAME} or {"file": PATH}, the commit could resolve it)'
        )
    trusted = commit.digests.get(identity, "")
    if len(trusted) == _DIGEST_DIGITS:
        if work_digest(record) == trusted:
            return ""
        return "the record of its spec in the store was changed since its staging task wrote it"
    if is_plain(record):
        return ""
    return (
        "the commit does not have the SHA-256 of its spec, and the record in the store contains a callable, a query, a path "
        "or a reference, which only its staging task may execute"
    )


def hidden_places(value: Any, *, where: str = "") -> list[str]:
    """Where a record hides a secret: ["source.options.password"]."""
    if value == HIDDEN:
        return [where]
    if isinstance(value, Mapping):
        inner = [hidden_places(item, where=f"{where}.{name}".lstrip(".")) for name, item in value.items()]
    elif isinstance(value, (list, tuple)):
        inner = [hidden_places(item, where=f"{where}[{index}]") for index, item in enumerate(value)]
    else:
        return []
    return [place for places in inner for place in places]


def why_not_reexecutable(commit: CommitSpec, identity: str, record: Mapping[str, Any]) -> str:
    """Why work cannot be staged again here although its kind could be: the end of an error's message."""
    reason = _refusal(commit, identity, record) if kind_of(record).reexecutes else ""
    return f"This commit cannot re-execute it, because {reason}; clear its staging task." if reason else ""


def reexecute(
    store: Store,
    commit: CommitSpec,
    records: Mapping[str, Mapping[str, Any]],
    runner: Runner,
    ref: StagedTransaction,
    own_commit: str,
) -> StagedTransaction:
    """Plan and stage one identity's work on the newest version, in the place of the attempt that waits.

    `records`: specs as attempts left them, by identity. IncompatibleConflictError when the one must not be run.
    """
    record = records[ref.identity]
    if reason := _refusal(commit, ref.identity, record):
        raise IncompatibleConflictError(
            f"{store.uri}: {ref.identity} must be re-executed, but {reason}",
            uri=store.uri,
            cure="Clear its staging task, or pass the reference that it returned to the commit.",
        )
    planned = spec_from_plain({**record, "uri": commit.uri, "identity": ref.identity})
    spec = replace(planned, storage_options=commit.storage_options, replaces=(ref.attempt, own_commit))
    refresh = refresh_of(spec)
    if refresh is not None:
        log.info("refreshing %s %s to the newest version", spec.kind, ref.identity)
        started = read_started(store, ref.identity, ref.attempt)  # its spec does not name the task that requested the work
        asked = spec if started is None else replace(spec, asked=dict(started.asked))
        staged: Any = refresh(store, asked, ref, runner)
    else:
        log.info("re-executing %s %s", spec.kind, ref.identity)
        staged = carry_out(spec, runner)
    if not isinstance(staged, StagedTransaction):
        raise LanceError(f"the {spec.kind} job staged no transaction")
    return staged
