"""Tags: names for versions, one small JSON file each.

::

    _refs/tags/v1.json   {"branch":null,"version":3,"createdAt":"…Z","updatedAt":"…Z","manifestSize":1820,"metadata":{}}

(Spec: FORMAT C.3.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_core.errors import CorruptFileError, InputError, NotFoundError
from lance_core.io.store import Store

TAGS = "_refs/tags"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Tag:
    """What a tag points at. Times are as the file has them (ISO 8601, UTC); `manifest_size` in bytes."""

    name: str
    version: int
    branch: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    manifest_size: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


def tag_path(name: str) -> str:
    """Path of a tag's file below the table. Raises InputError for a name that is none."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith((".", ".lock")):
        raise InputError(f"{name!r} is no name for a tag", cure="Use letters, digits, dots, dashes and underscores.")
    return f"{TAGS}/{name}.json"


def read_tag(store: Store, name: str) -> Tag:
    """The tag of that name. NotFoundError when there is none."""
    path = tag_path(name)
    try:
        data = bytes(store.get(path))
    except NotFoundError:
        known = ", ".join(sorted(tag_names(store))) or "none"
        raise NotFoundError(f"{store.uri} has no tag {name!r}", uri=store.uri, cure=f"Its tags: {known}.") from None
    return decode_tag(name, data, where=f"{store.uri}: {path}")


def decode_tag(name: str, data: bytes, *, where: str) -> Tag:
    """A tag from its file's bytes. CorruptFileError when they are no tag."""
    try:
        plain = json.loads(data)
        return Tag(
            name=name,
            version=int(plain["version"]),
            branch=plain.get("branch"),
            created_at=plain.get("createdAt"),
            updated_at=plain.get("updatedAt"),
            manifest_size=int(plain.get("manifestSize") or 0),
            metadata=plain.get("metadata") or {},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"{where} is not a tag: {error}") from error


def tag_names(store: Store) -> list[str]:
    """Names of all tags, unsorted; one listing, no reads."""
    return [name[:-5] for name in store.list_names(f"{TAGS}/") if name.endswith(".json")]


def list_tags(store: Store) -> dict[str, Tag]:
    """All tags by name, sorted by name."""
    return {name: read_tag(store, name) for name in sorted(tag_names(store))}
