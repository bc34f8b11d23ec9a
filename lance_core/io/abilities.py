"""What some stores can do beside the `Store` protocol. A caller asks by class and has a slower way for the others.

::

    if isinstance(store, DeletesMany): store.delete_many(paths)     else: each path by itself

A wrapper (`io.wrapped`) has none of these, so that every call goes through what it counts or breaks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Sequence

from lance_core.fetch import Buffer, JointBuffers, ManyRanges
from lance_core.io.store import StoreEntry


class DeletesMany(ABC):
    """Removes many objects for the price of one call."""

    __slots__ = ()

    @abstractmethod
    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects, in no certain order where the store is wide; killed, any of them may be left."""


class ListsInOrder(ABC):
    """Lists the names of a folder in their order, from anywhere on."""

    __slots__ = ()

    @property
    @abstractmethod
    def lists_in_order(self) -> bool:
        """Whether the store itself sorts: a folder with thousands of names costs one request then, else all pages."""

    @abstractmethod
    def first_entries(self, folder: str) -> tuple[Sequence[StoreEntry], bool]:
        """The first page of a folder's objects, and whether that is all."""

    @abstractmethod
    def names_after(self, folder: str, name: str, *, most: int | None = None) -> Sequence[str]:
        """Names in a folder that sort behind `name`, in order; at most `most`."""


class SharesContent(ABC):
    """Gives one content many names: a local disk makes a file in a quarter of a millisecond, a name in microseconds."""

    __slots__ = ()

    @abstractmethod
    def put_same_if_absent(self, paths: Sequence[str], data: Buffer, *, durable: bool = True) -> list[str]:
        """Write the same bytes at many paths of one folder; returns those at which there was something already."""


class ReadsScattered(ABC):
    """Reads many small ranges of a file without a buffer for each."""

    __slots__ = ()

    @abstractmethod
    def get_scattered(self, path: str, asked: Sequence[ManyRanges]) -> Generator[JointBuffers, None, None]:
        """One answer for each of `asked`; its memory is used again once the caller has dropped it."""
