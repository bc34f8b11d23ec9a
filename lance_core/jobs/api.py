"""The one door through which an orchestrator uses the jobs; imported when a task runs, because it imports Arrow.

::

    run            carry a spec out in this process: stage work, or do what takes effect at once
    find_done      was this identity committed, or is it staged already?     -> no Spark is started for it
    read_result    after a run elsewhere: the reference in the table's staged registry, where results are kept
    refresh_result what a refresh of declared columns did
    watch          what became of a job that runs elsewhere
    abort          give up attempts that will never finish: `abort_rejected`: what gates refused
    commit         publish staged transactions as versions
    look           the facts of a table that conditions are tested on
    open_table     a table to read; `write_table` writes one without staging; `query` reads several with SQL
    pin_tables     versions and options of the tables that a job elsewhere reads
    make_runner    this process, with the storage options of further tables
    open_store     the store below a uri, for a connection test
    is_below       whether a uri names a place below another
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lance_core.commit.put_manifest import require_put_if_absent
from lance_core.dataset.refs.branches import MAIN
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError, LanceError, RetryableConflictError
from lance_core.io.resolve import resolve_store
from lance_core.io.scope import is_below
from lance_core.io.store import Store
from lance_core.jobs.plans.compact_report import report_lines
from lance_core.jobs.publish.numbers import published_numbers
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime import committed_work, lifecycle, siblings
from lance_core.jobs.runtime.failure_record import clear_failure, has_failed, read_failure
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.other_content import warn_of_other_content
from lance_core.jobs.runtime.protocols import JobResult, Runner
from lance_core.jobs.runtime.siblings import Sibling
from lance_core.jobs.sources.lance_table import OptionsOf, open_lance
from lance_core.jobs.sources.open_source import LANCE, from_sql
from lance_core.jobs.specs.identity import canonical_uri
from lance_core.jobs.specs.secret import as_secret, reveal_all
from lance_core.jobs.specs.spec import CommitSpec, JobSpec, SourceSpec, TableRead, WriteSpec, read_spec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import find_finished, list_staged
from lance_core.publish.decisions import look as look_decided
from lance_core.publish.model import StagedTransaction
from lance_core.publish.records import work_digest

if TYPE_CHECKING:
    import pyarrow as pa

    from lance_core.conditions import Condition, TableFacts

__all__ = [
    "DoneWork",
    "Runner",
    "Store",
    "abort",
    "abort_identity",
    "abort_rejected",
    "abort_staged",
    "begin_watch",
    "commit",
    "declared_name",
    "find_done",
    "find_siblings",
    "is_below",
    "look",
    "make_runner",
    "open_store",
    "open_table",
    "pin_tables",
    "query",
    "raise_failure",
    "raising_driver_errors",
    "read_result",
    "reference_of",
    "refresh_lines",
    "refresh_result",
    "report_lines",
    "revealed",
    "run",
    "watch",
    "with_options",
    "write_table",
]

_OF_SPARK = frozenset({"columns", "filter", "batchsize", "rowsperpartition", "unsealedindices"})
"""Options of a Lance source that only Spark has, and that choose no version."""

Options = Mapping[str, Any]
"""Storage options: texts, or references to secrets."""


class Log(Protocol):
    """What a logger must offer: Python's own, or structlog's."""

    def info(self, message: Any, /, *args: Any) -> Any:
        """Log a line at level INFO, with arguments for its `%s`."""
        ...


@dataclass(frozen=True)
class DoneWork:
    """Work that is done: the reference for the commit, and why nothing has to be run."""

    reference: dict[str, Any]
    reason: str


def run(spec: JobSpec, *, options: Options, runner: Runner | None = None) -> dict[str, Any]:
    """Run a spec; returns the result as a plain dict, for staged work the reference for the commit.

    Work of this identity that was committed or is staged already is not done again, so a call of `find_done` first is
    unnecessary.
    """
    return reference_of(run_job(with_options(spec, options), runner=runner), spec)


def find_done(spec: JobSpec, *, options: Options) -> DoneWork | None:
    """Whether the table knows this identity as committed or staged. A warning is logged where the files of its source
    are not those that were read."""
    spec, store = _as_it_lands(spec), open_store(spec.uri, options)
    done = lifecycle.find_done(store, spec)
    if done is not None:
        warn_of_other_content(store, spec, done.staged, done.committed)
    return _done_work(spec, done)


def _done_work(spec: JobSpec, done: lifecycle.Done | None) -> DoneWork | None:
    if done is None:
        return None
    reason = "is already staged and waits for its commit" if done.version is None else f"committed as version {done.version}"
    return DoneWork(reference_of(done.staged, spec), f"{spec.kind} {spec.identity} {reason}")


def as_cleared(spec: JobSpec, *, options: Options) -> JobSpec:
    """The spec as after a clear, where its DAG run was deleted and created again, or only its records show a clear."""
    asked = spec.asked
    if spec.cleared or not (asked.get("created") or asked.get("max_tries")):
        return spec
    return committed_work.as_cleared(open_store(spec.uri, options), spec)


def refresh_result(spec: JobSpec, reference: Mapping[str, Any], *, options: Options) -> dict[str, Any]:
    """What the refresh of a spec's identity did: its counts, where its record is there, and the version."""
    from lance_core.computed.history import read_record

    record = read_record(open_store(spec.uri, options), str(reference["identity"]))
    known: Mapping[str, Any] = {"columns": {}} if record is None else record.report
    version = known.get("version", int(reference["read_version"]) + 1)
    return {**known, "version": version, "identity": reference["identity"]}


