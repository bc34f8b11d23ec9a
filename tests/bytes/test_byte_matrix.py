"""The generated matrix, both ways: what the official library writes we read equal, what we write it reads equal.

One table holds a column of every type; a case is a version, a number of rows, a share of nulls and a distribution.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import byte_cases as cases
import byte_files as files
import byte_pools as pools
import pyarrow as pa
import pytest

NAMES = tuple(pools.POOLS)
SPREAD = [*itertools.product(pools.NULLS, pools.DISTRIBUTIONS)]
MATRIX = [(rows, *spread) for rows in cases.SMALL if rows > 1 for spread in SPREAD]
MATRIX += [(1, nulls, "random") for nulls in ("none", "all")]


def check(
    root: Path, table: pa.Table, version: str, *, ours_only: list[str] | None = None, batch_rows: int = 1 << 20
) -> None:
    """Both ways over one table; all problems of all columns at once."""
    official = table.drop_columns(ours_only) if ours_only else table
    files.write_official(root / "official", official, version, batch_rows=batch_rows)
    problems = [f"we read: {line}" for line in files.read_by_us(root / "official", official)]
    written = files.write_ours(root / "ours", table, version, batch_rows=batch_rows)
    problems += [f"we wrote, we read: {line}" for line in files.read_by_us(root / "ours", table)]
    if table.num_rows:
        dataset = files.official_table(root / "ours", table, written, version)
        dataset.validate()
        for names in groups(table):
            theirs = dataset.to_table(columns=names)
            problems += [f"they read ours: {line}" for line in files.differences(theirs, table.select(names))]
    assert not problems, "\n".join(problems)


def groups(table: pa.Table) -> list[list[str]]:
    """Columns that the official library reads together: of fixed-size lists of structs it reads only one at a time."""
    alone = [name for name in table.column_names if name.startswith("fsl_struct")]
    return [[name for name in table.column_names if name not in alone], *([name] for name in alone)]


@pytest.mark.parametrize(("rows", "nulls", "distribution"), MATRIX)
@pytest.mark.parametrize("version", cases.VERSIONS)
def test_every_type(tmp_path: Path, version: str, rows: int, nulls: str, distribution: str) -> None:
    table, ours_only = cases.case_table(version, rows, nulls, distribution)
    check(tmp_path, table, version, ours_only=ours_only)


@pytest.mark.parametrize("version", cases.VERSIONS)
def test_no_rows(tmp_path: Path, version: str) -> None:
    table, ours_only = cases.case_table(version, 0, "none", "random")
    check(tmp_path, table, version, ours_only=ours_only)
    assert (
        pa.Table.from_batches([files.open_at(tmp_path / "ours").take(files.open_at(tmp_path / "ours").schema, [])]).num_rows
        == 0
    )


@pytest.mark.parametrize("version", cases.VERSIONS)
@pytest.mark.parametrize("rows", [0, 5])
def test_no_columns(tmp_path: Path, version: str, rows: int) -> None:
    table = pa.table({"x": range(rows)}).select([])
    written = files.write_ours(tmp_path, table, version)
    opened = files.open_at(tmp_path)
    assert (written.num_rows, opened.num_rows) == (rows, rows)
    assert sum(batch.num_rows for batch in opened.read(opened.schema)) == rows


@pytest.mark.parametrize(("nulls", "distribution"), SPREAD)
@pytest.mark.parametrize("version", cases.VERSIONS)
def test_encoding_metadata(tmp_path: Path, version: str, nulls: str, distribution: str) -> None:
    check(tmp_path, cases.metadata_table(version, 2500, nulls, distribution), version)


LARGE = [(version, *spread) for version in cases.VERSIONS for spread in SPREAD]
# One case in five, a ninth of the types in each, so that every version, null share, distribution and type has its turn.
SHARE = [(*case, NAMES[number % 9 :: 9]) for number, case in enumerate(LARGE) if number % 5 == number // 15]


@pytest.mark.parametrize(("version", "nulls", "distribution", "names"), SHARE)
def test_many_rows(tmp_path: Path, version: str, nulls: str, distribution: str, names: tuple[str, ...]) -> None:
    table, ours_only = cases.case_table(version, cases.LARGE, nulls, distribution, names)
    check(tmp_path, table, version, ours_only=ours_only, batch_rows=30_000)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(("version", "nulls", "distribution"), LARGE)
def test_many_rows_of_every_type(tmp_path: Path, version: str, nulls: str, distribution: str, part: int) -> None:
    table, ours_only = cases.case_table(version, cases.LARGE, nulls, distribution, NAMES[part::4])
    check(tmp_path, table, version, ours_only=ours_only, batch_rows=30_000)
