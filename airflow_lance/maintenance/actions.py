"""The DAG behind the buttons of the pages: one task that runs one action on one table, according to the run's configuration.

::

    from airflow_lance.maintenance import lance_actions_dags

    globals().update(lance_actions_dags(lance_conn_ids=["lake"]))

    {"action": "tag", "uri": "s3://lake/orders.lance", "lance_conn_id": "lake", "arguments": {"name": "prod", "version": 7}}

Who may trigger the DAG may do these things to every table of its connections. Nothing else can be requested: the actions and
the types of their arguments are a closed list, and a table must be below the base uri of its connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import DAG, AirflowFailException, BaseOperator, Context
from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.maintenance.action_arguments import check_arguments

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import TaskArguments


class LanceActionOperator(BaseOperator):
    """Run the action of the run's configuration.

    Args:
        lance_conn_ids: the connections whose tables may be named.
    """

    ui_color = "#e3f0ec"

    def __init__(
        self, *, lance_conn_ids: Sequence[str] = (LanceHook.default_conn_name,), **kwargs: Unpack[TaskArguments]
    ) -> None:
        super().__init__(**kwargs)
        self.lance_conn_ids = list(lance_conn_ids)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return what was done. AirflowFailException for any other configuration."""
        from airflow_lance.execution.arguments import asker_of, identity_of
        from lance_core.jobs.api import is_below
        from lance_core.jobs.specs.secret import reveal_all
        from lance_core.maintenance.actions import act

        run: Any = context["dag_run"]
        conf: Mapping[str, Any] = run.conf or {}
        conn_id = str(conf.get("lance_conn_id") or LanceHook.default_conn_name)
        if conn_id not in self.lance_conn_ids:
            raise AirflowFailException(
                f"connection {conn_id!r} is not a connection of this DAG: {', '.join(self.lance_conn_ids)}"
            )
        hook = LanceHook(conn_id)
        uri = hook.get_uri(str(conf.get("uri") or ""))
        if not is_below(uri, hook.settings.base_uri):
            raise AirflowFailException(f"table {uri!r} is not below the base uri of connection {conn_id!r}")
        action = str(conf.get("action") or "")
        with as_airflow_errors(uri):
            done = act(
                action,
                uri,
                check_arguments(action, conf.get("arguments") or {}),
                storage_options=reveal_all(hook.storage_options(uri)),
                identity=identity_of(context, uri=uri, key=action),
                asked=asker_of(context, retries=self.retries),
            )
        self.log.info("%s of %s: %s", action, uri, done)
        return {"uri": uri, "action": action, **done}


def lance_actions_dags(
    *,
    dag_id: str = "lance_actions",
    lance_conn_ids: Sequence[str] = (LanceHook.default_conn_name,),
    dag_args: Mapping[str, Any] | None = None,
) -> dict[str, DAG]:
    """Return the DAG by id, to be put into a DAG file's globals. It has no schedule; buttons and people trigger it."""
    arguments: dict[str, Any] = {
        "schedule": None,
        "start_date": datetime(2024, 1, 1, tzinfo=timezone.utc),
        "catchup": False,
        "max_active_runs": 8,
        "is_paused_upon_creation": False,
        "tags": ["lance", "maintenance"],
        "doc_md": __doc__,
        **dict(dag_args or {}),
    }
    with DAG(dag_id=dag_id, **arguments) as dag:
        LanceActionOperator(task_id="act", lance_conn_ids=lance_conn_ids)
    return {dag_id: dag}
