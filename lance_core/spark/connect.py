"""A job on a Spark Connect server: the driver's part runs in this process, the work on the server's executors.

::

    run_connected(spec, url="sc://spark:15002", name="lance-append", packages=["/tmp/lance_core.zip"])

The executors need lance_core: installed there, or sent along with `packages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from lance_core.errors import LanceError, RetryableConflictError
from lance_core.jobs.kinds import carry_out
from lance_core.jobs.runtime.protocols import JobResult
from lance_core.jobs.specs.spec import JobSpec
from lance_core.spark.lance_tables import LanceTables
from lance_core.spark.places import check_place
from lance_core.spark.reach import CONNECT_SECONDS, answering, wait_for_port, without_token
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
            check_place(sessions[-1], spec.uri)
        return sessions[-1]

    try:
        return carry_out(spec, SparkRunner(session, LanceTables.of(spec)))
    finally:
        for found in sessions:
            with suppress(Exception):  # the result stands, whatever the server says about the end
                found.stop()


def open_session(url: str, conf: Mapping[str, str], packages: Sequence[str], *, seconds: float = CONNECT_SECONDS) -> Any:
    """A session of its own on the server, with the packages on the executors' path.

    RetryableConflictError when the server has not answered after `seconds`, twice that at most.
    """
    shown = without_token(url)
    wait_for_port(url, shown=shown, seconds=seconds)
    try:
        session = _begin(url, shown=shown, seconds=seconds)
        for name, value in conf.items():
            session.conf.set(name, value)
        if packages:
            session.addArtifacts(*packages, pyfile=True)
    except LanceError:
        raise
    except Exception as error:
        raise RetryableConflictError(
            f"no session on the Spark Connect server {shown}: {type(error).__name__}: {error}".split("\n")[0],
            cure="Check the connection; the server may be starting.",
        ) from error
    return session


def _begin(url: str, *, shown: str, seconds: float) -> Any:
    from pyspark.sql.connect.session import SparkSession

    begun: list[Any] = []

    def ask() -> Any:
        begun.append(SparkSession.builder.remote(url).create())
        return begun[0].version

    def give_up() -> None:
        for session in begun:
            session.client.close()

    answering(ask, shown=shown, give_up=give_up, seconds=seconds)
    return begun[0]
