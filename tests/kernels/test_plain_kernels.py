"""Every plain function gives what its kernel gives, on good input and on damaged; small work compiles nothing."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lance_core.kernels import (
    bits,
    blake2b,
    bytes,
    distance,
    distinct,
    fsst,
    jit,
    levels,
    load_all,
    postings,
    quantize,
    rabit,
    text,
)
from tests.kernels.symbol_cases import count, encode

Arguments = tuple[Any, ...]
ROOT = Path(__file__).resolve().parents[2]
MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


def _table(limit: int) -> tuple[int, Any]:
    slot_bits = max(6, (2 * limit).bit_length())
    return 64 - slot_bits, np.full(1 << slot_bits, -1, np.int32)


def number_words(random: np.random.Generator) -> Arguments:
    values = random.integers(0, 2 ** int(random.integers(1, 63)), int(random.integers(0, 300)), dtype=np.uint64)
    limit = int(random.integers(1, 200))
    shift, slots = _table(limit)
    return values, distinct.FACTOR, shift, limit, slots, np.zeros(len(values), np.uint32), np.zeros(limit, np.uint32)


def number_strings(random: np.random.Generator) -> Arguments:
    sizes = random.integers(0, 20, int(random.integers(0, 200)))
    offsets = np.append(0, np.cumsum(sizes)).astype(random.choice([np.int32, np.int64]))
    data = random.integers(97, 99, int(offsets[-1]) + 8).astype(np.uint8)
    if random.random() < 0.2 and len(offsets) > 2:
        offsets[int(random.integers(0, len(offsets)))] += random.choice([-30, 30])
    limit = int(random.integers(1, 200))
    shift, slots = _table(limit)
    found = np.zeros(len(sizes), np.uint32), np.zeros(limit, np.uint32)
    return offsets, data, MASKS, distinct.FACTOR, shift, limit, slots, *found


def copy_runs(random: np.random.Generator) -> Arguments:
    data, sizes = random.integers(0, 256, 400).astype(np.uint8), random.integers(0, 8, 40)
    starts, targets = random.integers(0, 390, 40), np.cumsum(sizes) - sizes
    if random.random() < 0.3:
        (starts, sizes, targets)[int(random.integers(0, 3))][int(random.integers(0, 40))] = random.choice([-1, 1000, 2**62])
    return data, starts, sizes, targets, np.zeros(int(random.integers(280, 320)), np.uint8)


def pack(random: np.random.Generator) -> Arguments:
    kind = np.dtype(random.choice(["u1", "u2", "u4", "u8"]))
    widths = random.integers(0, kind.itemsize * 8 + 2, 5)
    counts = np.append(np.full(4, 1024), random.integers(0, 1025))
    parts = [random.integers(0, 2 ** min(int(width), kind.itemsize * 8) - 1, 1024, kind, endpoint=True) for width in widths]
    values = np.concatenate(parts)[: int(counts.sum())]
    sizes = np.where(widths > kind.itemsize * 8, counts, widths * (1024 // (kind.itemsize * 8)))
    starts = np.cumsum(sizes) - sizes
    if random.random() < 0.3:
        (starts, widths, counts)[int(random.integers(0, 3))][int(random.integers(0, 5))] = random.choice([-1, 5000, 2**40])
    return values, counts, starts, widths, np.zeros(1024, kind), np.zeros(int(sizes.sum()), kind)


def crc32c_of(random: np.random.Generator) -> Arguments:
    from lance_core.index.text.fst import _TABLE

    return random.integers(0, 256, int(random.integers(0, 300))).astype(np.uint8), _TABLE


def _levels(random: np.random.Generator) -> tuple[Any, Any]:
    count = int(random.integers(1, 200))
    rep = random.integers(0, 3, count).astype(np.uint16)
    rep[0] = 2
    return rep, random.integers(0, 4, count).astype(np.uint16)


def locate_rows(random: np.random.Generator) -> Arguments:
    rep, def_ = _levels(random)
    edges = np.sort(random.integers(0, len(rep) + 1, 3))
    bounds = np.array([0, *edges, len(rep)])
    begun = np.append(0, np.cumsum(rep == 2))
    owned = np.append(0, np.cumsum(def_ <= 1))
    before, after, counts = begun[bounds[:-1]], begun[bounds[1:]], owned[bounds[1:]] - owned[bounds[:-1]]
    if random.random() < 0.3:
        (before, after, counts)[int(random.integers(0, 3))][int(random.integers(0, 4))] += random.choice([-1, 1])
    begins = np.sort(random.integers(0, begun[-1] + 2, 5))
    places = np.full((4, 5), -7, np.int64)
    facts = np.array([2, 1])
    return rep, def_, bounds, before, after, counts, begins, np.sort(begins + random.integers(0, 4, 5)), facts, *places


def enter_lists(random: np.random.Generator) -> Arguments:
    count = int(random.integers(0, 60))
    offsets = np.append(0, np.cumsum(random.integers(0, 4, count)))
    slot, code = np.arange(count), random.integers(0, 2, count).astype(np.uint16)
    if random.random() < 0.3 and count:
        (slot if random.random() < 0.5 else offsets)[int(random.integers(0, count))] = random.choice([-5, 500])
    room = count + int(offsets[-1]) - int(random.random() < 0.1)
    facts, rep = np.array([9, 1]), random.integers(0, 3, count).astype(np.uint16)
    out = np.zeros(max(room, 0), np.int64), np.zeros(max(room, 0), np.uint16), np.zeros(max(room, 0), np.uint16)
    return slot, code, rep, offsets, facts, *out


def mark_nulls(random: np.random.Generator) -> Arguments:
    slot = random.integers(-1 if random.random() < 0.3 else 0, 40, 50)
    return slot, random.integers(0, 2, 40).astype(np.uint8), 5, random.integers(0, 2, 50).astype(np.uint16)


def split_lists(random: np.random.Generator) -> Arguments:
    rep, def_ = _levels(random)
    slots, count = int(np.count_nonzero(rep >= 2)), len(rep)
    spare = int(random.random() > 0.2)
    # The place behind the last list is written by the kernel as well and means nothing.
    out = np.zeros(slots + 1, np.int64), np.zeros(slots + spare, np.uint16)
    return rep, def_, np.array([2, 1, 2]), *out, np.zeros(count + 1, np.uint16), np.zeros(count + 1, np.uint16)


def walk_zipped(random: np.random.Generator) -> Arguments:
    word_size, is_fixed = int(random.integers(1, 3)), random.random() < 0.5
    parts = []
    for _ in range(int(random.integers(0, 40))):
        rep, level = int(random.integers(0, 2)), int(random.integers(0, 4))
        parts.append(int(rep << 2 | level).to_bytes(word_size, "little"))
        if level <= 1 and is_fixed:
            parts.append(b"value")
        elif level == 0:
            size = int(random.integers(0, 9))
            parts.append(size.to_bytes(4, "little") + b"v" * size)
    data = np.frombuffer(b"".join(parts), np.uint8)
    if random.random() < 0.3 and len(data):
        data = data[: int(random.integers(0, len(data)))]
    facts = np.array([word_size, 2, 1, 5 if is_fixed else -1, 4])
    room = len(parts) if random.random() > 0.1 else 1
    return data, facts, *(np.zeros(room, kind) for kind in (np.uint16, np.uint16, np.int64, np.int64))


def _lists(random: np.random.Generator) -> tuple[Any, Any, Any]:
    sizes = random.choice([1, 5, 127, 128, 129, 300], 3)
    documents = [np.sort(random.choice(2**20, size, replace=False)) for size in sizes]
    counts = random.integers(1, 2 ** int(random.integers(1, 12)), int(sizes.sum()))
    return np.cumsum(sizes), np.concatenate(documents).astype(np.uint32), counts.astype(np.uint32)


def _blocks(ends: Any) -> tuple[list[int], list[int]]:
    """Where the documents of each block begin, and of each list its blocks."""
    firsts, many = [], []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        firsts += range(int(begin), int(end), 128)
        many.append(-(-int(end - begin) // 128))
    return [*firsts, int(ends[-1])], many


def decode_postings(random: np.random.Generator) -> Arguments:
    ends, documents, counts = _lists(random)
    firsts, many = _blocks(ends)
    out, stops, best = np.zeros(20_000, np.uint8), np.zeros(sum(many), np.int64), np.zeros(sum(many), np.float32)
    weights = np.ones(len(documents), np.float32)
    assert postings.encode_postings(ends, documents, counts, weights, np.zeros(128, np.uint32), best, out, stops) >= 0
    blocks = np.split(out[: int(stops[-1])], stops[:-1])
    is_fixed = int(random.integers(0, 2))
    for at, (first, end) in enumerate(itertools.pairwise(firsts)):
        if is_fixed and end - first < 128:
            blocks[at] = np.concatenate([blocks[at][:4], *(part[first:end].view(np.uint8) for part in (documents, counts))])
    data = _damaged(random, np.concatenate(blocks))
    found = np.zeros(len(documents), np.uint32), np.zeros(len(documents), np.uint32)
    return data, np.append(0, np.cumsum([len(block) for block in blocks])), np.array(firsts), is_fixed, *found


def decode_positions(random: np.random.Generator) -> Arguments:
    ends, _, counts = _lists(random)
    counts = np.minimum(counts, 9).astype(np.uint32)
    firsts, many = _blocks(ends)
    places = np.concatenate([np.sort(random.integers(0, 5000, int(count))) for count in counts]).astype(np.uint32)
    starts = np.append(0, np.cumsum(counts, dtype=np.int64))[np.append(0, ends[:-1])]
    out, begins, stops = np.zeros(90_000, np.uint8), np.zeros(sum(many), np.int64), np.zeros(3, np.int64)
    assert postings.encode_positions(ends, counts, starts, places, np.zeros(128, np.uint32), out, begins, stops) >= 0
    begins += np.repeat(np.append(0, stops[:-1]), many)
    data = _damaged(random, out[: int(stops[-1])])
    room = len(places) - int(random.random() < 0.1)
    return data, np.append(begins, stops[-1]), np.array(firsts), counts, np.zeros(room, np.uint32)


def _damaged(random: np.random.Generator, data: Any) -> Any:
    if random.random() < 0.4:
        data[int(random.integers(0, len(data)))] ^= np.uint8(random.integers(1, 256))
    return data


def add_scores(random: np.random.Generator) -> Arguments:
    norms = random.random(100).astype(np.float32)
    documents = np.sort(random.choice(100 + int(random.random() < 0.2), 30, replace=False)).astype(np.uint32)
    counts, scores = random.integers(1, 9, 30).astype(np.uint32), random.random(100).astype(np.float32)
    return documents, counts, norms, np.float32(1.7), np.float32(2.2), scores


def _floats(random: np.random.Generator, count: int, kind: str = "f4") -> Any:
    return random.normal(size=count).astype(kind)


def _too_short(random: np.random.Generator, values: Any) -> Any:
    return values[:-1] if random.random() < 0.1 and len(values) else values


def l2_rows(random: np.random.Generator) -> Arguments:
    dim, kind = int(random.integers(1, 40)), str(random.choice(["f4", "f8"]))
    rows = _floats(random, dim * int(random.integers(0, 50)), kind)
    if random.random() < 0.3:
        rows[:dim] = 0
    return _floats(random, dim, kind), _too_short(random, rows), dim, np.zeros(len(rows) // dim, np.float32)


def dot_rows(random: np.random.Generator) -> Arguments:
    return l2_rows(random)


def cosine_rows(random: np.random.Generator) -> Arguments:
    return l2_rows(random)


def product_table(random: np.random.Generator) -> Arguments:
    parts, dim, num = int(random.integers(1, 9)), int(random.integers(1, 9)), int(random.choice([16, 256]))
    query, book = _floats(random, parts * dim), _floats(random, parts * dim * num)
    return query, _too_short(random, book), dim, num, int(random.integers(0, 2)), np.zeros(parts * num, np.float32)


def product_scan(random: np.random.Generator) -> Arguments:
    parts, count = int(random.integers(1, 9)), int(random.integers(0, 50))
    codes = random.integers(0, 256, parts * count).astype(np.uint8)
    return _too_short(random, codes), _floats(random, parts * 256), parts, np.zeros(count, np.float32)


def product_scan_4bit(random: np.random.Generator) -> Arguments:
    parts, count = 2 * int(random.integers(1, 9)), int(random.integers(0, 50))
    codes = random.integers(0, 256, parts // 2 * count).astype(np.uint8)
    return _too_short(random, codes), _floats(random, parts * 16), parts, np.zeros(count, np.float32)


def scaled_l2(random: np.random.Generator) -> Arguments:
    dim, count = int(random.integers(1, 40)), int(random.integers(0, 50))
    codes = _too_short(random, random.integers(0, 256, dim * count).astype(np.uint8))
    return _floats(random, dim), codes, dim, -1.5, 0.0125, np.zeros(count, np.float32)


def scaled_dot(random: np.random.Generator) -> Arguments:
    return scaled_l2(random)


def signed_dots(random: np.random.Generator) -> Arguments:
    dim, count, kind = int(random.integers(1, 40)), int(random.integers(0, 50)), str(random.choice(["i1", "i2"]))
    codes = _too_short(random, random.integers(-100, 100, dim * count).astype(kind))
    return _floats(random, dim), codes, dim, np.zeros(count, np.float32)


def rotate_rows(random: np.random.Generator) -> Arguments:
    dim, count = int(random.integers(1, 40)), int(random.integers(0, 20))
    signs = random.integers(0, 256, rabit.ROUNDS * -(-dim // 8)).astype(np.uint8)
    return _floats(random, dim * count), _too_short(random, signs), dim


def digest_slices(random: np.random.Generator) -> Arguments:
    data, count = random.integers(0, 256, int(random.integers(0, 1500))).astype(np.uint8), int(random.integers(0, 40))
    ends = random.integers(0, len(data) + 1, count)
    starts = np.minimum(ends, ends - random.choice([0, 1, 8, 127, 128, 129, 256, 300], count).clip(max=ends))
    if random.random() < 0.3 and count:
        (starts, ends)[int(random.integers(0, 2))][int(random.integers(0, count))] = random.choice(
            [-1, len(data) + 1, 2**62]
        )
    state = blake2b.first_state(*(random.bytes(int(random.integers(0, 17))) for _ in range(2)))
    return data, starts, ends, state, blake2b.ORDER, blake2b.INITIAL, np.zeros(2 * count, np.uint64)


CASES: dict[str, tuple[jit.Kernel, Callable[[np.random.Generator], Arguments]]] = {
    make.__name__: (getattr(module, make.__name__), make)
    for module, makers in (
        (distinct, (number_words, number_strings)),
        (bytes, (copy_runs,)),
        (bits, (pack,)),
        (text, (crc32c_of, add_scores)),
        (levels, (locate_rows, enter_lists, mark_nulls, split_lists, walk_zipped)),
        (postings, (decode_postings, decode_positions)),
        (distance, (l2_rows, dot_rows, cosine_rows)),
        (quantize, (product_table, product_scan, product_scan_4bit, scaled_l2, scaled_dot)),
        (rabit, (signed_dots, rotate_rows)),
        (fsst, (count, encode)),
        (blake2b, (digest_slices,)),
    )
    for make in makers
}
SCRATCH = {"slots", "scratch"}


def test_every_plain_function_has_a_case() -> None:
    load_all()
    assert {item.name for item in jit.registered() if item.plain is not None} == set(CASES)


def _same(name: str, seed: int) -> None:
    item, make = CASES[name]
    plainly, compiled = make(np.random.default_rng(seed)), make(np.random.default_rng(seed))
    key = tuple(plainly[position].dtype.str[1:] for position in item._keyed_by)
    assert item.plain is not None
    expected, found = int(item._compile(key)(*compiled)), int(item.plain(*plainly))
    if expected < 0:
        assert found < 0, (name, seed, expected, found)
        if name not in ("decode_postings", "decode_positions", "number_strings"):
            assert found == expected, (name, seed)
        return
    assert found == expected, (name, seed)
    names = item.function.__code__.co_varnames[: item.function.__code__.co_argcount]
    kept = {"number_words": ("codes", "firsts"), "number_strings": ("codes", "firsts")}.get(name)
    for argument, one, other in zip(names, plainly, compiled, strict=True):
        if not isinstance(one, np.ndarray) or argument in SCRATCH or (kept and argument not in kept):
            continue
        if name == "encode" and argument == "out":
            one, other = one[:found], other[:found]  # what is behind the result is scratch
        if name == "split_lists":
            size = {"offsets": len(one), "slot_defs": len(plainly[3]) - 1, "next_rep": found, "next_def": found}
            one, other = one[: size.get(argument)], other[: size.get(argument)]
        if one.dtype.kind == "f" and item._flags:
            # The compiler may add floats in any order.
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=f"{name} {seed} {argument}")
        else:
            assert np.array_equal(one, other), (name, seed, argument)


@pytest.mark.parametrize("name", sorted(CASES))
def test_plain_and_compiled_agree(name: str) -> None:
    for seed in range(25):
        _same(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES))
def test_plain_and_compiled_agree_on_many(name: str) -> None:
    for seed in range(5_000):
        _same(name, seed)


FIRST_HOUR = """
import json, sys
import pyarrow as pa
import lance_core as lance
from lance_core.kernels import jit
waited = []
compile_one = jit.Kernel._compile
def watched(self, key):
    waited.append(self.name)
    return compile_one(self, key)