def refresh_lines(report: Mapping[str, Any]) -> list[str]:
    """What a refresh did, a line for each column."""
    from lance_core.jobs.plans.refresh_declared import report_lines as lines

    return lines(report)


def _as_it_lands(spec: JobSpec) -> JobSpec:
    """The spec under the identity that its work is committed under: another one where a person's clear asks for it again."""
    identity = spec.effective_identity
    return spec if identity == spec.identity else replace(spec, identity=identity, on_clear="fail")


def begin_watch(spec: JobSpec, *, options: Options) -> str:
    """The attempt that an older spec of this identity left staged, which a watch does not wait for; "" for none."""
    finished = find_finished(open_store(spec.uri, options), spec.effective_identity)
    return "" if finished is None else finished.attempt


def watch(uri: str, identity: str, *, stale: str, options: Options) -> str | None:
    """What became of a job that runs elsewhere: "staged" (or committed), "failed", None while it is at work, "unbegun"
    before its driver has begun.

    A job whose driver died silently counts as failed when its attempt's lease is over, one whose driver lost its JVM when
    nobody has begun it again for a while.
    """
    store = open_store(uri, options)
    state = look_decided(store, identity)
    if (state.finished is not None and state.finished.attempt != stale) or state.committed is not None:
        return "staged"
    entries = [entry for entry in list_staged(store, identity=identity) if entry.attempt != stale]
    if has_failed(store, identity, is_running=any(entry.state == "running" for entry in entries)):
        return "failed"
    if not entries:
        return "unbegun"
    return "failed" if all(entry.state == "expired" for entry in entries) else None


def raise_failure(spec: JobSpec, *, options: Options) -> None:
    """Raise what the driver left behind; RetryableConflictError when it left nothing."""
    failure = read_failure(open_store(spec.uri, options), spec.effective_identity)
    raise failure or RetryableConflictError(
        f"the Spark job that stages {spec.identity} ended without a result or an error",
        uri=spec.uri,
        cure="Read the log of the Spark job; the next try stages it again.",
    )


def read_result(spec: JobSpec, *, options: Options) -> dict[str, Any]:
    """The reference that a job elsewhere left in the staged registry. RetryableConflictError when there is none."""
    spec = _as_it_lands(spec)
    found = _done_work(spec, lifecycle.find_done(open_store(spec.uri, options), spec))
    if found is None:
        raise RetryableConflictError(
            f"the job ended without an error, but {spec.identity} is not staged at {spec.uri}",
            uri=spec.uri,
            cure="It may have been aborted in the meantime; the next try stages it again.",
        )
    return found.reference


