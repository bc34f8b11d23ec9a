"""A whole Airflow on loopback for a demo or a test: scheduler, dag processor, triggerer, API server, on SQLite.

::

    with AirflowStack(Path(".demo/airflow"), dags=Path("dags_examples"), pools={"lance_flights_ab12cd": 1}) as stack:
        stack.unpause("flights_ingest")
        stack.wait_for_runs("flights_ingest", num_runs=12, timeout=240)

Every process is started here, in a session of its own, and stopped here by its id. Ports are free ones; nothing listens
beyond 127.0.0.1. Standard library only: this file runs before anything is known to work.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
# Scheduler and triggerer would serve their logs to other machines; here everybody reads the same folder.
COMPONENTS = (
    ("api-server",),
    ("scheduler", "--skip-serve-logs"),
    ("dag-processor",),
    ("triggerer", "--skip-serve-logs"),
)
FINISHED = ("success", "failed")
_PATIENCE = 20
"""How often a look at the API is repeated when no answer comes within its half minute."""


class StackError(RuntimeError):
    """Airflow did not start, or a run did not end as it should; the message holds the end of the logs."""


def free_port() -> int:
    """A TCP port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def airflow_environment(home: Path, *, dags: Path, port: int, parallelism: int = 4) -> dict[str, str]:
    """The environment of every Airflow process: own home, SQLite, LocalExecutor, one admin without a password, loopback."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    python_path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(parallelism),
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": _database(home, patience=120),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        # A file that has changed is read at once. Reading all of them every minute would take a third of a processor.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
        "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": path,
        "PYTHONPATH": python_path,
    }
    return {**{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}, **settings}


def _database(home: Path, *, patience: int) -> str:
    """SQLite, whose locks are waited for that many seconds."""
    return f"sqlite:///{home / 'airflow.db'}?timeout={patience}"


class AirflowStack:
    """Starts on enter, stops on exit. `env` is added to every process (connections as AIRFLOW_CONN_..., JAVA_HOME)."""

    def __init__(
        self,
        home: Path,
        *,
        dags: Path,
        env: Mapping[str, str] | None = None,
        pools: Mapping[str, int] | None = None,
        parallelism: int = 4,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.home = home.resolve()
        self.port = free_port()
        self.env = {
            **airflow_environment(self.home, dags=dags.resolve(), port=self.port, parallelism=parallelism),
            **(env or {}),
        }
        self._pools = dict(pools or {})
        self._say = say
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._token = ""

    def __enter__(self) -> AirflowStack:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- processes ---------------------------------------------------------------------------------------------------

    def airflow(self, *arguments: str, timeout: float = 600) -> str:
        """Run one `airflow` command to its end and return what it printed. StackError when it fails."""
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=self.env, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        if done.returncode:
            raise StackError(f"airflow {' '.join(arguments)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def _start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "logs").mkdir(exist_ok=True)
        self._say("creating Airflow's database")
        self.airflow("db", "migrate")
        self._say("starting api-server, scheduler, dag processor, triggerer")
        for component in COMPONENTS:
            self._spawn(*component)
        self.until(self._is_healthy, what="Airflow to become healthy", timeout=600)
        for name, slots in self._pools.items():
            self.call("POST", "pools", {"name": name, "slots": slots, "description": "commits of a Lance table"})

    def _spawn(self, component: str, *arguments: str) -> None:
        log = (self.home / "logs" / f"{component}.log").open("wb")
        env = dict(self.env)
        if component == "api-server":
            # Its event loop may wait for a lock that only the loop's next turn gives back: not for long, then. Who asked
            # gets a 500 and asks again.
            env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = _database(self.home, patience=5)
        with log:
            self._processes[component] = subprocess.Popen(
                [sys.executable, "-m", "airflow", component, *arguments],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody but the caller writes to the database: SQLite refuses, at once, a transaction that another one overtook.

        For commands that write much and do not try again, such as `airflow backfill create`.
        """
        others = [process for name, process in self._processes.items() if name != "api-server"]
        self.until(lambda: self._hold(others), what="a moment without a transaction", timeout=120)
        try:
            yield
        finally:
            for process in others:
                _signal_group(process, signal.SIGCONT)

    def _hold(self, processes: Iterable[subprocess.Popen[bytes]]) -> bool:
        """Processes stopped, none of them in a transaction; else they go on."""
        for process in processes:
            _signal_group(process, signal.SIGSTOP)
        try:
            with closing(sqlite3.connect(self.home / "airflow.db", timeout=1, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE")
                database.execute("ROLLBACK")
            return True
        except sqlite3.OperationalError:
            for process in processes:
                _signal_group(process, signal.SIGCONT)
            return False

    def stop(self) -> None:
        """Stop every process that was started here (its own process group too); never anything else."""
        for process in self._processes.values():
            _signal_group(process, signal.SIGTERM)
        deadline = time.monotonic() + 20
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            _signal_group(process, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def _is_healthy(self) -> bool:
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise StackError(f"airflow {name} ended with {process.returncode}:\n{self.log_tail(name)}")
        try:
            health = self._request("GET", f"http://127.0.0.1:{self.port}/api/v2/monitor/health")
        except (urllib.error.URLError, OSError):
            return False
        parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
        return all(health.get(part, {}).get("status") == "healthy" for part in parts)

    def log_tail(self, component: str, num_chars: int = 3000) -> str:
        """The end of a component's own log."""
        path = self.home / "logs" / f"{component}.log"
        return path.read_text(errors="replace")[-num_chars:] if path.exists() else ""

    # -- the REST API ------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, root: str = "api/v2") -> Any:
        """One call of Airflow's public API: `call("GET", "dags/flights/dagRuns")`; its UI asks the root `ui`."""
        if not self._token:
            self._token = self._request("GET", f"http://127.0.0.1:{self.port}/auth/token")["access_token"]
        for patience in range(_PATIENCE, -1, -1):
            try:
                return self._request(method, f"http://127.0.0.1:{self.port}/{root}/{path}", body, self._token)
            except urllib.error.HTTPError as error:
                if method == "GET" and error.code >= 500 and patience:
                    time.sleep(1)
                    continue
                raise StackError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')[:2000]}") from None
            except OSError as error:
                # A machine that is busy answers late. Looking again harms nothing; asking for a change twice might.
                if method != "GET" or not patience:
                    raise StackError(f"{method} {path}: {error}") from None
        raise AssertionError

    @staticmethod
    def _request(method: str, url: str, body: Mapping[str, Any] | None = None, token: str = "") -> Any:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
        return json.loads(text) if text else None

    def wait_for_dag(self, dag_id: str, *, timeout: float = 600) -> None:
        """Until the dag processor has stored a DAG."""

        def known() -> bool:
            errors = self.call("GET", "importErrors")["import_errors"]
            if errors:
                raise StackError("a DAG file does not import:\n" + "\n".join(str(error["stack_trace"]) for error in errors))
            return any(dag["dag_id"] == dag_id for dag in self.call("GET", "dags?limit=100")["dags"])

        self.until(known, what=f"DAG {dag_id} to be parsed", timeout=timeout)

    def unpause(self, dag_id: str) -> None:
        """Let a DAG's runs be scheduled."""
        self.call("PATCH", f"dags/{dag_id}", {"is_paused": False})

    def trigger(self, dag_id: str, *, run_id: str | None = None, conf: Mapping[str, Any] | None = None) -> str:
        """Start a run by hand; returns its id."""
        body: dict[str, Any] = {"logical_date": None, "conf": dict(conf or {})}
        if run_id:
            body["dag_run_id"] = run_id
        return str(self.call("POST", f"dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """All runs of a DAG, each with dag_run_id, state, logical_date, duration."""
        return list(self.call("GET", f"dags/{dag_id}/dagRuns?limit=100&order_by=run_after")["dag_runs"])

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of a run, each with task_id, map_index, state, try_number, pid, duration."""
        return list(self.call("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances?limit=200")["task_instances"])

    def xcom(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1, key: str = "return_value") -> Any:
        """What a task returned."""
        entry = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}"
        return self.call("GET", f"{entry}?map_index={map_index}&deserialize=true")["value"]

    def task_log(self, dag_id: str, run_id: str, task_id: str, *, try_number: int = 1) -> str:
        """What a task logged in one try."""
        folder = self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}" / f"task_id={task_id}"
        texts = [path.read_text(errors="replace") for path in sorted(folder.rglob(f"attempt={try_number}.log*"))]
        return "\n".join(texts)

    def wait_for_runs(
        self, dag_id: str, *, num_runs: int, timeout: float, progress: Callable[[int], None] = lambda done: None
    ) -> list[dict[str, Any]]:
        """Until that many runs of a DAG have ended well. StackError, with the failed tasks' logs, when one fails."""
        found: list[dict[str, Any]] = []
        shown = -1

        def ended() -> bool:
            nonlocal found, shown
            found = [run for run in self.runs(dag_id) if run["state"] in FINISHED]
            for run in found:
                if run["state"] == "failed":
                    raise StackError(
                        f"run {run['dag_run_id']} of {dag_id} failed\n{self._failures(dag_id, run['dag_run_id'])}"
                    )
            if len(found) != shown:
                shown = len(found)
                progress(shown)
            return len(found) >= num_runs

        self.until(ended, what=f"{num_runs} runs of {dag_id}", timeout=timeout)
        return found

    def wait_for_run(self, dag_id: str, run_id: str, *, timeout: float = 900) -> str:
        """Until a run has ended; its state, "failed" too."""
        states: dict[str, str] = {}

        def ended() -> bool:
            states.update({run["dag_run_id"]: str(run["state"]) for run in self.runs(dag_id)})
            return states.get(run_id) in FINISHED

        self.until(ended, what=f"run {run_id} of {dag_id}", timeout=timeout)
        return states[run_id]

    def wait_for_executor(self, dag_id: str, run_id: str, *, timeout: float = 300) -> None:
        """Until the scheduler has heard from its executor that every task of a run has ended: it logs each such word."""
        names = {(task["task_id"], task["map_index"]) for task in self.tasks(dag_id, run_id) if task["pid"]}
        run = rf"dag_id='{re.escape(dag_id)}', task_id='([^']+)', run_id='{re.escape(run_id)}'"
        said = re.compile(
            r"executor event with state (?:success|failed) for task instance "
            rf"TaskInstanceKey\({run}, try_number=\d+, map_index=(-?\d+)"
        )

        def heard() -> bool:
            log = (self.home / "logs" / "scheduler.log").read_text(errors="replace")
            return names <= {(task_id, int(index)) for task_id, index in said.findall(log)}

        self.until(heard, what=f"the executor's word of {dag_id} {run_id}", timeout=timeout)

    def _failures(self, dag_id: str, run_id: str) -> str:
        failed = [task for task in self.tasks(dag_id, run_id) if task["state"] in ("failed", "upstream_failed")]
        logs = [self.task_log(dag_id, run_id, task["task_id"], try_number=task["try_number"])[-4000:] for task in failed]
        return "\n".join(f"{task['task_id']}: {task['state']}\n{log}" for task, log in zip(failed, logs, strict=True))

    def until(self, condition: Callable[[], bool], *, what: str, timeout: float) -> None:
        """Wait for a condition; StackError, with the end of the scheduler's log, when it does not hold in time."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise StackError(f"waited {timeout:.0f} s for {what}\nscheduler:\n{self.log_tail('scheduler')}")
            time.sleep(1.0)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # The group was made by start_new_session, so it holds only what this process started.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
