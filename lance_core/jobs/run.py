"""The entry points of jobs: `run_job` for any spec, `run_json` for a spec in JSON."""

from __future__ import annotations

from lance_core.jobs.kinds import carry_out, spec_from_json
from lance_core.jobs.runtime.protocols import JobResult, Runner
from lance_core.jobs.specs.spec import JobSpec


def run_job(spec: JobSpec, *, runner: Runner | None = None) -> JobResult:
    """Run a spec in this process unless another runner is given.

    A staging job returns the reference to its staged transaction, and does nothing twice: work of the same identity that
    was committed or waits is passed back. A commit returns what it did, maintenance a report. Raises LanceErrors whose
    `retryable` says whether the same call may be made again.
    """
    if runner is None:
        from lance_core.jobs.runtime.local_runner import LocalRunner

        runner = LocalRunner(lambda _: spec.resolved_options())
    from lance_core.shortage import shortages

    with shortages():
        return carry_out(spec, runner)


def run_json(text: str, *, runner: Runner | None = None) -> JobResult:
    """`run_job` for JSON text."""
    return run_job(spec_from_json(text), runner=runner)
