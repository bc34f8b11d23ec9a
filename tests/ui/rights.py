"""Rights by DAG for the tests' server: Airflow's simple auth manager gives every user of a role the same."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

STRANGER = "stranger"
HIDDEN_DAGS = frozenset({"shop", "desk", "lance_actions", "lance_maintenance"})
"""What the user `stranger`, who has the role of a user otherwise, may neither read nor trigger."""


class RightsByDag(SimpleAuthManager):
    """As the simple one, but one user may not read some DAGs."""

    def is_authorized_dag(self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        if user.get_name() == STRANGER and details is not None and details.id in HIDDEN_DAGS:
            return False
        return bool(super().is_authorized_dag(method=method, user=user, access_entity=access_entity, details=details))
