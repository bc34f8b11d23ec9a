"""Random arguments of the kernels that train symbol tables and write codes; some of them are damaged."""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_core.kernels import fsst

Arguments = tuple[Any, ...]


def count(random: np.random.Generator) -> Arguments:
    data, offsets = _texts(random)
    tables = _tables(random, data, offsets)
    ones, twos = random.integers(0, 5, 512).astype(np.uint32), np.zeros(512 * 512, np.uint32)
    return data, _damaged(random, offsets), *tables, fsst.masks(), ones, twos


def encode(random: np.random.Generator) -> Arguments:
    data, offsets = _texts(random)
    tables = _tables(random, data, offsets)
    room = int(random.choice([2 * len(data), int(random.integers(0, 2 * len(data)))]))
    offsets = _damaged(random, offsets).astype(random.choice([np.int32, np.int64]))
    return data, offsets, *tables, fsst.masks(), np.zeros(room, np.uint8), np.zeros(len(offsets), offsets.dtype)


def _texts(random: np.random.Generator) -> tuple[Any, Any]:
    """Few or many strings, empty ones and long ones among them, in an alphabet of few or of all bytes."""
    count, longest = int(random.choice([0, 1, 5, 90, 200])), int(random.choice([1, 3, 9, 60, 700]))
    sizes = random.integers(0, longest + 1, count)
    start = int(random.integers(0, 4))
    offsets = start + np.append(0, np.cumsum(sizes))
    letters = int(random.choice([2, 5, 40, 256]))
    return random.integers(0, letters, int(offsets[-1]) + 8).astype(np.uint8), offsets


def _tables(random: np.random.Generator, data: Any, offsets: Any) -> fsst.Tables:
    """Tables of symbols taken from the text; so it has both codes and literals."""
    lengths = random.integers(1, 9, int(random.integers(0, 300)))
    places = random.integers(0, len(data) - 7, len(lengths))
    words = np.array([int.from_bytes(data[at : at + 8].tobytes(), "little") for at in places], np.uint64)
    symbols = words & fsst.masks()[lengths] if len(lengths) else words
    _, first = np.unique(symbols | (lengths.astype(np.uint64) << np.uint64(60)), return_index=True)
    return fsst.build_tables(symbols[first], lengths[first].astype(np.int64))[0]


def _damaged(random: np.random.Generator, offsets: Any) -> Any:
    if random.random() < 0.3:
        offsets = offsets.copy()
        offsets[int(random.integers(0, len(offsets)))] += random.choice([-300, -3, 3, 300])
    return offsets
