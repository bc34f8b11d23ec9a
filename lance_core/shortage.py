"""A shortage of memory is reported as what it is, never as damage, a wrong input or a fault of the store.

::

    malloc of size 33554432 failed          -> MemoryShortageError, at every verb of a handle, a scan and a job
    a claim of 8 EiB in a file              -> no shortage: nobody has that, so it is what damaged bytes say

The limits of this process and the settings that help stand in the error. `BATCH_BYTES` is the first of them.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa

from lance_core.errors import FormatError, InputError, LanceError, MemoryShortageError, StoreError

T = TypeVar("T")
C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

ARROW_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    pa.ArrowCapacityError,
    pa.ArrowSerializationError,
)
"""What Arrow raises about values, types and bytes. `pa.ArrowException` is a shortage of memory too: nobody catches it."""

BATCH_VARIABLE = "LANCE_BATCH_BYTES"
_BATCH_BYTES = 64 << 20
IMPOSSIBLE_BYTES = 1 << 40
"""Nobody has so much memory for one array: a request of this size comes from a number that is wrong."""

_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_SIZE = re.compile(r"size (\d+)|(\d[\d.]*) (EiB|PiB|TiB)")
_PACKERS = frozenset(["zstandard", "zstd", "lz4", "_lz4"])
"""Libraries whose errors have no class for a shortage, only a text."""
_MEMORY_TEXTS = (
    "not enough memory",
    "can't start new thread",
    "cannot allocate memory",
    "bad_alloc",
    "allocation error",
    "failed to map segment",
)


def batch_bytes() -> int:
    """How many bytes a batch of rows takes at most, by the sizes of the rows before it: `LANCE_BATCH_BYTES`, else 64 MiB."""
    given = os.environ.get(BATCH_VARIABLE, "")
    return max(1, int(given)) if given.isdecimal() else _BATCH_BYTES


def is_shortage(error: BaseException) -> bool:
    """Whether this error, by itself, says that memory (or a thread, which takes some) was not to be had."""
    if isinstance(error, MemoryError):
        return not is_impossible(error)
    return _says(error, errno.ENOMEM, *_MEMORY_TEXTS)


def is_impossible(error: BaseException) -> bool:
    """Whether an error is about an amount of memory that no machine has."""
    found = _SIZE.search(str(error))
    return found is not None and (found[1] is None or int(found[1]) >= IMPOSSIBLE_BYTES)


def _says(error: BaseException, number: int, *texts: str) -> bool:
    if isinstance(error, LanceError):
        return False
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == number
    if (
        not isinstance(error, OSError | ImportError | RuntimeError)
        and type(error).__module__.partition(".")[0] not in _PACKERS
    ):
        return False
    text = str(error)
    return len(text) < 1000 and any(words in text.lower() for words in texts)


def shortage_of(error: BaseException) -> LanceError | None:
    """The shortage behind an error, which may have been taken for damage on its way; None for no shortage.

    MemoryShortageError, or a StoreError where a library could not be loaded for want of file handles.
    """
    if isinstance(error, MemoryShortageError):
        return error
    seen: BaseException | None = error
    if isinstance(error, LanceError):
        if not isinstance(error, FormatError | InputError | StoreError):
            return None  # what became of a commit is said by its own error
        seen = error.__cause__
    for _ in range(8):
        if seen is None:
            return None
        if isinstance(seen, MemoryShortageError):
            return seen
        if is_shortage(seen):
            return _memory_shortage(seen)
        if not isinstance(error, LanceError):
            told = _handle_shortage(seen)
            if told is not None:
                return told
        # A library that fails to load raises again, and says less.
        seen = seen.__cause__ or (seen.__context__ if isinstance(seen, OSError | ImportError) else None)
    return None


def _handle_shortage(error: BaseException) -> StoreError | None:
    if not _says(error, errno.EMFILE, "too many open files"):
        return None
    told = ""
    with suppress(ImportError, OSError, ValueError):  # to load it takes a handle
        import resource

        told = f"; it may have {resource.getrlimit(resource.RLIMIT_NOFILE)[0]:,}"
    return StoreError(
        f"this process has no file handle left ({type(error).__name__}: {error}){told}",
        cure="Raise the limit (ulimit -n), or lower LANCE_IO_THREADS.",
    )


@contextmanager
def shortages() -> Iterator[None]:
    """A shortage that ends what is inside is a MemoryShortageError; all else passes as it is."""
    try:
        yield
    except Exception as error:
        told = shortage_of(error)
        if told is None or told is error:
            raise
        raise told from error


def tells_shortages(verb: F) -> F:
    """A function under `shortages`, which also says of a text that is none that it is one; its result is not watched."""

    @functools.wraps(verb)
    def watched(*args: Any, **kwargs: Any) -> Any:
        try:
            return verb(*args, **kwargs)
        except Exception as error:
            told = shortage_of(error) or _no_text(error)
            if told is None or told is error:
                raise
            raise told from error

    return cast("F", watched)


def _no_text(error: Exception) -> InputError | None:
    """Of a lone surrogate in a name, a value or a setting, which whatever encodes it refuses; the text may be a secret."""
    if not isinstance(error, UnicodeEncodeError):
        return None
    found = error.object[error.start : error.start + 1]
    return InputError(
        f"a text that was passed holds {found!r} at position {error.start}, which is no character and cannot be stored",
        cure="Decode it with the encoding that it has, or remove the character.",
    )


def verbs_tell_shortages(kind: C) -> C:
    """A class whose public methods are under `shortages`."""
    for name, value in [*vars(kind).items()]:
        if name.startswith("_") and name not in ("__init__", "__len__", "__arrow_c_stream__"):
            continue
        if inspect.isfunction(value):
            setattr(kind, name, tells_shortages(value))
        elif isinstance(value, staticmethod):
            setattr(kind, name, staticmethod(tells_shortages(value.__func__)))
    return kind


def told_while(items: Iterator[T]) -> Iterator[T]:
    """A stream whose shortages are reported as such."""
    with shortages():
        yield from items


def _memory_shortage(error: BaseException) -> MemoryShortageError:
    first = (str(error) or type(error).__name__).splitlines()[0]
    return MemoryShortageError(
        f"this process ran out of memory ({type(error).__name__}: {first}); {_limits()}. The table is not damaged by this",
        cure="Give the process more memory (ulimit -v, the container's limit), or let it hold less: lower "
        f"{BATCH_VARIABLE} ({batch_bytes():,}), LANCE_CACHE_BYTES, LANCE_INDEX_MEMORY_BYTES, LANCE_CPU_THREADS and "
        "LANCE_IO_THREADS, read fewer columns, or a stream (to_batches) in place of a table.",
    )


def _limits() -> str:
    parts = []
    with suppress(ImportError, OSError, ValueError):
        import resource

        for name, limit in (("address space, ulimit -v", resource.RLIMIT_AS), ("data, ulimit -d", resource.RLIMIT_DATA)):
            most = resource.getrlimit(limit)[0]
            if most != resource.RLIM_INFINITY:
                parts.append(f"{most >> 20:,} MiB ({name})")
    with suppress(OSError, ValueError):
        parts.append(f"{int(_GROUP_LIMIT.read_text(encoding='ascii')) >> 20:,} MiB (memory.max of its control group)")
    return f"it may have {', '.join(parts)}" if parts else "it has no limit of its own but what the machine has left"
