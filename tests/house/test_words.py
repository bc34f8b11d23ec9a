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
FRONTEND = [
    path for folder in ("src", "tests") for path in sorted((ROOT / "airflow_lance/ui/frontend" / folder).rglob("*.ts*"))
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
WORDS = {
    r"\b[Ll]and(?:s|ed|ing|ings)?\b|\b\w*_landed\b|\blanded_\w+": "committed, arrived",
    r"\b[Ii]ncarnations?\b|\bINCARNATION\b": "table id",
}
"""Words of this package for which the field has another, in names, messages and pages. ADRs and changes are history."""


def test_every_phrase_is_found() -> None:
    for phrase in ("built anew", "it was asked for", "x does not go with y", "Full text search", "the table's lane"):
        assert any(re.search(pattern, phrase) for pattern in PLAIN), phrase


def test_names_messages_and_pages_use_the_words_of_the_field() -> None:
    assert all(re.search("|".join(WORDS), word) for word in ("it landed", "landed_at", "a landing", "the incarnation"))
    history = (ROOT / "docs/adr", ROOT / "changes")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()!r}, say {word!r}"
        for path in (*SOURCES, *FRONTEND, *PAGES)
        if not any(folder in path.parents for folder in history)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for pattern, word in WORDS.items()
        for match in re.finditer(pattern, line)
    ]
    assert found == [], "\n".join(found)


def test_sources_and_pages_use_plain_phrases() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()!r}, say {plain!r}"
        for path in (*SOURCES, *PAGES)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for pattern, plain in PLAIN.items()
        for match in re.finditer(pattern, line)
    ]
    assert found == [], "\n".join(found)
