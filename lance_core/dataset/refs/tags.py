"""Tags: names for versions, one small JSON file each.

::

    _refs/tags/v1.json   {"branch":null,"version":3,"createdAt":"…Z","updatedAt":"…Z","manifestSize":1820,"metadata":{}}

(Spec: FORMAT C.3.)
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lance_core.commit.manifests import latest_version, open_version
from lance_core.dataset.refs.branches import MAIN, place_of
from lance_core.errors import AlreadyExistsError, CorruptFileError, InputError, NotFoundError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.records import decode_object

TAGS = "_refs/tags"
Reference = int | str | tuple[str | None, int | None]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class TagRef:
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
        raise InputError(f"{name!r} is not a valid tag name", cure="Use letters, digits, dots, dashes and underscores.")
    return f"{TAGS}/{name}.json"


def read_tag(store: Store, name: str) -> TagRef:
    """The tag of that name. NotFoundError when there is none."""
    path = tag_path(name)
    try:
        data = bytes(store.get(path))
    except NotFoundError:
        known = ", ".join(sorted(tag_names(store))) or "none"
        raise NotFoundError(f"{store.uri} has no tag {name!r}", uri=store.uri, cure=f"Known tags: {known}.") from None
    return decode_tag(name, data, where=f"{store.uri}: {path}")


def decode_tag(name: str, data: bytes, *, where: str) -> TagRef:
    """A tag from its file's bytes. CorruptFileError when they are no tag."""
    try:
        plain = decode_object(data, where=where)
        metadata, branch = plain.get("metadata") or {}, plain.get("branch")
        if not isinstance(metadata, dict) or not isinstance(branch, (str, type(None))):
            raise TypeError("metadata must be an object and branch a string")
        tag = TagRef(
            name=name,
            version=version_number(plain["version"]),
            branch=branch,
            created_at=plain.get("createdAt"),
            updated_at=plain.get("updatedAt"),
            manifest_size=int(plain.get("manifestSize") or 0),
            metadata=metadata,
        )
        _moment(tag.created_at), _moment(tag.updated_at)
        return tag
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptFileError(f"{where} is not a tag: {error}") from error


def version_number(value: object) -> int:
    """A version as JSON has it. ValueError for what no version can be."""
    number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else -1
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{value!r} is not a version")
    return number


def tag_names(store: Store) -> list[str]:
    """Names of all tags, unsorted; one listing, no reads."""
    return [name[:-5] for name in store.list_names(f"{TAGS}/") if name.endswith(".json")]


def list_tags(store: Store) -> dict[str, TagRef]:
    """All tags by name, sorted by name."""
    names = sorted(tag_names(store))
    return dict(zip(names, each(store, names, read_tag), strict=True))


def create_tag(
    store: Store, name: str, version: int, *, branch: str | None = None, metadata: Mapping[str, Any] | None = None
) -> TagRef:
    """Name a version. AlreadyExistsError when the name is taken, NotFoundError when there is no such version."""
    size = open_version(place_of(store, branch), version).size
    now = _now()
    tag = TagRef(
        name, version, branch=branch, created_at=now, updated_at=now, manifest_size=size, metadata=dict(metadata or {})
    )
    try:
        store.put_if_absent(tag_path(name), encode_tag(tag))
    except AlreadyExistsError as error:
        raise AlreadyExistsError(
            f"{store.uri}: there is already a tag {name!r}",
            uri=store.uri,
            version=version,
            cure=f"Choose another name, or move it: `lance tags update {store.uri} {name} {version}`.",
        ) from error
    return tag


def update_tag(
    store: Store, name: str, version: int, *, branch: str | None = None, metadata: Mapping[str, Any] | None = None
) -> TagRef:
    """Point an existing tag at another version; `metadata` is added to what it has."""
    found = read_tag(store, name)
    size = open_version(place_of(store, branch), version).size
    merged = {**found.metadata, **(metadata or {})}
    tag = replace(found, version=version, branch=branch, updated_at=_now(), manifest_size=size, metadata=merged)
    store.put(tag_path(name), encode_tag(tag))
    return tag


