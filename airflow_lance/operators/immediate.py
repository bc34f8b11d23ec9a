"""Shared by operators that take effect at once in the worker's process, without staging and without a commit task.

::

    LanceTagOperator(task_id="release", uri="flights.lance", tag="production")     -> XCom {"version": 7, ...}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.compat import Asset, Context
from airflow_lance.execution.arguments import clear_of, identity_of, require_one_of, with_asker
from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.lineage import Touched, described, lineage
from airflow_lance.operators.job import LanceJobOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import TableArguments


class LanceImmediateOperator(LanceJobOperator):
    """Base of the operators that take effect at once, in the worker's process.

    Run them in the table's pool (`airflow_lance.pools.pool_of`) when commits should wait for them. An outlet asset's event
    gets the table's uri, and its version where the work tells it.

    Args:
        on_clear: what happens to work that is done once for a run (a tag, a branch, a restore) when a person clears its
            task: "skip" leaves it as it is, "again" does it once more.

    Raises:
        InputError: arguments that contradict each other, among the DAG's import errors.
        AirflowFailException: an error that a retry meets again; its text ends with the cure.
        RetryableConflictError: others changed the same table at the same time. Airflow tries the task again.
    """

    _touched: Touched | None = None
    _options: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, *, on_clear: Literal["again", "skip"] = "skip", **kwargs: Unpack[TableArguments]) -> None:
        super().__init__(**kwargs)
        require_one_of(on_clear, ("again", "skip"), where=f"{self.task_id}: on_clear")
        self.on_clear = on_clear

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """For OpenLineage: the table, with its version and columns where the work tells the version."""
        return lineage(outputs=[] if self._touched is None else [described(self._touched, options=self._options)])

    def prepare(self, context: Context, *, uri: str) -> None:
        """What an argument means in this run; nothing by default."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Do it; returns what it did as a plain dict."""
        from airflow_lance.execution.results import bounded, in_short
        from lance_core.jobs import api
        from lance_core.jobs.specs.identity import identity_after_clear

        with as_airflow_errors(self.uri):
            uri = self.table_uri()
            self.prepare(context, uri=uri)
            clear = clear_of(context, retries=self.retries)
            identity = identity_of(context, uri=self.identity_uri(uri))
            identity = identity_after_clear(identity, clear=clear, on_clear=self.on_clear)
            # The clear is in the identity already; the job itself never refuses because of one.
            spec = replace(self.make_spec(uri=uri, identity=identity), on_clear="skip")
            spec = with_asker(spec, context, retries=self.retries)
            self._options = self.store_options()
            result = api.run(spec, options=self._options)
        shown = {name: value for name, value in result.items() if name != "rows"}
        self.log.info("%s of %s: %s", spec.kind, uri, in_short(shown))
        self._touched = Touched(uri, version=result.get("version"))
        extra = {"uri": uri, **({"version": result["version"]} if "version" in result else {})}
        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra.update(extra)
        # For the pages, which show what a task did; what the work itself reports stands.
        told = {"uri": uri, "operation": spec.kind, **result}
        return told if "rows" in result else bounded(told)
