"""The store protocol: the operations that a table needs from its store.

A store is rooted at a uri; `path` is always relative to that root, with forward slashes, and never escapes it (`..`,
absolute paths and drive letters are refused with InputError before any IO). All calls are synchronous and thread-safe;
they release the GIL while they wait. Errors are NotFoundError, AlreadyExistsError, PreconditionError or StoreError, and
never carry credentials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lance_core.fetch import Buffer, ByteRange


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One object of a listing: path below the store's root, size in bytes, seconds since the epoch when last changed.

    `tag` stands for the content where the store keeps one (an ETag, by `plain_tag`): the same tag at the same path, the same
    bytes.
    """

    path: str
    size: int
    modified: float
    tag: str | None = None


def plain_tag(tag: str | None) -> str | None:
    """A tag without its quotes: Azure has them in a header, and in a listing it has none."""
    return None if tag is None else tag.strip('"')


class StoreWriter(Protocol):
    """A file being written front to back; nobody sees it before `close`."""

    def write(self, data: Buffer) -> None:
        """Append bytes."""

    def close(self) -> None:
        """Make the file visible, durably."""

    def abort(self) -> None:
        """Throw the bytes away; a no-op after `close`."""


@runtime_checkable
class Store(Protocol):
    """Where a table lives."""

    @property
    def uri(self) -> str:
        """The root as users know it, without credentials."""

    @property
    def has_put_if_absent(self) -> bool:
        """Whether `put_if_absent` is really conditional here; a table without it refuses to commit."""

    @property
    def is_local(self) -> bool:
        """Whether reads cost microseconds, so that small ones are not worth a thread."""

    @property
    def is_wide(self) -> bool:
        """Whether each range of a call is a request that a thread waits for, so that ranges are handed out one by one."""

    def get(self, path: str) -> Buffer:
        """A whole object. NotFoundError when there is none, UnsupportedFeatureError when it is larger than `io.limits` lets
        an object of its name be: each engine asks for no more than that."""

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """One buffer per range, in order. CorruptFileError when a range is beyond the end."""

    def size(self, path: str) -> int:
        """Bytes in an object. NotFoundError when there is none."""

    def stat(self, path: str) -> StoreEntry:
        """What a listing says of an object, with its tag where the store keeps one. NotFoundError when there is none."""

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Write an object as a whole, atomically, replacing what was there.

        `durable=False`: it may be lost or empty after the machine (not the process) dies; for what can be found out again.
        """

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Write an object as a whole unless something is there already: then AlreadyExistsError, nothing changed."""

    def copy_if_absent(self, source: str, target: str) -> None:
        """Copy within the store unless the target exists: then AlreadyExistsError."""

    def open_writer(self, path: str) -> StoreWriter:
        """Stream a new object; visible at close."""

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """All objects whose path starts with `prefix` (a folder name ending in "/", or "" for all), recursively."""

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Temporary objects that `list` hides: of writers at work, or dead. `delete` removes them."""

    def list_names(self, folder: str) -> Sequence[str]:
        """Names directly in a folder (objects only, no sub-folders), unsorted; [] when there is no such folder."""

    def list_folders(self, folder: str) -> Sequence[str]:
        """Names of the folders directly in a folder, sorted; [] when there is no such folder."""

    def delete(self, path: str) -> None:
        """Remove an object; removing one that is not there is not an error."""

    def child(self, path: str) -> Store:
        """A store rooted at a sub-folder of this one."""
