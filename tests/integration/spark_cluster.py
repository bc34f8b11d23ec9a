"""A Spark standalone cluster on loopback: one master, one worker, from the jars inside the pyspark package."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


class SparkCluster:
    """Starts on enter, stops on exit; `master` is its `spark://` uri, `rest_port` where drivers are submitted."""

    def __init__(self, place: Path, *, env: Mapping[str, str], cores: int = 2, memory: str = "2g") -> None:
        self._place = place
        self._env = {**os.environ, **env, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        self._cores, self._memory = cores, memory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""
        self.rest_port = 0

    def __enter__(self) -> SparkCluster:
        self._place.mkdir(parents=True, exist_ok=True)
        try:
            arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
            options = "-Dspark.master.rest.enabled=true -Dspark.master.rest.port=0"
            master = self._start("master", _MASTER, arguments, {"SPARK_DAEMON_JAVA_OPTS": options})
            self.master = self._wait(master, r"Starting Spark master at (spark://\S+)")
            self.rest_port = int(
                self._wait(master, r"Started REST server for submitting applications on \S+ with port (\d+)")
            )
            arguments = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", str(self._cores), "--memory", self._memory]
            worker = self._start("worker", _WORKER, [*arguments, "--work-dir", str(self._place / "work"), self.master], {})
            self._wait(worker, r"(Successfully registered with master)")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop what was started here, the worker first."""
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def _start(self, name: str, kind: str, arguments: list[str], env: Mapping[str, str]) -> Path:
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.submodule_search_locations
        home = Path(spec.submodule_search_locations[0])
        log = self._place / f"{name}.log"
        own = {"SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable, **env}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), kind, *arguments],
                env={**self._env, **own},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        return log

    def _wait(self, log: Path, pattern: str) -> str:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            match = re.search(pattern, log.read_text(errors="replace"))
            if match:
                return match.group(1)
            if self._processes[-1].poll() is not None:
                break
            time.sleep(0.2)
        raise RuntimeError(f"{log.name} never said {pattern!r}:\n{log.read_text(errors='replace')[-3000:]}")
