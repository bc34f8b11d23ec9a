"""Exactly once for actions that stage nothing: a reference file that records its writer, and the ledger.

::

    set tag v1 -> version 7, identity 5d2c    _refs/tags/v1.json has metadata {"lance_core.identity": "5d2c…"}, then the
                                              ledger notes 5d2c; a retry finds the one or the other and does nothing
"""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Mapping
from typing import Any

from lance_core.io.store import Store
from lance_core.jobs.specs.spec import JobSpec
from lance_core.publish.decisions import CommittedWork, look, say_committed
from lance_core.publish.table_id import is_other_table, table_id_of

IDENTITY = "lance_core.identity"
"""The key in the metadata of tags and branches."""

_NOT_THE_WORK = ("uri", "storage_options", "asked", "on_clear", "replaces")


def work_identity(spec: JobSpec) -> str:
    """The identity of this very work: the task's, and its spec. Empty for a caller without an identity."""
    if not spec.identity:
        return ""
    work = {name: value for name, value in spec.to_plain(redact=True).items() if name not in _NOT_THE_WORK}
    return str(uuids.uuid5(uuids.NAMESPACE_OID, json.dumps(work, sort_keys=True)))


def signature(identity: str) -> dict[str, str]:
    """What a reference file says of its writer; nothing for a caller without an identity."""
    return {IDENTITY: identity} if identity else {}


def is_signed(metadata: Mapping[str, Any], identity: str) -> bool:
    """Whether a reference was written by this identity."""
    return bool(identity) and metadata.get(IDENTITY) == identity


def was_done(store: Store, identity: str) -> bool:
    """Whether a decision says that this identity's work is done, in this table: not in another that was at this uri
    before."""
    done = look(store, identity).committed if identity else None
    return done is not None and not (done.table_id and is_other_table(done.table_id, table_id_of(store)))


def note_done(store: Store, identity: str, *, version: int) -> None:
    """Put the decision."""
    if identity:
        say_committed(store, CommittedWork(identity, version, table_id=table_id_of(store)), by="an action")
