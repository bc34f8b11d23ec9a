"""Small JSON records on a store: read whole, written whole. The registry and the ledger are made of these.

A record is data from anyone who may write to the table, so there is one reader for all of them, and it bounds what it
accepts::

    {"format": 2, "outcome": "publish", "commit": "9c…"}      at most 4 MiB, 32 levels deep, no NaN, an object
    {"format": 99, …}                                         UnsupportedRecordError: a newer release has written it
    anything else                                             CorruptFileError, of this record alone

A damaged record may count as absent, and be removed; one of a newer release may not: commits refuse it, and whatever removes
things stops. Other JSON files of a table (tags, branches) have readers of their own.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeGuard, TypeVar

from lance_core.errors import AlreadyExistsError, CorruptFileError, NotFoundError, StoreError, UnsupportedRecordError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.typed import Rules, from_plain, shown

log = logging.getLogger(__name__)

T = TypeVar("T")

Record = Mapping[str, Any]

FORMAT = 2
"""Written as `format` into every record."""

MAX_RECORD_SIZE = 4 << 20
_MAX_DEPTH = 32
_MAX_INTEGER = (1 << 64) - 1


def read_record(store: Store, path: str) -> Record | None:
    """The record at a path, None when there is none.

    CorruptFileError when it is not a JSON object, UnsupportedRecordError when a newer release has written it.
    """
    try:
        data = store.get(path)
    except NotFoundError:
        return None
    if not len(data):
        return None  # a machine died before an undurable write reached the disk
    return decode_record(bytes(data), where=f"{store.uri}: {path}")


def read_as(store: Store, path: str, cls: type[T]) -> T | None:
    """The record at a path as its dataclass (see `read_record` and `parse_record`)."""
    record = read_record(store, path)
    return None if record is None else parse_record(cls, record, where=path)


def unless_damaged(store: Store, read: Callable[[], T]) -> T | None:
    """What `read` gives; None, and a warning, for a damaged record."""
    try:
        return read()
    except CorruptFileError as error:
        log.warning("%s: set aside: %s", store.uri, error)
        return None


def decode_record(data: bytes, *, where: str) -> Record:
    """The record in some bytes; for errors see `read_record`."""
    record = decode_object(data, where=where)
    found = record.get("format", FORMAT)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= FORMAT:
        raise unsupported(where, "format", expected=f"at most {FORMAT}", got=found)
    return record


def unsupported(where: str, key: str, *, expected: str, got: object) -> UnsupportedRecordError:
    """The refusal of a record whose format or decision only a newer release knows."""
    return UnsupportedRecordError(
        f"{where}: {key}: expected {expected}, got {shown(got)}; nothing that it may speak of is committed or removed",
        cure="It was written by a newer release of this library: upgrade this one.",
    )


def decode_object(data: bytes, *, where: str) -> Record:
    """The small JSON object in some bytes, whosever it is. CorruptFileError for anything else."""
    if len(data) > MAX_RECORD_SIZE:
        raise CorruptFileError(f"{where} has {len(data)} bytes, the limit for a record is {MAX_RECORD_SIZE}")
    try:
        record = json.loads(data, parse_constant=_refuse_constant)
        is_deep = data.count(b"{") + data.count(b"[") > _MAX_DEPTH < _depth(record)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"{where} is not JSON: {error}") from error
    if is_deep:
        raise CorruptFileError(f"{where} is nested more than {_MAX_DEPTH} levels deep")
    if not isinstance(record, dict):
        raise CorruptFileError(f"{where} is not a JSON object")
    return record


def _depth(value: object) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def write_record(store: Store, path: str, record: Record) -> None:
    """Write or replace a record."""
    store.put(path, encode_record(record))


def add_record(store: Store, path: str, record: Record) -> Record | None:
    """Write a record unless one is there: None if it was written, else the existing one.

    A lost response is settled by reading back: if the object has our content, we wrote it.
    """
    data = encode_record(record)
    try:
        store.put_if_absent(path, data)
        return None
    except StoreError as error:
        found = read_record(store, path)
        if found is None:
            if not isinstance(error, AlreadyExistsError):
                raise
            store.put(path, data)
            return None
    return None if found == json.loads(data) else found


def read_records(store: Store, paths: Sequence[str]) -> list[Record | None]:
    """Many records at once, in order."""
    return each(store, paths, read_record)


def encode_record(record: Record) -> bytes:
    """The bytes of a record."""
    # Keys stay in their order: that of new columns, say, is part of what a spec means.
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class TableIdRecord:
    """`table.json`: which table the records belong to, and a version that shows it."""

    table_id: str
    version: int = 0
    transaction: str = ""


def work_digest(work: Mapping[str, Any]) -> str:
    """The whole SHA-256 of a spec that says the work alone."""
    text = json.dumps(work, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def is_same_work(one: str, other: str) -> bool:
    """Whether two digests mean the same work. What has no digest (noted by hand, found in use) matches any."""
    return not one or not other or one == other


def parse_record(cls: type[T], plain: Mapping[str, Any], *, where: str) -> T:
    """A record as its dataclass. CorruptFileError names the key that is missing or of another type."""
    try:
        return from_plain(cls, plain, RULES)
    except ValueError as error:
        raise CorruptFileError(f"{where}: {error}") from error


def _is_integer(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if _is_integer(value):
        return bool(abs(value) <= _MAX_INTEGER)
    return isinstance(value, float) and math.isfinite(value)


def _scalar(is_right: Callable[[Any], bool], expected: str) -> Callable[[object, str], Any]:
    def check(value: object, where: str) -> Any:
        if not is_right(value):
            raise ValueError(f"{where}: expected {expected}, got {shown(value)}")
        return value

    return check


_NUMBER = _scalar(_is_number, "a number")

RULES = Rules(
    {
        str: _scalar(lambda value: isinstance(value, str), "text"),
        int: _scalar(lambda value: _is_integer(value) and 0 <= value <= _MAX_INTEGER, "an integer from 0 to 2^64-1"),
        float: lambda value, where: float(_NUMBER(value, where)),
        bool: _scalar(lambda value: isinstance(value, bool), "a boolean"),
    },
    is_closed=False,
)
"""What a record may hold; keys that are no fields are those of a newer release."""
