"""What spark-submit runs: one job spec in, its result into the table's staged registry, never onto stdout.

::

    spark-submit ... lance_core/spark/main.py base64url:eyJzcGVj...            what the operators send (`argument`)
    spark-submit ... lance_core/spark/main.py '{"spec": 1, "kind": "append", ...}'
    spark-submit ... lance_core/spark/main.py --spec job.json          a file
    spark-submit ... lance_core/spark/main.py --spec env:LANCE_SPEC    an environment variable

Exit status: 0 done (or nothing to do), 75 failed but the same call may be made again, 65 failed for good, 70 something
this library did not expect, 143 stopped by SIGTERM (the attempt is aborted first). An error is one line in the log and a
record in the registry (`jobs.failure_record`).
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one job; returns the exit status."""
    from lance_core.spark.submit import run

    return run(arguments)


def _mend_path() -> None:
    """Run as a script, Python puts this folder first on its path, where `types.py` would hide the standard library's;
    and lance_core need not be installed, when this file is in it."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib imports `types`
    root = os.path.dirname(os.path.dirname(here))  # noqa: PTH120
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]  # noqa: PTH100
    if os.path.isdir(os.path.join(root, "lance_core")) and root not in sys.path:  # noqa: PTH112, PTH118
        sys.path.append(root)


if __name__ == "__main__":
    _mend_path()
    sys.exit(main())
