"""Names of namespaces and tables: lists of parts, their texts, and what a part may be. Pure.

::

    parse_name("sales.orders")          ("sales", "orders")
    parse_name("v1.2$orders")           ("v1.2", "orders"): where a `$` occurs, only it separates
    format_name(("sales", "orders"))    "sales.orders", which parse_name takes apart again
    object_id(("sales", "orders"))      "sales$orders", as catalogs store it

A part ends up in the name of a folder, so that one with a `/`, a `..` or an escape could refer to another place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lance_core.errors import InputError, WrongTypeError

DELIMITER = "$"
"""Between the parts of an object's id, in catalogs and in REST paths."""
MANIFEST_TABLE = "__manifest"
"""The folder of a directory catalog's own table."""

MAX_PART = 200
MAX_DEPTH = 32
_PLAIN = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_ .+=@-]*[A-Za-z0-9_+=@-])?")

TableId = tuple[str, ...]


def parse_name(text: str) -> TableId:
    """The parts of a written name, separated by dots, or by `$` where one occurs. InputError for an empty part."""
    parts = tuple(part.strip() for part in text.strip().split(DELIMITER if DELIMITER in text else "."))
    if not all(parts):
        raise InputError(f"{text!r} is not the name of a table: a part of it is empty", cure="Write namespace.table.")
    return parts


def format_name(parts: TableId) -> str:
    """A name as people write it: with dots, or with `$` where a part holds a dot."""
    return object_id(parts) if any("." in part for part in parts) else ".".join(parts)


def object_id(parts: Iterable[str]) -> str:
    """The parts as a catalog stores them."""
    return DELIMITER.join(parts)


def parts_of(object_id: str) -> TableId:
    """The parts of a stored id; none for the root."""
    return tuple(object_id.split(DELIMITER)) if object_id else ()


def as_id(value: object, *, what: str = "table_id", may_be_root: bool = False) -> TableId:
    """The parts of an id that a caller passed as a list. WrongTypeError for another type, InputError for an empty one."""
    if value is None and may_be_root:
        return ()
    if isinstance(value, str) or not isinstance(value, (list, tuple)) or not all(isinstance(part, str) for part in value):
        raise WrongTypeError(f"{what} must be a list of texts, got {value!r}", cure='Write ["namespace", "table"].')
    if not value and not may_be_root:
        raise InputError(f"{what} is empty", cure='Write ["namespace", "table"].')
    if len(value) > MAX_DEPTH:
        raise InputError(f"{what} has {len(value)} parts, and a catalog has at most {MAX_DEPTH} levels")
    if not all(value):
        raise InputError(f"{what} {list(value)!r} has an empty part")
    return tuple(value)


def require_plain(parts: TableId, *, what: str) -> None:
    """InputError for a part that may not name a new table or namespace, since it could not safely name a folder."""
    for part in parts:
        if len(part) > MAX_PART:
            raise InputError(f"{what} {part[:40]!r}... has {len(part)} characters", cure=f"At most {MAX_PART} are possible.")
        if _PLAIN.fullmatch(part) is None or part == MANIFEST_TABLE:
            raise InputError(
                f"{part!r} cannot be the name of a {what}",
                cure="Use ASCII letters, digits, blanks and _ . + = @ -, beginning with a letter, a digit or _, and ending "
                "with none of blank and dot.",
            )


def require_inside(location: str, *, uri: str) -> str:
    """A location below a catalog's root, as it is stored there. InputError where it would be another place."""
    parts = location.split("/")
    is_relative = not location.startswith(("/", "\\", "~")) and "://" not in location and ":" not in parts[0]
    if not location or not is_relative or "\\" in location or any(part in ("", ".", "..") for part in parts):
        raise InputError(f"{uri}: the location {location!r} is not a place below the catalog's root", uri=uri)
    if parts[0] == MANIFEST_TABLE or any(ord(char) < 32 for char in location):
        raise InputError(f"{uri}: the location {location!r} is reserved", uri=uri)
    return location
