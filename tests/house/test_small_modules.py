"""A module below 100 lines whose only user stands beside it is part of that user, unless a line below says why it is not."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL = 100

_ROW = "a row of a literal table: each has a file"
APART = {
    "airflow_lance.ui.app": "routes for a server that is there; the plugin itself is read by every Airflow process",
    "lance_core.cli.branching": _ROW,
    "lance_core.cli.doctor": _ROW,
    "lance_core.cli.maintain": _ROW,
    "lance_core.cli.maintenance": _ROW,
    "lance_core.cli.watching": _ROW,
    "lance_core.codecs.ranges": _ROW,
    "lance_core.dataset.handle.vector_options": "annotations that are values, so no `from __future__ import annotations`",
    "lance_core.spark.bridge.heap": "settings of the C library for one process: tested alone",
    "lance_core.jobs.publish.trust": "what may run from a record: pure, and tested alone",
    "lance_core.jobs.acts.recall": "a measure over arrays: tested alone",
    "lance_core.jobs.gates.measures": "measures over arrays: tested alone",
    "lance_core.io.remote.libhdfs": "what a machine lacks for one scheme: pure, of the standard library only",
    "lance_core.expr.long_lists": "a grammar of its own: pure, and tested alone",
    "lance_core.namespace.listing": "one of two forms of a catalog, beside `manifest_table`",
    "lance_core.pages.read.indexed": _ROW,
    "lance_core.spark.bridge.predicates": "pure, and tested alone",
    "lance_core.spark.stream_batch": "which batch of a stream a write is: its tests and those of kills ask it alone",
    "lance_core.spark.python_source": "classes that derive from those of PySpark 4.0",
    "lance_core.spark.python_writer": "what a read never needs: imported by who writes",
    "lance_core.spark.frame": "a public function, loaded when it is called",
    "lance_core.spark.source": "a public function, also of Spark 3.5, which has not what its classes derive from",
}


def _modules() -> dict[str, Path]:
    paths = [path for package in ("lance_core", "airflow_lance") for path in sorted((ROOT / package).rglob("*.py"))]
    kept = [path for path in paths if "/pb/" not in path.as_posix() and "node_modules" not in path.as_posix()]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in kept}


def _users(modules: dict[str, Path]) -> dict[str, set[str]]:
    users: dict[str, set[str]] = defaultdict(set)
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    places = (f"{node.module}.{alias.name}", node.module)
                    found = next((place for place in places if place in modules and place != name), None)
                    if found is not None:
                        users[found].add(name)
    return users


def test_a_small_module_that_one_neighbour_uses_is_part_of_it() -> None:
    modules = _modules()
    users = _users(modules)
    found = {
        name
        for name, path in modules.items()
        if path.name != "__init__.py"
        and len(users[name]) == 1
        and next(iter(users[name])).rpartition(".")[0] == name.rpartition(".")[0]
        and len(path.read_text().splitlines()) < SMALL
    }
    assert sorted(found - set(APART)) == [], "move it into its user, or say above why it is apart"
    assert sorted(set(APART) - found) == [], "no longer such a module: take the line out"
