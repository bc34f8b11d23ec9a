"""One bit of a file is flipped, something is asked, the file is put back.

::

    found, is_noticed = ask_flipped(path, rng, lambda: table.to_table(filter="i = 7"))
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from lance_core.io.cache import shared_cache

T = TypeVar("T")


@contextmanager
def flipped(path: Path, rng: random.Random, *, bytes_in_five: int = 0, zeroed: int = 0) -> Iterator[None]:
    """A bit at random is flipped (or, in so many of five cases, a byte is another); the `zeroed` bytes there are zero."""
    whole = path.read_bytes()
    data = bytearray(whole)
    at = rng.randrange(len(data))
    data[at] ^= rng.randrange(1, 256) if rng.randrange(5) < bytes_in_five else 1 << rng.randrange(8)
    if zeroed:
        data[at : at + zeroed] = bytes(len(data[at : at + zeroed]))
    path.write_bytes(data)
    shared_cache().clear()
    try:
        yield
    finally:
        path.write_bytes(whole)
        shared_cache().clear()


def ask_flipped(path: Path, rng: random.Random, ask: Callable[[], T], *, bytes_in_five: int = 0) -> tuple[T, bool]:
    """(the answer, whether it was told that an index is left out)."""
    with flipped(path, rng, bytes_in_five=bytes_in_five), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = ask()
    return found, any("not used" in str(item.message) for item in told)
