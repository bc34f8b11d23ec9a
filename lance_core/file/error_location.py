"""Errors about bytes say where the bytes are: the file, then the column and the page.

data/a.lance: column 'x', page 2: chunk 7 ends behind the page's data
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lance_core.errors import CorruptFileError, FormatError, LanceError
from lance_core.shortage import ARROW_ERRORS, shortage_of

# What damaged bytes can provoke in numpy, Arrow and decompressors when a check before them was not strict enough.
_DAMAGE = (
    IndexError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    ZeroDivisionError,
    RecursionError,
    AssertionError,
    struct.error,
    *ARROW_ERRORS,
)


@contextmanager
def located(path: str, *, column: str | None = None, page: int | str | None = None) -> Iterator[None]:
    """Errors raised inside name the file, and the column and page (or pages, "0-3") when given.

    Anything unforeseen is damage, but a shortage of memory, which says nothing about the bytes.
    """
    try:
        yield
    except FormatError as error:
        if (told := shortage_of(error)) is not None:
            raise told from error
        raise _moved(error, _where(path, column, page)) from error
    except LanceError:
        raise
    except (*_DAMAGE, MemoryError) as error:
        told = shortage_of(error)
        if told is not None:
            raise told from error
        raise CorruptFileError(
            f"{_where(path, column, page)}: the bytes cannot be decoded ({type(error).__name__}: {error})",
            cure="Restore the file from a copy, or delete its fragment.",
        ) from error


def _where(path: str, column: str | None, page: int | str | None) -> str:
    text = path
    if column is not None:
        text += f": column {column!r}"
    if page is not None:
        text += f"{',' if column is not None else ':'} page {page}"
    return text


def _moved(error: FormatError, where: str) -> FormatError:
    # An inner reader may already have said it, and more exactly.
    if str(error).startswith(where.split(":", 1)[0] + ":"):
        return error
    moved = type(error)(f"{where}: {error}")
    moved.cure = error.cure
    return moved


def span(numbers: Iterable[int]) -> str | None:
    """Pages as an error names them: "7", "0-3", None for none."""
    found = sorted(set(numbers))
    if not found:
        return None
    return str(found[0]) if len(found) == 1 else f"{found[0]}-{found[-1]}"
