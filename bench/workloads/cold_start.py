"""A fresh interpreter that imports, opens a table and reads: what each Spark executor and each task pays."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.installed import as_installed
from bench.measure import Case
from bench.workloads.mixed import make_table
from bench.workloads.tables import keep


def _fresh(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=as_installed()).returncode


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Import alone; import, open and read two columns, count, take one row."""
    kept = keep(make_table(int(100_000 * scale)), folder)
    columns = ["id", "value"]
    read = "import {m}; {m}.dataset({uri!r}).to_table(columns={columns!r})"
    yield Case("import", {"lance_core": _fresh("import lance_core; lance_core.dataset"), "pylance": _fresh("import lance")})
    yield Case(
        "import, open, read two columns",
        {
            "lance_core": _fresh(read.format(m="lance_core", uri=kept.lance, columns=columns)),
            "pylance": _fresh(read.format(m="lance", uri=kept.lance, columns=columns)),
            "parquet": _fresh(f"import pyarrow.parquet as p; p.read_table({kept.parquet!r}, columns={columns!r})"),
        },
    )
    for name, work in (("count", "count_rows()"), ("take one row", f"take([{kept.table.num_rows // 2}])")):
        code = "import {m}; {m}.dataset({uri!r}).{work}"
        yield Case(
            f"import, open, {name}",
            {
                "lance_core": _fresh(code.format(m="lance_core", uri=kept.lance, work=work)),
                "pylance": _fresh(code.format(m="lance", uri=kept.lance, work=work)),
            },
        )
