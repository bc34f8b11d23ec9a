"""Which Spark a job goes to, and what follows from its master and deploy mode. Reads the connection, starts nothing.

::

    spark://127.0.0.1:7077  client     -> the driver runs in the worker, its output is the task's log
    spark://127.0.0.1:7077  cluster    -> a Java program that runs ours (ADR 024): `is_wrapped`
    yarn, k8s://...         cluster    -> as Spark has it; the worker can let go of the job: `can_detach`
    local[2]                cluster    -> refused: there is no cluster
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_lance.compat import BaseHook
from lance_core.cached import cached_property
from lance_core.errors import InputError

BINARIES = ("spark-submit", "spark2-submit", "spark3-submit")
DEPLOY_MODES = ("client", "cluster")
UNPACKED = "lance_environment"
"""The folder in which executors find a packed environment."""


@dataclass(frozen=True)
class SparkSettings:
    """Which Spark, and what to tell spark-submit: `arguments` are those of the Spark provider (driver_memory, py_files).

    Two more arguments count in cluster mode on a standalone cluster only, for clusters that do not see this worker's
    temporary folder: `application`, the uri of a jar made by `python -m lance_core.spark.archive`, and `options_folder`, a
    folder that all nodes see, for the file with the secrets among the storage options, which exists while the job runs.
    """

    conn_id: str
    conf: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    packaging: str = "installed"

    @property
    def packed_conf(self) -> dict[str, str]:
        """Which Python runs: that of the packed environment where one is shipped."""
        if self.packaging in ("installed", "archive"):
            return {}
        python = f"./{UNPACKED}/bin/python"
        return {"spark.pyspark.python": python, "spark.executorEnv.PYSPARK_PYTHON": python}

    @property
    def log_conf(self) -> dict[str, str]:
        """Spark's own log level where the driver's output is the task's log, so that a few lines of ours stay visible.

        In cluster mode the provider reads the id of the job from what spark-submit logs, so nothing is set there.
        """
        return {"spark.log.level": "WARN"} if self.deploy_mode == "client" else {}

    @property
    def can_detach(self) -> bool:
        """Whether the provider can let go of a submitted job and find it again."""
        if self.deploy_mode != "cluster":
            return False
        if self.is_wrapped:  # a jar of our own making is in a temporary folder until the job is done
            return bool(self.arguments.get("application"))
        return bool(self.arguments.get("yarn_track_via_rm_api" if self.is_yarn else "track_driver_via_k8s_api"))

    @property
    def options_folder(self) -> str | None:
        """Where the file with secrets goes; None for the temporary folder."""
        given = self.arguments.get("options_folder")
        return str(given) if given else None

    @property
    def submit_arguments(self) -> dict[str, Any]:
        """What the Spark provider's operator is given."""
        return {name: value for name, value in self.arguments.items() if name != "options_folder"}

    @property
    def binary(self) -> str:
        """The name of the program that submits, from the arguments, else from the connection.

        InputError for another program than the Spark provider allows a connection to name.
        """
        return str(self.arguments.get("spark_binary") or self._extra("spark-binary", BINARIES))

    @cached_property
    def deploy_mode(self) -> str:
        """client or cluster, from the arguments, else from the connection."""
        return str(self.arguments.get("deploy_mode") or self._extra("deploy-mode", DEPLOY_MODES))

    @cached_property
    def runs_here(self) -> bool:
        """Whether driver and executors share this machine (master `local[...]`), and so this Python."""
        return self.master.startswith("local")

    @cached_property
    def is_yarn(self) -> bool:
        """Whether YARN is the master."""
        return "yarn" in f"{self._connection.conn_type}://{self._connection.host or ''}"

    @cached_property
    def is_wrapped(self) -> bool:
        """Whether the driver is started by a standalone cluster, which takes Java programs only."""
        return self.deploy_mode == "cluster" and self.master.startswith("spark://")

    @cached_property
    def master(self) -> str:
        """The master as the Spark provider makes it out of a connection's fields."""
        connection = self._connection
        host = str(connection.host or "")
        is_whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
        master = host if is_whole else f"{connection.conn_type}://{host}"
        return f"{master}:{connection.port}" if connection.port else master

    def check(self) -> None:
        """InputError where spark-submit would refuse after seconds, with a message about itself."""
        _ = self.binary
        where = f"Spark connection {self.conn_id!r}: deploy mode 'cluster'"
        if self.deploy_mode == "cluster" and self.runs_here:
            raise InputError(
                f"{where} cannot be combined with master {self.master!r}, because a local master has no cluster",
                cure="Use deploy mode 'client', which does the same work with a local master.",
            )
        if not self.is_wrapped:
            return
        if self.packaging not in ("installed", "archive"):
            raise InputError(
                f"{where} on a standalone cluster cannot be combined with the packed environment {self.packaging!r}: "
                "Spark unpacks it for executors, but not for the driver",
                cure="Use packaging 'installed' or 'archive', or deploy mode 'client'.",
            )
        application = str(self.arguments.get("application") or "x.jar")
        if not application.endswith(".jar"):
            raise InputError(
                f"{where} on a standalone cluster: spark_submit['application'] must end in .jar, got {application!r}",
                cure="Create it with `python -m lance_core.spark.archive lance_job.jar`.",
            )

    def _extra(self, name: str, allowed: tuple[str, ...]) -> str:
        """A field of the connection's extra, the first that is allowed unless given. Who edits connections is not who
        writes DAGs, so nothing else is passed on."""
        value = self._connection.extra_dejson.get(name) or allowed[0]
        if value not in allowed:
            names = ", ".join(allowed)
            raise InputError(
                f"Spark connection {self.conn_id!r}: extra {name!r}: expected one of {names}; got {value!r:.200}",
                cure="Correct the connection; a DAG can give another program, as an argument of spark_submit.",
            )
        return str(value)

    @cached_property
    def _connection(self) -> Any:
        return BaseHook.get_connection(self.conn_id)
