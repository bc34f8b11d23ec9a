"""Maintenance by policy: every table below a folder is maintained when necessary, within a budget.

::

    lance_maintenance   maintenance.plan -> maintenance.look_after [one for each table] and maintenance.alarms
    lance_actions       act: one thing to one table, when a button of the pages or a person asks for it

Each hour a run observes the tables (manifests and listings, no data), plans what is due, prices it with the rates of earlier
runs, and does what the budget of the day allows: compactions by size tiers, indices, old versions, files of attempts that
died. A table that was written to a moment ago waits. Every step leaves a row in `{folder}/_maintenance`. The place is in the
environment: MAINTAINED_FOLDER.
"""

from __future__ import annotations

import os

from airflow_lance.maintenance import lance_actions_dags, maintenance_dags
from lance_core.maintenance.policy import Budget, Policy, ServiceLevels, TableRule

FOLDER = os.environ.get("MAINTAINED_FOLDER", "/tmp/lance")
KEEP_DAYS = float(os.environ.get("MAINTAINED_KEEP_DAYS", "7"))
BACKOFF_SECONDS = float(os.environ.get("MAINTAINED_BACKOFF_SECONDS", "30"))

POLICY = Policy(
    base_uri=FOLDER,
    levels=ServiceLevels(max_deleted_share=0.1, max_unindexed_share=0.1, keep_seconds=KEEP_DAYS * 86400, keep_versions=3),
    budget=Budget(bytes_per_day=500 * 10**9, seconds_per_day=4 * 3600.0, backoff_seconds=BACKOFF_SECONDS),
    tables=(
        TableRule(match="*"),
        # Tables that are searched all day: fewer fragments, and versions go earlier.
        TableRule(match="*flights.lance", levels={"min_fragments": 8, "max_versions": 4}),
        TableRule(match="scratch/*", paused=True),
    ),
)

globals().update(maintenance_dags(POLICY, schedule="@hourly", dag_args={"doc_md": __doc__}))
globals().update(lance_actions_dags())
