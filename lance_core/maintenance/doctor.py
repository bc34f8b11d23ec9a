"""Find out why a table is slow, large, conflicting or expensive: findings with size, cost and cure.

::

    diagnose("/t.lance")
    -> [Finding(code="small-fragments", severity="warning", size=1310, unit="fragments", cost="...", cure="lance ...")]

A finding is a measurement above a bound that a healthy table keeps. The files of the newest version are compared with what
the store lists, with at most `presence.MAX_REQUESTS` requests; a table that needs more has the note `files-not-checked`.
`deep` also reads every data file and lists all files, which finds damage and stranded bytes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from lance_core.commit.manifests import list_versions
from lance_core.dataset.snapshot.snapshot import snapshot_of
from lance_core.dataset.versions.transaction_log import read_log
from lance_core.io.resolve import resolve_store
from lance_core.maintenance.doctor_checks import CHECKS, DEEP_CHECKS
from lance_core.maintenance.findings import Finding, Patient
from lance_core.maintenance.observe import observe_snapshot
from lance_core.maintenance.policy import ManagedTable, ServiceLevels
from lance_core.maintenance.presence import MAX_REQUESTS
from lance_core.publish.attempts import list_staged

RECENT_VERSIONS = 50


def diagnose(
    uri: str,
    *,
    deep: bool = False,
    levels: ServiceLevels | None = None,
    storage_options: Mapping[str, str] | None = None,
    now: float | None = None,
) -> list[Finding]:
    """Return the findings, the gravest first. Raises NotFoundError when there is no table, StoreError."""
    levels = levels or ServiceLevels()
    moment = time.time() if now is None else now
    store = resolve_store(uri, storage_options)
    snapshot = snapshot_of(store, storage_options=storage_options)
    patient = Patient(
        uri=uri,
        snapshot=snapshot,
        observation=observe_snapshot(
            ManagedTable(uri=uri), snapshot, levels, now=moment, file_requests=0 if deep else MAX_REQUESTS
        ),
        versions=list_versions(store),
        staged=list_staged(store),
        log=read_log(store, limit=RECENT_VERSIONS),
        levels=levels,
        now=moment,
    )
    found = [item for check in (*CHECKS, *(DEEP_CHECKS if deep else ())) for item in check(patient)]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda item: (order[item.severity], item.code))
