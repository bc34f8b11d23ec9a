"""A complete listing of the log: every version after a given one, without versions that were removed while it was read.

::

    look_since(store, 4)   -> versions 5, 7 (6 is gone for good), newest 7

The listing may lag behind, so the numbers behind its newest are requested by name; a manifest that vanishes under the reader
makes it begin again, because the process that removed it may have published a version first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lance_core.commit import naming
from lance_core.commit.manifests import OpenVersion, manifest_paths, open_path
from lance_core.commit.transactions import transaction_of
from lance_core.errors import NotFoundError, RetryableConflictError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction

_MAX_LOOKS = 10
_BRANCHES = "tree"


@dataclass(frozen=True, slots=True)
class LogLook:
    """The versions after `since` that exist, ascending, and the numbers up to the newest that were removed."""

    store: Store
    since: int
    opened: tuple[OpenVersion, ...]
    newest: int

    @property
    def gone(self) -> list[int]:
        """Numbers after `since` of which nothing can be read."""
        there = {item.manifest.version for item in self.opened}
        return [number for number in range(self.since + 1, self.newest + 1) if number not in there]

    def transactions(self) -> Iterator[tuple[int, Transaction | None]]:
        """Version and transaction, ascending."""
        for item in self.opened:
            yield item.manifest.version, transaction_of(self.store, item)


def look_since(store: Store, since: int) -> LogLook:
    """Every version after `since`. RetryableConflictError when versions vanish as fast as they are checked."""
    for _ in range(_MAX_LOOKS):
        paths = complete_paths(store)
        wanted = [item for item in paths if item[0] > since]
        opened = each(store, wanted, _open_or_none)
        if None not in opened:
            newest = paths[-1][0] if paths else 0
            return LogLook(store, since, tuple(item for item in opened if item is not None), newest)
    raise RetryableConflictError(
        f"{store.uri}: versions were removed {_MAX_LOOKS} times while they were read",
        uri=store.uri,
        cure="Retry when the cleanup of old versions has finished.",
    )


def complete_paths(store: Store) -> list[tuple[int, str]]:
    """Number and path of every version, ascending: what is listed, and what follows it."""
    paths = manifest_paths(store)
    newest, path = paths[-1] if paths else (0, naming.manifest_path(1))
    parsed = naming.parse_manifest_name(path.rpartition("/")[2])
    scheme = naming.NamingScheme.V2 if parsed is None else parsed[1]
    while True:
        newest += 1
        path = naming.manifest_path(newest, scheme)
        try:
            store.size(path)
        except NotFoundError:
            return paths
        paths.append((newest, path))


def branch_stores(store: Store) -> Sequence[Store]:
    """The branches that are below a table, named or not."""
    marker = f"/{naming.VERSIONS}/"
    paths = [entry.path for entry in store.list(f"{_BRANCHES}/")]
    return [store.child(folder) for folder in sorted({path.split(marker, 1)[0] for path in paths if marker in path})]


def detached_versions(store: Store) -> list[OpenVersion]:
    """Versions beside the history."""
    numbers = [naming.parse_detached_name(name) for name in store.list_names(f"{naming.VERSIONS}/")]
    paths = [(number, naming.manifest_path(number)) for number in numbers if number is not None]
    return [item for item in each(store, paths, _open_or_none) if item is not None]


def _open_or_none(store: Store, item: tuple[int, str]) -> OpenVersion | None:
    try:
        return open_path(store, *item)
    except NotFoundError:
        return None