uri, n = sys.argv[1], 5000
words = "alpha beta gamma delta epsilon zeta eta theta".split()
table = pa.table({
    "id": list(range(n)), "city": [words[i % 8] for i in range(n)], "share": [i * 0.5 for i in range(n)],
    "text": [" ".join(words[(i * 7 + j) % 8] for j in range(5)) + f" w{i % 97}" for i in range(n)],
    "story": [" ".join(words[(i * j) % 8] for j in range(60)) for i in range(n)],
    "maybe": [None if i % 3 == 0 else i for i in range(n)], "items": [[i, i + 1] for i in range(n)],
})
if len(sys.argv) > 2:
    lance.write_dataset(table, uri)
    dataset = lance.dataset(uri)
    for column, kind in (("id", "BTREE"), ("city", "BITMAP"), ("text", "INVERTED")):
        dataset.create_scalar_index(column, kind)
    raise SystemExit
jit.Kernel._compile = watched
uri = uri + ".new"
lance.write_dataset(table, uri)
assert lance.dataset(uri).to_table().equals(table)
assert lance.dataset(uri).to_table(filter="id > 4000 and city = 'beta'").num_rows == 125
assert lance.dataset(uri).take([1, 5, 4000]).num_rows == 3
indexed = lance.dataset(sys.argv[1])
assert indexed.to_table(filter="id = 77").num_rows == 1
assert indexed.to_table(filter="city = 'beta'").num_rows == 625
assert indexed.to_table(full_text_query="gamma w13").num_rows > 50
print(json.dumps({"waited": waited, "numba": "numba" in sys.modules}))
"""


def test_the_first_write_scan_and_questions_wait_for_no_compiler(tmp_path: Path) -> None:
    uri, env = str(tmp_path / "t.lance"), {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", FIRST_HOUR, uri, "indexed"], check=True, env=env, cwd=ROOT, timeout=300)
    cold = {**env, "NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "cold"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_HOUR, uri], env=cold, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"waited": [], "numba": False}
