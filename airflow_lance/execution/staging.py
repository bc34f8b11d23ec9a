"""The operators' only door to `lance_core.jobs`; imported when a task runs, for it brings Arrow.

::

    find_done      has this identity landed, or is it staged already?     -> no Spark is started for it
    run_here       the job in this process
    read_result    after any run: what lies in the table's staged registry, the one place where results are kept
    abort          attempts that will never finish: their files are removed by name
    run_verb       work that takes effect at once, such as a cleanup
    commit         the staged transactions become versions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lance_core.commit.record_types import work_digest
from lance_core.commit.registry.attempts import list_staged, read_finished
from lance_core.commit.registry.ledger import recorded_version
from lance_core.errors import InputError, LanceError, RetryableConflictError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime import lifecycle as stage
from lance_core.jobs.runtime.failure_record import clear_failure, read_failure
from lance_core.jobs.specs.secret import as_secret, reveal_all
from lance_core.jobs.specs.spec import CommitSpec, JobSpec, read_spec
from lance_core.jobs.staging.compact_report import report_lines

__all__ = [
    "Found",
    "abort",
    "abort_identity",
    "begin_watch",
    "commit",
    "find_done",
    "raise_failure",
    "read_result",
    "report_lines",
    "run_connected",
    "run_here",
    "run_verb",
    "telling_failures",
    "watch",
]


@dataclass(frozen=True)
class Found:
    """Work that is done: the reference for the commit, and why nothing has to be run."""

    reference: dict[str, Any]
    reason: str


def find_done(spec: JobSpec, *, options: Mapping[str, Any]) -> Found | None:
    """Whether the table already knows this identity as landed or staged."""
    done = stage.find_done(_store(spec.uri, options), spec)
    if done is None:
        return None
    reason = "is staged already and waits for its commit" if done.version is None else f"landed as version {done.version}"
    return Found(_reference(done.staged.to_dict(), spec), f"{spec.kind} {spec.identity} {reason}")


def run_here(spec: JobSpec, *, options: Mapping[str, Any]) -> None:
    """Stage in this process."""
    run_job(_with_options(spec, options))


def run_connected(
    spec: JobSpec, *, options: Mapping[str, Any], conn_id: str | None, conf: Mapping[str, str], packaging: str
) -> None:
    """Stage through a Spark Connect server; the driver's part runs in this process."""
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    from lance_core.spark.archive import write_archive
    from lance_core.spark.connect import run_connected as run

    if packaging not in ("installed", "archive"):
        raise InputError(
            f"packaging {packaging!r} does not go with Spark Connect, whose executors have their environment already",
            cure='Use "installed" or "archive".',
        )
    url = SparkConnectHook(conn_id or SparkConnectHook.default_conn_name).get_connection_url()
    with TemporaryDirectory(prefix="lance-") as folder:
        packages = [write_archive(str(Path(folder) / "lance_core.zip"))] if packaging == "archive" else []
        run(_with_options(spec, options), url=url, conf=conf, packages=packages)


def begin_watch(spec: JobSpec, *, options: Mapping[str, Any]) -> str:
    """The attempt that an older spec of this identity left staged, which is not what a watch is for; "" for none."""
    finished = read_finished(_store(spec.uri, options), spec.identity)
    return "" if finished is None else finished.attempt


def watch(uri: str, identity: str, *, stale: str, options: Mapping[str, Any]) -> str | None:
    """What became of a job that runs elsewhere: "staged" (or landed), "failed", None while it is at work.

    A job whose driver died without a word counts as failed when its attempt's lease is over.
    """
    store = _store(uri, options)
    finished = read_finished(store, identity)
    if (finished is not None and finished.attempt != stale) or recorded_version(store, identity) is not None:
        return "staged"
    if read_failure(store, identity) is not None:
        return "failed"
    entries = [entry for entry in list_staged(store, identity=identity) if entry.attempt != stale]
    return "failed" if entries and all(entry.state == "expired" for entry in entries) else None


