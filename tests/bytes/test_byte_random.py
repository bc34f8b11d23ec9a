"""Files of random shapes, written by each library and read by both; the seed is drawn at run time, and fixed under CI.

    LANCE_TEST_SEED=123456 pytest tests/bytes/test_byte_random.py     the same cases again

A case that does not agree is shrunk before it is shown.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from tests.bytes import random_judge as judge

SEED = int(os.environ.get("LANCE_TEST_SEED") or (20_000 if os.environ.get("CI") else secrets.randbelow(1 << 30)))
VERSIONS = ("0.1", "2.0", "2.1", "2.2", "2.3")
FEW, MANY, PARTS = 16, 250, 4


def check(root: Path, version: str, seeds: range) -> None:
    """All cases of one version. One in a thousand, at least one, may be refused aloud; none may be answered wrongly.

    A fixed-size list that no file can hold is refused here without a row, too; the official library writes an empty file.
    """
    found = {seed: judge.judge(judge.random_case(seed, version), root) for seed in seeds}
    found = {seed: lines for seed, lines in found.items() if not _is_empty(lines, judge.random_case(seed, version))}
    refused = [seed for seed, lines in found.items() if lines and all(line.startswith("we refuse") for line in lines)]
    wrong = [seed for seed, lines in found.items() if lines and seed not in refused]
    if wrong or len(refused) > max(1, len(seeds) // 1000):
        case = judge.shrink(judge.random_case([*wrong, *refused][0], version), root)
        lines = [f"LANCE_TEST_SEED={SEED}: of {len(seeds)} cases these do not agree: {[*wrong, *refused][:20]}"]
        pytest.fail("\n".join([*lines, case.describe(), *judge.judge(case, root)]))


def _is_empty(lines: list[str], case: judge.Case) -> bool:
    """Whether a case without a row was refused for such a type alone."""
    is_refused = [line.startswith("we refuse") and "has type fixed_size_list" in line for line in lines]
    return case.num_rows == 0 and bool(lines) and all(is_refused)


@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize("version", VERSIONS)
def test_some_random_files(tmp_path: Path, version: str) -> None:
    check(tmp_path, version, range(SEED, SEED + FEW))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("version", VERSIONS)
def test_many_random_files(tmp_path: Path, version: str, part: int) -> None:
    check(tmp_path, version, range(SEED + MANY * part, SEED + MANY * (part + 1)))


def test_a_number_makes_one_case() -> None:
    assert judge.random_case(7) == judge.random_case(7)
    assert judge.random_case(7, "2.2").table().equals(judge.random_case(7, "2.2").table())
    assert judge.random_case(7) != judge.random_case(8)


def test_shrinking_finds_the_culprit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that dislikes maps: what is left of a case is a map of one row."""
    monkeypatch.setattr(judge, "judge", lambda case, root: ["no maps: x"] if "map<" in case.describe() else [])
    seed = next(seed for seed in range(1000) if "map<" in judge.random_case(seed, "2.2").describe())
    case = judge.shrink(judge.random_case(seed, "2.2"), tmp_path)
    assert case.num_rows <= 1
    assert len(case.columns) == 1
    assert case.columns[0].kind == "map"
