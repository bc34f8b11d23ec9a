"""A few packed blocks are unpacked with numpy as the kernel unpacks them, for every width; damage is refused."""

from __future__ import annotations

import numpy as np
import pytest

from lance_core.codecs.one_chunk import unpack_few
from lance_core.kernels import bits


@pytest.mark.parametrize("kind", ["<u1", "<u2", "<u4", "<u8"])
def test_blocks_of_every_width(kind: str) -> None:
    """A width of T + 1 is plain words."""
    rng = np.random.default_rng(5)
    size = np.dtype(kind).itemsize * 8
    for width in range(size + 2):
        counts = np.array([1024, 7, 1024, 700])
        widths = np.array([width, size + 1, width, width // 2])
        values = rng.integers(0, (1 << width // 2) - 1, int(counts.sum()), dtype=np.uint64, endpoint=True).astype(kind)
        if width <= size:
            values[:1024] = rng.integers(0, (1 << width) - 1, 1024, dtype=np.uint64, endpoint=True)
        sizes = np.where(widths > size, counts, widths * 1024 // size)
        starts = np.cumsum(sizes + 3) - sizes
        words = np.zeros(int(starts[-1] + sizes[-1]), kind)
        bits.pack(values, counts, starts, widths, np.empty(1024, kind), words)
        out = np.full(len(values), 1, kind)
        assert unpack_few(words, starts, widths, counts, out) == len(values)
        np.testing.assert_array_equal(out, values)


def test_damaged_blocks_are_refused() -> None:
    words, out = np.zeros(256, np.uint16), np.empty(2048, np.uint16)
    starts, widths, counts = np.array([0, 128]), np.array([2, 2]), np.array([1024, 1000])
    assert unpack_few(words, starts, widths, counts, out) == 2024
    for bad in (np.array([0, 129]), np.array([-1, 128])):
        assert unpack_few(words, bad, widths, counts, out) < 0
    for bad in (np.array([1024, 1025]), np.array([-1, 5])):
        assert unpack_few(words, starts, widths, bad, out) < 0
    for bad in (np.array([2, 18]), np.array([-1, 2]), np.array([2, 17])):
        assert unpack_few(words, starts, bad, counts, out) < 0
    assert unpack_few(words, starts, widths, counts, out[:2023]) < 0
