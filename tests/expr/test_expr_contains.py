"""`contains` searches all texts at once; what it finds is what Arrow finds text by text."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core.expr import patterns

_ALPHABET = "abé "
_WANTED = ("a", "ab", "aa", "aba", "bé", "é", " a", "zz", "", "a" * 40)


def _texts(rng: random.Random, count: int, longest: int) -> list[str | None]:
    made = ("".join(rng.choices(_ALPHABET, k=rng.randrange(longest))) for _ in range(count))
    return [None if rng.random() < 0.1 else text for text in made]


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string()], ids=str)
def test_same_as_text_by_text(arrow_type: pa.DataType) -> None:
    rng = random.Random(5)
    for count, longest in ((0, 5), (1, 5), (300, 3), (300, 12), (2000, 2)):
        whole = pa.array(_texts(rng, count, longest), arrow_type)
        for values in (whole, whole.slice(count // 3), whole.slice(count // 3, count // 2)):
            for wanted in _WANTED:
                expected = pc.match_substring(values, pattern=wanted)
                assert patterns.contains(values, pattern=wanted).equals(expected), (count, longest, wanted)


def test_a_text_across_two_rows_is_in_none() -> None:
    values = pa.array(["xa", "bx", "xab", "", "ab", "a", "", "b"])
    assert patterns.contains(values, pattern="ab").to_pylist() == [False, False, True, False, True, False, False, False]


def test_bytes_under_a_null_are_not_found() -> None:
    offsets, data = pa.py_buffer(pa.array([0, 3, 6], pa.int32()).buffers()[1]), pa.py_buffer(b"abcabc")
    values = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), offsets, data])
    assert patterns.contains(values, pattern="abc").to_pylist() == [None, True]


def test_few_finds_need_no_search_text_by_text(monkeypatch: pytest.MonkeyPatch) -> None:
    values = pa.array([f"text {number}" for number in range(1000)])
    expected = pc.match_substring(values, pattern="77")
    monkeypatch.setattr(patterns, "pc", None)
    assert patterns.contains(values, pattern="77").equals(expected)


@pytest.mark.parametrize("block", [8, 64, 1 << 18])
def test_places_are_those_of_a_plain_search(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few letters, across the edges of blocks; what is sought is short, or longer than what is tested at once."""
    monkeypatch.setattr(patterns, "_BLOCK", block)
    rng = random.Random(7)
    for number in range(1500):
        text = bytes(rng.choices(b"abc", k=rng.randrange(400)))
        start = rng.randrange(len(text) + 1)
        wanted = text[start : start + rng.randrange(1, 60)] or b"a"
        if number % 3 == 0:
            wanted = bytes(rng.choices(b"abc", k=rng.randrange(1, 4)))
        expected = [at for at in range(len(text)) if text.startswith(wanted, at)]
        found = patterns._places(np.frombuffer(text, np.uint8), wanted, limit=len(text))
        assert found is not None
        assert found.tolist() == expected, (text, wanted)


def test_many_places_are_left_to_arrow() -> None:
    assert patterns._places(np.frombuffer(b"ab" * 100, np.uint8), b"ab", limit=99) is None


def test_like_with_a_text_anywhere_is_a_search() -> None:
    values = pa.array(["a%b", "xa%by", "a_b", None, "A%B", "ab\nab"])
    for pattern, plain in (("%ab%", "ab"), ("%a\\%b%", "a%b"), ("%\n%", "\n"), ("%a\\_b%", "a_b")):
        found = patterns.match_like(values, pa.scalar(pattern), ignore_case=False, escape="\\")
        assert found.equals(pc.match_substring(values, pattern=plain)), pattern


def test_texts_in_chunks_and_alone() -> None:
    assert patterns.contains(pa.chunked_array([["ab", "b"], ["cab"]]), pattern="ab").to_pylist() == [True, False, True]
    assert patterns.contains(pa.scalar("cab"), pattern="ab").as_py() is True
