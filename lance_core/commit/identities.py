"""Identities of a transaction's work, stored as transaction properties. Pure.

::

    properties["lance_core.identity.5d2c…"]  = '{"attempt":"00ff…","digest":"9a…","operation":"append","rows":25000}'
    properties["lance_core.aborted.5d2c…"] = '{"attempts":["00ff…"]}'      an abort: nobody publishes that attempt any more

A folded transaction has one property per member, so any reader of the history sees who wrote a version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lance_core.table.transaction import Transaction

IDENTITY_PREFIX = "lance_core.identity."
"""A transaction property per identity: `lance_core.identity.<uuid>` = small JSON; a folded transaction has many."""

ABORTED_PREFIX = "lance_core.aborted."
"""On the version of an abort: `lance_core.aborted.<identity>` = JSON with the attempts that nobody may publish any more."""

CREATES_PROPERTY = "lance_core.creates"
"""On a staged Overwrite of version 0: what it becomes when the table exists by then ("append")."""

ASSUMES_PROPERTY = "lance_core.assumes"
"""On a staged replacement or merge: JSON that says which rows it must have known: `{"predicate": …}` or `{"keys": […]}`."""

STAGED_PROPERTY = "lance_core.staged"
"""On a staged transaction: JSON with what its commit alone has to know (see `publish.staged_properties`)."""

GROWS_PROPERTY = "lance_core.grows"
"""On a Merge that adds rows and the columns which they brought: JSON that says which columns and fragments are new."""

REQUEST_PROPERTY = "lance_core.request"
"""On a version that no staged work made: JSON with the operation and the task that requested it. It identifies nothing."""

_MAX_TEXT = 1024
_STAGED_ONLY = frozenset({CREATES_PROPERTY, ASSUMES_PROPERTY, STAGED_PROPERTY})


@dataclass(frozen=True, slots=True)
class Asked:
    """The task that requested work: never part of its digest.

    `clear` changes when a user clears the task. `created` is when its DAG run began, where it has begun once only;
    `max_tries` is Airflow's, which only a clear changes. Both are compared with those of an earlier run, and otherwise only
    shown. `source` is the fingerprint of the files that the try has read.

    `statement`: of SQL or of a DataFrame, where it was that and no task ("update", "append", ...). Such work is committed by
    the process that staged it and by nobody else, because whoever sees the statement fail runs it again.
    """

    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""
    map_index: int = -1
    try_number: int = 0
    host: str = ""
    log_url: str = ""
    clear: str = ""
    created: str = ""
    max_tries: int = -1
    source: str = ""
    statement: str = ""

    def to_dict(self) -> dict[str, Any]:
        """What is known, as JSON-able values."""
        return {item.name: getattr(self, item.name) for item in fields(self) if getattr(self, item.name) != item.default}

    @classmethod
    def from_dict(cls, plain: Any) -> Asked:
        """Reads leniently: values of a wrong type are ignored, because they are only shown."""
        if not isinstance(plain, Mapping):
            return cls()
        found: dict[str, Any] = {}
        for item in fields(cls):
            value = plain.get(item.name)
            if isinstance(item.default, str) and isinstance(value, str):
                found[item.name] = value[:_MAX_TEXT]
            elif isinstance(item.default, int) and _is_number(value):
                found[item.name] = value
        return cls(**found)

    @property
    def task(self) -> tuple[str, str, str, int]:
        """Which task instance it is, whatever the try."""
        return self.dag_id, self.run_id, self.task_id, self.map_index

    def is_of_another_run(self, theirs: Asked) -> bool:
        """Whether the task's DAG run was deleted and created again since, as far as both are known.

        Work with a key of its own may have been requested by a task of another run, which says nothing about this one.
        """
        return self.task == theirs.task and bool(self.created and theirs.created and self.created != theirs.created)

    def is_after_clear(self, theirs: Asked) -> bool:
        """Whether a person asks again: the run was created again, or the task was cleared, since `theirs`."""
        return self.is_of_another_run(theirs) or (self.task == theirs.task and 0 <= theirs.max_tries < self.max_tries)

    def __str__(self) -> str:
        if not self.task_id:
            return f"a statement ({self.statement})" if self.statement else self.host or "unknown"
        index = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f"{self.dag_id}.{self.task_id}{index} of {self.run_id}, try {self.try_number}"


def identities_of(transaction: Transaction) -> Mapping[str, Mapping[str, Any]]:
    """The identities a transaction carries in its properties, each with what is noted about it."""
    return identities_in(transaction.properties)


def identities_in(properties: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """`identities_of` from the properties alone."""
    prefix = IDENTITY_PREFIX
    return {name[len(prefix) :]: _note(text) for name, text in properties.items() if name.startswith(prefix)}


def writers_of(note: Mapping[str, Any]) -> tuple[str, ...]:
    """The attempts that wrote an identity's files, by what is noted about it."""
    return str(note.get("attempt", "")), *_texts(note.get("adopts"))


def asked_by(transaction: Transaction) -> tuple[Asked, ...]:
    """The tasks that requested the work of a version, each once, in the order of their names."""
    notes = [note.get("asked") for note in identities_of(transaction).values()]
    notes += [note.get("asked") for note in requests_in(transaction.properties)]
    return tuple(sorted({Asked.from_dict(note) for note in notes if note}, key=lambda asked: asked.task))


def request_property(operation: str, asked: Mapping[str, Any]) -> dict[str, str]:
    """The transaction property of a change that takes effect at once; none where nobody is known to have requested it."""
    known = Asked.from_dict(asked).to_dict()
    return {REQUEST_PROPERTY: _text({"operation": operation, "asked": known})} if known else {}


def requests_in(properties: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    """What `request_property` noted: {"operation": ..., "asked": ...}, at most one."""
    note = _note(properties.get(REQUEST_PROPERTY, ""))
    return (note,) if note else ()


def carries(transaction: Transaction, identity: str) -> bool:
    """Whether a transaction is the commit of an identity."""
    return transaction.uuid == identity or IDENTITY_PREFIX + identity in transaction.properties


def identity_properties(identity: str, note: Mapping[str, Any]) -> dict[str, str]:
    return {IDENTITY_PREFIX + identity: _text(note)}


def aborts_of(transaction: Transaction) -> Mapping[str, tuple[str, ...]]:
    """The attempts that a version aborts, by identity."""
    prefix = ABORTED_PREFIX
    notes = {name[len(prefix) :]: _note(text) for name, text in transaction.properties.items() if name.startswith(prefix)}
    return {name: _texts(note.get("attempts")) for name, note in notes.items()}


def abort_property(identity: str, attempts: Sequence[str]) -> tuple[str, str]:
    """Name and value of the property by which a version aborts attempts."""
    return ABORTED_PREFIX + identity, _text({"attempts": [*attempts]})


def creates(properties: Mapping[str, str]) -> str:
    """What a staged creation becomes when the table exists by then; "" for anything else."""
    return properties.get(CREATES_PROPERTY, "")


def published(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a staged transaction that go into the log."""
    return {name: text for name, text in properties.items() if name not in _STAGED_ONLY}


def _text(note: Mapping[str, Any]) -> str:
    return json.dumps(note, separators=(",", ":"), sort_keys=True)


def _note(text: str) -> Mapping[str, Any]:
    try:
        note = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def _texts(found: Any) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64
