"""No two files of the pages' sources import each other, directly or through others; types count as well."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "airflow_lance" / "ui" / "frontend" / "src"
_FROM = re.compile(r"""(?:\bfrom|\bimport|\bimport\()\s*["'](\.[^"'?]*)["']""")


def _imports(path: Path) -> set[Path]:
    found = set()
    for name in _FROM.findall(path.read_text()):
        place = (path.parent / name).resolve()
        found |= {file for end in (".ts", ".tsx") if (file := place.with_name(place.name + end)).is_file()}
    return found


def _circle(graph: dict[Path, set[Path]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [path.name for path in error.args[1]]
    return []


def test_the_sources_of_the_pages_import_in_one_direction() -> None:
    graph = {path: _imports(path) for path in SOURCES.rglob("*.ts*")}
    assert sum(map(len, graph.values())) > 2 * len(graph), "imports are no longer found"
    assert _circle(graph) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    one, other = tmp_path / "one.tsx", tmp_path / "other.ts"
    one.write_text('import { a } from "./other";\n')
    other.write_text('import type { B } from "./one";\n')
    assert sorted(set(_circle({path: _imports(path) for path in (one, other)}))) == ["one.tsx", "other.ts"]
