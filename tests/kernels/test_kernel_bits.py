"""Bit packing without the compiler gives what the compiled kernels give."""

from __future__ import annotations

import numpy as np
import pytest

from lance_core.kernels import bits, fsst, plain_fsst

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("kind", ["<u1", "<u2", "<u4", "<u8"])
def test_numpy_unpacks_what_the_kernel_packed(kind: str) -> None:
    size = np.dtype(kind).itemsize * 8
    lanes = 1024 // size
    widths = np.concatenate([np.arange(size + 2), np.full(300, 3)])
    counts = np.full(len(widths), 1024)
    counts[[1, -1]] = [1, 700]
    masks = [(1 << width) - 1 if width <= size else (1 << size) - 1 for width in widths.tolist()]
    parts = [RNG.integers(0, mask, count, dtype=np.uint64, endpoint=True) for mask, count in zip(masks, counts, strict=True)]
    values = np.concatenate(parts).astype(kind)
    sizes = np.where(widths > size, counts, widths * lanes)
    starts = np.cumsum(sizes) - sizes
    words = np.zeros(int(sizes.sum()), kind)
    assert bits.pack(values, counts, starts, widths, np.empty(1024, kind), words) == len(values)
    out = np.empty(len(values), kind)
    assert bits.unpack_plainly(words, starts, widths, counts, out) == len(values)
    np.testing.assert_array_equal(out, values)
    assert bits.unpack_plainly(words, starts + len(words), widths, counts, out) < 0
    assert bits.unpack_plainly(words, starts, widths + size + 2, counts, out) < 0


def test_small_work_adds_up() -> None:
    from lance_core.kernels.jit import Kernel

    kernel = Kernel(lambda words: 0, "in:T -> i8", {"T": ("u1",)})
    kind = np.dtype(np.uint8)
    assert not kernel.is_worth_loading(1 << 10, kind)
    assert kernel.is_worth_loading(1 << 24, kind)


def test_strings_of_symbols_without_the_compiler() -> None:
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    for code in range(40):
        lengths[code] = code % 8 + 1
        symbols[code] = int.from_bytes(RNG.bytes(int(lengths[code])), "little")
    for _ in range(200):
        strings = [
            b"".join(
                bytes([255, RNG.choice([0, 7, 254, 255])]) if RNG.random() < 0.5 else bytes([RNG.integers(0, 40)])
                for _ in range(RNG.integers(0, 6))
            )
            for _ in range(8)
        ]
        if RNG.random() < 0.5:
            at = RNG.integers(0, 8)
            strings[at] = strings[at][:-1] + bytes([RNG.choice([255, 254, 41])])
        codes = np.frombuffer(b"".join(strings), np.uint8)
        offsets = np.append(0, np.cumsum([len(text) for text in strings])).astype(np.int32)
        out, targets = np.empty(8 * len(codes) + 8, np.uint8), np.empty(9, np.int32)
        size = fsst.decode(codes, offsets, symbols, lengths, out, targets)
        found = plain_fsst.decode(codes, offsets, symbols, lengths)
        assert (found is None) == (size < 0)
        if found is not None:
            np.testing.assert_array_equal(found[0], out[:size])
            np.testing.assert_array_equal(found[1], targets)
