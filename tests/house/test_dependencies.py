"""Every package that is always installed is on the page of dependencies, with a reason and with who maintains it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _required() -> set[str]:
    (block,) = re.findall(
        r"^dependencies = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M | re.S
    )
    return set(re.findall(r'"([A-Za-z0-9_-]+)', block))


def _rows(text: str) -> set[str]:
    return set(re.findall(r"^\| ([a-z0-9-]+) \|", text, re.M)) - {"package"}


def test_each_has_a_reason_and_a_maintainer() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    reasons, _, rest = page.partition("### Who maintains them")
    maintainers = rest.partition("\n## ")[0]
    assert _rows(reasons) == _rows(maintainers) == _required()


def test_each_release_is_the_one_that_is_tested() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    maintainers = page.partition("### Who maintains them")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| ([a-z0-9-]+) \| [^|]+ \| (\S+), \d{4}-\d\d-\d\d \|", maintainers, re.M))
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M))
    assert told == {name: pinned[name] for name in _required()}


def test_a_release_has_a_bill_of_materials() -> None:
    """Built by what the Makefile has, and kept with the wheel."""
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "make sbom" in workflow
    assert re.search(r"path: \|\n(\s+\S+\n)*\s+sbom\.json\n", workflow)