@contextmanager
def raising_driver_errors(spec: JobSpec, *, options: Options) -> Iterator[None]:
    """Submit a job inside: when that fails and the driver left its error in the registry, that error is raised instead.

    spark-submit says "error code 65"; the driver names the column and the file. PreconditionError, before anything is
    submitted, for a store without conditional put.
    """
    store = open_store(spec.uri, options)
    require_put_if_absent(store)
    clear_failure(store, spec.effective_identity)
    try:
        yield
    except Exception as error:
        failure = read_failure(store, spec.effective_identity)
        if failure is None:
            raise
        raise failure from error


def abort(spec: JobSpec, *, options: Options, log: Log) -> None:
    """Give up the attempts of an identity that did not finish. Never raises: it runs while a task is being killed."""
    abort_identity(spec.uri, spec.effective_identity, options=options, log=log)


def abort_identity(uri: str, identity: str, *, options: Options, log: Log) -> None:
    """`abort` for a caller that knows the identity only."""
    with suppress(LanceError, OSError):
        removed = lifecycle.clear_dead(open_store(uri, options), identity)
        log.info("Aborted %s: %d files of unfinished attempts removed", identity, len(removed))


def abort_rejected(reference: Mapping[str, Any], *, options: Options, log: Log) -> None:
    """Remove staged work that its own gates rejected, so that its identity can be staged again from the mended source.

    Never raises: the rejection is the error that counts, and what cannot be removed now is left for a garbage collection.
    """
    from lance_core.publish.abort import abort_attempt

    with suppress(LanceError, OSError):
        store = open_store(str(reference["uri"]), options)
        removed = abort_attempt(store, str(reference["identity"]), str(reference["attempt"]))
        log.info("Removed the rejected rows (%d files): the next run reads the source again", len(removed))


def find_siblings(
    uri: str, *, dag_id: str, run_id: str, task_id: str, besides: Collection[str], options: Options
) -> list[Sibling]:
    """Finished work of a mapped task in a run that no version has, without the identities `besides`."""
    return siblings.find_siblings(open_store(uri, options), dag_id=dag_id, run_id=run_id, task_id=task_id, besides=besides)


def abort_staged(uri: str, identity: str, attempt: str, *, options: Options, by: str) -> bool:
    """Abort finished work, behind its decision; False where it was committed, or where that is unknown."""
    try:
        abort_attempt(open_store(uri, options), identity, attempt, by=by)
    except (IncompatibleConflictError, CommitStateUnknownError):
        return False
    return True


def commit(
    uri: str,
    references: Sequence[Mapping[str, Any]],
    *,
    options: Options,
    max_attempts: int | None,
    gates: Sequence[Mapping[str, Any]] = (),
    re_execute: bool = True,
    runner: Runner | None = None,
) -> dict[str, Any]:
    """Publish what the references name; the typed outcome as a plain dict."""
    identities = list(dict.fromkeys(str(reference["identity"]) for reference in references))
    digests = {str(item["identity"]): str(item["digest"]) for item in references if item.get("digest")}
    fields: dict[str, Any] = {
        "uri": uri, "identities": identities, "digests": digests, "gates": [*gates], "re_execute": re_execute,
        "references": references if len(references) == 1 else [],
    }  # fmt: skip
    spec = read_spec(CommitSpec, fields if max_attempts is None else {**fields, "max_attempts": max_attempts})
    result = run(spec, options=options, runner=runner)
    numbers = published_numbers(open_store(uri, options), result, references)
    # `rows_added` and `rows_deleted` say what a reader sees; the format counts a changed row in both.
    return {**result, **numbers, "rows_added": numbers["rows_inserted"]}


