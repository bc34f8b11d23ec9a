"""Indices of old releases over rows that were deleted, updated and moved: no row is lost, whatever those releases wrote.

Several lost rows that way, and the official library still answers short: what a scan finds is the measure.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import lance
import pytest

import lance_core
from lance_core.dataset.maintain.validate import find_damages
from lance_core.errors import CorruptFileError
from tests.compatibility.old_tables import CHANGED, releases, unpack

ALL = releases(CHANGED)
FILTERS = (
    "number = 37",
    "number > 90",
    "number IN (1, 2, 3)",
    "number IS NULL",
    "few = 'v3'",
    "few IN ('v1', 'v2') AND number < 40",
    "zone >= 100 AND zone < 160",
    "zone = 297",
    "zone > 310",
    "zone IS NULL",
    "bloom = 450",
    "bloom IN (873, 30, 1020)",
    "contains(gram, 'number 1')",
    "contains(gram, '314')",
    "array_has_any(labels, ['l1'])",
    "array_has_all(labels, ['l1', 'm3'])",
)


_NUMBERS = ("number", "zone", "bloom")
_TEXTS = {"few": ("v0", "v3", "v9", ""), "gram": ("text number 1", "text number 77", "")}
_ORDERS = ("=", "!=", "<", "<=", ">", ">=")


def drawn(rng: random.Random) -> str:
    """A filter of what the indices of these tables answer, alone or two of them, below NOT as well."""
    numbers = _NUMBERS[rng.randrange(3)], rng.choice((-1, 0, 37, 99, 100, 297, 450, 1020, 2**31 - 1)), rng.randrange(400)
    text = rng.choice([*_TEXTS])
    value = rng.choice(_TEXTS[text])
    tests = [
        f"{numbers[0]} {rng.choice(_ORDERS)} {rng.choice(numbers[1:])}",
        f"{numbers[0]} IN ({numbers[1]}, {numbers[2]})",
        f"{numbers[0]} NOT IN ({numbers[1]}, {numbers[2]}, NULL)",
        f"{numbers[0]} BETWEEN {min(numbers[1:])} AND {max(numbers[1:])}",
        f"{rng.choice([*_NUMBERS, *_TEXTS, 'labels'])} IS {rng.choice(['', 'NOT '])}NULL",
        f"{text} {rng.choice(_ORDERS)} '{value}'",
        f"{text} LIKE '{rng.choice(['v%', '%1_', 'text%7', '%', ''])}'",
        f"contains(gram, '{rng.choice(['31', 'number 1', 'numb', ' ', '', 'x'])}')",
        f"array_has_{rng.choice(['any', 'all'])}(labels, ['l{rng.randrange(4)}', 'm{rng.randrange(9)}'])",
        f"array_has(labels, 'l{rng.randrange(4)}')",
    ]
    test = rng.choice(tests)
    if rng.random() < 0.3:
        return f"({test}) {rng.choice(['AND', 'OR'])} ({drawn(rng)})"
    return f"NOT ({test})" if rng.random() < 0.3 else test


def found(dataset: Any, text: str, *, use_index: bool) -> list[int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        table = dataset.to_table(columns=["id"], filter=text, with_row_id=True, use_scalar_index=use_index)
    return sorted(table.column("id").to_pylist())


def found_by_duckdb(dataset: Any, text: str) -> list[int]:
    """The rows by SQL's own logic: the official library's engine loses a NULL in the list of a NOT IN below an OR."""
    with duckdb.connect() as connection:
        connection.register("rows_of_table", dataset.to_table())
        return sorted(row[0] for row in connection.execute(f"SELECT id FROM rows_of_table WHERE {text}").fetchall())


def lost(path: Path, filters: Iterable[str] = FILTERS) -> list[str]:
    """Filters that our indices answer otherwise than a scan of the official library, and than DuckDB over its rows."""
    ours, theirs = lance_core.dataset(str(path)), lance.dataset(path)
    try:
        theirs.to_table(columns=["id"], with_row_id=True)
    except (OSError, ValueError):
        # Releases up to 0.31 deleted rows of tables with stable ids by the wrong number: both libraries refuse them.
        with pytest.raises(CorruptFileError):
            ours.to_table(columns=["id"], with_row_id=True)
        return []
    problems = []
    for text in filters:
        got, expected = found(ours, text, use_index=True), found(theirs, text, use_index=False)
        if got != expected and got != found_by_duckdb(theirs, text):
            problems.append(f"{path.name}: {text}: {len(got)} rows, expected {len(expected)}")
    return problems


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("0.23.2", "changed"),  # n-grams as texts
        ("0.34.0", "changed"),  # zone_size instead of zone_length
        ("0.36.0", "changed"),  # zones that count live rows
        ("0.39.0", "changed-stable-compacted"),
        ("3.0.2", "changed-stable-compacted"),  # a B-tree that lost 246 rows when it was optimised
        ("9.0.1", "changed-stable-compacted"),  # bitmaps of fragments that the zones do not know
    ],
)
def test_no_row_is_lost_where_releases_wrote_short_indices(release: str, name: str, tmp_path: Path) -> None:
    unpack(release, tmp_path, CHANGED)
    assert not lost(tmp_path / name)


def test_no_row_is_lost_in_tables_of_a_few_releases(tmp_path: Path) -> None:
    seed = int(os.environ.get("LANCE_TEST_SEED") or (42 if os.environ.get("CI") else random.randrange(1 << 30)))
    print(f"seed {seed}: LANCE_TEST_SEED={seed}")
    rng = random.Random(seed)
    for release in rng.sample(ALL, 2):
        for name in unpack(release, tmp_path / release, CHANGED):
            assert not lost(tmp_path / release / name, [*FILTERS, *(drawn(rng) for _ in range(10))]), release


@pytest.mark.slow
@pytest.mark.parametrize("release", ALL)
def test_no_row_is_lost_in_tables_of_every_release(release: str, tmp_path: Path) -> None:
    made, rng = unpack(release, tmp_path, CHANGED), random.Random(release)
    assert not [problem for name in made for problem in lost(tmp_path / name, [*FILTERS, *(drawn(rng) for _ in range(50))])]


def test_a_null_in_a_list_below_an_or_is_unknown(tmp_path: Path) -> None:
    unpack("13.0.0", tmp_path, CHANGED)
    text = "(number NOT IN (-1, 358, NULL)) OR (NOT (number IN (37, 272)))"
    ours, theirs = lance_core.dataset(str(tmp_path / "changed")), lance.dataset(tmp_path / "changed")
    expected = found_by_duckdb(theirs, text)
    assert expected
    assert found(ours, text, use_index=True) == found(ours, text, use_index=False) == expected


def test_zones_that_hold_are_used(tmp_path: Path) -> None:
    unpack("13.0.0", tmp_path, CHANGED)
    for name in ("changed", "changed-stable-compacted"):
        plan = lance_core.dataset(str(tmp_path / name)).scanner(filter="zone = 297").explain_plan()
        assert "zone_idx (ZoneMap) on zone, to be tested again, answers for " in plan


@pytest.mark.parametrize(
    ("release", "name", "message"),
    [
        ("0.36.0", "changed", "a row is in no zone"),
        ("9.0.1", "changed-stable-compacted", "a row is in no zone"),
        ("3.0.2", "changed-stable-compacted", "number_idx"),
        ("13.0.0", "changed-stable-compacted", ""),
    ],
)
def test_validation_says_which_indices_are_short(release: str, name: str, message: str, tmp_path: Path) -> None:
    unpack(release, tmp_path, CHANGED)
    damages = list(find_damages(lance_core.dataset(str(tmp_path / name)).snapshot))
    assert any(message in damage for damage in damages) is bool(message)
    assert all(damage.count("Rebuild the index.") == 1 for damage in damages)
