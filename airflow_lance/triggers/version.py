"""Watches a table for new versions: as an asset watcher, or in a task.

::

    Asset("flights", uri="lance://file/data/flights.lance",
          watchers=[AssetWatcher(name="versions", trigger=LanceVersionTrigger(uri="/data/flights.lance"))])

    versions 7 8 9 appear between two looks    -> one event {"uri": ..., "version": 9, "since": 6, "facts": {...}}

The version that was reported last is the watermark. It is kept in the asset's state store (Airflow 3.3), so that versions
from a time without a triggerer are reported when one starts; without a store the watch begins with the current version. A
version may be reported twice if a triggerer dies right after reporting it, but never not at all. A table that was dropped
and created again is reported from its first version on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_lance.compat import BaseEventTrigger, TriggerEvent
from airflow_lance.execution.facts import look
from airflow_lance.triggers.looks import jittered, question_of, shared_looks, store_of
from airflow_lance.triggers.table import TableTrigger
from lance_core.conditions import TableFacts, VersionAtLeast
from lance_core.errors import LanceError

WATERMARK = "lance_version"
TABLE_ID = "lance_table_id"


@dataclass(frozen=True)
class Seen:
    """The newest version that was reported, and of which table: one that is made again at a uri is another table."""

    version: int
    table_id: str = ""

    def is_of_another_table(self, facts: TableFacts) -> bool:
        """Whether the table was dropped and made again since. Versions of one table only ever go up."""
        if facts.table_id and self.table_id:
            return facts.table_id != self.table_id
        return facts.version < self.version


def version_event(facts: TableFacts, *, since: int) -> dict[str, Any]:
    """The content of the event: the same names as the event of a commit, and all facts of the table."""
    return {
        "uri": facts.uri,
        "version": facts.version,
        "since": since,
        "table_id": facts.table_id,
        "rows": facts.num_rows,
        "facts": facts.to_dict(),
    }


class LanceVersionTrigger(TableTrigger, BaseEventTrigger):
    """Fires at every check that finds a version newer than the last reported one, with the newest.

    Args:
        uri: the table, as for an operator.
        min_version: the first version that is reported; None: the first version after the watch began.
        lance_conn_id: the `lance` connection, read in the triggerer.
        storage_options: references only: they are stored with the trigger.
        poke_interval: seconds between two looks.
    """

    def __init__(
        self,
        *,
        uri: str,
        min_version: int | None = None,
        lance_conn_id: str = "lance_default",
        storage_options: Mapping[str, Any] | None = None,
        poke_interval: float = 60.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watch_table(uri, lance_conn_id=lance_conn_id, storage_options=storage_options, poke_interval=poke_interval)
        self.min_version = min_version

    def own_arguments(self) -> dict[str, Any]:
        """What it waits for."""
        return {"min_version": self.min_version}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, report what is new, wait; for ever. A failed check is logged and repeated."""
        seen = await self._watermark()
        while True:
            try:
                facts = await self._ask()
            except LanceError as error:
                self.log.warning("%s: %s; checking again in %s s", type(error).__name__, error, self.poke_interval)
            except Exception:
                # A watch must not end: nobody would start it again.
                self.log.exception("The check of %s failed; checking again in %s s", self.uri, self.poke_interval)
            else:
                if seen is None:
                    seen = Seen(facts.version if self.min_version is None else self.min_version - 1, facts.table_id)
                    await self._remember(seen)
                elif seen.is_of_another_table(facts):
                    seen = Seen(0, facts.table_id)
                if facts.version > seen.version:
                    since, seen = seen.version, Seen(facts.version, facts.table_id)
                    yield TriggerEvent(version_event(facts, since=since))  # type: ignore[no-untyped-call]
                    # Afterwards: a triggerer that dies in between reports it twice, not never.
                    await self._remember(seen)
            await asyncio.sleep(jittered(self.poke_interval))

    async def _watermark(self) -> Seen | None:
        store: Any = getattr(self, "asset_state_store", None)
        if store is None:
            return None
        try:
            found, table_id = await store.aget(WATERMARK), await store.aget(TABLE_ID)
        except ValueError as error:  # several assets share this watch
            self.log.info("The watermark cannot be stored: %s", error)
            self.asset_state_store = None
            return None
        return None if found is None else Seen(int(found), str(table_id or ""))

    async def _remember(self, seen: Seen) -> None:
        store: Any = getattr(self, "asset_state_store", None)
        if store is not None:
            try:
                await store.aset(TABLE_ID, seen.table_id)
                await store.aset(WATERMARK, seen.version)
            except Exception:
                # The next version is reported and stored; only a triggerer that starts again reports this one twice.
                self.log.exception("The watermark of %s could not be stored this time", self.uri)

    async def _ask(self) -> TableFacts:
        question = question_of("version", self.uri, self.lance_conn_id, self.storage_options, None)
        return await shared_looks().look(store_of(self.uri, self.lance_conn_id), question, self._look)

    def _look(self) -> TableFacts:
        return look(
            self.uri,
            condition=VersionAtLeast(version=1),
            lance_conn_id=self.lance_conn_id,
            storage_options=self.storage_options,
        )
