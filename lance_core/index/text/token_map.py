"""The tokens of a partition: text to number, looked up in the stored map, listed only on request.

::

    part_N_tokens.lance     one row: _token_fst_bytes large_binary, _token_next_id u32, _token_total_length u64
    or, older               _token utf8, _token_id u32
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import fields_schema, numbers_of
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError
from lance_core.file.open_file import OpenFile
from lance_core.index.base import read_all
from lance_core.index.text.fst import decode_fst, decode_fst_flat, encode_fst, find_in_fst, require_checksum
from lance_core.kernels.fingerprints import key_tokens
from lance_core.kernels.text import mark_similar

_KEPT = 4096
"""Tokens of questions whose numbers are kept for each map."""
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


def flat_tokens(tokens: Sequence[bytes]) -> tuple[Any, Any]:
    """Tokens one after the other (uint8, with 8 bytes to spare), where they begin and the end (int64)."""
    offsets = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, tokens), np.int64, len(tokens)), out=offsets[1:])
    return np.frombuffer(b"".join(tokens) + bytes(8), np.uint8), offsets


def keys_of(letters: Any, offsets: Any) -> Any:
    """The key of each of such tokens: uint64, odd."""
    keys = np.empty(len(offsets) - 1, np.uint64)
    key_tokens(letters, offsets, _MASKS, keys)
    return keys


def token_table(vocabulary: Mapping[str, int]) -> pa.Table:
    """The columns of the file."""
    ordered = sorted((token.encode(), number) for token, number in vocabulary.items())
    data = encode_fst([token for token, _ in ordered], (number for _, number in ordered))
    total = sum(len(token) for token, _ in ordered)
    schema = fields_schema(
        [
            pa.field("_token_fst_bytes", pa.large_binary(), nullable=False),
            pa.field("_token_next_id", pa.uint32(), nullable=False),
            pa.field("_token_total_length", pa.uint64(), nullable=False),
        ]
    )
    return pa.Table.from_pylist(
        [{"_token_fst_bytes": data, "_token_next_id": len(ordered), "_token_total_length": total}], schema=schema
    )


class TokensByLetter:
    """Tokens in the order of their bytes, letter by letter, to be compared with a word."""

    def __init__(self, tokens: list[bytes]) -> None:
        self._texts = [token.decode("utf-8", "replace") for token in tokens]
        self._points = np.frombuffer("".join(self._texts).encode("utf-32-le", "replace"), np.uint32)
        self._offsets = np.zeros(len(tokens) + 1, np.int64)
        np.cumsum([len(text) for text in self._texts], out=self._offsets[1:])

    def similar(self, token: str, *, edits: int, prefix_length: int, most: int) -> list[str]:
        """The first `most` tokens so near that begin as the word does."""
        word = np.frombuffer(token.encode("utf-32-le", "replace"), np.uint32)
        marks = np.zeros(len(self._texts), np.uint8)
        mark_similar(self._points, self._offsets, word, edits, np.empty(len(word) + 1, np.int64), marks)
        near = (self._texts[place] for place in np.flatnonzero(marks).tolist())
        return [*islice((text for text in near if text.startswith(token[:prefix_length])), most)]


class TokenMap:
    """The tokens of an open partition."""

    def __init__(self, opened: OpenFile, kind: str, num_lists: int) -> None:
        self._what, self._num_lists = opened.path, num_lists
        self._fst: bytes | None = None
        self._table: pa.RecordBatch | None = None
        if kind == "arrow":
            self._table = read_all(opened, ["_token", "_token_id"])
            return
        batch = read_all(opened, ["_token_fst_bytes"])
        if batch.num_rows != 1:
            raise CorruptFileError(f"{opened.path} has {batch.num_rows} rows, expected 1")
        self._fst = batch.column(0)[0].as_py()
        self._found = lru_cache(maxsize=_KEPT)(self._find)

    @cached_property
    def numbers(self) -> dict[bytes, int]:
        """Every token with its number, ascending by bytes."""
        keys, numbers = self._entries()
        if keys and not 0 <= int(np.max(np.asarray(numbers, np.int64))) < self._num_lists:
            raise CorruptFileError(
                f"{self._what}: the list number {max(numbers)} is out of range, there are {self._num_lists} lists"
            )
        return dict(zip(keys, numbers, strict=True))

    def _entries(self) -> tuple[list[bytes], list[int]]:
        if self._fst is not None:
            return decode_fst(self._fst, what=self._what, most=self._num_lists)
        assert self._table is not None
        tokens = cast("list[str]", self._table.column(0).to_pylist())
        pairs = zip(tokens, numbers_of(self._table.column(1)), strict=True)
        ordered = sorted((token.encode(), number) for token, number in pairs)
        return [token for token, _ in ordered], [number for _, number in ordered]

    def keys_of_lists(self) -> Any:
        """What each list's token comes down to (see `key_tokens`). CorruptFileError: not each has one token of its own, or
        the map is not in order or not what its checksum says."""
        if self._fst is not None:
            require_checksum(self._fst, what=self._what)
            letters, offsets, numbers = decode_fst_flat(self._fst, what=self._what, most=self._num_lists)
        else:
            tokens, plain = self._entries()
            if any(one == other for one, other in itertools.pairwise(tokens)):
                raise CorruptFileError(f"{self._what} contains a token twice")
            letters, offsets, numbers = *flat_tokens(tokens), np.array(plain, np.uint64)
        times = np.bincount(np.minimum(numbers, self._num_lists).astype(np.int64), minlength=self._num_lists)
        if len(times) != self._num_lists or bool((times != 1).any()):
            raise CorruptFileError(f"{self._what}: {len(numbers)} tokens do not match {self._num_lists} lists")
        keys = np.empty(self._num_lists, np.uint64)
        keys[numbers.astype(np.int64)] = keys_of(letters, offsets)
        return keys

    @cached_property
    def _spelled(self) -> TokensByLetter:
        return TokensByLetter([*self.numbers])

    def similar(self, token: str, *, edits: int, prefix_length: int, most: int) -> list[str]:
        """Tokens at most so many edits away, in the order of their bytes."""
        return self._spelled.similar(token, edits=edits, prefix_length=prefix_length, most=most)

    def get(self, token: str) -> int | None:
        """The number of a token, None when no document has it."""
        if self._fst is None or "numbers" in self.__dict__:
            return self.numbers.get(token.encode())
        return self._found(token)

    def _find(self, token: str) -> int | None:
        assert self._fst is not None
        number = find_in_fst(self._fst, token.encode(), what=self._what)
        if number is not None and number >= self._num_lists:
            raise CorruptFileError(
                f"{self._what}: the list number {number} is out of range, there are {self._num_lists} lists"
            )
        return number
