"""The generated matrix, both ways: what the official library writes we read equal, what we write it reads equal.

One table holds a column of every type; a case is a version, a number of rows, a share of nulls and a distribution.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.bytes import byte_cases as cases
from tests.bytes import byte_files as files
from tests.bytes import byte_pools as pools

NAMES = tuple(pools.POOLS)
SPREAD = [*itertools.product(pools.NULLS, pools.DISTRIBUTIONS)]
MATRIX = [(rows, *spread) for rows in cases.SMALL if rows > 1 for spread in SPREAD]
SHORT = [(1, nulls, "random") for nulls in ("none", "all")]
FULL = [(rows, *spread) for rows in cases.SMALL for spread in SPREAD]


def check(
    root: Path, table: pa.Table, version: str, *, ours_only: list[str] | None = None, batch_rows: int = 1 << 20
) -> None:
    """Both ways over one table; all problems of all columns at once."""
    official = table.drop_columns(ours_only) if ours_only else table
    # In one batch always: slices of structs with nulls make the official writer panic.
    problems = []
    if official.num_columns:
        files.write_official(root / "official", official, version)
        problems = [f"we read: {line}" for line in files.read_by_us(root / "official", official)]
    for number, names in enumerate(groups(table)):
        problems += check_ours(root / f"ours{number or ''}", table.select(names), version, batch_rows=batch_rows)
    assert not problems, "\n".join(problems)


def check_ours(place: Path, table: pa.Table, version: str, *, batch_rows: int) -> list[str]:
    """The problems of columns that one file of ours may hold."""
    written = files.write_ours(place, table, version, batch_rows=batch_rows)
    problems = [f"we wrote, we read: {line}" for line in files.read_by_us(place, table)]
    if table.num_rows:
        dataset = files.official_table(place, table, written, version)
        dataset.validate()
        theirs = dataset.to_table(columns=table.column_names, blob_handling="all_binary")
        problems += [f"they read ours: {line}" for line in files.differences(theirs, table)]
    return problems


def groups(table: pa.Table) -> list[list[str]]:
    """Columns that the official library reads together: some types it reads only alone, and those are written alone."""
    alone = [name for name in table.column_names if name.startswith(cases.ALONE)]
    together = [name for name in table.column_names if name not in alone]
    return [*([together] if together else []), *([name] for name in alone)]


@pytest.mark.parametrize(("rows", "nulls", "distribution"), FULL)
@pytest.mark.parametrize("version", cases.VERSIONS)
@pytest.mark.slow
def test_every_type(tmp_path: Path, version: str, rows: int, nulls: str, distribution: str) -> None:
    table, ours_only = cases.case_table(version, rows, nulls, distribution)
    check(tmp_path, table, version, ours_only=ours_only)


@pytest.mark.parametrize(("number", "case"), [*enumerate([*MATRIX, *SHORT])])
@pytest.mark.parametrize("version", cases.VERSIONS)
def test_a_third_of_the_types(tmp_path: Path, version: str, number: int, case: tuple[int, str, str]) -> None:
    """Each case with every third type; over the cases of a number of rows each type meets each null share."""
    first = number + cases.VERSIONS.index(version)
    table, ours_only = cases.case_table(version, *case, NAMES[first % 3 :: 3])
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


@pytest.mark.parametrize(("rows", "nulls", "distribution"), [*FULL, *((2500, *spread) for spread in SPREAD)])
@pytest.mark.parametrize("version", cases.VERSIONS)
@pytest.mark.slow
def test_encoding_metadata(tmp_path: Path, version: str, rows: int, nulls: str, distribution: str) -> None:
    table = cases.metadata_table(version, rows, nulls, distribution)
    check(tmp_path, table, version, ours_only=cases.refused_metadata(table, version))


@pytest.mark.parametrize(("number", "case"), [*enumerate(SPREAD)])
@pytest.mark.parametrize("version", cases.VERSIONS)
def test_some_encoding_metadata(tmp_path: Path, version: str, number: int, case: tuple[str, str]) -> None:
    """Each case with every third column that carries metadata."""
    table = cases.metadata_table(version, 2500, *case)
    first = number + number // len(pools.DISTRIBUTIONS) + cases.VERSIONS.index(version)
    table = table.select(range(first % 3, table.num_columns, 3))
    check(tmp_path, table, version, ours_only=cases.refused_metadata(table, version))


@pytest.mark.parametrize("nulls", ["none", "some", "all"])
@pytest.mark.parametrize("version", cases.VERSIONS)
def test_packed_structs_and_blobs(tmp_path: Path, version: str, nulls: str) -> None:
    """Packed structs have no nulls (the official writer refuses them); blobs have."""
    keys = {"lance-encoding:packed": "true"}
    fields = [pa.field("packed", (column := cases.packed(1500)).type, metadata=keys)]
    columns = [column]
    if version != "2.2":  # there, blob columns become structs with descriptors (blob v2)
        fields.append(pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}))
        columns.append(cases.blobs(1500, nulls))
    check(tmp_path, pa.table(columns, schema=pa.schema(fields)), version)


@pytest.mark.parametrize("version", cases.VERSIONS)
@pytest.mark.parametrize("distribution", ["random", "constant"])
def test_values_of_many_sizes(tmp_path: Path, version: str, distribution: str) -> None:
    """On both sides of every size at which an encoding changes, in one column."""
    sizes = [0, 1, 255, 256, 4095, 32_767, 32_768, 32_769, 200_000]
    seed = np.random.default_rng(1)
    values = [seed.bytes(size) if distribution == "random" else b"x" * size for size in sizes]
    texts = [value.hex()[:size] for value, size in zip(values, sizes, strict=True)]
    table = pa.table(
        {
            "binary": pa.array([*values, None]),
            "large_binary": pa.array([None, *values], pa.large_binary()),
            "string": pa.array([*texts, ""]),
            "list": pa.array([texts[:4], None, [], texts[4:], *[["a"]] * 6]),
        }
    )
    check(tmp_path, table, version)


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


@pytest.mark.slow
@pytest.mark.parametrize(("number", "case"), [*enumerate(LARGE)])
def test_many_rows_with_metadata(tmp_path: Path, number: int, case: tuple[str, str, str]) -> None:
    """A fifth of the columns in each case, so that every column meets every version, null share and distribution."""
    table = cases.metadata_table(case[0], cases.LARGE, *case[1:], share=(number + number // 5) % 5)
    check(tmp_path, table, case[0], ours_only=cases.refused_metadata(table, case[0]), batch_rows=30_000)


@pytest.mark.slow
@pytest.mark.parametrize("version", cases.VERSIONS)
def test_a_value_of_hundreds_of_mib(tmp_path: Path, version: str) -> None:
    huge = np.random.default_rng(1).bytes(300 << 20)
    table = pa.table({"c": pa.array([b"", huge, None, b"x"], pa.large_binary())})
    written = files.write_ours(tmp_path / "ours", table, version)
    opened = files.open_at(tmp_path / "ours")
    assert files.batches_of(opened, opened.schema).column(0).chunk(0).equals(table.column(0).chunk(0))
    assert opened.take(opened.schema, [3, 1]).column(0)[1].as_py() == huge
    assert files.official_table(tmp_path / "ours", table, written, version).take([1]).column(0)[0].as_py() == huge


@pytest.mark.parametrize("version", cases.VERSIONS)
def test_a_value_of_tens_of_mib(tmp_path: Path, version: str) -> None:
    huge = np.random.default_rng(1).bytes(24 << 20)
    table = pa.table({"c": pa.array([b"", huge, None, b"x"])})
    files.write_official(tmp_path / "official", table, version)
    written = files.write_ours(tmp_path / "ours", table, version)
    for root in (tmp_path / "official", tmp_path / "ours"):
        opened = files.open_at(root)
        assert files.batches_of(opened, opened.schema).column(0).combine_chunks().equals(table.column(0).chunk(0))
        assert opened.take(opened.schema, [3, 1]).column(0)[1].as_py() == huge
    assert files.official_table(tmp_path / "ours", table, written, version).to_table().column(0).to_pylist()[1] == huge
