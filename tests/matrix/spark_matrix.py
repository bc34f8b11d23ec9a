"""Every supported Spark, each in an environment of its own that is removed afterwards: the tests of Spark in every way.

::

    python tests/matrix/spark_matrix.py                             all releases, all ways
    python tests/matrix/spark_matrix.py 3.5.7                       one
    python tests/matrix/spark_matrix.py 4.1.1 --ways bridge         -> | Spark | bridge |   exit status 1 if one failed

    plain                the whole of tests/spark but what is slow, without the jar: the Python source, `read_table`, jobs
    bridge               the same with it, and what needs it: the catalog, the bridge's own ways, its workers killed
    connect              a client of a Spark Connect server without the jar
    connect, bridge      and with it

What a release or a way has not is skipped with its reason: Spark 3.5 has no Python data sources, so `format("lance")` is
there with the bridge only, no CALL, and Connect in a jar of its own, which comes by Maven.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
SPARKS = ("3.5.7", "4.0.1", "4.1.1", "4.2.0", "4.3.0")
PYTHON = "3.11"
"""The newest Python that Spark 3.5 runs with."""
PACKAGES = ("pytest", "pylance", "psutil", "pandas", "hypothesis", "pytest-xdist", "duckdb")
CONNECT = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")
"""What `pyspark[connect]` needs; of Spark 3.5 that also asks for an older numpy than pyarrow takes."""
FOREIGN = ("SPARK_HOME", "SPARK_REMOTE", "PYSPARK_PYTHON", "LANCE_TEST_BRIDGE", "LANCE_TEST_REMOTE")
"""Settings of this environment that would choose its own Spark."""
CONNECT_JAR = "LANCE_TEST_CONNECT_JAR"
ALL = "tests/spark"
ONCE = (
    "test_spark_kills.py",  # without a JVM, so the same on every release
    "test_spark_with_bridge.py",  # runs others of this folder
    "test_spark_servers.py",  # starts its own servers, with the jar
    "test_spark_reach.py",
    "test_spark_entry.py",
)
REMOTE = (
    "test_spark_source.py",
    "test_spark_top.py",
    "test_spark_clustered.py",
    "test_spark_types.py",
    "test_spark_frame.py",
    "test_spark_names.py",
    "test_spark_edits.py",
    "test_spark_columns.py",
)
"""What a client of Connect does: the rest starts drivers, looks into the JVM, or needs no Spark."""


@dataclass(frozen=True)
class Way:
    """`tests` in an environment with `settings`."""

    tests: Sequence[str]
    settings: Mapping[str, str] = field(default_factory=dict)


WAYS: Mapping[str, Way] = {
    "plain": Way([ALL, *(f"--ignore={ALL}/{name}" for name in ONCE)]),
    "bridge": Way(
        [ALL, *(f"--ignore={ALL}/{name}" for name in ONCE if name != "test_spark_servers.py")], {"LANCE_TEST_BRIDGE": "1"}
    ),
    "connect": Way([f"{ALL}/{name}" for name in REMOTE], {"LANCE_TEST_REMOTE": "1"}),
    "connect, bridge": Way(
        [f"{ALL}/{name}" for name in (*REMOTE, "test_spark_catalog.py", "test_spark_worker_kills.py")],
        {"LANCE_TEST_REMOTE": "1", "LANCE_TEST_BRIDGE": "1"},
    ),
}


def main() -> int:
    """Run the releases (all of them without names) and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sparks", nargs="*", default=SPARKS, metavar="SPARK")
    parser.add_argument("--ways", nargs="+", default=[*WAYS], choices=[*WAYS])
    given = parser.parse_args()
    rows = []
    for spark in given.sparks:
        folder = Path(tempfile.mkdtemp(prefix="lance-spark-"))
        try:
            rows.append((spark, *_run(spark, folder, given.ways)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    print(f"| Spark | {' | '.join(given.ways)} |\n|{'---|' * (len(given.ways) + 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return int(any("failed" in cell for row in rows for cell in row))


def _run(spark: str, folder: Path, ways: Sequence[str]) -> list[str]:
    uv = [sys.executable, "-m", "uv"]
    made = subprocess.run([*uv, "venv", "--quiet", "--python", PYTHON, str(folder)], check=False)
    python = folder / "bin" / "python"
    install = [*uv, "pip", "install", "--quiet", "--python", str(python), "--editable", str(REPOSITORY)]
    if made.returncode or subprocess.run([*install, f"pyspark=={spark}", *PACKAGES, *CONNECT], check=False).returncode:
        return ["failed: the environment could not be made"] * len(ways)
    jar = {CONNECT_JAR: _connect_jar(spark, folder)} if spark.startswith("3.") else {}
    return [_tests(python, WAYS[way], jar) for way in ways]


def _connect_jar(spark: str, folder: Path) -> str:
    """Where the jar of Spark Connect lies for a release whose package lacks it; "" where Maven cannot bring it."""
    jar = folder / f"spark-connect_2.12-{spark}.jar"
    goal = ["dependency:copy", f"-Dartifact=org.apache.spark:spark-connect_2.12:{spark}", f"-DoutputDirectory={folder}"]
    maven = shutil.which("mvn")
    if maven is not None:
        subprocess.run([maven, "--batch-mode", "--quiet", *goal], check=False)
    return str(jar) if jar.is_file() else ""


def _tests(python: Path, way: Way, more: Mapping[str, str]) -> str:
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", "-ra", *way.tests]
    # Without the project's -q, which with another one leaves the summary out.
    command += ["-o", "addopts=-q --strict-markers --import-mode=importlib"]
    done = subprocess.run(
        command, cwd=REPOSITORY, env={**env, **more, **way.settings}, capture_output=True, text=True, timeout=7200
    )
    summary = re.findall(r"\d+ (?:passed|failed|error|skipped)[^\n]*", done.stdout)
    print(*re.findall(r"^SKIPPED.*$", done.stdout, re.MULTILINE), sep="\n", file=sys.stderr)
    if done.returncode:
        print(done.stdout[-20_000:] + done.stderr[-2_000:], file=sys.stderr)
        return f"failed: {summary[-1] if summary else done.returncode}"
    return summary[-1]


if __name__ == "__main__":
    sys.exit(main())
