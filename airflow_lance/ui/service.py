"""Shared by all routes: the sources and tables of the deployment, the policy, and the caches of facts about them.

::

    pages.sources(refresh)           connections and the policy's base uri, opened
    pages.tables(refresh)            every table below them
    pages.rows(refresh)              a row for each: observed, scored, or why not
    pages.fact("versions", ref, load)    anything else about one table, cached
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.ui.cache import Entry, FactsCache
from airflow_lance.ui.catalog import Source, TableRef, connection_ids, find, open_source
from airflow_lance.ui.errors import PageError, page_error
from airflow_lance.ui.pool import Pools
from airflow_lance.ui.redact import PageRedactor
from airflow_lance.ui.settings import PagesSettings

if TYPE_CHECKING:
    from lance_core.maintenance.evidence import Evidence
    from lance_core.maintenance.observe import Observation
    from lance_core.maintenance.policy import Policy, ServiceLevels

Json = dict[str, object]

CATALOG_SECONDS = 300.0
HISTORY_DAYS = 7.0
POLICY_SOURCE = "the policy"


@dataclass(frozen=True)
class FoundSource:
    """A source with its tables, or why there are none."""

    conn_id: str
    source: Source | None
    tables: tuple[TableRef, ...] = ()
    error: PageError | None = None


@dataclass(frozen=True)
class Looked:
    """A table and what is known of it now: an observation, an error, or neither while it is still being checked."""

    ref: TableRef
    seen: Observation | None = None
    error: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Managed:
    """The policy of the deployment, with the evidence of the last days."""

    policy: Policy
    name: str
    rows: Sequence[Evidence] = field(default=())


class Pages:
    """The state of the pages in one API server process."""

    def __init__(self, settings: PagesSettings, *, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.clock = clock
        self.pools = Pools(threads=settings.threads)
        self._secrets: set[str] = set()
        self._facts: FactsCache[Json] = FactsCache(
            self.pools, seconds=settings.cache_seconds, max_bytes=settings.cache_bytes, clock=clock
        )
        self._seen: FactsCache[Observation] = FactsCache(
            self.pools,
            seconds=settings.cache_seconds,
            max_bytes=settings.cache_bytes // 2,
            size_of=lambda seen: 1000 + 100 * len(seen.tiers),
            clock=clock,
        )
        # What is found by listing whole connections changes seldom and costs most.
        self._found: FactsCache[FoundSource] = FactsCache(
            self.pools,
            seconds=lambda found: max(CATALOG_SECONDS if found.error is None else 0.0, settings.cache_seconds),
            max_bytes=settings.cache_bytes // 2,
            size_of=lambda found: 200 + 300 * len(found.tables),
            clock=clock,
        )
        self._managed: FactsCache[Managed] = FactsCache(
            self.pools,
            seconds=settings.cache_seconds,
            max_bytes=settings.cache_bytes // 2,
            size_of=lambda managed: 1000 + 600 * len(managed.rows),
            clock=clock,
        )

    async def sources(self, *, refresh: bool | Literal["answering"] = False) -> list[FoundSource]:
        """Every connection with its tables; an unreachable one has the reason.

        `refresh="answering"` leaves out those that did not answer a moment ago: nobody waits for them once more.
        """
        names = await self._in_pool("airflow", self._names)
        wanted = [self._one_source(name, base, refresh) for name, base in names]
        return list(await asyncio.gather(*wanted))

    async def _one_source(self, conn_id: str, base_uri: str, refresh: bool | Literal["answering"]) -> FoundSource:
        def load() -> FoundSource:
            source = None
            try:
                source = self._open(conn_id, base_uri)
                return FoundSource(conn_id, source, tuple(find(source)))
            except Exception as error:
                return FoundSource(conn_id, source, (), page_error(error))

        key = ("source", conn_id, base_uri)
        known = self._found.peek(key)
        if refresh == "answering" and known is not None:
            refresh = known.value.error is None or not self._found.is_fresh(known)
        if known is not None and not refresh:
            if not self._found.is_fresh(known):
                self._found.begin(key, pool=conn_id, load=load)  # nobody waits for what is known already
            return known.value
        try:
            timeout = self.settings.timeout_seconds
            return (await self._found.get(key, pool=conn_id, load=load, timeout=timeout, refresh=bool(refresh))).value
        except PageError as error:
            return known.value if known is not None else FoundSource(conn_id, None, (), error)

    def _names(self) -> list[tuple[str, str]]:
        """Connections, and the policy's base uri where it is not that of its connection."""
        names = [(name, "") for name in connection_ids(self.settings.connections)]
        policy = self.policy()
        if policy is None:
            return names
        conn_id = self.settings.policy_conn_id
        try:
            own = self._open(conn_id).base_uri if conn_id in dict(names) else ""
        except Exception:
            own = ""
        if own.rstrip("/") == policy.base_uri.rstrip("/"):
            return names
        return [*names, (conn_id, policy.base_uri)]

    def policy(self) -> Policy | None:
        """The policy of the deployment, None when none is configured. InputError when its file is wrong."""
        if not self.settings.policy_path:
            return None
        from lance_core.maintenance.policy_file import load_policy

        return load_policy(self.settings.policy_path)

    @property
    def policy_name(self) -> str:
        """The file name of the policy."""
        return Path(self.settings.policy_path).name

    def options_of(self, conn_id: str) -> Mapping[str, str]:
        """The storage options of a connection."""
        return self._open(conn_id).options

    async def managed(self, *, refresh: bool = False) -> Managed | None:
        """The policy with its evidence, None without one. PageError when it cannot be read."""
        if not self.settings.policy_path:
            return None

        def load() -> Managed:
            from lance_core.maintenance.evidence import history

            policy = self.policy()
            assert policy is not None
            options = self._open(self.settings.policy_conn_id).options
            since = self.clock() - HISTORY_DAYS * 86400
            rows = history(policy.evidence_uri, since=since, storage_options=options)
            return Managed(policy, self.policy_name, rows)

        key = ("managed",)
        return (
            await self._managed.get(key, pool="policy", load=load, timeout=self.settings.timeout_seconds, refresh=refresh)
        ).value

    async def table(self, number: str) -> tuple[TableRef, Source]:
        """A table by its id. PageError "not_found" for an id that is none of a known table."""
        # Most often it is known, and then no hanging connection is used.
        for found in [entry.value for entry in self._found.entries()]:
            for ref in found.tables:
                if ref.id == number and found.source is not None:
                    return ref, found.source
        for found in await self.sources(refresh="answering"):
            for ref in found.tables:
                if ref.id == number and found.source is not None:
                    return ref, found.source
        raise PageError("not_found", "There is no such table.", cure="It may have been dropped; go back to the list.")

    async def look(self, sources: Sequence[FoundSource], *, refresh: bool = False) -> list[Looked]:
        """What is known of all tables; waits a moment for those that are being checked, and no longer."""
        policy = None
        try:
            policy = await self._in_pool("airflow", self.policy)
        except Exception:
            policy = None  # the plan page says what is wrong with it
        tables = [(ref, found.source) for found in sources for ref in found.tables if found.source is not None]
        begun: dict[str, tuple[Future[Observation], float]] = {}
        for ref, source in tables:
            if refresh or not self._seen.is_fresh(self._seen.peek(ref.id)):
                begun[ref.id] = self._begin(ref, source, policy)
        await self._wait([future for future, _ in begun.values()])
        return [self._looked(ref, begun.get(ref.id)) for ref, _ in tables]

    async def observation(self, ref: TableRef, source: Source, *, refresh: bool = False) -> Observation:
        """One table, observed. PageError when it does not answer in time."""
        policy = await self._in_pool("airflow", self.policy) if self.settings.policy_path else None
        load = self._observer(ref, source, policy)
        timeout = self.settings.timeout_seconds
        return (await self._seen.get(ref.id, pool=ref.conn_id, load=load, timeout=timeout, refresh=refresh)).value

    async def fact(
        self,
        kind: str,
        ref: TableRef,
        load: Callable[[], Json],
        *,
        refresh: bool = False,
        pool: str = "",
        times: float = 1.0,
    ) -> Entry[Json]:
        """A cached fact of a table. `times` stretches the time limit for what has to list everything."""
        timeout = self.settings.timeout_seconds * times
        key = (ref.id, kind)
        return await self._facts.get(key, pool=pool or ref.conn_id, load=load, timeout=timeout, refresh=refresh)

    async def run(self, pool: str, call: Callable[[], Any], *, times: float = 1.0) -> Any:
        """Something that is not cached, in a pool and within the time limit."""
        return await self._in_pool(pool, call, times=times)

    def redactor(self) -> PageRedactor:
        """What removes the secrets of all connections that were opened."""
        return PageRedactor(tuple(self._secrets))

    def levels(self, policy: Policy | None, ref: TableRef) -> ServiceLevels:
        """The service levels of a table: the policy's, else the default ones."""
        from lance_core.maintenance.policy import ManagedTable, ServiceLevels

        rule = None if policy is None else policy.for_table(ManagedTable(uri=ref.uri, conn_id=ref.conn_id))
        return ServiceLevels() if rule is None else rule.levels

    def _open(self, conn_id: str, base_uri: str = "") -> Source:
        source = open_source(conn_id, base_uri)
        # A rotated secret stays known: it may still be in an error that is kept.
        self._secrets.update(source.secrets)
        return source

    def _begin(self, ref: TableRef, source: Source, policy: Policy | None) -> tuple[Future[Observation], float]:
        return self._seen.begin(ref.id, pool=ref.conn_id, load=self._observer(ref, source, policy))

    def _observer(self, ref: TableRef, source: Source, policy: Policy | None) -> Callable[[], Observation]:
        def load() -> Observation:
            from lance_core.maintenance.observe import observe
            from lance_core.maintenance.policy import ManagedTable
            from lance_core.maintenance.presence import MAX_REQUESTS

            table = ManagedTable(uri=ref.uri, conn_id=ref.conn_id)
            options, levels = source.options, self.levels(policy, ref)
            return observe(table, levels, storage_options=options, now=self.clock(), file_requests=MAX_REQUESTS)

        return load

    async def _wait(self, futures: Sequence[Future[Observation]]) -> None:
        if futures:
            waiting = [asyncio.wrap_future(future) for future in futures]
            await asyncio.wait(
                [asyncio.ensure_future(_quietly(item)) for item in waiting], timeout=self.settings.wait_seconds
            )

    def _looked(self, ref: TableRef, begun: tuple[Future[Observation], float] | None) -> Looked:
        from airflow_lance.ui.errors import observed_error

        entry = self._seen.peek(ref.id)
        if entry is None and begun is not None:
            future, since = begun
            if future.done() and not future.cancelled():
                failed = future.exception()
                if failed is not None:
                    return Looked(ref, error=page_error(failed).to_dict())
                return self._judged(ref, future.result())
            if self.clock() - since > self.settings.timeout_seconds:
                text = f"The store did not answer within {self.settings.timeout_seconds:g} s."
                return Looked(ref, error=PageError("timeout", text, cure="Check the connection.").to_dict())
            return Looked(ref)
        if entry is None:
            return Looked(ref)
        seen = entry.value
        return Looked(ref, error=observed_error(seen.error)) if seen.error is not None else Looked(ref, seen)

    def _judged(self, ref: TableRef, seen: Observation) -> Looked:
        from airflow_lance.ui.errors import observed_error

        return Looked(ref, error=observed_error(seen.error)) if seen.error is not None else Looked(ref, seen)

    async def _in_pool(self, pool: str, call: Callable[[], Any], *, times: float = 1.0) -> Any:
        future = asyncio.wrap_future(self.pools.submit(pool, call))
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.settings.timeout_seconds * times)
        except (TimeoutError, asyncio.TimeoutError):
            text = f"No answer within {self.settings.timeout_seconds * times:g} s."
            raise PageError("timeout", text, cure="Try again, or check the connection.") from None


async def _quietly(future: asyncio.Future[Any]) -> None:
    try:
        await asyncio.shield(future)
    except Exception:
        return
