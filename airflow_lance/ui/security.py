"""Permissions of the pages, by Airflow's own rules. A mounted app has no permissions, so every route depends on these.

::

    pages, every GET           the view PLUGINS, and reading assets
    rows and searches          [lance] pages_rows: nobody; reading the table's connection; or the view "Lance rows"
    buttons                    triggering the DAG that does the work
    names of DAGs and tasks    only those that the user may read
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

from fastapi import Depends, Request

from airflow_lance.ui.errors import PageError
from airflow_lance.ui.settings import RowsRight

# Only the API server of Airflow 3 imports this module; a name that moves makes the app fail, and then nothing is served.
get_user: Any = import_module("airflow.api_fastapi.core_api.security").get_user
_details: Any = import_module("airflow.api_fastapi.auth.managers.models.resource_details")

ROWS_VIEW = "Lance rows"
REQUEST_HEADER = "X-Lance-Request"


def require_reader(user: Annotated[Any, Depends(get_user)]) -> Any:
    """The user of a request. PageError "forbidden" without the right to see plugins' views and assets."""
    manager = _auth_manager()
    may = manager.is_authorized_view(access_view=_details.AccessView.PLUGINS, user=user)
    if not may or not manager.is_authorized_asset(method="GET", user=user):
        raise PageError(
            "forbidden",
            "You may not see the Lance pages.",
            cure="Request the permissions to view PLUGINS and to read assets.",
        )
    return user


def require_same_site(request: Request) -> None:
    """PageError "cross_site" for a request that another site's page may have sent: it cannot set our header."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    is_own = origin is None or origin.partition("://")[2] == request.headers.get("host")
    is_json = request.headers.get("content-type", "").partition(";")[0].strip() == "application/json"
    if not is_own or site not in (None, "same-origin", "none") or request.headers.get(REQUEST_HEADER) != "1" or not is_json:
        raise PageError("cross_site", f"A request that changes something needs JSON and the header {REQUEST_HEADER}: 1.")


def may_see_rows(user: Any, right: RowsRight, conn_id: str) -> bool:
    """Whether a user may see rows of tables of a connection."""
    if right == "connection":
        details = _details.ConnectionDetails(conn_id=conn_id)
        return bool(_auth_manager().is_authorized_connection(method="GET", details=details, user=user))
    if right == "view":
        return bool(_auth_manager().is_authorized_custom_view(method="GET", resource_name=ROWS_VIEW, user=user))
    return False


def may_trigger(user: Any, dag_id: str) -> bool:
    """Whether a user may trigger a DAG."""
    return _may(user, dag_id, "POST")


def may_read_runs(user: Any, dag_id: str) -> bool:
    """Whether a user may see the runs of a DAG."""
    return _may(user, dag_id, "GET")


def _may(user: Any, dag_id: str, method: Any) -> bool:
    from airflow.models.dag import DagModel

    team = getattr(DagModel, "get_team_name", lambda dag_id: None)(dag_id)
    details = _details.DagDetails(id=dag_id, **({"team_name": team} if team else {}))
    entity = _details.DagAccessEntity.RUN
    return bool(_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user))


def readable_dags(user: Any, dag_ids: Iterable[str]) -> frozenset[str]:
    """Those of some DAGs that a user may read. A DAG that Airflow no longer knows may be read by who may read all."""
    wanted = frozenset(dag_ids)
    return frozenset(dag_id for dag_id in wanted if _may(user, dag_id, "GET"))


def _auth_manager() -> Any:
    return import_module("airflow.api_fastapi.app").get_auth_manager()
