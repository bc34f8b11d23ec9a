"""System columns in every verb, over tables with deletions in several fragments: what the official library gives and does.

The official library refuses some filters on system columns that it projects; there its projected values say what is right.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core

SYSTEM = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]
COLUMNS = ["a", *SYSTEM]
FRAGMENT_ROWS = {"few": 10, "many": 2}
"""Many tiny fragments are read together, which is another way through the code."""


@pytest.fixture(scope="module", params=[(size, stable) for size in FRAGMENT_ROWS for stable in (False, True)], ids=str)
def edited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    size, stable = request.param
    uri = str(tmp_path_factory.mktemp("system") / "t.lance")
    rows = pa.table({"a": range(40), "b": [number % 3 for number in range(40)]})
    ds = lance.write_dataset(rows, uri, max_rows_per_file=FRAGMENT_ROWS[size], enable_stable_row_ids=stable)
    ds.delete("a in (1, 2, 11, 20, 21, 39)")
    ds = lance.dataset(uri)
    ds.update({"b": "b + 10"}, where="a in (5, 17)")
    lance.dataset(uri).delete("a in (8, 17)")
    return uri


@pytest.fixture
def copies(edited: str, tmp_path: Path) -> tuple[str, str]:
    """The table twice: for this library and for the official one."""
    return tuple(shutil.copytree(edited, tmp_path / name).as_posix() for name in ("ours", "theirs"))  # type: ignore[return-value]


def _all(uri: str) -> list[dict[str, Any]]:
    return lance.dataset(uri).to_table(columns=COLUMNS).to_pylist()


TESTS: dict[str, Callable[[int, list[int]], bool]] = {
    "{0} in ({1}, {2})": lambda value, known: value in known,
    "{0} = {1} or {0} = {2}": lambda value, known: value in known,
    "{0} between {1} and {2}": lambda value, known: known[0] <= value <= known[1],
    "{0} > {1} and {0} < {2} and b >= 0": lambda value, known: known[0] < value < known[1],
    "{0} % 3 = 1 and {0} >= {1}": lambda value, known: value % 3 == 1 and value >= known[0],
}


@pytest.mark.parametrize("name", SYSTEM)
@pytest.mark.parametrize("text", TESTS)
def test_filters_select_the_rows_that_the_official_values_say(edited: str, name: str, text: str) -> None:
    every = _all(edited)
    known = sorted({every[7][name], every[-6][name]})
    known = known if len(known) == 2 else known * 2
    filter = text.format(name, *known)
    expected = [row for row in every if TESTS[text](row[name], known)]
    ds = lance_core.dataset(edited)
    assert ds.to_table(columns=COLUMNS, filter=filter).to_pylist() == expected
    assert ds.to_table(columns=["a"], filter=filter)["a"].to_pylist() == [row["a"] for row in expected]
    assert ds.count_rows(filter) == len(expected)
    limited = ds.to_table(columns=COLUMNS, filter=filter, limit=3, offset=1)
    assert limited.to_pylist() == expected[1:4]
    assert [
        row for batch in ds.to_batches(columns=COLUMNS, filter=filter, batch_size=3) for row in batch.to_pylist()
    ] == expected


def test_reads_give_the_official_values(edited: str) -> None:
    ours, theirs = lance_core.dataset(edited), lance.dataset(edited)
    every = _all(edited)
    assert ours.to_table(columns=COLUMNS).to_pylist() == every
    assert ours.to_table(columns=COLUMNS, limit=5, offset=9).to_pylist() == every[9:14]
    assert ours.take([20, 0, 9], columns=COLUMNS).to_pylist() == [every[number] for number in (20, 0, 9)]
    same = [theirs.get_fragments()[number] for number in (1, 3)]
    found = ours.scanner(columns=COLUMNS, fragments=[ours.get_fragments()[number] for number in (1, 3)]).to_table()
    assert found.equals(theirs.scanner(columns=COLUMNS, fragments=same).to_table())
    one = ours.get_fragments()[3]
    assert one.to_table(columns=COLUMNS).equals(theirs.get_fragments()[3].to_table(columns=COLUMNS))
    assert one.take([0], columns=COLUMNS).to_pylist() == one.to_table(columns=COLUMNS).to_pylist()[:1]
    computed = ours.to_table(columns={"n": "_rowoffset + 1", "r": "_rowid"}, offset=8, limit=3)
    assert computed.to_pylist() == [{"n": row["_rowoffset"] + 1, "r": row["_rowid"]} for row in every[8:11]]
    ordered = ours.to_table(columns=COLUMNS, order_by=[lance_core.ColumnOrdering("_rowoffset", ascending=False)], limit=4)
    assert ordered.to_pylist() == every[::-1][:4]


def test_deleted_rows_have_the_place_of_the_row_that_follows(edited: str) -> None:
    options = {"columns": COLUMNS, "with_row_id": True, "include_deleted_rows": True}
    found = lance_core.dataset(edited).scanner(**options).to_table()
    expected = lance.dataset(edited).scanner(**options).to_table()
    assert found.select(["a", "_rowid", "_rowoffset"]).equals(expected.select(["a", "_rowid", "_rowoffset"]))


def _deleted(ds: Any, filter: str) -> None:
    ds.delete(filter)


def _updated(ds: Any, filter: str) -> None:
    ds.update({"b": "a * 100"}, where=filter)


@pytest.mark.parametrize("verb", [_deleted, _updated])
@pytest.mark.parametrize("name", SYSTEM)
def test_edits_change_the_rows_that_the_official_library_changes(
    copies: tuple[str, str], name: str, verb: Callable[[Any, str], None]
) -> None:
    ours, theirs = copies
    every = _all(ours)
    filter = f"{name} in ({every[0][name]}, {every[3][name]}, {every[-2][name]})"
    verb(lance_core.dataset(ours), filter)
    # The official library does not know versions in an update; the rows are named by their values there.
    chosen = ", ".join(str(row["a"]) for row in every if row[name] in (every[0][name], every[3][name], every[-2][name]))
    is_refused = verb is _updated and name.endswith("_at_version")
    verb(lance.dataset(theirs), f"a in ({chosen})" if is_refused else filter)
    columns = ["a", "b", *SYSTEM]
    found, expected = (lance.dataset(uri).to_table(columns=columns).to_pylist() for uri in (ours, theirs))
    assert found == expected
    assert lance_core.dataset(ours).to_table(columns=columns).to_pylist() == expected


def test_a_merge_keeps_the_order_of_places(copies: tuple[str, str]) -> None:
    source = pa.table({"a": pa.array([0, 6, 12, 100], pa.int64()), "b": pa.array([7, 7, 7, 7], pa.int64())})
    for library, uri in zip((lance_core, lance), copies, strict=True):
        library.dataset(uri).merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(source)
        rows = library.dataset(uri).to_table(columns=["_rowoffset"])["_rowoffset"].to_pylist()
        assert rows == [*range(33)]


def test_a_fragment_deletes_by_the_place_in_the_table(edited: str) -> None:
    fragment = lance_core.dataset(edited).get_fragments()[3]
    places = fragment.to_table(columns=["_rowoffset"])["_rowoffset"].to_pylist()
    left = fragment.delete(f"_rowoffset = {places[0]}")
    assert left is not None
    assert left.num_rows == len(places) - 1
    same = fragment.delete("_rowoffset = 0")
    assert same is not None
    assert same.num_rows == len(places)
