"""Long runs of damage over every encoding the writer chooses: FormatError or other values, never anything else."""

import contextlib

import numpy as np
import pytest

from lance_core.codecs import choose
from lance_core.codecs.blocks import FixedBlock, Pieces, VariableBlock
from lance_core.codecs.choose import EncodingOptions
from lance_core.codecs.registry import CODECS
from lance_core.errors import FormatError
from tests.codecs.codec_contract import assert_damage_is_reported, plain

RNG = np.random.default_rng(11)
URLS = [b"https://www.example.com/%d" % (i * 7919 % 10_007) for i in range(3000)]


def numbers(values: np.ndarray) -> FixedBlock:
    return FixedBlock(values.itemsize * 8, np.ascontiguousarray(values).view(np.uint8), len(values))


def strings(values: list[bytes]) -> VariableBlock:
    return VariableBlock(np.cumsum([0, *map(len, values)]).astype(np.int32), np.frombuffer(b"".join(values), np.uint8))


BLOCKS = {
    "packed": (numbers(RNG.integers(0, 1000, 3000)), {}),
    "runs": (numbers(np.repeat(np.arange(60), 50)), {}),
    "flat": (numbers(RNG.normal(size=3000)), {}),
    "planes": (numbers(np.sin(np.arange(3000) / 50)), {"compression": "zstd", "bss": "on"}),
    "symbols": (strings(URLS), {}),
    "zstd": (strings(URLS), {"compression": "zstd"}),
    "lz4": (strings(URLS), {"compression": "lz4"}),
    "plain": (strings(URLS), {"compression": "none"}),
}


def damage_everything(name: str, rounds: int) -> None:
    block, wishes = BLOCKS[name]
    options, rng = EncodingOptions(**wishes), np.random.default_rng(rounds)
    assert_damage_is_reported(choose.choose_chunks(block, options), rng, rounds=rounds)
    by_value, stored = choose.choose_values(block, options), choose.choose_block(block, options)
    for _ in range(rounds):
        data = np.frombuffer(stored.data, np.uint8).copy()
        data[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
        cut = data[: rng.integers(1, len(data) + 1)] if rng.integers(2) else data
        with contextlib.suppress(FormatError):
            plain(CODECS.decode_block(stored.encoding, Pieces.whole(cut), np.array([rng.integers(0, 4000)])))
        payload = by_value.payload
        if isinstance(payload, VariableBlock):
            data = payload.data.copy()
            data[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
            with contextlib.suppress(FormatError):
                plain(CODECS.decode_values(by_value.encoding, VariableBlock(payload.offsets, data)))


@pytest.mark.parametrize("name", BLOCKS)
def test_damage(name):
    damage_everything(name, 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_much_damage(name):
    damage_everything(name, 2500)
