"""Messages, docstrings and pages use the terms of the vocabulary page and plain phrases."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("lance_core", "airflow_lance", "airflow_provider_lance", "dags_examples", "demo", "bench")
SOURCES = [
    path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if "wire/pb" not in path.as_posix() and "node_modules" not in path.parts
]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "changes").glob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]
PLAIN = {
    r"\banew\b": "again",
    r"\bmeanwhile\b": "in the meantime",
    r"\bnobody can tell\b": "it is unknown",
    r"\bmay or may not be\b": "it is unknown whether",
    r"\basked for\b": "requested",
    r"\bhanded (?:in|over)\b": "passed",
    r"\b(?:speaks|tells) of\b": "refers to, lists",
    r"\blooked (?:at|after)\b": "checked, maintained",
    r"\b(?:does|do) not go with\b": "cannot be combined with",
    r"\bnames no (?:object|file|table|bucket)\b": "is not the path of, has no",
    r"\b[Ff]ull text (?=ind|search|quer)": "full-text",
    r"\b(?:is|are) (?:told|believed)\b": "is reported, is verified",
    r"\blane of\b|\btable's lane\b": "commit pool",
}


def test_every_phrase_is_found() -> None:
    for phrase in ("built anew", "it was asked for", "x does not go with y", "Full text search", "the table's lane"):
        assert any(re.search(pattern, phrase) for pattern in PLAIN), phrase


def test_sources_and_pages_use_plain_phrases() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()!r}, say {plain!r}"
        for path in (*SOURCES, *PAGES)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for pattern, plain in PLAIN.items()
        for match in re.finditer(pattern, line)
    ]
    assert found == [], "\n".join(found)
