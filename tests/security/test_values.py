"""Values that a file can hold and Python cannot: text that is not UTF-8, days that no calendar has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError, InputError, LanceError

BAD = b"abc\xff\xfedef \x80"


def _texts(*values: bytes) -> pa.Array:
    offsets = np.cumsum([0, *(len(value) for value in values)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))])


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    days = pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32())
    lance_core.write_dataset(pa.table({"id": [0, 1, 2], "s": _texts(BAD, b"good", BAD), "d": days}), place)
    return place


def test_an_ngram_index_over_text_that_is_not_utf_8_is_a_typed_error(uri: str) -> None:
    with pytest.raises(CorruptFileError, match="column 's' holds a string that is not valid UTF-8"):
        lance_core.dataset(uri).create_scalar_index("s", "NGRAM")
    assert not [path for path in (Path(uri) / "_indices").rglob("*") if path.is_file()]


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "INVERTED", "ZONEMAP", "BLOOMFILTER"])
def test_other_indices_over_such_values_answer_or_say_why_not(uri: str, kind: str) -> None:
    for column in ("s", "d") if kind != "INVERTED" else ("s",):
        try:
            lance_core.dataset(uri).create_scalar_index(column, kind, replace=True, name=f"{column}_idx")
            assert lance_core.dataset(uri).stats.index_stats(f"{column}_idx")
        except LanceError:
            continue
    assert lance_core.dataset(uri).to_table(filter="s = 'good'", columns=["id"]).to_pylist() == [{"id": 1}]


def test_a_key_that_cannot_be_shown_is_no_error_of_its_own(uri: str) -> None:
    for on, keys in (("s", _texts(BAD, BAD)), ("d", pa.array([2**31 - 1] * 2, pa.int32()).cast(pa.date32()))):
        source = pa.table({on: keys, "id": [7, 8]})
        with pytest.raises(InputError, match="a value of type"):
            lance_core.dataset(uri).merge_insert(on).when_matched_update_all().execute(source)
        other = pa.table({on: keys, "extra": [7, 8]})
        with pytest.raises(InputError, match="a value of type"):
            lance_core.dataset(uri).merge(other, on)
