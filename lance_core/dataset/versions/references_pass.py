"""One pass over the manifests of a branch: the old ones, and the files that kept and removed versions need.

::

    1,000 versions of 10,000 fragments      each manifest is read once and dropped again; equal fragments are checked once
    memory                                  the distinct files, and the few manifests that are being read

Nothing is written here; `cleanup` decides what to do with what was found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from lance_core.commit import naming
from lance_core.commit.identities import identities_of
from lance_core.commit.manifests import OpenVersion, VersionEntry, open_path
from lance_core.commit.references import fragment_paths
from lance_core.commit.transactions import transaction_of
from lance_core.errors import NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.io.pool import in_io_pool, io_pool
from lance_core.io.store import Store
from lance_core.table.operations.reserve_fragments import ReserveFragments
from lance_core.table.transaction import Transaction

_MANIFESTS_AHEAD = 64
_BYTES_AHEAD = 64 << 20
"""Manifests that are read at once: so many, or so many bytes of them."""
_SILENT = Transaction(0, "", ReserveFragments(0))
"""Stands for a transaction that carries no identity: of those nothing more is kept."""


class FileSet:
    """The files that some versions need. A fragment of many versions is checked once."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self._known: dict[bytes, None] = {}

    def add(self, opened: OpenVersion) -> None:
        """Take in the files of a version: see `commit.references.referenced_files`."""
        manifest = opened.manifest
        deque(FragmentList.of(manifest.fragments).each(self._add, self._known), maxlen=0)
        self.paths.update(f"{naming.INDICES}/{index.uuid}/" for index in manifest.indices)
        if manifest.transaction_file:
            self.paths.add(naming.transaction_path(manifest.transaction_file))

    def _add(self, fragment: Fragment) -> None:
        self.paths.update(fragment_paths((fragment,)))


@dataclass
class History:
    """What the versions that go have to leave behind: their transactions, as far as those carry identities."""

    carrying: dict[int, Transaction] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)

    def note(self, store: Store, opened: OpenVersion) -> None:
        """Look at the transaction of a version."""
        version = opened.manifest.version
        transaction = transaction_of(store, opened)
        if transaction is None:
            self.unreadable.add(version)
        elif version == 1 or identities_of(transaction):  # the first one says which table it is
            self.carrying[version] = transaction

    def load(self, store: Store, version: int) -> Transaction | None:
        """As the log has it, without reading it again."""
        return None if version in self.unreadable else self.carrying.get(version, _SILENT)


def split_by_age(
    store: Store,
    entries: Sequence[VersionEntry],
    *,
    is_old: Callable[[OpenVersion], bool],
    kept: FileSet,
    going: FileSet,
    history: History,
) -> list[VersionEntry]:
    """The entries that are old. Files of the others are added to `kept`, those of the old ones to `going`."""
    old = []
    for entry, opened in open_each(store, entries):
        if opened is None:
            continue  # somebody else removed it in the meantime
        if is_old(opened):
            old.append(entry)
            going.add(opened)
            history.note(store, opened)
        else:
            kept.add(opened)
    return old


def open_each(store: Store, entries: Sequence[VersionEntry]) -> Iterator[tuple[VersionEntry, OpenVersion | None]]:
    """Every version, opened once, in order; None for those that are gone. Some are read ahead on a store that is far."""
    if store.is_local or in_io_pool() or len(entries) < 2:
        yield from ((entry, _open(store, entry)) for entry in entries)
        return
    pending: deque[tuple[VersionEntry, Future[OpenVersion | None]]] = deque()
    num_bytes = 0
    for entry in entries:
        pending.append((entry, io_pool(store.uri).submit(_open, store, entry)))
        num_bytes += entry.size
        while len(pending) >= _MANIFESTS_AHEAD or (num_bytes > _BYTES_AHEAD and len(pending) > 1):
            num_bytes -= pending[0][0].size
            yield _done(pending)
    while pending:
        yield _done(pending)


def _done(
    pending: deque[tuple[VersionEntry, Future[OpenVersion | None]]],
) -> tuple[VersionEntry, OpenVersion | None]:
    entry, future = pending.popleft()
    return entry, future.result()


def _open(store: Store, entry: VersionEntry) -> OpenVersion | None:
    try:
        return open_path(store, entry.version, entry.path)
    except NotFoundError:
        return None
