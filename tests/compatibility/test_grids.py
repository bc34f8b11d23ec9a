"""Fixed-size lists of fixed-size lists (images, matrices): every verb that picks rows picks the right ones.

Arrow's own `take` and `filter` pick wrong values of such a column where it is a slice, which most batches are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.pick import keep, take

COUNT = 50
KINDS = {
    "int32": pa.list_(pa.list_(pa.int32(), 3), 2),
    "one": pa.list_(pa.list_(pa.int32(), 1), 1),
    "float16": pa.list_(pa.list_(pa.float16(), 2), 2),
    "three": pa.list_(pa.list_(pa.list_(pa.int64(), 2), 1), 2),
    "struct": pa.struct([pa.field("m", pa.list_(pa.list_(pa.float32(), 2), 2))]),
}


def _value(kind: Any, seed: int) -> Any:
    if pa.types.is_struct(kind):
        return {"m": _value(kind.field(0).type, seed)}
    if pa.types.is_fixed_size_list(kind):
        return [_value(kind.value_type, seed * 7 + number) for number in range(kind.list_size)]
    return float(seed % 1000) if pa.types.is_floating(kind) else seed


def rows_of(kind: Any, first: int = 0, count: int = COUNT) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "c": pa.array([_value(kind, number) for number in ids], kind)})


Verb = Callable[[Any, str, Any], None]


def _updated(table: Any, uri: str, kind: Any) -> None:
    new = pa.concat_tables([rows_of(kind, 1000, 10), rows_of(kind, 40, 20)]).slice(10)
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)


def _streamed(table: Any, uri: str, kind: Any) -> None:
    table.delete("id = 3")
    values = rows_of(kind).filter(pa.array([number != 3 for number in range(COUNT)]))
    lance_core.dataset(uri).drop_columns(["c"])
    lance_core.dataset(uri).add_columns(values.select(["c"]).to_reader(max_chunksize=7))


def _joined(table: Any, uri: str, kind: Any) -> None:
    table.drop_columns(["c"])
    lance_core.dataset(uri).merge(pa.concat_tables([rows_of(kind, 900, 5), rows_of(kind)]).slice(5), "id")


def _compacted(table: Any, uri: str, kind: Any) -> None:
    table.delete("id % 3 = 1")
    lance_core.dataset(uri).optimize.compact_files()


VERBS: dict[str, Verb] = {
    "nothing": lambda table, uri, kind: None,
    "delete": lambda table, uri, kind: table.delete("id % 3 = 1"),
    "compact": _compacted,
    "update": lambda table, uri, kind: table.update({"id": "id + 0"}, where="id > 20"),
    "merge rows": _updated,
    "add a stream": _streamed,
    "join": _joined,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", KINDS)
def test_every_verb_picks_the_right_rows(name: str, verb: str, tmp_path: Path) -> None:
    kind, uri = KINDS[name], str(tmp_path)
    table = lance_core.write_dataset(rows_of(kind), uri, data_storage_version="2.2", max_rows_per_file=30)
    VERBS[verb](table, uri, kind)
    for found in (lance.dataset(uri).to_table(), *_reads(lance_core.dataset(uri))):
        assert found["c"].to_pylist() == [_value(kind, number) for number in found["id"].to_pylist()]
        assert found.num_rows


def _reads(table: Any) -> list[pa.Table]:
    scans = (
        {},
        {"filter": "id % 2 = 0"},
        {"filter": "id % 2 = 0", "offset": 5, "limit": 9},
        {"batch_size": 7, "filter": "id > 8"},
    )
    count = table.count_rows()
    return [
        *(table.to_table(**options) for options in scans),
        table.take([count - 1, 2, 0, 2]),
        table.sample(5),
        pa.Table.from_batches([*table.to_batches(batch_size=8, filter="id <> 4")]),
    ]


@pytest.mark.parametrize("name", KINDS)
def test_arrays_batches_and_tables(name: str) -> None:
    whole = rows_of(KINDS[name])
    places, mask = pa.array([4, 0, None, 4]), pa.array([number % 3 == 0 for number in range(20)])
    several = pa.concat_tables([whole.slice(20, 5), whole.slice(25, 15)])
    for data in (whole.slice(20, 20), several, whole.to_batches()[0].slice(20, 20)):
        rows = data.to_pylist()
        assert keep(data, mask).to_pylist() == rows[::3]
        assert take(data, pa.array([4, 0, 4])).to_pylist() == [rows[4], rows[0], rows[4]]
        column = data.column(1)
        assert take(column, places).to_pylist() == [rows[4]["c"], rows[0]["c"], None, rows[4]["c"]]
        assert keep(column, mask).to_pylist() == [row["c"] for row in rows[::3]]
    assert take(whole.slice(3, 0), pa.array([], pa.int64())).num_rows == 0
    assert np.array_equal(take(whole["id"], pa.array([1])).to_numpy(), [1])
