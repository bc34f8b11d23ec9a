"""A real Airflow API server on loopback, with users of every role, for the pages' tests and the browser's.

Nothing of it is in this process: the server and the preparation of its database have an environment of their own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.ui.lake import SECRET, make_lake, make_small_lake

PLUGIN = "airflow_lance.ui.plugin:LancePlugin"
ROOT = Path(__file__).resolve().parents[2]
USERS = {"viewer": "viewer", "user": "user", "op": "op", "admin": "admin", "nobody": "", "stranger": "user"}
START_SECONDS = 600.0

DAGS = """
from datetime import datetime, timezone
from airflow.sdk import DAG
from airflow_lance import LanceAppendOperator, LanceBranchOperator, LanceCreateTableOperator, LanceDeleteOperator
from airflow_lance import LanceDescribeOperator, LanceDropTableOperator, LanceQueryOperator, LanceTagOperator
from airflow_lance.maintenance import lance_actions_dags, maintenance_dags

globals().update(lance_actions_dags(lance_conn_ids=["lake"]))
globals().update(maintenance_dags({policy!r}, schedule=None, lance_conn_id="lake"))
with DAG("shop", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc), catchup=False) as dag:
    shared = {{"uri": "shop/orders.lance", "lance_conn_id": "lake", "execution": "local"}}
    forget = LanceDeleteOperator(
        task_id="forget", predicate="id < 5", gates=[{{"name": "few", "max_deleted_rows": 100}}], **shared
    )
with DAG("desk", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc), catchup=False) as desk:
    orders = {{"uri": "shop/products.lance", "lance_conn_id": "lake"}}
    trial = {{"uri": "shop/trial.lance", "lance_conn_id": "lake"}}
    words = {{"description": "what is sold", "table_owner": "shop@example.com", "fresh_within": "2days"}}
    rows = {{"source": {{"format": "csv", "paths": [{raw!r}], "options": {{"header": True}}}}, "execution": "local"}}
    of_id = {{"description": "which", "owner": "post"}}
    describe = LanceDescribeOperator(task_id="describe", columns={{"id": of_id}}, **words, **orders)
    tag = LanceTagOperator(task_id="tag", tag="shown", **orders)
    look = LanceQueryOperator(task_id="look", columns=["id"], limit=1, **orders)
    branch = LanceBranchOperator(task_id="branch", branch="trial", **orders)
    create = LanceCreateTableOperator(task_id="create", schema="id BIGINT", **trial)
    fill = LanceAppendOperator(task_id="fill", **rows, **trial)
    drop = LanceDropTableOperator(task_id="drop", **trial)
    describe >> tag >> look >> branch >> create >> fill >> drop
