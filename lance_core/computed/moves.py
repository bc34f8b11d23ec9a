"""Rows whose inputs the log proves unchanged, so that blobs are not read again only because their rows moved.

::

    note          fragments 0 and 1 were checked: what evidence says of their rows is so
    version 7     Rewrite 0, 1 -> 2, the rows in order       all of 2 is proven
    version 8     Delete in 2, whose files stay              what lives of 2 is proven
    version 9     Update: rows of 2 are written to 3         nothing of 3 is proven, whoever wrote it

Data files never change, so a fragment with the files of an earlier version has its rows. A Rewrite moves rows and changes
none; that is what the operation says, and what both libraries translate indices by. Whatever else happened, and where the
log is gone, inputs are read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_core.arrays import Bools
from lance_core.commit.manifests import OpenVersion, open_version
from lance_core.commit.transactions import transaction_of
from lance_core.computed.signatures import FreshNote, signature
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError, NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.table.operations.rewrite import Rewrite, RewriteGroup
from lance_core.table.transaction import Transaction

_MOST_VERSIONS = 256
"""So many versions are read, at most."""


class MovedRows:
    """What is proven of one column's rows in one version. `ids`: the fields of its inputs, values and evidence."""

    def __init__(self, snapshot: Snapshot, note: FreshNote, ids: frozenset[int]) -> None:
        self._snapshot, self._note, self._ids = snapshot, note, ids
        self._versions = dict[int, tuple[FragmentList, Transaction | None] | None]()

    def of(self, fragment: Fragment) -> Bools:
        """For each physical row whether its inputs are those that its evidence, where it has some, was made for."""
        if self._note.is_empty:
            return np.zeros(fragment.physical_rows, np.bool_)
        try:
            return self._proven(fragment, self._snapshot.version)
        except LanceError:
            # What cannot be read proves nothing: the inputs tell.
            return np.zeros(fragment.physical_rows, np.bool_)

    def _proven(self, fragment: Fragment, version: int) -> Bools:
        """Of a fragment as a version has it."""
        alive = self._living(fragment)
        if self._note.has_checked(fragment, self._ids):
            return alive
        while (found := self._version(version)) is not None:
            fragments, transaction = found
            there = fragments.get(fragment.id)
            if there is None or not self._is_same(there, fragment):
                break
            if self._note.has_checked(there, self._ids):
                return alive & self._living(there)
            group = self._group_of(fragment, transaction)
            if group is not None:
                return alive & self._moved(group, fragment, version - 1)
            version -= 1
        return np.zeros(fragment.physical_rows, np.bool_)

    def _moved(self, group: RewriteGroup, fragment: Fragment, version: int) -> Bools:
        """What is proven of the rows of a group, in the order in which they were written again."""
        proven = [self._proven(old, version)[self._living(old)] for old in group.old_fragments]
        rows = np.concatenate([*proven, np.zeros(0, np.bool_)])
        first = 0
        for new in group.new_fragments:
            if self._is_same(new, fragment):
                break
            first += new.physical_rows
        if len(rows) != sum(new.physical_rows for new in group.new_fragments):
            return np.zeros(fragment.physical_rows, np.bool_)
        return rows[first : first + fragment.physical_rows]

    def _group_of(self, fragment: Fragment, transaction: Transaction | None) -> RewriteGroup | None:
        if transaction is None or not isinstance(transaction.operation, Rewrite):
            return None
        groups: Sequence[RewriteGroup] = transaction.operation.groups
        return next((group for group in groups if any(self._is_same(new, fragment) for new in group.new_fragments)), None)

    def _is_same(self, one: Fragment, other: Fragment) -> bool:
        """Whether two have the same files."""
        found = (signature(item, self._ids, bytes(16), with_deletions=False) for item in (one, other))
        return next(found) == next(found)

    def _living(self, fragment: Fragment) -> Bools:
        alive = np.ones(fragment.physical_rows, np.bool_)
        alive[read_deleted(self._snapshot, fragment)] = False
        return alive

    def _version(self, number: int) -> tuple[FragmentList, Transaction | None] | None:
        """The fragments of a version and what made it; None where that is gone."""
        if number not in self._versions:
            if len(self._versions) >= _MOST_VERSIONS or number < 1:
                return None
            self._versions[number] = None
            opened = self._open(number)
            if opened is not None:
                made = transaction_of(self._snapshot.store, opened)
                self._versions[number] = FragmentList.of(opened.manifest.fragments), made
        return self._versions[number]

    def _open(self, number: int) -> OpenVersion | None:
        try:
            return open_version(self._snapshot.store, number)
        except NotFoundError:
            return None
