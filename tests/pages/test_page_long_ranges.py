"""Long ranges of slots are joined slices: the same values as picks one by one."""

from __future__ import annotations

import numpy as np
import pytest

from lance_core.codecs.blocks import Block, FixedBlock, ListBlock
from lance_core.pages.rows import expand_ranges
from lance_core.pages.value_slots import take_ranges, take_slots

RNG = np.random.default_rng(3)
COUNT = 1000
VECTORS = ListBlock(3, FixedBlock(16, RNG.integers(0, 256, COUNT * 6).astype(np.uint8), COUNT * 3), COUNT)
BLOCKS: dict[str, Block] = {
    "numbers": FixedBlock(32, RNG.integers(0, 256, COUNT * 4).astype(np.uint8), COUNT),
    "bits": FixedBlock(1, RNG.integers(0, 256, COUNT // 8).astype(np.uint8), COUNT),
    "vectors": VECTORS,
    "vectors and nulls": ListBlock(3, VECTORS.items, COUNT, RNG.integers(0, 256, -(-COUNT * 3 // 8)).astype(np.uint8)),
    "vectors of vectors": ListBlock(2, ListBlock(3, VECTORS.items, COUNT), COUNT // 2),
}


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("ranges", [[(0, 100), (100, 180), (300, 301)], [(3, 5), (7, 8)], [(0, 250), (251, 400)]])
def test_long_ranges_are_the_picks(name: str, ranges: list[tuple[int, int]]) -> None:
    starts, ends = np.array(ranges).T
    found, wanted = take_ranges(BLOCKS[name], starts, ends), take_slots(BLOCKS[name], expand_ranges(starts, ends))
    assert (type(found), found.count) == (type(wanted), wanted.count)
    while isinstance(found, ListBlock) and isinstance(wanted, ListBlock):
        assert (found.dimension, found.count, found.validity is None) == (
            wanted.dimension,
            wanted.count,
            wanted.validity is None,
        )
        found, wanted = found.items, wanted.items
    assert isinstance(found, FixedBlock) and isinstance(wanted, FixedBlock)
    assert found.data.tobytes() == wanted.data.tobytes()
