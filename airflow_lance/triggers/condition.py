"""Waits for a table in the triggerer, without holding a worker: any condition of `lance_core.conditions`.

::

    LanceConditionTrigger(uri="/data/t.lance", condition={"kind": "version_at_least", "version": 12}, poke_interval=30)
        -> TriggerEvent({"facts": {"version": 12, "num_rows": 336776, ...}})
        -> TriggerEvent({"error": "...", "fatal": True})       when looking cannot ever succeed

The connection is read in the triggerer: no credential is stored with the trigger. Looking blocks, so it runs in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow_lance.compat import BaseTrigger, TriggerEvent
from airflow_lance.execution.facts import look
from airflow_lance.triggers.looks import jittered, question_of, shared_looks, store_of
from airflow_lance.triggers.table import TableTrigger
from lance_core.conditions import TableFacts, condition_from_dict
from lance_core.errors import LanceError


def _detail(condition: Mapping[str, Any]) -> dict[str, Any]:
    """What a condition looks at: any version number is answered by the same facts."""
    return {name: value for name, value in condition.items() if name != "version"}


class LanceConditionTrigger(TableTrigger, BaseTrigger):
    """Fires once, when the condition is met.

    Args:
        uri: the table, as for an operator.
        condition: `Condition.to_dict()`.
        storage_options: more options for the store; secrets only as references, because Airflow stores the trigger.
        poke_interval: seconds between two looks.
    """

    def __init__(
        self,
        *,
        uri: str,
        condition: Mapping[str, Any],
        lance_conn_id: str,
        storage_options: Mapping[str, Any] | None = None,
        poke_interval: float = 60.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watch_table(uri, lance_conn_id=lance_conn_id, storage_options=storage_options, poke_interval=poke_interval)
        self.condition = dict(condition)

    def own_arguments(self) -> dict[str, Any]:
        """What it waits for."""
        return {"condition": self.condition}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, wait, look again; one event."""
        condition = condition_from_dict(self.condition)
        while True:
            try:
                facts = await self._ask()
            except LanceError as error:
                if not error.retryable:
                    yield TriggerEvent({"error": f"{type(error).__name__}: {error}"})  # type: ignore[no-untyped-call]
                    return
                self.log.warning("%s: %s; checking again in %s s", type(error).__name__, error, self.poke_interval)
            except Exception as error:
                # Whatever it is, waiting goes on for nobody's sake: the task fails and says so.
                self.log.exception("The check of %s failed", self.uri)
                yield TriggerEvent({"error": f"{type(error).__name__}: {error}"})  # type: ignore[no-untyped-call]
                return
            else:
                if condition.is_met(facts):
                    yield TriggerEvent({"facts": facts.to_dict()})  # type: ignore[no-untyped-call]
                    return
                self.log.info("%s: %s", facts.uri, condition.explain(facts))
            await asyncio.sleep(jittered(self.poke_interval))

    async def _ask(self) -> TableFacts:
        question = question_of("condition", self.uri, self.lance_conn_id, self.storage_options, _detail(self.condition))
        return await shared_looks().look(store_of(self.uri, self.lance_conn_id), question, self._look)

    def _look(self) -> TableFacts:
        return look(
            self.uri,
            condition=condition_from_dict(self.condition),
            lance_conn_id=self.lance_conn_id,
            storage_options=self.storage_options,
            isolated=True,
        )
