"""The rows that a decorated function returned, as the source of a job: what is written, without where it is kept in the
meantime.

::

    returned_source(name="d-r-t--1", function=load, arguments=(["2013-01-01"], {}))
        -> {"callable": "airflow_lance.execution.returned_source:read_returned",
            "kwargs": {"name": "5c0d…", "function": "dags.flights.load", "arguments": "9f8e…"}}

The description is the same on every machine and for every try, but another one when the arguments changed.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

from lance_core.errors import InputError

READER = "airflow_lance.execution.returned_source:read_returned"
ROWS = "rows.arrow"
_TOLD_BY_TEXT = (date, time, timedelta, Decimal, PurePath, UUID)


def returned_source(*, name: str, function: Callable[..., Any], arguments: object) -> dict[str, Any]:
    """The source of a job that writes what a function returned."""
    inner = getattr(function, "__wrapped__", function)
    text = json.dumps(_plain(arguments), sort_keys=True, ensure_ascii=True)
    kwargs = {
        "name": _digest(name),
        "function": str(getattr(inner, "__qualname__", "")),
        "arguments": hashlib.sha256(text.encode()).hexdigest(),
    }
    return {"callable": READER, "kwargs": kwargs}


def read_returned(*, name: str, function: str, arguments: str) -> Any:
    """The rows that `private_folder` holds, as a dataset. InputError when the task that had them is over, and for rows that
    another user of the machine may have put there."""
    import pyarrow.dataset as ds

    folder = _folder(name)
    _require_private(folder)
    path = folder / ROWS
    if not path.exists():
        raise InputError(
            f"the rows that {function} returned were only kept on the worker while its task ran",
            cure="Clear the task, so that it calls the function again.",
        )
    return ds.dataset(str(path), format="ipc")


@contextmanager
def private_folder(name: str) -> Iterator[Path]:
    """A folder of this user whose path follows from a name; it is empty at first, and removed afterwards."""
    folder = _folder(_digest(name))
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise _not_ours(folder) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _require_private(folder: Path) -> None:
    """InputError unless a folder is absent, or one that nobody but this user can have filled.

    Its path follows from names that others know, and the folder for temporary files is everybody's.
    """
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise _not_ours(folder)


def _not_ours(folder: Path) -> InputError:
    return InputError(
        f"{str(folder)!r} is not a folder that only this user can write to, so its rows may be another user's",
        cure="Remove it, or set TMPDIR to a folder of this user alone.",
    )


def _folder(digest: str) -> Path:
    return Path(tempfile.gettempdir()) / f"lance-{_digest(getpass.getuser() + digest)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: object) -> Any:
    """A value as JSON that is the same in every process; of an object that has no such text, its type."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=str)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, _TOLD_BY_TEXT):
        return str(value)
    return f"<{type(value).__module__}.{type(value).__qualname__}>"
