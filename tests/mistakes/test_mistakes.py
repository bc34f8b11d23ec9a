"""What a user is told after each of `MISTAKES`, through each door: `golden.txt` has every message, word by word.

`LANCE_GOLDEN=write pytest tests/mistakes` writes the file again; read what has changed before it is committed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.mistakes.doors import PageDoor, say_command, say_python, say_shell
from tests.mistakes.features import FEATURES
from tests.mistakes.mistakes import FIRST, Mistake, Table

pytest.importorskip("duckdb")
GOLDEN = Path(__file__).with_name("golden.txt")
MISTAKES = {**FIRST, **FEATURES}
WRITES = os.environ.get("LANCE_GOLDEN") == "write"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of every mistake, by the official library."""
    path = tmp_path_factory.mktemp("model") / "t.lance"
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(number) for number in range(2400)], pa.float32()), 4)
    days = pa.array([date(2013, 1, 1) + timedelta(days=number % 30) for number in range(600)])
    cities = [("Berlin", "Lagos", "Lima")[number % 3] for number in range(600)]
    dataset = lance.write_dataset(pa.table({"id": range(600), "city": cities, "day": days, "v": vectors}), path)
    dataset.create_scalar_index("id", "BTREE")
    dataset.tags.create("gold", 1)
    dataset.create_branch("dev")
    return path


@pytest.fixture
def table(model: Path, tmp_path: Path) -> Table:
    shutil.copytree(model, tmp_path / "lake" / "t.lance")
    return Table(str(tmp_path / "lake" / "t.lance"), tmp_path / "lake")


def told(mistake: Mistake, table: Table) -> Iterator[tuple[str, str]]:
    """Each door and what it says."""
    if mistake.python is not None:
        call = mistake.python
        yield "python", say_python(lambda: call(table))
    if mistake.cli is not None:
        code, text = say_command([*mistake.cli(table)])
        yield "cli", f"exit {code}: {text}"
    if mistake.dag is not None:
        task = mistake.dag
        yield "dag", say_python(lambda: task(table))
    if mistake.page:
        query = dict(mistake.page)
        door = PageDoor(table.folder)
        say = door.press if "action" in query else door.search
        yield "page", door.say(query.pop("path"), **query) if "path" in query else say(**query)


def plain(text: str, table: Table) -> str:
    """The text without what differs from run to run."""
    text = text.replace(str(table.folder), "/lake")
    text = re.sub(r"Known kinds: [a-z_, ]+", "Known kinds: KINDS", text)  # every new operator adds one
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "IDENTITY", text)
    return re.sub(r"\b[0-9a-f]{16}\b", "ATTEMPT", text)


def parts(text: str) -> dict[str, str]:
    """The golden file by mistake and door."""
    found = {}
    for section in text.split("\n## ")[1:]:
        name, _, body = section.partition("\n")
        for entry in re.split(r"\n(?=(?:python|cli|dag|page): )", f"\n{body.strip()}")[1:]:
            door, _, message = entry.partition(": ")
            found[f"{name}, {door}"] = message.strip()
    return found


NEVER = {
    "a traceback": r"Traceback \(most|site-packages|\.py\"|line \d+, in ",
    "an address in memory": r"0x[0-9a-f]{6,}",
    "a class of Python": r"<class '|object at |<function|\bNoneType\b|pyarrow\.lib|click\.",
    "an internal path by itself": r"(?<![\w/.])_(?:transactions|versions|indices|deletions|refs)/(?! *\.)(?<!in _versions/)",
    "a word of this package for which the field has another": r"\b(?:claim(?:s|ed)?|fence[sd]?|drain(?:s|ed)?|incarnation|"
    r"zombie|asker|judgement|tall(?:y|ies)|landed|withdr[ae]wn?|ledger record|stale try|seal(?:s|ed)?|verb)\b",
}
"""What no message has. The words are those that mean nothing else in a sentence, as "told", "look" and "beside" do."""

WITHOUT_CURE: dict[str, str] = {}
"""Mistakes whose message says no more than what is wrong, with the reason."""


def test_there_are_sixty() -> None:
    assert len(MISTAKES) >= 60
    doors = [name for mistake in MISTAKES.values() for name in ("python", "cli", "dag", "page") if getattr(mistake, name)]
    assert min(doors.count(name) for name in ("python", "cli", "dag", "page")) >= 10, doors


def test_every_message_says_what_to_do() -> None:
    assert {name for name, mistake in MISTAKES.items() if not mistake.cure} == {*WITHOUT_CURE}


@pytest.fixture(scope="module")
def golden() -> Iterator[dict[str, str]]:
    """The messages of the file; what the tests of this module found, where it is written."""
    found = {} if WRITES else parts(GOLDEN.read_text(encoding="utf-8"))
    yield found
    if WRITES:
        lines = [GOLDEN_HEAD]
        for name in MISTAKES:
            lines.append(f"\n## {name}\n")
            lines += [
                f"{place.rpartition(', ')[2]}: {text}\n"
                for place, text in found.items()
                if place.rpartition(", ")[0] == name
            ]
        GOLDEN.write_text("\n".join(lines), encoding="utf-8")


GOLDEN_HEAD = "# What is said after each mistake, through each door. Written by `LANCE_GOLDEN=write pytest tests/mistakes`."


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_names_values_and_a_cure(name: str, table: Table, golden: dict[str, str]) -> None:
    mistake = MISTAKES[name]
    version = lance.dataset(table.uri).version
    for door, message in told(mistake, table):
        text = plain(message, table)
        lacking = [words for words in (*mistake.says, *mistake.cure) if words not in text]
        assert lacking == [], f"{door}: {text}"
        assert [what for what, pattern in NEVER.items() if re.search(pattern, text)] == [], f"{door}: {text}"
        assert door != "cli" or not text.startswith("exit 0"), text
        if WRITES:
            golden[f"{name}, {door}"] = text
        assert golden[f"{name}, {door}"] == text
        carry_out(text, table, name)
    assert lance.dataset(table.uri).version in (version, *([version + 1] if name in CURED_BY_A_VERSION else []))


CURED_BY_A_VERSION = {"a gate that the rows do not pass"}
"""Mistakes whose cure makes a version, and finished work that is aborted, which a version without rows says."""


def carry_out(text: str, table: Table, name: str) -> None:
    """Run each command that a message names: it must be one, and must work on this table."""
    for line in re.findall(r"`(lance [^`]+)`", text):
        code, said = say_shell(line.replace("/lake", str(table.folder)))
        assert code == 0, f"{name}: {line}: {said}"
    for line in re.findall(r"'(lance [^']+ --help)'", text):
        code, said = say_shell(line)
        assert code == 0 and "Usage" in said, line


def test_a_wrong_message_is_found() -> None:
    """The patterns find what they are for."""
    samples = (
        "Traceback (most recent call last)",
        "<class 'int'>",
        "see _transactions/7.txn",
        "a claim of it",
        "0x7f00aa11bb22",
    )
    assert all(any(re.search(pattern, sample) for pattern in NEVER.values()) for sample in samples)
