"""Waits in the triggerer until a job that runs elsewhere has staged its work, or failed. It reads the table, not Spark.

::

    LanceStagingTrigger(uri="/data/t.lance", identity="5d2c…")  ->  TriggerEvent({"state": "staged"}) or {"state": "failed"}
                                                                    {"state": "unbegun", "job": ..., "stale": ...}

A cluster may end a job before its driver has begun, and nothing in the table says so: who waits is asked to look at the job
itself when no attempt has begun for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow_lance.compat import BaseTrigger, TriggerEvent
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.triggers.looks import jittered, question_of, shared_looks, store_of
from airflow_lance.triggers.table import TableTrigger
from lance_core.errors import LanceError

UNBEGUN_SECONDS = 900.0


class LanceStagingTrigger(TableTrigger, BaseTrigger):
    """Fires once.

    Args:
        uri: the table, as for an operator.
        identity: whose work it is.
        stale: an attempt that was staged before and does not count.
        job: as the cluster calls it.
        storage_options: references only: they are stored with the trigger.
        poke_interval: seconds between two looks.
    """

    def __init__(
        self,
        *,
        uri: str,
        identity: str,
        lance_conn_id: str,
        stale: str = "",
        job: str = "",
        storage_options: Mapping[str, Any] | None = None,
        poke_interval: float = 10.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watch_table(uri, lance_conn_id=lance_conn_id, storage_options=storage_options, poke_interval=poke_interval)
        self.identity = identity
        self.stale = stale
        self.job = job

    def own_arguments(self) -> dict[str, Any]:
        """What it waits for."""
        return {"identity": self.identity, "stale": self.stale, "job": self.job}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, wait, look again; one event."""
        begun = time.monotonic()
        while True:
            try:
                state = await self._ask()
            except LanceError as error:
                if not error.retryable:
                    state = "failed"
                else:
                    state = None
                    self.log.warning("%s: %s", type(error).__name__, error)
            except Exception:
                # The task reads the job's own error, or says that there is none.
                self.log.exception("The check of %s failed", self.uri)
                state = "failed"
            if state == "unbegun" and time.monotonic() - begun < UNBEGUN_SECONDS:
                state = None
            if state is not None:
                where = {"job": self.job, "stale": self.stale} if state == "unbegun" else {}
                yield TriggerEvent({"state": state, **where})  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(jittered(self.poke_interval))

    async def on_kill(self) -> None:
        """The task was killed while it waited here: its attempt is aborted, so that what the job writes never counts."""
        await asyncio.to_thread(self._abort)

    async def _ask(self) -> str | None:
        detail = [self.identity, self.stale]
        question = question_of("staging", self.uri, self.lance_conn_id, self.storage_options, detail)
        return await shared_looks().look(store_of(self.uri, self.lance_conn_id), question, self._look)

    def _look(self) -> str | None:
        from lance_core.jobs.api import watch

        return watch(self._uri, self.identity, stale=self.stale, options=self._options)

    def _abort(self) -> None:
        from lance_core.jobs.api import abort_identity

        abort_identity(self._uri, self.identity, options=self._options, log=self.log)

    @property
    def _uri(self) -> str:
        return LanceHook(self.lance_conn_id).get_uri(self.uri)

    @property
    def _options(self) -> dict[str, Any]:
        return {**LanceHook(self.lance_conn_id).storage_options(self.uri), **self.storage_options}
