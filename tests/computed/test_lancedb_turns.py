"""LanceDB and this library take turns on one table with a declared column: what either refuses, the other refuses.

Each act is done by both, on a table whose column LanceDB declared and on one whose column was declared here: the four
answers are one, "refused" or the same rows. What LanceDB's refresh cannot do any more behind its cleanup is done here.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core

lancedb = pytest.importorskip("lancedb")
DECLARERS = ("lancedb", "ours")
Act = Callable[[str], Any]


def _theirs(uri: str) -> Any:
    place = Path(uri)
    return lancedb.connect(str(place.parent)).open_table(place.stem)


def _ours(uri: str) -> Any:
    return lance_core.dataset(uri)


def _rows(**columns: Any) -> pa.Table:
    return pa.table({"id": [4], "x": [40], "other": [1], **columns})


def _append(**columns: Any) -> tuple[Act, Act]:
    rows = _rows(**columns)
    return lambda uri: _theirs(uri).add(rows), lambda uri: lance_core.write_dataset(rows, uri, mode="append")


def _upsert(**columns: Any) -> tuple[Act, Act]:
    def run(table: Any) -> None:
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_rows(**columns))

    return lambda uri: run(_theirs(uri)), lambda uri: run(_ours(uri))


def _update(**values: str) -> tuple[Act, Act]:
    return (
        lambda uri: _theirs(uri).update(where="id = 1", values_sql=values),
        lambda uri: _ours(uri).update(values, where="id = 1"),
    )


def _drop(*names: str) -> tuple[Act, Act]:
    return lambda uri: _theirs(uri).drop_columns([*names]), lambda uri: _ours(uri).drop_columns([*names])


def _alter(path: str, *, rename: str | None = None, kind: Any = None) -> tuple[Act, Act]:
    theirs = {"rename": rename} if rename else {"data_type": kind}
    ours = {"name": rename} if rename else {"data_type": kind}
    return (
        lambda uri: _theirs(uri).alter_columns({"path": path, **theirs}),
        lambda uri: _ours(uri).alter_columns({"path": path, **ours}),
    )


def _declare(sql: str) -> tuple[Act, Act]:
    return (
        lambda uri: _theirs(uri).add_columns(computed={"z": sql}),
        lambda uri: lance_core.declare_column(uri, "z", sql=sql),
    )


def _refresh(name: str) -> tuple[Act, Act]:
    return lambda uri: _theirs(uri).refresh_column(name), lambda uri: lance_core.refresh_columns(uri, [name])


ACTS: dict[str, tuple[tuple[Act, Act], bool]] = {
    "append without it": (_append(), True),
    "append with a wrong value": (_append(y=[99]), False),
    "append with the right value": (_append(y=[80]), False),
    "append with null": (_append(y=pa.array([None], pa.int64())), False),
    "upsert without it": (_upsert(), True),
    "upsert with it": (_upsert(y=[99]), False),
    "update it": (_update(y="5"), False),
    "update its input": (_update(x="5"), True),
    "drop its input": (_drop("x"), False),
    "drop both": (_drop("x", "y"), True),
    "drop it": (_drop("y"), True),
    "rename its input": (_alter("x", rename="xx"), False),
    "cast its input": (_alter("x", kind=pa.int32()), False),
    "rename it": (_alter("y", rename="yy"), True),
    "cast it": (_alter("y", kind=pa.int32()), False),
    "declare one that reads itself": (_declare("z + 1"), False),
    "declare one that reads nothing there is": (_declare("nope + 1"), False),
    "declare one that is another each time": (_declare("random()"), False),
    "declare one that reads it": (_declare("y + 1"), True),
    "refresh it": (_refresh("y"), True),
    "refresh what is not declared": (_refresh("other"), False),
}
"""An act by LanceDB and the same one by this library, and whether it is done."""


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table for each library that declared its column; both are refreshed."""
    place = tmp_path_factory.mktemp("declared")
    database = lancedb.connect(str(place))
    for name in DECLARERS:
        table = database.create_table(name, pa.table({"id": [1, 2, 3], "x": [10, 20, 30], "other": [1, 1, 1]}))
        if name == "lancedb":
            table.add_columns(computed={"y": "x * 2"})
            table.refresh_column("y")
        else:
            lance_core.declare_column(str(place / "ours.lance"), "y", sql="x * 2")
            lance_core.refresh_columns(str(place / "ours.lance"))
    return {name: place / f"{name}.lance" for name in DECLARERS}


