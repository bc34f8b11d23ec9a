"""Whose work a transaction is: identities as transaction properties. Pure.

::

    properties["airflow_lance.identity.5d2c…"] = '{"attempt":"00ff…","operation":"append","rows":25000}'

A folded transaction has one property per member, so any reader of the history sees who wrote a version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lance_core.commit.model import IDENTITY_PREFIX
from lance_core.table.transaction import Transaction


def identities_of(transaction: Transaction) -> Mapping[str, Mapping[str, Any]]:
    """The identities a transaction carries in its properties, each with what is noted about it."""
    found = {}
    for name, text in transaction.properties.items():
        if name.startswith(IDENTITY_PREFIX):
            found[name[len(IDENTITY_PREFIX) :]] = _note(text)
    return found


def carries(transaction: Transaction, identity: str) -> bool:
    """Whether a transaction is the landing of an identity."""
    return transaction.uuid == identity or IDENTITY_PREFIX + identity in transaction.properties


def identity_property(identity: str, note: Mapping[str, Any]) -> tuple[str, str]:
    """Name and value of the transaction property that records an identity."""
    return IDENTITY_PREFIX + identity, json.dumps(note, separators=(",", ":"), sort_keys=True)


def _note(text: str) -> Mapping[str, Any]:
    try:
        note = json.loads(text)
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}
