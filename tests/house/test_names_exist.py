"""Every `module.name` of this project in a docstring, a comment or a page exists: a rename that forgets the prose fails."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("lance_core", "airflow_lance", "airflow_provider_lance")
NAMED = re.compile(r"(?<![\w./-])((?:lance_core|airflow_lance|airflow_provider_lance)(?:\.\w+)+)(:\w+)?")
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if "/pb/" not in str(path)]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
]
KEYS = re.compile(r"""=\s*"((?:lance_core|airflow_lance)[\w.]*)"$""", re.MULTILINE)
"""Keys of properties and metadata look like names of modules: constants of the product hold them."""


@cache
def _names_of(path: Path) -> frozenset[str]:
    """What a module defines, imports or hands on by a table of names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
    return frozenset(found)


def _exists(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:count])
        module = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if module.is_file():
            return count == len(parts) or parts[count] in _names_of(module) or _handed_on(module, parts[count])
        if place.is_dir():
            return count == len(parts)
    return False


def _handed_on(module: Path, name: str) -> bool:
    """A face of `airflow_lance` has the names of its operators."""
    return module == ROOT / "airflow_lance" / "__init__.py" and name in _names_of(
        ROOT / "airflow_lance" / "operators" / "__init__.py"
    )


def _prose(path: Path) -> Iterator[str]:
    if path.suffix == ".md":
        yield path.read_text()
        return
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    yield from re.findall(r"#.*", text)


@cache
def _keys() -> tuple[str, ...]:
    return tuple(key for path in SOURCES for key in KEYS.findall(path.read_text()))


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_names_in_prose_exist(path: Path) -> None:
    named = {match[1].rstrip(".") for text in _prose(path) for match in NAMED.finditer(text)}
    assert [
        name
        for name in sorted(named)
        if not _exists(name) and not f"{name}.".startswith(tuple(f"{key.rstrip('.')}." for key in _keys()))
    ] == []