def delete_tag(store: Store, name: str) -> None:
    """Forget a name; the version stays. NotFoundError when there is no such tag."""
    read_tag(store, name)
    store.delete(tag_path(name))


def encode_tag(tag: TagRef) -> bytes:
    """The bytes of a tag's file, as the official library writes them."""
    plain = {
        "branch": tag.branch,
        "version": tag.version,
        "createdAt": tag.created_at,
        "updatedAt": tag.updated_at,
        "manifestSize": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }
    return json.dumps(plain, indent=2).encode()


def _now() -> str:
    return dt.datetime.now(dt.timezone.utc).isoformat().replace("+00:00", "Z")


class Tags:
    """`LanceDataset.tags`: names for the versions of one table and its branches."""

    def __init__(self, store: Store, version: int, *, branch: str | None = None) -> None:
        self._store = store
        self._version = version
        self._branch = branch

    def list(self) -> dict[str, dict[str, Any]]:
        """All tags: {name: {"version", "branch", "created_at", "updated_at", "manifest_size", "metadata"}}."""
        return {name: _described(tag) for name, tag in list_tags(self._store).items()}

    def list_ordered(self, order: str | None = None) -> Sequence[tuple[str, dict[str, Any]]]:
        """All tags by version, the highest first ("desc", the default) or last ("asc"); those of one version by name.

        InputError for any other order.
        """
        if order not in (None, "asc", "desc"):
            raise InputError(f"unknown order {order!r}", cure="Use asc or desc.")
        by_name = sorted(self.list().items())
        return sorted(by_name, key=lambda item: item[1]["version"], reverse=order != "asc")

    def replace_metadata(self, tag: str, metadata: Mapping[str, Any]) -> None:
        """Exchange what is written down about a tag; where it points, and when it was moved, stays."""
        found = replace(read_tag(self._store, tag), metadata=dict(metadata))
        self._store.put(tag_path(tag), encode_tag(found))

    def get_version(self, tag: str) -> int:
        """The version a tag points at."""
        return read_tag(self._store, tag).version

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Name a version (a number, another tag, or (branch, number); None: the handle's)."""
        branch, version = self._resolve(reference)
        create_tag(self._store, tag, version, branch=branch)

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Point a tag at another version."""
        branch, version = self._resolve(reference)
        update_tag(self._store, tag, version, branch=branch)

    def delete(self, tag: str) -> None:
        """Forget a tag; the version stays."""
        delete_tag(self._store, tag)

    def _resolve(self, reference: Reference | None) -> tuple[str | None, int]:
        """(branch, version) of a reference; a plain number is one of the handle's branch."""
        if reference is None:
            return self._branch, self._version
        if isinstance(reference, int) and not isinstance(reference, bool):
            return self._branch, reference
        if isinstance(reference, str):
            found = read_tag(self._store, reference)
            return found.branch, found.version
        if isinstance(reference, tuple) and len(reference) == 2:
            branch = None if reference[0] == MAIN else reference[0]
            if reference[1] is not None:
                return branch, reference[1]
            return branch, latest_version(place_of(self._store, branch))
        raise InputError(f"a version must be a number, a tag or (branch, number), got {reference!r}")


def _described(tag: TagRef) -> dict[str, Any]:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": _moment(tag.created_at),
        "updated_at": _moment(tag.updated_at),
        "manifest_size": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }


_FRACTION = re.compile(r"(\.\d{6})\d+")


def _moment(text: str | None) -> dt.datetime | None:
    """ISO 8601 with up to nanoseconds, which Python's reader does not take."""
    if text is not None and not isinstance(text, str):
        raise TypeError(f"a time must be a string, got {text!r}")
    return None if text is None else dt.datetime.fromisoformat(_FRACTION.sub(r"\1", text).replace("Z", "+00:00"))
