"""An `except` clause written for the official library catches the same failure here."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core import errors

VECTOR = pa.list_(pa.float32(), 2)
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.utf8()), pa.field("v", VECTOR)])


def rows(ids: list[int]) -> pa.Table:
    return pa.table({"id": ids, "name": ["x"] * len(ids), "v": pa.array([[1.0, 2.0]] * len(ids), VECTOR)}, SCHEMA)


def _append(library: Any, ds: Any, table: Any) -> None:
    library.write_dataset(table, ds.uri, mode="append")


def _append_over_overwrite(library: Any, ds: Any) -> None:
    library.write_dataset(pa.table({"q": [1]}), ds.uri, mode="overwrite")
    fragment = library.LanceFragment.create(ds.uri, rows([1]))
    library.LanceDataset.commit(ds.uri, library.LanceOperation.Append([fragment]), read_version=ds.version)


def _conflict(library: Any, ds: Any) -> None:
    changed, version = ds.get_fragments()[0].delete("id = 1"), ds.version
    library.dataset(ds.uri).update({"name": "'z'"}, where="id = 1")
    operation = library.LanceOperation.Delete([changed], [], "id = 1")
    library.LanceDataset.commit(ds.uri, operation, read_version=version, max_retries=0)


def _damaged(library: Any, ds: Any) -> None:
    path = next(Path(ds.uri, "data").iterdir())
    data = path.read_bytes()
    path.write_bytes(data[:10] + b"X" * (len(data) - 20) + data[-10:])
    library.dataset(ds.uri).to_table()


def _gone(library: Any, ds: Any) -> None:
    next(Path(ds.uri, "data").iterdir()).unlink()
    library.dataset(ds.uri).to_table()


def _twice(verb: Callable[[], object]) -> None:
    verb()
    verb()


KINDS: dict[str, Callable[[Any, Any], object]] = {
    "no table": lambda library, ds: library.dataset(f"{ds.uri}.none"),
    "no version": lambda library, ds: library.dataset(ds.uri, version=99),
    "no tag": lambda library, ds: library.dataset(ds.uri, version="nope"),
    "no such version to check out": lambda library, ds: ds.checkout_version(99),
    "no branch": lambda library, ds: ds.checkout_version(("nope", 1)),
    "a table is there": lambda library, ds: library.write_dataset(rows([1]), ds.uri),
    "other columns": lambda library, ds: _append(library, ds, pa.table({"x": [1]})),
    "another type": lambda library, ds: _append(library, ds, rows([1]).set_column(0, "id", pa.array(["q"]))),
    "an unknown mode": lambda library, ds: library.write_dataset(rows([1]), ds.uri, mode="what"),
    "rows that are none": lambda library, ds: library.write_dataset(17, f"{ds.uri}.new"),
    "a broken filter": lambda library, ds: ds.to_table(filter="id >"),
    "a filter on no column": lambda library, ds: ds.to_table(filter="zz > 1"),
    "an unknown column": lambda library, ds: ds.to_table(columns=["zz"]),
    "an unknown argument": lambda library, ds: ds.to_table(colums=["id"]),
    "a row beyond the end": lambda library, ds: ds.take([77]),
    "a negative limit": lambda library, ds: ds.to_table(limit=-1),
    "a broken predicate": lambda library, ds: ds.delete("id >"),
    "dropping no column": lambda library, ds: ds.drop_columns(["zz"]),
    "a column twice": lambda library, ds: ds.add_columns({"name": "id"}),
    "altering no column": lambda library, ds: ds.alter_columns({"path": "zz", "name": "y"}),
    "indexing no column": lambda library, ds: ds.create_scalar_index("zz", "BTREE"),
    "an unknown kind of index": lambda library, ds: ds.create_scalar_index("id", "WHAT"),
    "a vector index on text": lambda library, ds: ds.create_index("name", "IVF_PQ", num_partitions=1, num_sub_vectors=1),
    "dropping no index": lambda library, ds: ds.drop_index("nope"),
    "figures of no index": lambda library, ds: ds.stats.index_stats("nope"),
    "searching text for a vector": lambda library, ds: ds.to_table(nearest={"column": "name", "q": [1, 2], "k": 1}),
    "a vector of another size": lambda library, ds: ds.to_table(nearest={"column": "v", "q": [1, 2, 3], "k": 1}),
    "a tag twice": lambda library, ds: _twice(lambda: ds.tags.create("a", 1)),
    "deleting no tag": lambda library, ds: ds.tags.delete("zz"),
    "a tag of no version": lambda library, ds: ds.tags.create("b", 99),
    "a branch twice": lambda library, ds: _twice(lambda: ds.create_branch("b1")),
    "merging by no column": lambda library, ds: ds.merge_insert("zz").when_matched_update_all().execute(rows([1])),
    "merging one row twice": lambda library, ds: ds.merge_insert("id").when_matched_update_all().execute(rows([1, 1])),
    "updating no column": lambda library, ds: ds.update({"zz": "1"}),
    "no schema in JSON": lambda library, ds: library.json_to_schema({"fields": [{"name": "a"}]}),
    "blobs of another column": lambda library, ds: ds.take_blobs("name", indices=[0]),
    "an unknown scheme": lambda library, ds: library.dataset("zzz://a/b"),
    "an append after an overwrite": _append_over_overwrite,
    "a conflict": _conflict,
    "a damaged file": _damaged,
    "a file that is gone": _gone,
}


def _bases(error: BaseException) -> list[type]:
    """What an `except` clause may name: the built-in classes. Arrow's own are ValueErrors there, and here."""
    return [cls for cls in type(error).__mro__ if cls.__module__ == "builtins"][:-3] or [Exception]


@pytest.mark.parametrize("kind", KINDS)
def test_what_catches_it_there_catches_it_here(tmp_path: Path, kind: str) -> None:
    raised = []
    for library in (lance, lance_core):
        ds = library.write_dataset(rows([1, 2, 3]), str(tmp_path / f"{library.__name__}.lance"))
        with pytest.raises(Exception) as caught:
            KINDS[kind](library, ds)
        raised.append(caught.value)
    theirs, ours = raised
    assert isinstance(ours, TypeError if kind == "an unknown argument" else errors.LanceError)
    assert isinstance(ours, _bases(theirs)[0]), (type(theirs).__mro__, type(ours).__mro__)


def _classes(cls: type[errors.LanceError]) -> list[type[errors.LanceError]]:
    below = (item for child in cls.__subclasses__() for item in _classes(child))
    return [item for item in (cls, *below) if item.__module__ == errors.__name__]


@pytest.mark.parametrize("cls", sorted({*_classes(errors.LanceError)}, key=lambda cls: cls.__name__))
def test_an_error_shows_its_message_and_travels(cls: type[errors.LanceError]) -> None:
    error = cls("it broke", uri="/t", version=3, cure="Mend it.")
    back = pickle.loads(pickle.dumps(error))
    assert str(error) == str(back) == "it broke. Mend it."
    assert (back.uri, back.version, back.cure) == ("/t", 3, "Mend it.")
    assert "it broke" in repr(error)
