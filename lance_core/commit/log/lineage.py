"""Check that a version that was just put is an ancestor of the newest. A removed number may be free again.

::

    a commit reads version 4 and pauses; others commit 5, 6, 7 and prune 4, 5, 6; the commit puts "its" version 5
    version 6 or 7 does not come from that 5     -> the put published nothing: it is a stray manifest
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.commit import naming
from lance_core.commit.log.manifests import (
    OpenVersion,
    exists,
    find_latest_version,
    open_version,
    version_numbers,
)
from lance_core.commit.log.transactions import transaction_of
from lance_core.commit.references import fragment_paths
from lance_core.errors import CommitStateUnknownError, LanceError, NotFoundError
from lance_core.format.manifest import Manifest, WriterVersion
from lance_core.io.store import Store
from lance_core.table.build import build
from lance_core.table.carried import written_fragments
from lance_core.table.operations import Clone, CreateIndex, Overwrite, Restore
from lance_core.table.transaction import Transaction

_MAX_LOOKS = 5
_ANYBODY = WriterVersion("lance_core", "0.0.0")


def is_ancestor(store: Store, mine: Manifest, transaction: Transaction) -> bool:
    """Whether the version `mine`, which is listed, is the newest or an ancestor of the newest.

    `transaction` made it. CommitStateUnknownError when that cannot be determined.
    """
    if find_latest_version(store) == mine.version:
        return True
    for _ in range(_MAX_LOOKS):
        later = [number for number in version_numbers(store) if number > mine.version]
        if not later:
            return True
        try:
            child = open_version(store, later[0])
            return _comes_from(store, child, mine, transaction)
        except NotFoundError:
            continue  # pruned while we looked
    raise _unknown(store, mine)


def follows(store: Store, first: OpenVersion, before: int) -> bool:
    """Whether a version is the one that followed version `before`; False for a stray that fills a pruned one's number."""
    if before == 0:
        return True
    scheme = first.scheme
    if exists(store, naming.manifest_path(before, scheme)):
        return True  # what it was built on is there, so its number has not been pruned
    transaction = transaction_of(store, first)
    return transaction is not None and is_ancestor(store, first.manifest, transaction)


def _comes_from(store: Store, child: OpenVersion, mine: Manifest, transaction: Transaction) -> bool:
    theirs = transaction_of(store, child)
    if child.manifest.version != mine.version + 1 or theirs is None:
        brought = _named(mine) - _before(mine, transaction)
        if brought & _named(child.manifest):
            return True
        if _ids(brought) & _ids(_named(child.manifest)):
            return False  # a fragment id is given once, and there it stands for another fragment
        raise _unknown(store, mine)
    if isinstance(theirs.operation, (Overwrite, Restore, Clone)):
        return True  # whatever was before is not in it
    if isinstance(transaction.operation, CreateIndex):
        added = {index.uuid for index in transaction.operation.new_indices}
        there = {index.uuid for index in child.manifest.indices}
        return bool(added & there) or isinstance(theirs.operation, CreateIndex) or not added
    try:
        expected = build(mine, theirs, timestamp_ns=0, writer_version=_ANYBODY)
    except LanceError:
        return False  # it refers to what is not in mine
    return _named(expected) == _named(child.manifest)


def _named(manifest: Manifest) -> frozenset[str]:
    """Data and deletion files with the fragments they belong to."""
    found: set[str] = set()
    for fragment in manifest.fragments:
        found.update(f"{fragment.id}:{file.path}" for file in fragment.files)
        if fragment.deletion_file is not None:
            found.add(f"{fragment.id}:{fragment.deletion_file.read_version}-{fragment.deletion_file.id}")
    return frozenset(found)


def _ids(named: frozenset[str]) -> set[str]:
    return {item.partition(":")[0] for item in named}


def _before(mine: Manifest, transaction: Transaction) -> frozenset[str]:
    """What was in the version before: all but the files that the transaction brought."""
    brought = {path.rpartition("/")[2].removesuffix(".arrow").removesuffix(".bin") for path in _files_of(transaction)}
    return frozenset(item for item in _named(mine) if not _is_one_of(item, brought))


def _files_of(transaction: Transaction) -> Iterator[str]:
    return fragment_paths(written_fragments(transaction.operation))


def _is_one_of(item: str, brought: set[str]) -> bool:
    number, _, name = item.partition(":")
    return name in brought or f"{number}-{name}" in brought


def _unknown(store: Store, mine: Manifest) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"{store.uri}: version {mine.version} was published, but it is unknown whether the newest version descends from it, "
        "because the versions in between were removed",
        uri=store.uri,
        version=mine.version,
        cure="Check whether its rows are in the table, then run `lance staged settle` or `lance staged abort --certain`.",
    )
