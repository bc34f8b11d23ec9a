"""Each verb after each other verb, from a handle that does not know of it: both libraries say the same and leave the same.

::

    stale = dataset(t); dataset(t).delete("id = 1"); stale.update(…)      ok, retryable or incompatible; and then the rows
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
from lance_core.errors import IncompatibleConflictError, RetryableConflictError

Verb = Callable[[Any, Any], Any]


def _rows(*keys: int) -> pa.Table:
    return pa.table({"id": [*keys], "x": [key * 10 for key in keys], "y": [f"y{key}" for key in keys]})


def _merge(library: Any, ds: Any) -> None:
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_rows(2, 100))


VERBS: dict[str, Verb] = {
    "append": lambda library, ds: library.write_dataset(_rows(50, 51), ds, mode="append"),
    "delete 1": lambda library, ds: ds.delete("id = 1"),
    "delete 1 again": lambda library, ds: ds.delete("id IN (1, 2)"),
    "delete 9": lambda library, ds: ds.delete("id = 9"),
    "delete a fragment": lambda library, ds: ds.delete("id < 4"),
    "update 1": lambda library, ds: ds.update({"x": "x + 1"}, where="id = 1"),
    "update 9": lambda library, ds: ds.update({"x": "x + 2"}, where="id = 9"),
    "merge_insert": _merge,
    "add column": lambda library, ds: ds.add_columns({"z": "x * 2"}),
    "add another column": lambda library, ds: ds.add_columns({"w": "x * 3"}),
    "drop column": lambda library, ds: ds.drop_columns(["y"]),
    "rename column": lambda library, ds: ds.alter_columns({"path": "y", "name": "why"}),
    "compact": lambda library, ds: ds.optimize.compact_files(),
    "index x": lambda library, ds: ds.create_scalar_index("x", "BTREE", replace=True),
    "index id": lambda library, ds: ds.create_scalar_index("id", "BTREE", replace=True),
    "config a": lambda library, ds: ds.update_config({"a": "1"}),
    "config b": lambda library, ds: ds.update_config({"b": "1"}),
    "overwrite": lambda library, ds: library.write_dataset(_rows(70), ds, mode="overwrite"),
    "restore": lambda library, ds: ds.checkout_version(1).restore(),
}


@pytest.fixture(
    scope="module", params=[pytest.param(False, id="addresses"), pytest.param(True, id="stable", marks=pytest.mark.slow)]
)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions, three fragments, one deletion."""
    path = tmp_path_factory.mktemp("pairs") / "base"
    lance.write_dataset(_rows(*range(1, 4)), str(path), max_rows_per_file=3, enable_stable_row_ids=request.param)
    lance.write_dataset(_rows(*range(4, 12)), str(path), mode="append", max_rows_per_file=4)
    lance.dataset(str(path)).delete("id = 5")
    return path


def verdict(library: Any, path: Path, first: str, second: str) -> str:
    """What the second verb, stale, comes to. Its error must be one of conflict."""
    stale = library.dataset(str(path))
    VERBS[first](library, library.dataset(str(path)))
    try:
        VERBS[second](library, stale)
    except RetryableConflictError:
        return "retryable"
    except IncompatibleConflictError:
        return "incompatible"
    except Exception as error:
        return _said(error)
    return "ok"


def one_by_one(path: Path, first: str, second: str) -> str:
    """The official library, with nobody in between."""
    VERBS[first](lance, lance.dataset(str(path)))
    try:
        VERBS[second](lance, lance.dataset(str(path)))
    except Exception as error:
        return _said(error)
    return "ok"


def _said(error: Exception) -> str:
    text = str(error)
    if "Retryable commit conflict" in text or "Too many concurrent writers" in text:
        return "retryable"
    if "ncompatible transaction" in text or ("ncompatible" in text and "conflict" in text):
        return "incompatible"
    return "refused"


def content(library: Any, path: Path) -> Any:
    """What both libraries must agree on: rows, columns, config, indices by name."""
    ds = library.dataset(str(path))
    ds.validate()
    table = ds.to_table()
    indices = sorted(index.name for index in lance.dataset(str(path)).describe_indices())
    return table.schema.names, sorted(map(str, table.to_pylist())), dict(lance.dataset(str(path)).config()), indices


@pytest.mark.parametrize("first", VERBS)
def test_pairs(base: Path, tmp_path: Path, first: str) -> None:
    assert differences(base, tmp_path, first) == []


def differences(base: Path, tmp_path: Path, first: str) -> list[str]:
    """Where the libraries differ in what a verb comes to behind `first`."""
    different = []
    for second in VERBS:
        places = {library: tmp_path / f"{library.__name__} {second}" for library in (lance, lance_core)}
        for place in places.values():
            shutil.copytree(base, place)
        theirs, ours = (verdict(library, places[library], first, second) for library in (lance, lance_core))
        where = f"{first}, then {second}"
        if theirs == "retryable" and ours in ("ok", "refused"):
            # We did it again on the newest version, where they give up: the outcome must be theirs without the race.
            shutil.rmtree(places[lance])
            shutil.copytree(base, places[lance])
            theirs = one_by_one(places[lance], first, second)
        found = [content(library, place) for library in (lance, lance_core) for place in places.values()]
        if theirs != ours or any(item != found[0] for item in found):
            different.append(f"{where}: they {theirs}, we {ours}, {found}")
    return different


@pytest.fixture(scope="module")
def spread(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table with a second data file in each fragment, and an index on its column."""
    path = tmp_path_factory.mktemp("spread") / "base"
    shutil.copytree(base, path)
    lance.dataset(str(path)).add_columns({"q": "x + 1"})
    lance.dataset(str(path)).create_scalar_index("q", "BTREE")
    return path


def merge_files(uri: Any) -> None:
    """Ours alone: the official library has no such verb."""
    lance_core.dataset(uri).optimize.merge_column_files(max_files_per_fragment=1)


def test_pairs_behind_merged_column_files(spread: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "merge files", lambda library, ds: merge_files(ds.uri))
    assert differences(spread, tmp_path, "merge files") == []


def test_merged_column_files_behind_each_verb(spread: Path, tmp_path: Path) -> None:
    for first, verb in VERBS.items():
        place, alone = tmp_path / f"merged {first}", tmp_path / f"alone {first}"
        for path in (place, alone):
            shutil.copytree(spread, path)
        stale = lance_core.dataset(str(place))
        for path in (place, alone):
            verb(lance, lance.dataset(str(path)))
        try:
            stale.optimize.merge_column_files(max_files_per_fragment=1)
        except (RetryableConflictError, IncompatibleConflictError):
            assert first in ("overwrite", "restore"), first
        assert content(lance, place) == content(lance_core, place) == content(lance, alone), first
