"""The protocols of jobs: plan -> run -> stage | abort, with the table's version fixed at plan time.

::

    spec ──plan──> Plan(read_version=7, work, source) ──runner──> TaskResult x n ──conclude──> staged transaction
                                                         └──(anything fails)──> attempt aborted, its files removed

A `Runner` knows how to reach workers (Spark, or this process) and nothing of tables; a plan function (`jobs/plans`) knows
what is to be done and nothing of workers; `Work` is what travels: it pickles, is tiny, and turns one partition's batches
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa

from lance_core.format.manifest import Manifest
from lance_core.io.store import Store
from lance_core.jobs.sources.source_files import SourceFile
from lance_core.jobs.specs.spec import SourceSpec
from lance_core.publish.model import Attempt, CommitResult, StagedTransaction
from lance_core.table.operations.base import Operation

ROW = "_lance_row"
"""The column that carries rows' addresses (int64) through an engine's expressions."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one task reports to the driver: `fragments` on the wire, never rows. `size` in bytes of data files.

    `task_attempt` tells apart the runs of one partition: only one of them may count. `has_notes`: it may have left reports
    of its progress.
    """

    partition: int
    task_attempt: str
    rows_read: int = 0
    rows: int = 0
    size: int = 0
    fragments: tuple[bytes, ...] = ()
    has_notes: bool = True


class Work(Protocol):
    """One task's doing; pickles. An InputError in it is final, anything else may be tried again by the runner."""

    def __call__(self, partition: int, task_attempt: str, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Do one partition."""


class Read(Protocol):
    """Task numbers in (as `Runner.open_tasks` gives them), rows out; pickles."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the tasks whose numbers come in."""


class JobSource(Protocol):
    """A runner's own handle on rows that can be streamed to work."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches, as far as types go."""

    @property
    def strict_nullability(self) -> bool:
        """Whether `not null` in the schema was said on purpose (an engine may mark it by accident)."""

    @property
    def num_rows(self) -> int | None:
        """Rows where that is known for nothing."""

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files that the rows come from, where that is known for nothing."""


class Runner(Protocol):
    """Where the work of a job runs: in this process, or on Spark.

    `functions`: those of declared columns that the caller has as objects, by the name that a declaration has.
    """

    name: str
    functions: Mapping[str, Any] = MappingProxyType({})

    def open_source(self, spec: SourceSpec, *, table: pa.Schema | None = None) -> JobSource:
        """A source, checked but not read; `table`: the types of a text file's columns. InputError when it is wrong."""

    def open_tasks(self, num_tasks: int) -> JobSource:
        """No rows, but one partition per task: each gets one batch with one row, its number in the column `id` (int64).

        For work that carries its own list of tasks, such as the fragment groups of a compaction.
        """

    def open_expressions(self, read: Read, num_tasks: int, schema: pa.Schema, columns: Mapping[str, str]) -> JobSource:
        """What `read` gives for each task (of `schema`, whose first column is `ROW`): that column, and SQL of the engine's
        own dialect over the others. InputError where there is no engine, or when it refuses an expression."""

    def run(self, work: Work, source: JobSource, shape: Shape, on_tick: Callable[[], None]) -> Sequence[TaskResult]:
        """Every partition of the source through `work`; exactly one result per partition that had a task.

        `on_tick` is called about every `shape.tick_seconds` while it runs.
        """


@dataclass(frozen=True, slots=True)
class Shape:
    """How a source is cut into tasks, how often the driver looks up, and what a UI may call the work."""

    num_partitions: int | None = None
    repartition: bool = False
    tick_seconds: float = 10.0
    title: str = ""


@dataclass(frozen=True)
class TableState:
    """The table as the job found it when it planned; `manifest` is None when there is no table. `former`: an earlier try of
    this very work, which did not finish, and whose parts the plan may go on with (see `PartPlan`)."""

    store: Store
    uri: str
    manifest: Manifest | None
    former: Attempt | None = None

    @property
    def version(self) -> int:
        """The read version of whatever is planned on this; 0 for no table."""
        return 0 if self.manifest is None else self.manifest.version


@dataclass(frozen=True, slots=True)
class StagedOperation:
    """What the results of all tasks amount to: the operation to stage, and the counts that must agree with the tasks'."""

    operation: Operation
    num_rows: int
    num_deleted: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """More tasks of a plan, run after its main ones. Their results must be distinguished by their partition numbers.

    `make` gets the results so far; it returns where the tasks come from and what they do, or None for nothing to do.
    """

    make: Callable[[Attempt, Sequence[TaskResult]], tuple[JobSource, Work] | None]


@dataclass(frozen=True, slots=True)
class Report:
    """What a job says that stages nothing: `facts` are JSON-able."""

    kind: str
    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The facts, fit for XCom."""
        return dict(self.facts)


JobResult = StagedTransaction | CommitResult | Report


@dataclass(frozen=True)
class Plan:
    """What a job decided, bound to the version it was planned on. `make_work` gets the attempt, whose id every file name
    has.

    `spools`: the main tasks only put the source's rows aside for the passes behind them; their files go before anything is
    staged, and their counts are compared with the source's alone.
    """

    table: TableState
    source: JobSource
    shape: Shape
    make_work: Callable[[Attempt], Work]
    conclude: Callable[[Sequence[TaskResult]], StagedOperation]
    properties: Mapping[str, str] = field(default_factory=dict)
    then: Sequence[Pass] = ()
    spools: bool = False


@dataclass(frozen=True)
class PartPlan:
    """A plan whose tasks put on record what they finish, part by part, so that a further try goes on there: its attempt
    outlives whatever a further try may not meet.

    `adopt` puts on record for an attempt what `table.former` has finished, `finish` stages all that is on record for it.
    `read_before`: the source's files, where the former attempt has read them and this one does not.
    """

    table: TableState
    source: JobSource | None
    shape: Shape
    then: Sequence[Pass]
    adopt: Callable[[Attempt], None]
    finish: Callable[[Attempt], StagedTransaction]
    read_before: str = ""
