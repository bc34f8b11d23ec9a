"""What starts often imports little: Spark's planning processes and workers, tasks, the command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

_PROBE = "import sys, {module}; print(*(name for name in {heavy!r} if name in sys.modules))"
PANDAS = ("pandas", "pyarrow.dataset")
"""`pyarrow.dataset` imports pandas where that is installed, a third of a second."""
WRITERS = ("lance_core.spark.table_writer", "lance_core.jobs.kinds", "lance_core.jobs.runtime.lifecycle")
KERNELS = ("numba", "duckdb", "sqlglot", "fsspec", "obstore")


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("lance_core.spark.python_source", (*PANDAS, *KERNELS, *WRITERS)),
        ("lance_core.spark.python_writer", (*PANDAS, *KERNELS)),
        ("lance_core.spark.bridge.worker", (*PANDAS, *KERNELS)),
        ("lance_core.jobs.api", (*PANDAS, *KERNELS)),
        ("lance_core.spark.main", PANDAS),
    ],
)
def test_what_is_not_needed_to_begin_is_not_imported(module: str, heavy: Sequence[str]) -> None:
    probe = [sys.executable, "-c", _PROBE.format(module=module, heavy=heavy)]
    shown = subprocess.run(probe, capture_output=True, text=True, check=True, timeout=120)
    assert shown.stdout.split() == []
