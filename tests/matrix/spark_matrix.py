"""Every supported Spark, each in an environment of its own that is removed afterwards: the source, with and without bridge.

::

    python tests/matrix/spark_matrix.py              all of them
    python tests/matrix/spark_matrix.py 3.5.7        -> | Spark | without | with the bridge |   exit status 1 if one failed

Spark 3.5 has no Python data sources, so `format("lance")` is there with the bridge only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
SPARKS = ("3.5.7", "4.0.1", "4.1.1", "4.2.0", "4.3.0")
PYTHON = "3.11"
"""The newest Python that Spark 3.5 runs with."""
PACKAGES = ("pytest", "pylance", "psutil", "pandas", "hypothesis", "pytest-xdist")
FOREIGN = ("SPARK_HOME", "PYSPARK_PYTHON", "LANCE_TEST_BRIDGE")
"""Settings of this environment that would choose its own Spark."""
WITHOUT = ("tests/spark/test_spark_source.py",)
WITH = (*WITHOUT, "tests/spark/test_spark_bridge.py", "tests/spark/test_spark_catalog.py")


def main(chosen: list[str]) -> int:
    """Run the releases (all of them without names) and print the table."""
    rows = []
    for spark in chosen or SPARKS:
        folder = Path(tempfile.mkdtemp(prefix="lance-spark-"))
        try:
            rows.append((spark, *_run(spark, folder)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    print("| Spark | without | with the bridge |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return int(any("failed" in cell for row in rows for cell in row))


def _run(spark: str, folder: Path) -> tuple[str, str]:
    uv = [sys.executable, "-m", "uv"]
    made = subprocess.run([*uv, "venv", "--quiet", "--python", PYTHON, str(folder)], check=False)
    python = folder / "bin" / "python"
    install = [*uv, "pip", "install", "--quiet", "--python", str(python), "--editable", str(REPOSITORY), f"pyspark=={spark}"]
    if made.returncode or subprocess.run([*install, *PACKAGES], check=False).returncode:
        failed = "failed: the environment could not be made"
        return failed, failed
    without = "no Python data sources" if spark.startswith("3.") else _tests(python, WITHOUT, {})
    return without, _tests(python, WITH, {"LANCE_TEST_BRIDGE": "1"})


def _tests(python: Path, modules: tuple[str, ...], more: dict[str, str]) -> str:
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("SPARK_HOME", "PYSPARK_PYTHON", "LANCE_TEST_BRIDGE")
    }
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *modules]
    done = subprocess.run(command, cwd=REPOSITORY, env={**env, **more}, capture_output=True, text=True, timeout=3600)
    summary = re.findall(r"\d+ (?:passed|failed|error|skipped)[^\n]*", done.stdout)
    if done.returncode:
        print(done.stdout[-5_000:] + done.stderr[-2_000:], file=sys.stderr)
        return f"failed: {summary[-1] if summary else done.returncode}"
    return summary[-1] if summary else f"{done.stdout.count('.')} passed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
