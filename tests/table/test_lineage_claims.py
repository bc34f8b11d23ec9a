"""What a manifest says of the versions of rows is as long as the rows, also where a commit is built."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lance_core.errors import CorruptFileError, InputError
from lance_core.format.fragment import Fragment
from lance_core.rowids.message import decode_versions, encode_row_ids, encode_versions
from lance_core.rowids.sequence import range_sequence
from lance_core.rowids.versions import VersionRun, VersionSequence, constant_versions, versions_of
from lance_core.table import identity


def _fragment(rows: int, versions: VersionSequence, *, start: int = 0) -> Fragment:
    stored = encode_versions(versions)
    ids = encode_row_ids(range_sequence(start, rows))
    return Fragment(
        id=start, files=(), physical_rows=rows, row_ids=ids, created_at_versions=stored, last_updated_at_versions=stored
    )


def _moved(source: Fragment) -> Fragment:
    new = replace(_fragment(3, constant_versions(3, 1)), created_at_versions=None)
    return identity.with_moved_versions(new, num_moved=3, sources=[source], version=9)


@pytest.mark.parametrize("runs", [(), (VersionRun(9, 4),), (VersionRun(11, 4),), (VersionRun(0, 4),)])
def test_versions_of_another_length_are_damage(runs: tuple[VersionRun, ...]) -> None:
    source = _fragment(10, VersionSequence(runs))
    with pytest.raises(CorruptFileError, match="row versions for 10 rows"):
        _moved(source)
    with pytest.raises(CorruptFileError, match="row versions for 10 rows"):
        identity.with_updated_offsets(source, [1], 9)


def test_ids_of_another_length_are_damage() -> None:
    source = replace(_fragment(10, constant_versions(10, 4)), row_ids=encode_row_ids(range_sequence(0, 0)))
    with pytest.raises(CorruptFileError, match="0 row ids for 10 rows"):
        _moved(source)


def test_moved_rows_keep_the_version_that_created_them() -> None:
    source = _fragment(10, VersionSequence((VersionRun(1, 4), VersionRun(0, 5), VersionRun(9, 6))))
    created = _moved(source).created_at_versions
    assert isinstance(created, bytes)
    assert decode_versions(created).to_array().tolist() == [4, 6, 6]


def test_a_claim_of_many_rows_is_not_laid_out() -> None:
    rows = 1 << 32  # 32 GiB, as an array
    found = identity.with_updated_offsets(_fragment(rows, constant_versions(rows, 4)), [7, rows - 1], 9)
    stored = found.last_updated_at_versions
    assert isinstance(stored, bytes)
    assert decode_versions(stored).runs == (
        VersionRun(7, 4), VersionRun(1, 9), VersionRun(rows - 9, 4), VersionRun(1, 9),
    )  # fmt: skip
    with pytest.raises(InputError, match="not within"):
        identity.with_updated_offsets(found, [rows], 9)


@pytest.mark.parametrize("seed", range(40))
def test_runs_with_other_rows_are_those_of_the_array(seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 3, rng.integers(1, 40)).astype(np.uint64)
    sequence = VersionSequence((VersionRun(0, 9), *versions_of(array).runs, VersionRun(0, 7)))
    rows = rng.integers(0, len(array), rng.integers(1, 6))
    assert sequence.at(rows).tolist() == array[rows].tolist()
    array[rows] = 2
    assert sequence.with_rows(rows.tolist(), 2) == versions_of(array)