"""
POLICY = """
base_uri: {base}
levels: {{min_fragments: 8, target_rows_per_fragment: 1000, max_versions: 40, keep_versions: 2, keep_seconds: 0}}
budget: {{backoff_seconds: 0, seconds_per_day: 4h, gb_hours_per_day: 60}}
"""


@dataclass
class Answer:
    """An HTTP answer: status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Server:
    """The running server. `url` ends without a slash; `tables` are ids by name; `interpreter` is that of its Airflow."""

    url: str
    home: Path
    lake: Path
    environment: dict[str, str]
    interpreter: str = sys.executable
    tables: dict[str, str] = field(default_factory=dict)
    _tokens: dict[str, str] = field(default_factory=dict)

    def token(self, name: str) -> str:
        """A user's JWT."""
        if name not in self._tokens:
            answer = self.call("POST", "/auth/token", {"username": name, "password": name})
            self._tokens[name] = answer.json()["access_token"]
        return self._tokens[name]

    def cookie(self, name: str) -> tuple[str, str]:
        """Name and value of the cookie by which Airflow knows a user."""
        return "_token", self.token(name)

    def get(self, path: str, user: str | None = "admin") -> Answer:
        """GET a path below `/lance/`."""
        return self.call("GET", f"/lance/{path}", user=user)

    def post(self, path: str, body: object, user: str | None = "admin", **headers: str) -> Answer:
        """POST JSON to a path below `/lance/` as the front end does it."""
        return self.call("POST", f"/lance/{path}", body, user=user, headers={"X-Lance-Request": "1", **headers})

    def call(
        self, method: str, path: str, body: object = None, *, user: str | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Any request."""
        sent = dict(headers or {})
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        if user is not None:
            sent["Authorization"] = f"Bearer {self.token(user)}"
        request = urllib.request.Request(f"{self.url}{path}", data=data, headers=sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def airflow(self, *arguments: str) -> str:
        """The output of an Airflow command in the server's environment."""
        return _run([self.interpreter, "-m", "airflow", *arguments], self.environment)

    def python(self, code: str) -> str:
        """The output of a program in the server's environment."""
        return _run([self.interpreter, "-c", code], self.environment)


def prepare(folder: Path) -> Server:
    """Write tables, DAGs, users and the metadata database. Nothing runs yet."""
    server = _write(folder, make_lake)
    code = """
        from airflow.utils.db import initdb
        from airflow.dag_processing.bundles.manager import DagBundlesManager
        from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
        import os
        initdb()
        DagBundlesManager().sync_bundles_to_db()
        folder = os.environ["AIRFLOW__CORE__DAGS_FOLDER"]
        bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="dags-folder")
        assert not bag.import_errors, bag.import_errors
        sync_bag_to_db(bag, "dags-folder", None)
        for name in ("shop", "desk"):
            run = bag.dags[name].test()
            assert run.state == "success", (name, run.state)
    """
    _run([sys.executable, "-c", textwrap.dedent(code)], server.environment)
    return server


def prepare_release(folder: Path, *, interpreter: str, prefix: str = "") -> Server:
    """The same for the Airflow of another interpreter, below a prefix of the address, with few tables.

    Only commands are used: the modules that `prepare` imports differ between releases.
    """
    server = _write(folder, make_small_lake, prefix=prefix, interpreter=interpreter)
    for command in (("db", "migrate"), ("dags", "reserialize"), ("dags", "test", "shop", "2024-01-01")):
        server.airflow(*command)
    return server


def below(server: Server, prefix: str) -> Server:
    """Another server over the same tables, DAGs and database, below a prefix of the address."""
    url = f"http://127.0.0.1:{_free_port()}{prefix}"
    environment = {**server.environment, "AIRFLOW__API__BASE_URL": url}
    return replace(server, url=url, environment=environment, _tokens={})


def _write(folder: Path, make: Callable[[Path], None], *, prefix: str = "", interpreter: str = sys.executable) -> Server:
    home, lake = folder / "home", folder / "lake"
    for place in (home / "dags", lake):
        place.mkdir(parents=True)
    make(lake)
    policy = home / "lance_policy.yaml"
    (home / "trial.csv").write_text("id\n1\n2\n")
    policy.write_text(POLICY.format(base=lake))
    (home / "dags" / "lance_dags.py").write_text(DAGS.format(policy=str(policy), raw=str(home / "trial.csv")))
    (home / "passwords.json").write_text(json.dumps({name: name for name in USERS}))
    url = f"http://127.0.0.1:{_free_port()}{prefix}"
    environment = {**_environment(home, lake, policy), "AIRFLOW__API__BASE_URL": url}
    return Server(url, home, lake, environment, interpreter)


def start(server: Server) -> subprocess.Popen[bytes]:
    """Start the API server and wait until it answers."""
    port = str(urlsplit(server.url).port)
    log_file = server.home / f"server-{port}.log"
    command = [server.interpreter, "-m", "airflow", "api-server", "--host", "127.0.0.1", "--port", port, "--workers", "1"]
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, env=server.environment, stdout=log, stderr=log, start_new_session=True)
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit and process.poll() is None:
        try:
            if server.call("GET", "/api/v2/version").status == 200:
                return process
        except OSError:
            time.sleep(0.3)
    process.kill()
    raise RuntimeError(f"the API server did not start: {log_file.read_text()[-4000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server that `start` started, and what it started: a browser that keeps its connection makes it wait."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)
    with suppress(ProcessLookupError):  # the group is that of its session
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


def _environment(home: Path, lake: Path, policy: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    connections = {
        "lake": {"conn_type": "lance", "extra": {"base_uri": str(lake), "storage_options": {"account_key": SECRET}}},
        "gone": {"conn_type": "lance", "extra": {"base_uri": str(lake.parent / "gone")}},
        # Nothing listens there; the store's own retries would take longer than a page waits.
        "far": {
            "conn_type": "lance",
            "extra": {
                "base_uri": "s3://bucket/far",
                "storage_options": {
                    "endpoint": "http://127.0.0.1:9", "allow_http": "true", "region": "us-east-1",
                    "access_key_id": "far-access", "secret_access_key": SECRET,
                },
            },
        },
    }  # fmt: skip
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join([*_entry_points(home), str(ROOT), inherited.get("PYTHONPATH", "")]),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.ui.rights.RightsByDag",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in USERS.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of these tests that is long enough for a signature of 512 bits, surely",
        "AIRFLOW__API__SECRET_KEY": "another secret of these tests",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__LANCE__PAGES_POLICY": str(policy),
        "AIRFLOW__LANCE__PAGES_POLICY_CONN_ID": "lake",
        "AIRFLOW__LANCE__PAGES_ROWS": "connection",
        # The first read of rows and the first search load compiled code; a busy machine takes its time for that.
        "AIRFLOW__LANCE__PAGES_TIMEOUT_SECONDS": "30",
        **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(value) for name, value in connections.items()},
    }


def _entry_points(home: Path) -> list[str]:
    """A folder with this checkout's entry points, for Airflow to see, where what is installed does not have them."""
    if any(point.value == PLUGIN for point in metadata.entry_points(group="airflow.plugins")):
        return []
    folder = home / "entry"
    info = folder / "airflow_provider_lance-0.1.0.dist-info"
    info.mkdir(parents=True)
    project = (ROOT / "pyproject.toml").read_text()
    groups = re.findall(r"^\[project\.entry-points\.\"?([\w.]+)\"?\]\n((?:.+\n)+)", project, re.M)
    points = "\n".join(f"[{group}]\n{items}" for group, items in groups)
    (info / "entry_points.txt").write_text(points.replace('"', ""))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: airflow-provider-lance\nVersion: 0.1.0\n")
    return [str(folder)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise RuntimeError(f"{command[:4]} failed: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def remove(folder: Path) -> None:
    """Remove everything that was written."""
    shutil.rmtree(folder, ignore_errors=True)
