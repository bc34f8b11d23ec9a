"""The body of the spark-submit entry (`main.py`): parse, run, report through the registry, exit with a meaningful status."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lance_core.errors import InputError
from lance_core.jobs.kinds import carry_out, spec_from_json
from lance_core.jobs.runtime.error_transport import EXIT_OK, exit_status
from lance_core.jobs.runtime.failure_record import record_failure, record_refusal
from lance_core.jobs.runtime.protocols import Runner
from lance_core.jobs.specs.spec import JobSpec
from lance_core.spark.archive import BUNDLED
from lance_core.spark.argument import decode_argument, is_encoded, text_of_file
from lance_core.spark.places import check_place
from lance_core.spark.reach import wait_for_port, without_token

log = logging.getLogger("lance_core.spark")

_BATCH_ROWS = ("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
"""Rows of a batch on their way to Python, unless the job's conf says otherwise: Spark's 10,000 cost a tenth more time. Wide
rows are bounded by Spark's own limit of bytes."""
_JVM_SECONDS = 5.0
_STAGING_ON_YARN = "SPARK_YARN_STAGING_DIR"
"""What Spark sets in the containers of YARN, and so for a driver in cluster mode."""
EXIT_TERMINATED = 128 + signal.SIGTERM


class Terminated(SystemExit):
    """SIGTERM: unwinds the job, so that its attempt is aborted."""

    def __init__(self) -> None:
        super().__init__(EXIT_TERMINATED)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one job; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, _terminate)
    spec: JobSpec | None = None
    sent: Mapping[str, Any] = {}
    sessions: list[Any] = []
    try:
        text = _spec_text(arguments)
        sent = _object_of(text)
        spec = spec_from_json(text_of_file(sent) or text)
        result = _carry_out(spec, sessions)
        if not sessions and _STAGING_ON_YARN in os.environ:
            # YARN would call a driver that had nothing to do failed: "User did not initialize spark context!"
            sessions.append(start_session(f"lance-{spec.kind}"))
        log.info("done: %s", result.to_dict())
        return EXIT_OK
    except Terminated:
        log.error("stopped by SIGTERM")
        return EXIT_TERMINATED
    except Exception as error:
        status = exit_status(error)
        log.error("%s: %s", type(error).__name__, _one_line(error), exc_info=_is_unexpected(error))
        if spec is None:
            record_refusal(sent, error)
        else:
            record_failure(spec, error, is_final=not _has_lost_its_jvm())
        return status
    finally:
        for session in sessions:
            with suppress(Exception):  # the result stands; a JVM that is gone already cannot be stopped
                session.stop()


def start_session(name: str) -> Any:
    """The Spark session of this submit. Executors on this machine find lance_core where the driver found it; from the
    application's zip (`archive.write_application`) they get it wherever they run."""
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    builder = builder.appName(name)
    if not SparkConf().contains(_BATCH_ROWS[0]):
        builder = builder.config(*_BATCH_ROWS)
    remote = os.environ.get("SPARK_REMOTE", "")
    if remote.startswith("sc://"):
        wait_for_port(remote, shown=without_token(remote))
    if remote or _root().endswith("site-packages"):
        return builder.getOrCreate()
    if _is_application(_root()):
        session = builder.getOrCreate()
        session.sparkContext.addPyFile(_root())
        return session
    return builder.config("spark.executorEnv.PYTHONPATH", _executor_path()).getOrCreate()


def _carry_out(spec: JobSpec, sessions: list[Any]) -> Any:
    from lance_core.spark.lance_tables import LanceTables
    from lance_core.spark.runner import SparkRunner

    def session() -> Any:
        sessions.append(start_session(f"lance-{spec.kind}"))
        check_place(sessions[-1], spec.uri)
        return sessions[-1]

    runner: Runner = SparkRunner(session, LanceTables.of(spec))
    return carry_out(spec, runner)


def _spec_text(arguments: Sequence[str] | None) -> str:
    parser = argparse.ArgumentParser(prog="lance_core.spark.main", description="Run one Lance job on Spark.")
    parser.add_argument("json", nargs="?", help="the job spec as JSON, a file, or env:NAME")
    parser.add_argument("--spec", help="the same, as an option")
    parsed = parser.parse_args(arguments)
    given = parsed.spec or parsed.json
    if not given:
        raise InputError("no job spec was passed", cure="Pass it as JSON, as a file, or as env:NAME.")
    if given.lstrip().startswith("{"):
        return str(given)
    if is_encoded(given):
        return decode_argument(given)
    if given.startswith("env:"):
        text = os.environ.get(given[len("env:") :])
        if text is None:
            raise InputError(f"the job spec should be in the environment variable {given[len('env:') :]}, which is not set")
        return text
    path = Path(given)
    if not path.is_file():
        raise InputError(f"the job spec {given!r} is neither JSON, nor env:NAME, nor a file")
    return path.read_text(encoding="utf-8")


def _object_of(text: str) -> Mapping[str, Any]:
    """What was sent, before it is known to be a spec."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _executor_path() -> str:
    from pyspark import SparkConf

    before = SparkConf().get("spark.executorEnv.PYTHONPATH", "") or ""
    return os.pathsep.join(filter(None, [before, _root()]))


def _is_application(root: str) -> bool:
    """Whether lance_core came out of the application's zip."""
    return Path(root).name == BUNDLED and Path(root).is_file()


def _root() -> str:
    import lance_core

    return str(Path(str(lance_core.__file__)).resolve().parents[1])


def _has_lost_its_jvm() -> bool:
    """Whether the JVM of this process's session is gone: a driver that was killed, whose Python still runs for a moment."""
    gateway = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_gateway", None)
    if gateway is None:
        return False
    where = gateway.gateway_parameters
    try:
        with socket.create_connection((where.address, where.port), timeout=_JVM_SECONDS):
            return False
    except OSError:
        return True


def _terminate(signum: int, frame: object) -> None:
    raise Terminated


def _is_unexpected(error: BaseException) -> bool:
    from lance_core.errors import LanceError

    return not isinstance(error, LanceError)


def _one_line(error: BaseException) -> str:
    return " ".join((str(error) or "no message").split())[:2000]
