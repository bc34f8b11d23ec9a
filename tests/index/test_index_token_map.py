"""Token maps: keys and numbers come back, those of the official library too, and damage is told, whatever it is."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing.folder import folder_of
from lance_core.errors import CorruptFileError
from lance_core.index.base import read_all
from lance_core.index.text.fst import decode_fst, encode_fst, find_in_fst, masked_crc32c, require_checksum


def _keys(rng: random.Random, count: int) -> list[bytes]:
    kinds = [
        lambda: bytes(rng.choices(b"ab", k=rng.randint(0, 12))),
        lambda: rng.randbytes(rng.randint(1, 3)),
        lambda: f"name-{rng.randrange(10**6):07d}".encode(),
        lambda: "".join(rng.choices("äöüß日本e", k=rng.randint(1, 5))).encode(),
        lambda: b"x" * rng.choice([1, 40, 3000]) + rng.randbytes(1),
    ]
    return sorted({rng.choice(kinds)() for _ in range(count)})


@pytest.mark.parametrize("count", [0, 1, 2, 300, 20_000])
def test_keys_and_numbers_come_back(count: int) -> None:
    rng = random.Random(count)
    keys = _keys(rng, count)
    numbers = rng.sample(range(len(keys)), len(keys)) if count < 300 else [rng.randrange(1 << 33) for _ in keys]
    data = encode_fst(keys, numbers)
    assert decode_fst(data) == (keys, numbers)
    require_checksum(data)
    for place in range(0, len(keys), max(1, len(keys) // 50)):
        assert find_in_fst(data, keys[place]) == numbers[place]


def test_maps_of_the_official_library(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rng = random.Random(1)
    words = sorted({"".join(rng.choices("abcdefgh", k=rng.randint(1, 7))) for _ in range(5000)})
    lance.write_dataset(pa.table({"s": [" ".join(words[first::50]) for first in range(50)]}), uri)
    lance.dataset(uri).create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False)
    snapshot = dataset(uri).snapshot
    folder = folder_of(snapshot, snapshot.manifest.indices[0])
    batch = read_all(folder.open("part_0_tokens.lance"), ["_token_fst_bytes"])
    data = batch.column(0)[0].as_py()
    keys, numbers = decode_fst(data)
    assert keys == [word.encode() for word in words]
    assert sorted(numbers) == [*range(len(words))]
    require_checksum(data)


def test_damage_is_told() -> None:
    """Bits are flipped behind the checksum's back: what is read is keys in order, or an error, and never a crash."""
    rng = random.Random(3)
    keys = _keys(rng, 400)
    whole = encode_fst(keys, range(len(keys)))
    refused = 0
    for _ in range(400):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with pytest.raises(CorruptFileError):
            require_checksum(bytes(data))
        try:
            found, numbers = decode_fst(bytes(data))
        except CorruptFileError:
            refused += 1
            continue
        assert found == sorted(set(found))
        assert len(found) == len(numbers)
    assert refused > 50
    for size in range(0, len(whole), 97):
        with pytest.raises(CorruptFileError):
            decode_fst(whole[:size])
    for _ in range(200):
        junk = bytes(np.random.default_rng(rng.randrange(1000)).integers(0, 256, 300, np.uint8))
        with pytest.raises(CorruptFileError):
            decode_fst(whole[:8] + junk + (5).to_bytes(8, "little") + (250).to_bytes(8, "little") + bytes(4))


def _doubling(levels: int, *, keys: int, is_dead: bool) -> bytes:
    """A map of few nodes in a row, each of which leads twice to the next: 2^levels ways, to keys or to nowhere."""
    data = bytearray((3).to_bytes(8, "little") + bytes(8))
    target = 0
    if is_dead:
        data += bytes(3)
        target = len(data) - 1
    for _ in range(levels):
        distance = len(data) - target if target else 0
        data += distance.to_bytes(2, "little") * 2 + b"ba" + bytes((2 << 4, 2))
        target = len(data) - 1
    data += keys.to_bytes(8, "little") + target.to_bytes(8, "little")
    return bytes(data + masked_crc32c(bytes(data)).to_bytes(4, "little"))


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_few_nodes_in_a_row_do_not_take_for_ever(is_dead: bool) -> None:
    """Sixty levels of eight bytes are 2^60 ways."""
    keys, numbers = decode_fst(_doubling(10, keys=1024, is_dead=False))
    assert (len(keys), len(set(keys)), set(numbers)) == (1024, 1024, {0})
    for keys_told in (0, 1, 1000, 30_000):
        with pytest.raises(CorruptFileError):
            decode_fst(_doubling(60, keys=keys_told, is_dead=is_dead))


def test_more_keys_than_lists_are_refused_before_they_are_read() -> None:
    with pytest.raises(CorruptFileError, match="1024 keys, but there are 1000 lists"):
        decode_fst(_doubling(10, keys=1024, is_dead=False), most=1000)
