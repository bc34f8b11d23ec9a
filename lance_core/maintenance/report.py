"""A table as one static page for tickets and mails: no network, no script, light and dark.

::

    html = report_html(table_report("/t.lance"))

`table_report` gathers plain data once; `report_html` only draws it. Every text that a table may choose (names, tags,
properties, errors) is escaped.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_core.dataset.indexing.describe import describe
from lance_core.dataset.maintain.compact_plan import bytes_of
from lance_core.dataset.refs.tags import list_tags
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.dataset.versions.transaction_log import LogEntry, read_log
from lance_core.io.resolve import resolve_store
from lance_core.maintenance.doctor import diagnose
from lance_core.maintenance.evidence import NOTHING, Evidence, history
from lance_core.maintenance.findings import Finding
from lance_core.maintenance.observe import Observation, observe_snapshot
from lance_core.maintenance.policy import ManagedTable, Policy, ServiceLevels
from lance_core.publish.attempts import list_staged

RECENT_VERSIONS = 60
RECENT_STEPS = 30


@dataclass(frozen=True, kw_only=True)
class TableReport:
    """What the page shows. `made_at` is seconds since the epoch; `staged` has a row for each waiting or dead attempt,
    `upkeep` what maintenance did to the table lately, the newest first."""

    uri: str
    made_at: float
    observation: Observation
    findings: Sequence[Finding]
    log: Sequence[LogEntry]
    schema: Sequence[tuple[str, str, bool]]
    indices: Sequence[Mapping[str, Any]]
    staged: Sequence[Mapping[str, Any]]
    tags: Mapping[str, int]
    deletions: Sequence[tuple[int, int, int]]
    upkeep: Sequence[Evidence] = ()

    @property
    def health(self) -> int | None:
        """A score of 100, less what each finding takes: an error 40, a warning 15, a note 3. None if the files of the table
        were not compared with the manifest."""
        if any(item.code == "files-not-checked" for item in self.findings):
            return None
        costs = {"error": 40, "warning": 15, "note": 3}
        return max(0, 100 - sum(costs[item.severity] for item in self.findings))


def table_report(
    uri: str,
    *,
    levels: ServiceLevels | None = None,
    policy: Policy | None = None,
    storage_options: Mapping[str, str] | None = None,
    deep: bool = False,
    now: float | None = None,
) -> TableReport:
    """Gather the facts of the newest version. Raises NotFoundError when there is no table, StoreError.

    With a `policy` the table is judged by its service levels there, unless `levels` are given, and what the policy's
    maintenance did to it is shown, predicted and real.
    """
    rule = None if policy is None else policy.for_table(ManagedTable(uri=uri))
    levels = levels or (ServiceLevels() if rule is None else rule.levels)
    moment = time.time() if now is None else now
    store = resolve_store(uri, storage_options)
    snapshot = snapshot_of(store, storage_options=storage_options)
    observation = observe_snapshot(ManagedTable(uri=uri), snapshot, levels, now=moment)
    return TableReport(
        uri=snapshot.uri,
        made_at=moment,
        observation=observation,
        findings=diagnose(uri, deep=deep, levels=levels, storage_options=storage_options, now=moment),
        log=read_log(store, limit=RECENT_VERSIONS),
        schema=[(field.name, str(field.type), field.nullable) for field in snapshot.visible_schema],
        indices=_indices(snapshot, observation),
        staged=[
            {"identity": entry.identity, "state": entry.state, "read_version": entry.read_version, "started": entry.started,
             "kind": str(entry.spec.get("kind", ""))}
            for entry in list_staged(store)
        ],
        tags={name: tag.version for name, tag in list_tags(store).items()},
        deletions=_largest(snapshot),
        upkeep=() if policy is None else _upkeep(policy, uri, storage_options),
    )  # fmt: skip


def _indices(snapshot: Snapshot, seen: Observation) -> list[dict[str, Any]]:
    rows = max(seen.num_rows, 1)
    return [
        {
            "name": item.name,
            "type": item.index_type,
            "segments": seen.index_segments.get(item.name, 0),
            "covered": 1 - seen.unindexed_rows.get(item.name, 0) / rows,
            "bytes": sum(segment.size_bytes or 0 for segment in item.segments),
        }
        for item in describe(snapshot)
    ]


def _upkeep(policy: Policy, uri: str, storage_options: Mapping[str, str] | None) -> list[Evidence]:
    rows = history(policy.evidence_uri, table=uri, storage_options=storage_options)
    return [row for row in reversed(rows) if row.outcome != NOTHING][:RECENT_STEPS]


def _largest(snapshot: Snapshot, count: int = 20) -> list[tuple[int, int, int]]:
    """Fragments with most deleted rows: id, deleted rows, bytes."""
    deleted = [item for item in snapshot.manifest.fragments if item.num_deleted_rows]
    deleted.sort(key=lambda item: -item.num_deleted_rows)
    return [(item.id, item.num_deleted_rows, bytes_of(item)) for item in deleted[:count]]
