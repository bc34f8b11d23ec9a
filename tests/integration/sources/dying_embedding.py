"""The examples' embedding of texts, in a process that dies in the middle of a call where a file says so.

::

    {LANCE_TEST_PLACE}/declared_spark/
        given          a line for each call: the salt, and how many rows it got
        deaths         a line for each death
        1-worker       "700": whoever has this file when 700 rows were given with the salt of number 1 kills itself
        2-driver       the same; it kills the JVM of the driver, and goes on for as long as it is let
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from dags_examples.hash_embedding import embed as embed_texts

FOLDER = "declared_spark"
SALTS = {"1": "", "2": "2"}


def embed(batch: Any, salt: str = "") -> Any:
    """The vectors of a batch's texts; what it is given is on disk before it answers."""
    folder = Path(os.environ["LANCE_TEST_PLACE"]) / FOLDER
    with (folder / "given").open("a", encoding="utf-8") as lines:
        lines.write(f"{salt or '-'} {batch.num_rows}\n")
    for plan in sorted(folder.glob("[0-9]-*")):
        number, victim = plan.name.split("-")
        if SALTS[number] == salt and rows_given(folder, salt) >= int(plan.read_text()) and _is_mine(plan):
            with (folder / "deaths").open("a", encoding="utf-8") as lines:
                lines.write(f"{plan.name}\n")
            os.kill(os.getpid() if victim == "worker" else _jvm(), signal.SIGKILL)
    return embed_texts(batch, salt)


def rows_given(folder: Path, salt: str) -> int:
    """Rows that were given with a salt, in all tries."""
    lines = (folder / "given").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.split()[0] == (salt or "-"))


def _is_mine(plan: Path) -> bool:
    """Of several processes one dies."""
    try:
        plan.unlink()
    except FileNotFoundError:
        return False
    return True


def _jvm() -> int:
    """The process of Spark's driver, in whose JVM local tasks run: the nearest one above this that is `SparkSubmit`."""
    process = os.getpid()
    while process > 1:
        if b"org.apache.spark.deploy.SparkSubmit" in Path(f"/proc/{process}/cmdline").read_bytes():
            return process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    raise AssertionError("no driver above this process")