def raise_failure(spec: JobSpec, *, options: Mapping[str, Any]) -> None:
    """Raise what the driver left behind; RetryableConflictError when it left nothing."""
    failure = read_failure(_store(spec.uri, options), spec.identity)
    raise failure or RetryableConflictError(
        f"the Spark job that stages {spec.identity} ended without a word",
        uri=spec.uri,
        cure="Its own log tells more; the next try stages it again.",
    )


def run_verb(spec: JobSpec, *, options: Mapping[str, Any]) -> dict[str, Any]:
    """Work that takes effect at once, or only reports; what it did as a plain dict."""
    plain: dict[str, Any] = run_job(_with_options(spec, options)).to_dict()
    return plain


def read_result(spec: JobSpec, *, options: Mapping[str, Any]) -> dict[str, Any]:
    """The reference that the job left in the staged registry. RetryableConflictError when there is none."""
    found = find_done(spec, options=options)
    if found is None:
        raise RetryableConflictError(
            f"the job ended without an error, but {spec.identity} is not staged at {spec.uri}",
            uri=spec.uri,
            cure="It may have been aborted meanwhile; the next try stages it again.",
        )
    return found.reference


@contextmanager
def telling_failures(spec: JobSpec, *, options: Mapping[str, Any]) -> Iterator[None]:
    """Submit a job inside: when that fails and the driver left its error in the registry, that error is raised instead.

    spark-submit says "error code 65"; the driver says which column of which file does not fit.
    """
    store = _store(spec.uri, options)
    clear_failure(store, spec.identity)
    try:
        yield
    except Exception as error:
        failure = read_failure(store, spec.identity)
        if failure is None:
            raise
        raise failure from error


def abort(spec: JobSpec, *, options: Mapping[str, Any], log: Any) -> None:
    """Give up the attempts of an identity that did not finish. Never raises: it runs while a task is being killed."""
    abort_identity(spec.uri, spec.identity, options=options, log=log)


def abort_identity(uri: str, identity: str, *, options: Mapping[str, Any], log: Any) -> None:
    """`abort` for one who knows no more than the identity."""
    with suppress(LanceError, OSError):
        removed = stage.clear_dead(_store(uri, options), identity)
        log.info("Aborted %s: %d files of unfinished attempts removed", identity, len(removed))


def commit(
    uri: str,
    references: Sequence[Mapping[str, Any]],
    *,
    options: Mapping[str, Any],
    max_attempts: int | None,
    gates: Sequence[Mapping[str, Any]] = (),
    re_execute: bool = True,
) -> dict[str, Any]:
    """Publish what the references name; the typed outcome as a plain dict."""
    identities = list(dict.fromkeys(str(reference["uuid"]) for reference in references))
    digests = {str(item["uuid"]): str(item["digest"]) for item in references if item.get("digest")}
    fields: dict[str, Any] = {
        "uri": uri, "identities": identities, "digests": digests, "gates": [*gates], "re_execute": re_execute,
    }  # fmt: skip
    spec = read_spec(CommitSpec, fields if max_attempts is None else {**fields, "max_attempts": max_attempts})
    from lance_core.spark.on_demand import OnDemandSpark

    with OnDemandSpark() as runner:
        result = run_job(_with_options(spec, options), runner=runner)
    plain: dict[str, Any] = result.to_dict()
    return plain


def _with_options(spec: JobSpec, options: Mapping[str, Any]) -> JobSpec:
    return replace(spec, storage_options={name: as_secret(value, where=name) for name, value in options.items()})


def _store(uri: str, options: Mapping[str, Any]) -> Store:
    return resolve_store(uri, reveal_all(options))


def _reference(plain: dict[str, Any], spec: JobSpec) -> dict[str, Any]:
    # The store's uri may be written differently; downstream tasks get the one that the DAG uses. The digest is that of the
    # spec this worker made, never the one that the record below the table claims.
    return {**plain, "uri": spec.uri, "digest": work_digest(stage.work_of(spec))}
