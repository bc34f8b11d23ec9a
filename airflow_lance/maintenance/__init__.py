"""Maintenance by policy in Airflow: the group `LanceMaintenance`, its operators, and DAGs made from a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from airflow_lance.maintenance.actions import lance_actions_dags as lance_actions_dags
    from airflow_lance.maintenance.dags import maintenance_dags as maintenance_dags
    from airflow_lance.maintenance.group import LanceMaintenance as LanceMaintenance
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "lance_actions_dags": "airflow_lance.maintenance.actions",
            "LanceMaintenance": "airflow_lance.maintenance.group",
            "maintenance_dags": "airflow_lance.maintenance.dags",
        },
    )

__all__ = ["LanceMaintenance", "lance_actions_dags", "maintenance_dags"]
