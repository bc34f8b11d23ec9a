"""A job on a Spark Connect server: the driver's part runs in this process, the work on the server's executors.

::

    run_connected(spec, url="sc://spark:15002", name="lance-append", packages=["/tmp/lance_core.zip"])

The executors need lance_core: installed there, or sent along with `packages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from lance_core.errors import RetryableConflictError
from lance_core.jobs.registry import job_of
from lance_core.jobs.runtime.protocols import JobResult
from lance_core.jobs.specs.spec import JobSpec
from lance_core.spark.lance_tables import LanceTables
from lance_core.spark.runner import SparkRunner


def run_connected(
    spec: JobSpec, *, url: str, conf: Mapping[str, str] | None = None, packages: Sequence[str] = ()
) -> JobResult:
    """Carry out a spec through a Spark Connect server. RetryableConflictError when the server cannot be reached.

    `conf` are settings of the session. The session is opened when the job first needs it and closed afterwards.
    """
    sessions: list[Any] = []

    def session() -> Any:
        if not sessions:
            sessions.append(open_session(url, conf or {}, packages))
        return sessions[-1]

    try:
        return job_of(spec).run(spec, SparkRunner(session, LanceTables.of(spec)))
    finally:
        for found in sessions:
            with suppress(Exception):  # the result stands, whatever the server says about the end
                found.stop()


def open_session(url: str, conf: Mapping[str, str], packages: Sequence[str]) -> Any:
    """A session of its own on the server, with the packages on the executors' path."""
    from pyspark.sql.connect.session import SparkSession

    try:
        session = SparkSession.builder.remote(url).create()
        for name, value in conf.items():
            session.conf.set(name, value)
        if packages:
            session.addArtifacts(*packages, pyfile=True)
    except Exception as error:
        raise RetryableConflictError(
            f"no session on the Spark Connect server {without_token(url)}: {type(error).__name__}: {error}".split("\n")[0],
            cure="Check the connection; the server may be starting.",
        ) from error
    return session


def without_token(url: str) -> str:
    """A server's url fit for a log: its parameters may hold a token."""
    return url.split("/;")[0].split(";")[0]
