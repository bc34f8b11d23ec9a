"""Random filters through scalar indices that both libraries built, against the official library's scan of the same rows."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import lance
import pytest

import lance_core
from tests.compatibility.differences import kept
from tests.compatibility.expression_sweep import Difference
from tests.compatibility.expression_tables import clock_rows, edge_rows
from tests.compatibility.expressions import FAMILY_OF, SCALARS, constant_of

KINDS = ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")
OTHERS = ("regexp_match(s, 'a')", "i64 < 3", "s IS NULL", "b", "z_ber > ts_us")


class Indexed:
    """A table without indices, and its copy with one index on each column."""

    def __init__(self, root: Path) -> None:
        first, second = edge_rows().select(["k", *SCALARS]), clock_rows().select(["k", *SCALARS])
        lance.write_dataset(first, root / "plain", data_storage_version="2.2")
        lance.write_dataset(second.cast(first.schema), root / "plain", mode="append")
        shutil.copytree(root / "plain", root / "indexed")
        self.schema, self.built = first.schema, 0
        for number, column in enumerate(SCALARS):
            self._build(str(root / "indexed"), column, number)
        self.scan, self.mine = lance.dataset(root / "plain"), lance_core.dataset(str(root / "indexed"))

    def _build(self, path: str, column: str, number: int) -> None:
        """The first kind that the column's type takes, in turn by the official library and by this one."""
        for turn in range(len(KINDS)):
            library: Any = (lance, lance_core)[number % 2]
            try:
                library.dataset(path).create_scalar_index(column, KINDS[(number + turn) % 4])
            except Exception:
                continue
            self.built += 1
            return

    def differs(self, text: str) -> Difference | None:
        """What differs; None where nothing does, or where the official library refuses."""
        try:
            expected = sorted(self.scan.to_table(filter=text, columns=[], with_row_address=True)["_rowaddr"].to_pylist())
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return None
        got = sorted(self.mine.to_table(filter=text, columns=["k"], with_row_address=True)["_rowaddr"].to_pylist())
        column = text.removeprefix("NOT (").split()[0]
        kinds = f"{column}: {self.schema.field(column).type}"
        return None if got == expected else Difference("rows", text, kinds, str(got), str(expected))


def draw(rng: random.Random) -> str:
    """A filter of the kinds that indices answer."""
    column = rng.choice(SCALARS)
    one, two = constant_of(rng, FAMILY_OF[column]), constant_of(rng, FAMILY_OF[column])
    tests = [
        f"{column} {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {one}",
        f"{column} {rng.choice(['=', '<', '>='])} {one}",
        f"{column} IN ({one}, {two})",
        f"{column} BETWEEN {one} AND {two}",
        f"{column} IS {rng.choice(['', 'NOT '])}NULL",
        f"NOT ({column} = {one})",
        f"{column} = {one} {rng.choice(['AND', 'OR'])} {rng.choice(OTHERS)}",
    ]
    return rng.choice(tests)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    """Once for the module: it builds fifty indices."""
    return Indexed(tmp_path_factory.mktemp("indexed"))


def compare(indexed: Indexed, seed: int, count: int) -> None:
    rng = random.Random(seed)
    found = [indexed.differs(draw(rng)) for _ in range(count)]
    assert indexed.built > 40
    new = [str(each) for each in found if each is not None and kept(each) is None]
    assert not new, "\n".join([f"FILTER_SEED={seed}", *new])


def test_a_sample_of_filters_through_indices(indexed: Indexed) -> None:
    seed = int(os.environ.get("FILTER_SEED") or random.SystemRandom().randrange(10**6))
    print(f"FILTER_SEED={seed}")
    compare(indexed, seed, 300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_many_filters_through_indices(indexed: Indexed, seed: int) -> None:
    compare(indexed, 500 + seed, 1000)
