"""Plain columns of one width and count are encoded together: each page is the one that its column gives alone."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.codecs.options import EncodingOptions
from lance_core.file.v2.encode21 import LeafEncoder
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import EncodedPage
from lance_core.pages.write import encode

_VERSIONS = (FileVersion.V2_1, FileVersion.V2_2, FileVersion.V2_3)
_COUNTS = (1, 2, 3, 99, 1023, 1024, 1025, 2048, 5000)
_TYPES = (pa.int32(), pa.uint32(), pa.float32(), pa.int64(), pa.float64(), pa.timestamp("us"), pa.date32(), pa.int16())


def _bytes(rng: np.random.Generator, kind: int, count: int, size: int) -> np.ndarray:
    """Values that are plain, constant, few, small, in runs, or alike at both ends."""
    words = rng.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2)
    if kind == 1:
        words[:] = 7
    elif kind == 2:
        words %= np.uint64(3)
    elif kind == 3:
        words >>= np.uint64(64 - 8 * size + 9)
    elif kind == 4:
        words = np.repeat(words, 40)[:count]
    elif kind == 5:
        words[-1] = words[0]
    return words.astype(f"<u{size}")


def _columns(seed: int, count: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {}
    for number, (kind, arrow_type) in enumerate(product(range(7), _TYPES)):
        raw = _bytes(rng, kind, count, arrow_type.bit_width // 8)
        values = pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(raw)])
        nulls = kind == 6
        columns[f"c{number}"] = (
            pa.array(values, mask=None)
            if not nulls
            else pa.concat_arrays([values.slice(0, count - 1), pa.nulls(1, arrow_type)])
        )
    return pa.table(columns)


def _same(one: EncodedPage, other: EncodedPage) -> bool:
    buffers = [[bytes(buffer) for buffer in page.buffers] for page in (one, other)]
    return one.layout == other.layout and buffers[0] == buffers[1] and one.num_rows == other.num_rows


@pytest.mark.parametrize("version", _VERSIONS, ids=lambda version: version.text)
def test_pages_made_together_are_those_made_alone(version: FileVersion) -> None:
    for seed, count in enumerate(_COUNTS):
        table = _columns(seed, count)
        encoder = LeafEncoder(schema_from_arrow(table.schema, version=version), version)
        arrays = [column.combine_chunks() for column in table.columns]
        cut = count // 3
        rows = []
        for number, array in enumerate(arrays):
            parts = [array.slice(0, cut), array.slice(cut)] if cut else [array]
            rows.append((number, [next(encoder.split(number, part))[1] for part in parts]))
        together = encoder.encode_together(rows)
        for number, (made, item) in enumerate(zip(together, rows, strict=True)):
            alone = encoder.encode(*item)
            assert len(made) == len(alone)
            assert all(map(_same, made, alone)), (count, table.schema.field(number))


def test_plain_columns_share_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = encode.encode_page
    monkeypatch.setattr(encode, "encode_page", lambda leaf, options: calls.append(leaf) or real(leaf, options))
    values = np.random.default_rng(1).integers(0, 1 << 63, (30, 700)).astype("<u4")
    pages = encode.encode_flat(values, EncodingOptions())
    assert all(page is not None for page in pages)
    assert len(calls) == 1


def test_what_asks_for_a_compressor_is_encoded_alone() -> None:
    assert encode.can_encode(32, EncodingOptions())
    assert not encode.can_encode(32, EncodingOptions(compression="zstd"))
    assert not encode.can_encode(32, EncodingOptions(structural="fullzip"))
    assert not encode.can_encode(8, EncodingOptions())
