"""Where the fragments of a column are checked and computed: here, one after the other, or elsewhere, many at once.

::

    refresh   -> workers.look(task)                 task: a version, a column, some of its fragments, what may be used
              <- LookedAt x fragments                 the file of each (None: nothing to write), what was counted
    refresh   publishes the files, and is the only one that does
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from lance_core.commit.naming import COLUMNS
from lance_core.computed.cache import CacheListing, ValueCache
from lance_core.computed.calls import Engine, settle
from lance_core.computed.declaration import Declaration
from lance_core.computed.fragments import DeclaredColumn, FragmentWork, PassResult
from lance_core.computed.functions import Computation, Load
from lance_core.computed.limits import Meter, Pace
from lance_core.computed.models import Models
from lance_core.computed.moves import MovedRows
from lance_core.computed.results import Results, is_waiting, remove_results
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.io.store import Store, StoreEntry

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkOptions:
    """What is to be done with a fragment. `dry_run`: count only. `deep`: blobs are read also where the log proves them
    unchanged. `trusts`: values without evidence are taken over, and those that are fresh by the definition `former`, an
    identity."""

    dry_run: bool = False
    deep: bool = False
    trusts: bool = False
    former: bytes = b""
    retry_failed: bool = True
    concurrency: int = 1
    calls_per_second: float | None = None


@dataclass(frozen=True)
class LookedAt:
    """What became of a fragment. `file`: its new file, None where there is nothing to write."""

    fragment: Fragment
    file: DataFile | None
    seen: PassResult


class Workers(Protocol):
    """Looks at fragments of one column after the other."""

    at_once: int
    """How many fragments it is best given at a time."""

    def look(
        self, snapshot: Snapshot, column: DeclaredColumn, fragments: Sequence[Fragment], meter: Meter
    ) -> Iterator[LookedAt]:
        """What becomes of each fragment, those that the meter does not allow left out."""

    def try_first(
        self, snapshot: Snapshot, column: DeclaredColumn, fragments: Sequence[Fragment], meter: Meter, most: int
    ) -> Results:
        """Compute the first stale rows of these fragments, `most` at most, and publish nothing; where their values are."""

    def end_column(self, *, is_published: bool) -> bool:
        """Let go of what a column needed, and of the values put aside where all are published. Whether code changed."""


class HereWorkers:
    """Work in this process."""

    at_once = 1

    def __init__(self, load: Load, options: WorkOptions, models: Models | None = None, *, is_alone: bool = True) -> None:
        """`is_alone`: no other workers are at the column for the same refresh, so that these put small objects together."""
        self._load, self._options, self._models, self._is_alone = load, options, models, is_alone
        self._is_sound = True
        self._engine: Engine | None = None
        self._store: Store | None = None
        self._waiting: list[StoreEntry] = []
        self._cached = CacheListing()
        self._results: Results | None = None
        self._trial: Results | None = None
        self._column: tuple[Declaration, pa.DataType] | None = None
        self._moves: tuple[Snapshot, MovedRows | None] | None = None

    def look(
        self, snapshot: Snapshot, column: DeclaredColumn, fragments: Sequence[Fragment], meter: Meter
    ) -> Iterator[LookedAt]:
        """One after the other."""
        self._begin(snapshot, column)
        for fragment in fragments:
            if not self._options.dry_run and meter.used_up:
                return
            self._is_sound = False
            looked = self._one(snapshot, column, fragment, meter)
            self._is_sound = True
            yield looked

    def try_first(
        self, snapshot: Snapshot, column: DeclaredColumn, fragments: Sequence[Fragment], meter: Meter, most: int
    ) -> Results:
        """What is computed here is reused for the column's other calls, where the function gives the same each time, and put
        aside where it is a function's."""
        self._begin(snapshot, column)
        engine = self._engine_of(snapshot, column, meter)
        results = engine.results
        if results is None:
            declared = column.declaration
            results = self._trial = Results(self._store, declared.id, declared.identity, engine.compute.kind)
            engine = replace(engine, results=results)
        self._is_sound = False
        for fragment in fragments:
            if not most or meter.used_up:
                break
            work = FragmentWork(reader_of(snapshot, fragment), column, moves=self._moves_of(snapshot, column))
            for judged, rows in work.first_rows(most, retry_failed=engine.retry_failed):
                keys = work.keys_of(judged, rows, results)
                settle(engine, work.inputs_of(judged.batch), rows, keys, bounds=column.bounds)
                most -= len(rows)
        self._is_sound = True
        return results

    def _begin(self, snapshot: Snapshot, column: DeclaredColumn) -> None:
        """Before any row is read: an erasure that comes behind it is known by what it finds changed."""
        if self._store is not None or column.declaration.kind != "python" or self._options.dry_run:
            return
        entries = list(snapshot.store.list(f"{COLUMNS}/{column.declaration.id}/"))
        self._store, self._waiting = snapshot.store, [entry for entry in entries if is_waiting(entry)]
        self._cached = CacheListing.of(entries)
        self._column = column.declaration, snapshot.arrow_schema.field(column.value.name).type

    def _one(self, snapshot: Snapshot, column: DeclaredColumn, fragment: Fragment, meter: Meter) -> LookedAt:
        options = self._options
        work = FragmentWork(reader_of(snapshot, fragment), column, moves=self._moves_of(snapshot, column))
        if work.has_evidence or options.dry_run:
            seen = work.examine(estimates=options.dry_run)
            counts = seen.counts
            kept = 0 if options.retry_failed else counts.failed
            if options.dry_run or counts.stale == kept:
                counts.left += counts.stale if options.dry_run else kept
                return LookedAt(fragment, None, seen)
        elif not fragment.num_rows:
            return LookedAt(fragment, None, PassResult(is_whole=False))
        if column.is_proven(fragment, snapshot.manifest.schema):
            file, seen = work.adopt(takes_all=True)
        elif options.trusts:
            file, seen = work.adopt(former=options.former)
        else:
            file, seen = work.rewrite(self._engine_of(snapshot, column, meter))
        return LookedAt(fragment, file, seen)

    def _moves_of(self, snapshot: Snapshot, column: DeclaredColumn) -> MovedRows | None:
        """What the log proves of rows whose blobs were read before; None where everything is to be read."""
        if self._options.deep:
            return None
        if self._moves is None or self._moves[0] is not snapshot:
            self._moves = snapshot, column.moved_rows(snapshot)
        return self._moves[1]

    def _engine_of(self, snapshot: Snapshot, column: DeclaredColumn, meter: Meter) -> Engine:
        """Made when the first row needs it."""
        if self._engine is None:
            declaration, options = column.declaration, self._options
            target = snapshot.arrow_schema.field(column.value.name)
            pace = Pace(options.calls_per_second)
            compute = Computation(
                declaration, target, snapshot.arrow_schema, self._load, meter=meter, pace=pace, models=self._models
            )
            self._results = self._results_of()
            self._engine = Engine(compute, self._results, options.concurrency, options.retry_failed)
        return self._engine

    def _results_of(self) -> Results | None:
        """What was computed before, of a function that gives the same each time; cached values that nobody may use go."""
        if self._store is None or self._column is None:
            return None
        declaration, kind = self._column
        unused = self._cached.void if declaration.cache_bytes else [item.object.path for item in self._cached.objects]
        remove_results(self._store, unused)
        return results_of(self._store, declaration, kind, self._waiting, self._cached)

    @property
    def result_paths(self) -> tuple[str, ...]:
        """The objects with values that are put aside, as far as they are known here."""
        if self._results is not None:
            return self._results.paths
        tried = () if self._trial is None else self._trial.paths
        return (*(entry.path for entry in self._waiting), *tried)

    @property
    def own_paths(self) -> tuple[str, ...]:
        """Those of them that were put aside here."""
        return () if self._results is None else self._results.own_paths

    def end_column(self, *, is_published: bool) -> bool:
        """The function is closed, and what it gave is put into the column's cache."""
        keeps = self._column is not None and self._column[0].cache_bytes > 0
        if is_published and keeps and self._waiting and self._results is None:
            self._results = self._results_of()
        engine, store, paths, results = self._engine, self._store, self.result_paths, self._results
        self._engine, self._store, self._waiting, self._cached = None, None, [], CacheListing()
        self._results = self._trial = self._column = self._moves = None
        try:
            if engine is not None:
                engine.compute.close(is_sound=self._is_sound)
        finally:
            if results is not None:
                results.close(merges=self._is_alone, takes_over=is_published)
            if is_published and store is not None:
                remove_results(store, paths)
        return engine is not None and engine.compute.code_changed


