"""Shared by all sensors of a table: one condition of `lance_core.conditions`, checked by poking or in the triggerer.

::

    poke mode     worker: look -> condition met? -> sleep -> look ...
    deferrable    worker: look once; not met -> triggerer: the same look, the same condition -> worker: done

The result is the table's facts as a dict: an XCom with version, rows, fragments.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import AirflowFailException, BaseSensorOperator, Context, deferrable_by_default
from airflow_lance.connection import plain_uri
from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.execution.facts import look
from airflow_lance.execution.secrets import check_storage_options, mask_all
from airflow_lance.full_signature import FullSignature
from airflow_lance.hooks.lance import LanceHook
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import AirflowSensorArguments
    from airflow_lance.triggers.condition import LanceConditionTrigger
    from lance_core.conditions import Condition, TableFacts


class LanceSensor(BaseSensorOperator):
    """Base of the sensors; a subclass defines the condition (`make_condition`).

    Args:
        uri: the table: a full uri, a name below the connection's base uri, or its name in the connection's catalog.
            (templated)
        lance_conn_id: the `lance` connection. (templated)
        storage_options: more options for the store, as references if they are secret: they are stored with the trigger.
            (templated)
        deferrable: wait in the triggerer instead of a worker; None takes the deployment's default.
        kwargs: of Airflow's sensors: `poke_interval`, `timeout`, `mode`, `soft_fail`.

    Raises:
        InputError: a storage option that may be a secret stands in the DAG file.
        AirflowFailException: an error that waiting cannot fix.
    """

    template_fields: Sequence[str] = ("uri", "lance_conn_id", "storage_options")
    template_fields_renderers: ClassVar[dict[str, str]] = {"storage_options": "json"}
    ui_color = "#d7e7f5"
    __signature__: ClassVar[Any] = FullSignature()

    def __init__(
        self,
        *,
        uri: str | os.PathLike[str],
        lance_conn_id: str = LanceHook.default_conn_name,
        storage_options: Mapping[str, Any] | None = None,
        deferrable: bool | None = None,
        **kwargs: Unpack[AirflowSensorArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.uri = plain_uri(uri)
        self.lance_conn_id = lance_conn_id
        self.storage_options = dict(storage_options or {})
        check_storage_options(self.storage_options, where=self.task_id)
        self.deferrable = deferrable_by_default() if deferrable is None else deferrable
        self._facts: TableFacts | None = None

    def render_template_fields(self, context: Context, jinja_env: Any = None) -> None:
        """Render, then tell the masking what must not show: Airflow stores rendered fields right after this."""
        super().render_template_fields(context, jinja_env)
        mask_all(self.storage_options)
        check_storage_options(self.storage_options, where=self.task_id)

    @abstractmethod
    def make_condition(self) -> Condition:
        """What to wait for."""

    def make_trigger(self) -> LanceConditionTrigger:
        """The same wait for the triggerer."""
        from airflow_lance.triggers.condition import LanceConditionTrigger

        return LanceConditionTrigger(
            uri=self.uri,
            condition=self.make_condition().to_dict(),
            lance_conn_id=self.lance_conn_id,
            storage_options=self.storage_options,
            poke_interval=float(self.poke_interval),
        )

    def poke(self, context: Context) -> bool:
        """Look at the table once and return whether the condition is met."""
        condition = self.make_condition()
        with as_airflow_errors(self.uri):
            self._facts = look(
                self.uri, condition=condition, lance_conn_id=self.lance_conn_id, storage_options=self.storage_options
            )
        self.log.info("%s: %s", self._facts.uri, condition.explain(self._facts))
        return condition.is_met(self._facts)

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Wait; the table's facts as a dict."""
        if not self.deferrable:
            super().execute(context)
        elif not self.poke(context):
            self.defer(
                trigger=self.make_trigger(), method_name="execute_complete", timeout=timedelta(seconds=float(self.timeout))
            )
        return None if self._facts is None else self._facts.to_dict()

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table's facts once the triggerer has seen the condition met.

        AirflowFailException for an error that waiting cannot fix.
        """
        if "error" in event:
            raise AirflowFailException(str(event["error"]))
        facts: dict[str, Any] = dict(event["facts"])
        self.log.info("%s is at version %s", facts.get("uri"), facts.get("version"))
        return facts


def whole(value: int | str, name: str) -> int:
    """A number that a template may have rendered as text. InputError for anything else."""
    try:
        return int(value)
    except ValueError:
        raise InputError(f"{name}: expected an integer, got {value!r}") from None
