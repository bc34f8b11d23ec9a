"""Identities of a transaction's work, stored as transaction properties. Pure.

::

    properties["lance_core.identity.5d2c…"]  = '{"attempt":"00ff…","digest":"9a…","operation":"append","rows":25000}'
    properties["lance_core.withdrawn.5d2c…"] = '{"attempt":"00ff…"}'       a fence version: that attempt is withdrawn

A folded transaction has one property per member, so any reader of the history sees who wrote a version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lance_core.commit.model import (
    ASSUMES_PROPERTY,
    CREATES_PROPERTY,
    IDENTITY_PREFIX,
    WITHDRAWN_PREFIX,
)
from lance_core.commit.record_types import Asked
from lance_core.table.transaction import Transaction

_STAGED_ONLY = frozenset({CREATES_PROPERTY, ASSUMES_PROPERTY})


def identities_of(transaction: Transaction) -> Mapping[str, Mapping[str, Any]]:
    """The identities a transaction carries in its properties, each with what is noted about it."""
    return identities_in(transaction.properties)


def identities_in(properties: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """`identities_of` from the properties alone."""
    prefix = IDENTITY_PREFIX
    return {name[len(prefix) :]: _note(text) for name, text in properties.items() if name.startswith(prefix)}


def writers_of(note: Mapping[str, Any]) -> tuple[str, ...]:
    """The attempts that wrote an identity's files, by what is noted about it."""
    adopted = note.get("adopts")
    return (str(note.get("attempt", "")), *(map(str, adopted) if isinstance(adopted, list) else ()))


def asked_by(transaction: Transaction) -> tuple[Asked, ...]:
    """The tasks that requested the work of a version, each once, in the order of their names."""
    notes = (note.get("asked") for note in identities_of(transaction).values())
    return tuple(sorted({Asked.from_dict(note) for note in notes if note}, key=lambda asked: asked.task))


def carries(transaction: Transaction, identity: str) -> bool:
    """Whether a transaction is the landing of an identity."""
    return transaction.uuid == identity or IDENTITY_PREFIX + identity in transaction.properties


def identity_properties(identity: str, note: Mapping[str, Any]) -> dict[str, str]:
    """The transaction property that records an identity."""
    return {IDENTITY_PREFIX + identity: _text(note)}


def withdrawals_of(transaction: Transaction) -> Mapping[str, str]:
    """The attempts that a fence version withdraws, by identity."""
    return {
        name[len(WITHDRAWN_PREFIX) :]: str(_note(text).get("attempt", ""))
        for name, text in transaction.properties.items()
        if name.startswith(WITHDRAWN_PREFIX)
    }


def withdrawal_property(identity: str, attempt: str) -> tuple[str, str]:
    """Name and value of the property by which a fence version withdraws an attempt."""
    return WITHDRAWN_PREFIX + identity, _text({"attempt": attempt})


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
