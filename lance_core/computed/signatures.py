"""Which fragments were seen to be fresh: a note beside the table that spares reading them again.

::

    signature   digest of (definition; of each data file with an input, the value or the evidence: its name, fields, columns)
    note        _lance_core/columns/{id}/fresh     the signatures that the last refresh saw

Data files never change, so what was seen of files with these names stays true, in any version, after any restore. Deleted
rows that were never computed may come back: a fragment that had some is noted together with its deletion file. The note is a
shortcut and nothing else: without it, or where it is damaged, fragments are read again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Set

from lance_core.commit.naming import COLUMNS
from lance_core.errors import LanceError, NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.io.store import Store

log = logging.getLogger(__name__)
_MAGIC = b"LCF1"
_SIZE = 16
_MOST_KEPT = 1 << 18
"""Signatures in a note (4 MiB) beyond which those that this refresh did not see go: of files that may be gone long since."""


def signature(fragment: Fragment, field_ids: frozenset[int], identity: bytes, *, with_deletions: bool) -> bytes:
    """Sixteen bytes for the files that hold these fields, and for the deletion file where that matters."""
    told: list[object] = [fragment.physical_rows, [item.raw for item in fragment.overlays]]
    for file in fragment.files:
        held = [(number, place) for place, number in enumerate(file.fields) if number in field_ids]
        if held:
            columns = [file.column_indices[place] if file.column_indices else place for _, place in held]
            told.append((file.path, file.base_id, [number for number, _ in held], columns))
    if with_deletions and fragment.deletion_file is not None:
        found = fragment.deletion_file
        told.append((found.file_type, found.read_version, found.id, found.base_id))
    return hashlib.blake2b(repr(told).encode(), digest_size=_SIZE, key=identity, person=b"lance:signature").digest()


class FreshNote:
    """The signatures of one column's definition."""

    def __init__(self, store: Store, column_id: str, identity: bytes) -> None:
        self._store, self._identity = store, identity
        self._checked = hashlib.blake2b(identity, digest_size=_SIZE, person=b"lance:checked").digest()
        self._path = f"{COLUMNS}/{column_id}/fresh"
        self._stored = self._read()
        self._checked_now = set[bytes]()
        self.seen: set[bytes] = set()
        """Signatures that this refresh saw, in the note or by reading."""

    def knows(self, fragment: Fragment, field_ids: frozenset[int]) -> bool:
        """Whether all living rows of a fragment were seen to be fresh."""
        for with_deletions in (False, True):
            found = signature(fragment, field_ids, self._identity, with_deletions=with_deletions)
            if found in self._stored or found in self.seen:
                self.seen.add(found)
                return True
        return False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is noted of any fragment."""
        return not self._stored

    def has_checked(self, fragment: Fragment, field_ids: frozenset[int]) -> bool:
        """Whether what evidence says of the living rows of a fragment was seen to be so: of fresh ones, and of others."""
        found = {
            signature(fragment, field_ids, identity, with_deletions=with_deletions)
            for identity in (self._identity, self._checked)
            for with_deletions in (False, True)
        }
        return not found.isdisjoint(self._stored)

    def add_checked(self, fragment: Fragment, field_ids: frozenset[int]) -> None:
        """What evidence says of the living rows of a fragment was seen to be so, whatever else is stale there."""
        found = signature(fragment, field_ids, self._checked, with_deletions=True)
        self.seen.add(found)
        self._checked_now.add(found)

    def add(self, fragment: Fragment, field_ids: frozenset[int], *, is_whole: bool) -> None:
        """A fragment was seen to be fresh; `is_whole`: its deleted rows too."""
        self.seen.add(signature(fragment, field_ids, self._identity, with_deletions=not is_whole))

    def save(self, *, keeps: bool = False) -> None:
        """Keep what was seen in place of what was noted, or (`keeps`) beside it: where not all was checked. Never fails:
        the next refresh reads more, nothing else."""
        self._write(self._beside(self.seen) if keeps else self.seen)

    def save_checked(self) -> None:
        """Keep beside what was noted what evidence was seen to say right. Fragments that are due stay so: whoever comes
        behind a refresh that died looks at them."""
        self._write(self._beside(self._checked_now))

    def _beside(self, found: set[bytes]) -> Set[bytes]:
        both = found | self._stored
        return both if len(both) <= max(_MOST_KEPT, 2 * len(self.seen)) else found | (self.seen & self._stored)

    def _write(self, kept: Set[bytes]) -> None:
        if kept == self._stored:
            return
        body = _MAGIC + self._identity + b"".join(sorted(kept))
        try:
            self._store.put(self._path, body + _checksum(body), durable=False)
            self._stored = frozenset(kept)
        except LanceError as error:
            log.warning("%s: the note of fresh fragments was not written: %s", self._store.uri, error)

    def _read(self) -> frozenset[bytes]:
        try:
            data = bytes(self._store.get(self._path))
        except NotFoundError:
            return frozenset()
        except LanceError as error:
            log.warning("%s: the note of fresh fragments cannot be read: %s", self._store.uri, error)
            return frozenset()
        body, check = data[:-_SIZE], data[-_SIZE:]
        head = len(_MAGIC) + _SIZE
        if len(data) < head + _SIZE or check != _checksum(body) or (len(body) - head) % _SIZE:
            log.warning("%s: the note of fresh fragments is damaged: fragments are read again", self._store.uri)
            return frozenset()
        if body[:head] != _MAGIC + self._identity:
            return frozenset()
        return frozenset(body[at : at + _SIZE] for at in range(head, len(body), _SIZE))


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_SIZE, person=b"lance:note").digest()