def results_of(
    store: Store, declaration: Declaration, kind: pa.DataType, waiting: Sequence[StoreEntry], cached: CacheListing
) -> Results | None:
    """What was computed before for a column; None where no value stands for another. `cached`: from the listing that
    `waiting` is of."""
    if not declaration.deterministic:
        return None
    cache, erasures = None, cached.erasures
    if declaration.cache_bytes:
        cache = ValueCache(store, declaration.id, declaration.identity, declaration.cache_bytes, cached)
    return Results(store, declaration.id, declaration.identity, kind, waiting, erasures=erasures, cache=cache)


def end_cache(store: Store, declaration: Declaration, kind: pa.DataType, own: Collection[str]) -> None:
    """Take over into a column's cache what tries that died put aside, and tidy it, where others computed: `own` are the
    objects of those that ended, who put their values there themselves. Never fails."""
    try:
        entries = list(store.list(f"{COLUMNS}/{declaration.id}/"))
    except LanceError as error:
        log.warning("%s: the cache of computed values was not tidied: %s", store.uri, error)
        return
    waiting = [entry for entry in entries if is_waiting(entry) and entry.path not in own]
    results = results_of(store, declaration, kind, waiting, CacheListing.of(entries))
    if results is not None:
        results.close(merges=True, takes_over=True)
