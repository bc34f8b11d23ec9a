"""HDFS and YARN on loopback, from Hadoop's own mini clusters: a real name node, resource manager and node manager.

::

    python tests/cluster/hadoop.py --fetch        what Maven has, into .hadoop/ (`make cluster-test` does it)
    with MiniHadoop(folder) as hadoop:
        hadoop.env                                HADOOP_CONF_DIR and the like, for spark-submit
        hadoop.put("/raw/a.parquet", data)        by WebHDFS
        hadoop.applications()                     by the resource manager's REST API

The client's jars are those inside PySpark; what is fetched beside them is of the same version. One JVM, started here and
ended here; a container is a process below it, and none outlives it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from json import loads
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
JARS = REPOSITORY / ".hadoop"
LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""
Process = psutil.Process


def spark_jars() -> Path:
    """The jars inside the installed PySpark."""
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("pyspark is not installed")
    return Path(found.submodule_search_locations[0]) / "jars"


def hadoop_version() -> str:
    """The version of the Hadoop client inside PySpark."""
    (jar,) = spark_jars().glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def missing() -> str:
    """What of the mini clusters this machine lacks, as a sentence; "" for nothing."""
    version = hadoop_version()
    if not (JARS / f"hadoop-client-minicluster-{version}.jar").is_file():
        return f"no mini clusters of Hadoop {version} in {JARS.name}/: `make cluster-test` fetches them with Maven"
    return ""


def fetch() -> None:
    """Bring the jars by Maven. SystemExit that says what is missing."""
    maven = shutil.which("mvn")
    if maven is None:
        raise SystemExit("the mini clusters of Hadoop come by Maven, and there is no mvn (Debian: apt-get install maven)")
    if not missing():
        return
    shutil.rmtree(JARS, ignore_errors=True)
    goal = [maven, "--batch-mode", "--quiet", "--file", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    subprocess.run([*goal, f"-Dhadoop.version={hadoop_version()}", f"-DoutputDirectory={JARS}"], check=True)


class MiniHadoop:
    """Starts on enter, stops on exit.

    `root` is the file system's uri, `web` the address of WebHDFS, `manager` that of the resource manager's REST API.
    """

    def __init__(self, folder: Path, *, java_home: Path) -> None:
        self.folder, self._java_home = folder, java_home
        self._process: subprocess.Popen[str] | None = None
        self.root = self.manager = self.web = ""

    def __enter__(self) -> MiniHadoop:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j2.properties").write_text(LOG4J)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def conf(self) -> Path:
        """The folder that HADOOP_CONF_DIR names."""
        return self.folder / "conf"

    @property
    def env(self) -> dict[str, str]:
        """For who submits."""
        return {"HADOOP_CONF_DIR": str(self.conf), "YARN_CONF_DIR": str(self.conf), "JAVA_HOME": str(self._java_home)}

    def _start(self) -> None:
        path = os.pathsep.join([str(self.folder), f"{JARS}/*", f"{spark_jars()}/*"])
        command = [str(self._java_home / "bin" / "java"), "-Xmx512m", "-XX:+UseSerialGC"]
        # Hadoop's clusters leave a folder `target` where they run.
        with (self.folder / "hadoop.log").open("wb") as log:
            self._process = process = subprocess.Popen(
                [*command, "-cp", path, str(HERE / "MiniHadoop.java"), str(self.folder)],
                cwd=self.folder,
                env={**os.environ, "JAVA_HOME": str(self._java_home)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert process.stdout is not None
        for line in process.stdout:
            ready = re.match(r"READY (\S+) (\S+) (\S+)", line)
            if ready:
                self.root, self.web, self.manager = ready.groups()
                return
        raise RuntimeError(f"Hadoop's mini clusters did not start:\n{self.log()[-4000:]}")

    def stop(self) -> None:
        """End it, and the containers that it left."""
        process, self._process = self._process, None
        if process is None:
            return
        below = _descendants(process.pid)
        for left in below:
            with suppress(psutil.NoSuchProcess):
                left.kill()
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        for left in {*below, *_descendants(process.pid)}:
            with suppress(psutil.NoSuchProcess):
                left.kill()
        process.kill()
        process.wait()

    def log(self) -> str:
        """What the clusters themselves said."""
        return (self.folder / "hadoop.log").read_text(errors="replace")

    # -- HDFS --------------------------------------------------------------------------------------------------------

    def put(self, path: str, data: bytes) -> str:
        """Write a file; its uri."""
        import fsspec

        host, _, port = self.web.partition(":")
        files = fsspec.filesystem("webhdfs", host=host, port=int(port), user="root")
        files.makedirs(path.rpartition("/")[0], exist_ok=True)
        files.pipe_file(path, data)
        return f"{self.root}{path}"

    def limit(self, folder: str, *, names: int) -> None:
        """How many files and folders there may be in a folder, itself included."""
        query = f"op=SETQUOTA&namespacequota={names}&user.name=root"
        request = urllib.request.Request(f"http://{self.web}/webhdfs/v1{folder}?{query}", method="PUT")
        urllib.request.urlopen(request, timeout=30).close()

    # -- YARN --------------------------------------------------------------------------------------------------------

    def applications(self) -> list[dict[str, Any]]:
        """All that were submitted, the first one first: id, name, state, finalStatus, diagnostics."""
        found = self._ask("apps").get("apps") or {}
        return sorted(found.get("app", []), key=lambda application: str(application["id"]))

    def running(self) -> list[str]:
        """Ids of the applications that have not ended."""
        ended = ("FINISHED", "FAILED", "KILLED")
        return [application["id"] for application in self.applications() if application["state"] not in ended]

    def containers(self, application: str) -> list[Container]:
        """The JVMs of an application that are running now."""
        assert self._process is not None
        name = application.removeprefix("application_")
        found = []
        for process in _descendants(self._process.pid):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                text = " ".join(process.cmdline())
                if name in text and Path(process.exe()).name == "java":
                    found.append(Container(process, text))
        return found

    def num_containers(self, application: str) -> int:
        """How many an application has had, those that have ended included."""
        return len([*self.folder.glob(f"target/**/{application}/container_*/stderr")])

    def logs(self, application: str) -> str:
        """What the containers of an application said."""
        paths = sorted(self.folder.glob(f"target/**/{application}/**/std*"))
        return "\n".join(f"== {path.parent.name}/{path.name}\n{path.read_text(errors='replace')}" for path in paths)

    def _ask(self, what: str) -> Mapping[str, Any]:
        with urllib.request.urlopen(f"http://{self.manager}/ws/v1/cluster/{what}", timeout=30) as answer:
            found: Mapping[str, Any] = loads(answer.read())
        return found


class Container:
    """A JVM that YARN started: the application master (the driver, in cluster mode) or an executor."""

    def __init__(self, process: Process, text: str) -> None:
        self.process = process
        self.is_executor = "YarnCoarseGrainedExecutorBackend" in text
        self.is_driver = "deploy.yarn.ApplicationMaster" in text

    def pythons(self) -> list[Process]:
        """The Python processes below it."""
        below = []
        for process in self.process.children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if "python" in Path(process.exe()).name:
                    below.append(process)
        return below


def _descendants(pid: int) -> list[Process]:
    with suppress(psutil.NoSuchProcess):
        found: list[Process] = psutil.Process(pid).children(recursive=True)
        return found
    return []


def until(condition: Callable[[], Any], *, what: str, seconds: float = 900, tell: Callable[[], str] = str) -> Any:
    """What the condition gives once it is true. AssertionError with what `tell` says when it is not in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds:.0f} s for {what}\n{tell()[-6000:]}")


if __name__ == "__main__":
    assert sys.argv[1:] == ["--fetch"], __doc__
    fetch()
