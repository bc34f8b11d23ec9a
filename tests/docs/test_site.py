"""The documentation as a site: the navigation names every page, and every link and anchor leads somewhere."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])


def _anchors(page: Path) -> set[str]:
    titles = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def test_the_navigation_names_every_page() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = sorted(_pages_of(site["nav"]))
    assert named == sorted([*(page.name for page in DOCS.glob("*.md")), *_below("reference"), "adr/index.md"])


def test_the_list_of_decisions_names_every_record() -> None:
    listed = re.findall(r"\]\((\d[^)]*\.md)\)", (DOCS / "adr" / "index.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(page.name for page in (DOCS / "adr").glob("[0-9]*.md"))


def test_the_reference_names_modules_that_exist() -> None:
    for page in _below("reference"):
        for name in re.findall(r"^::: ([\w.]+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE):
            assert pkgutil.resolve_name(name) is not None


def _pages_of(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):  # the page of a group
            yield entry
            continue
        for target in entry.values():
            if isinstance(target, list):
                yield from _pages_of(target)
            else:
                yield target


def _below(folder: str) -> list[str]:
    return [f"{folder}/{page.name}" for page in (DOCS / folder).glob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path) if path else page
        assert found.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in _anchors(found), f"{page.name}: {target}"


def _documented() -> Iterator[tuple[str, set[str], ast.arguments | None]]:
    """Each docstring with `Args:`: where it stands, the names that it lists, the parameters of what it is about."""
    for package in ("airflow_lance", "lance_core"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                section = re.search(r"^Args:\n((?:    .*\n?|\n)+)", ast.get_docstring(node) or "", re.MULTILINE)
                if section is None:
                    continue
                made = [node, *(item for item in node.body if getattr(item, "name", "") == "__init__")][-1]
                arguments = None if isinstance(made, ast.ClassDef) else made.args
                names = set(re.findall(r"^    (\w+): ", section[1], re.MULTILINE))
                yield f"{path.relative_to(ROOT)}: {node.name}", names, arguments


def test_docstrings_list_parameters_that_exist() -> None:
    found = list(_documented())
    assert len(found) > 50 and sum(len(names) for _, names, _ in found) > 200
    for where, names, arguments in found:
        assert names, where
        if arguments is not None and arguments.kwarg is None:
            more = [] if arguments.vararg is None else [arguments.vararg]
            taken = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *more, *arguments.kwonlyargs)}
            assert names <= taken, where


def test_no_docstring_lists_parameters_in_another_form() -> None:
    pages = [path for package in ("airflow_lance", "lance_core") for path in (ROOT / package).rglob("*.py")]
    assert [
        path for path in pages if re.search(r"^\s*:(param|return|raises)\b", path.read_text("utf-8"), re.MULTILINE)
    ] == []
