"""Where the fragments of a column are checked and computed: here, one after the other, or elsewhere, many at once.

::

    refresh   -> workers.look(task)                 task: a version, a column, some of its fragments, what may be used
              <- LookedAt x fragments                 the file of each (None: nothing to write), what was counted
    refresh   publishes the files, and is the only one that does
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from lance_core.computed.calls import Engine, settle
from lance_core.computed.fragments import DeclaredColumn, FragmentWork, PassResult
from lance_core.computed.functions import Computation, Load
from lance_core.computed.limits import Meter, Pace
from lance_core.computed.models import Models
from lance_core.computed.results import Results, remove_results, waiting_objects
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.fragment import DataFile, Fragment
from lance_core.io.store import Store, StoreEntry


@dataclass(frozen=True)
class WorkOptions:
    """What is to be done with a fragment. `dry_run`: count only. `trusts`: values without evidence are taken over."""

    dry_run: bool = False
    trusts: bool = False
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

    def __init__(self, load: Load, options: WorkOptions, models: Models | None = None) -> None:
        self._load, self._options, self._models = load, options, models
        self._is_sound = True
        self._engine: Engine | None = None
        self._store: Store | None = None
        self._waiting: list[StoreEntry] = []

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
        """What is computed here is reused for the column's other calls, and put aside where it is a function's."""
        self._begin(snapshot, column)
        engine = self._engine_of(snapshot, column, meter)
        self._is_sound = False
        for fragment in fragments:
            if not most or meter.used_up:
                break
            work = FragmentWork(reader_of(snapshot, fragment), column)
            for batch, rows, digests in work.first_rows(most, retry_failed=engine.retry_failed):
                settle(engine, work.inputs_of(batch), rows, digests, call_rows=column.batch_rows)
                most -= len(rows)
        self._is_sound = True
        return engine.results

    def _begin(self, snapshot: Snapshot, column: DeclaredColumn) -> None:
        if self._store is None and column.declaration.kind == "python" and not self._options.dry_run:
            self._store, self._waiting = snapshot.store, waiting_objects(snapshot.store, column.declaration.id)

    def _one(self, snapshot: Snapshot, column: DeclaredColumn, fragment: Fragment, meter: Meter) -> LookedAt:
        work, options = FragmentWork(reader_of(snapshot, fragment), column), self._options
        if work.has_evidence or options.dry_run:
            seen = work.examine(estimates=options.dry_run)
            counts = seen.counts
            kept = 0 if options.retry_failed else counts.failed
            if options.dry_run or counts.stale == kept:
                counts.left += counts.stale if options.dry_run else kept
                return LookedAt(fragment, None, seen)
        elif not fragment.num_rows:
            return LookedAt(fragment, None, PassResult(is_whole=False))
        file, seen = work.adopt() if options.trusts else work.rewrite(self._engine_of(snapshot, column, meter))
        return LookedAt(fragment, file, seen)

    def _engine_of(self, snapshot: Snapshot, column: DeclaredColumn, meter: Meter) -> Engine:
        """Made when the first row needs it."""
        if self._engine is None:
            declaration, options = column.declaration, self._options
            target = snapshot.arrow_schema.field(column.value.name)
            pace = Pace(options.calls_per_second)
            compute = Computation(
                declaration, target, snapshot.arrow_schema, self._load, meter=meter, pace=pace, models=self._models
            )
            results = Results(self._store, declaration.id, declaration.identity, target.type, self._waiting)
            self._engine = Engine(compute, results, options.concurrency, options.retry_failed)
        return self._engine

    @property
    def result_paths(self) -> tuple[str, ...]:
        """The objects with values that are put aside, as far as they are known here."""
        return tuple(entry.path for entry in self._waiting) if self._engine is None else self._engine.results.paths

    def end_column(self, *, is_published: bool) -> bool:
        """The function is closed."""
        engine, store, paths = self._engine, self._store, self.result_paths
        self._engine, self._store, self._waiting = None, None, []
        try:
            if engine is not None:
                engine.compute.close(is_sound=self._is_sound)
        finally:
            if is_published and store is not None:
                remove_results(store, paths)
        return engine is not None and engine.compute.code_changed