def look(uri: str, *, condition: Condition, options: Options) -> TableFacts:
    """The facts of a table that a condition asks for; a table that does not exist yet is a fact, not an error."""
    from lance_core.dataset.maintain.table_facts import table_facts

    return table_facts(
        uri,
        storage_options=reveal_all(options),
        predicates=condition.predicates,
        staged=condition.needs_staged,
        counted=condition.counted,
    )


def open_table(uri: str, *, options: Options, version: int | str | None = None, **more: Any) -> Any:
    """The table at a uri, at a version or a tag."""
    from lance_core.dataset import dataset

    return dataset(uri, version=version, storage_options=reveal_all(options), **more)


def write_table(
    rows: Any, uri: str, *, mode: Literal["create", "append", "overwrite"], options: Options, **more: Any
) -> Any:
    """Write rows at once, without staging; the table as it is then."""
    from lance_core.dataset import write_dataset

    return write_dataset(rows, uri, mode=mode, storage_options=reveal_all(options), **more)


def revealed(options: Options) -> dict[str, str]:
    """Storage options with references looked up here and now; for a store only."""
    return reveal_all({name: as_secret(value, where=name) for name, value in options.items()})


def make_runner(options_of: OptionsOf, *, functions: Mapping[str, Any] | None = None) -> LocalRunner:
    """What carries specs out in this process, with the storage options of each Lance table that they read."""
    return LocalRunner(options_of, functions=functions)


def declared_name(function: Callable[..., Any]) -> str:
    """What a declaration calls a function: "module:name", with the file's name for one that is no module, as a DAG file."""
    from lance_core.computed.functions import module_of

    return f"{module_of(function)}:{function.__name__}"


def query(sql: str, tables: Mapping[str, SourceSpec], *, options_of: OptionsOf) -> pa.RecordBatchReader:
    """The rows of a SELECT over tables, by DuckDB. InputError for a query that it refuses."""
    return from_sql(sql, tables, options_of, what="the query").reader()


def pin_tables(spec: JobSpec, *, options_of: OptionsOf) -> tuple[JobSpec, dict[str, int]]:
    """The spec of a job that runs elsewhere, with the versions and the options of the Lance tables that its query reads; and
    those versions, by name in the query.

    The table that it changes stays at its newest version: what the job plans on must not be newer than what it reads.
    """
    if not isinstance(spec, WriteSpec):
        return spec, {}
    reads, versions = {}, dict[str, int]()
    for name, view in spec.source.views.items():
        if str(view.format).lower() != LANCE:
            continue
        (uri,) = view.paths
        options = options_of(uri)
        read = TableRead(storage_options={key: as_secret(value, where=key) for key, value in options.items()})
        asked = {key.lower(): value for key, value in view.options.items() if key.lower() not in _OF_SPARK}
        if canonical_uri(uri) != canonical_uri(spec.uri) and "asof" not in asked:
            found = open_lance(view.paths, reveal_all(asked), options_of)
            branch = found.manifest.branch if {"branch", "tag"} & {*asked} else None
            read = replace(read, version=found.version, branch=None if branch == MAIN else branch)
            versions[name] = found.version
        reads[name] = read
    return replace(spec, table_reads=reads), versions


def open_store(uri: str, options: Options) -> Store:
    """The store below a uri."""
    return resolve_store(uri, reveal_all(options))


def with_options(spec: JobSpec, options: Options) -> JobSpec:
    """The spec with storage options; their values are secrets."""
    return replace(spec, storage_options={name: as_secret(value, where=name) for name, value in options.items()})


def reference_of(result: JobResult, spec: JobSpec) -> dict[str, Any]:
    """A job's result as a plain dict.

    The store's uri may be written differently; later tasks get the one that was given. The digest of staged work is that of
    the spec that this process made, never the one that the record below the table claims.
    """
    plain: dict[str, Any] = result.to_dict()
    if not isinstance(result, StagedTransaction):
        return plain
    return {**plain, "uri": spec.uri, "operation": spec.kind, "digest": work_digest(lifecycle.work_of(spec))}