def _answer(act: Act, uri: str) -> tuple[bool, list[Any]]:
    """Whether it was done, and the rows then."""
    try:
        act(uri)
        is_done = True
    except (lance_core.LanceError, ValueError, RuntimeError):
        is_done = False
    return is_done, sorted(_ours(uri).to_table().to_pylist(), key=lambda row: int(row["id"]))


@pytest.mark.parametrize("name", ACTS)
def test_what_either_refuses_the_other_refuses(name: str, declared: dict[str, Path], tmp_path: Path) -> None:
    acts, is_done = ACTS[name]
    before = _ours(str(declared["ours"])).to_table().to_pylist()
    answers = {}
    for declarer in DECLARERS:
        for actor, act in zip(DECLARERS, acts, strict=True):
            uri = tmp_path / f"{declarer}_{actor}.lance"
            shutil.copytree(declared[declarer], uri)
            answers[declarer, actor] = _answer(act, str(uri))
    assert {done for done, _ in answers.values()} == {is_done}, answers
    (first, *others) = [rows for _, rows in answers.values()]
    assert all(rows == first for rows in others), answers
    assert is_done or first == before, "what is refused changes nothing"


@pytest.mark.parametrize("declarer", DECLARERS)
def test_refreshes_in_turns(declarer: str, declared: dict[str, Path], tmp_path: Path) -> None:
    """One changes the table and the other refreshes it, in turns. LanceDB's refresh knows of changes only where it computed
    the value itself; what it leaves is stale here, and true behind a refresh of ours."""
    uri = str(tmp_path / "t.lance")
    shutil.copytree(declared[declarer], uri)
    for turn in range(4):
        rows = pa.table({"id": [100 + turn, 200 + turn], "x": [turn, 7 * turn], "other": [0, 0]})
        if turn % 2:
            lance_core.write_dataset(rows, uri, mode="append")
            _ours(uri).update({"x": "x + 1"}, where="id % 2 = 0")
            _ours(uri).optimize.compact_files()
            _theirs(uri).refresh_column("y")
            assert _ours(uri).count_rows("y IS NULL") == 0
            assert lance_core.refresh_columns(uri, dry_run=True).stale >= _ours(uri).count_rows("y != x * 2")
        else:
            _theirs(uri).add(rows)
            _theirs(uri).update(where="id % 2 = 1", values_sql={"x": "x + 1"})
            _theirs(uri).delete(f"id = {98 + turn}")
            _theirs(uri).optimize()
        lance_core.refresh_columns(uri)
        assert _ours(uri).count_rows("y = x * 2") == _ours(uri).count_rows()
        assert lance_core.refresh_columns(uri).stale == 0


@pytest.mark.parametrize("declarer", DECLARERS)
def test_a_refresh_goes_on_behind_a_cleanup_of_everything_old(
    declarer: str, declared: dict[str, Path], tmp_path: Path
) -> None:
    """LanceDB's own refresh does not, of a column that it declared and refreshed."""
    uri = str(tmp_path / "t.lance")
    shutil.copytree(declared[declarer], uri)
    _theirs(uri).update(where="id = 2", values_sql={"x": "1000"})
    _theirs(uri).optimize(cleanup_older_than=dt.timedelta(0), delete_unverified=True)
    if declarer == "lancedb":
        with pytest.raises(RuntimeError, match="not found"):
            _theirs(uri).refresh_column("y")
    lance_core.refresh_columns(uri)
    assert _ours(uri).to_table().sort_by("id")["y"].to_pylist() == [20, 2000, 60]
    assert lance_core.refresh_columns(uri).stale == 0
