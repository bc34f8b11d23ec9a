"""What LanceDB's own refresh computed, as far as its record proves it: taken over, not computed again.

::

    version c      its refresh puts a column's files in place of others (DataReplacement)
    version c + 1  the column's field says so:  computed_refresh.source_signature     sidecar:{SHA-256 of the object}
                                                computed_refresh.recorded_at_version  c
    _computed/{SHA-256}.sig     "CSIG", 1, count (u32), then for each fragment its id (u32) and eight bytes of a digest

The digest is of a text that only LanceDB makes, so it is compared with nothing but itself. An entry that is in the record
and was not in the one before was made by the refresh that wrote it, for the fragment as version c has it. It proves the
values of that fragment where c put their file there, c declares the column as it is declared now, and the files of inputs
and value are those of c still. All else counts as stale: fragments that were compacted since, records that are gone or
are not what their name says, versions that were cleaned up.
"""

from __future__ import annotations

import hashlib
import logging
import struct
from collections.abc import Mapping

from lance_core.commit.manifests import OpenVersion, open_version
from lance_core.commit.transactions import transaction_of
from lance_core.computed.signatures import signature
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError, NotFoundError
from lance_core.format import declared
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.schema import Field
from lance_core.io.store import Store
from lance_core.table.operations.data_replacement import DataReplacement

log = logging.getLogger(__name__)
_SIGNATURES = f"{declared.OTHERS_PREFIX}source_signature"
_VERSION = f"{declared.OTHERS_PREFIX}recorded_at_version"
_SIDECAR = "sidecar:"
_MAGIC, _ENTRY = b"CSIG\x01", struct.Struct("<I8s")
_HEAD = len(_MAGIC) + 4
_MOST_BYTES = 256 << 20
_MOST_RECORDS = 64
_SAME_KEYS = (declared.DECLARED, declared.KIND, declared.EXPRESSION, declared.INPUTS, declared.DEFINITION)


def has_record(item: Field) -> bool:
    """Whether LanceDB's refresh says of a column what it computed."""
    return declared.text_of(item.metadata, _SIGNATURES).startswith(_SIDECAR)


def proof_of(fragment: Fragment, field_ids: frozenset[int]) -> bytes:
    """What stands for the files of a column's inputs and values in a fragment."""
    return signature(fragment, field_ids, bytes(16), with_deletions=False)


def proven_fragments(snapshot: Snapshot, item: Field) -> frozenset[bytes]:
    """`proof_of` each fragment whose values LanceDB's record proves. Empty where it proves none; never fails."""
    try:
        return _Record(snapshot, item).proven()
    except (LanceError, ValueError) as error:
        log.info("%s: LanceDB's record of column %r proves nothing: %s", snapshot.uri, item.name, error)
        return frozenset()


class _Record:
    """The records of one column, from the newest back."""

    def __init__(self, snapshot: Snapshot, item: Field) -> None:
        self._store, self._item = snapshot.store, item
        self._now = FragmentList.of(snapshot.manifest.fragments)
        schema = snapshot.manifest.schema
        self._value_ids = frozenset(found.id for found in schema.descend(item.id))
        self._ids = self._value_ids | needs_of(schema, declared.inputs_of(item)).field_ids

    def proven(self) -> frozenset[bytes]:
        """Walk back as long as records and their versions are there."""
        found, item = set[bytes](), self._item
        current = entries = _entries(self._store, item) or {}
        for _ in range(_MOST_RECORDS):
            if not entries:
                break
            try:
                opened = open_version(self._store, int(declared.text_of(item.metadata, _VERSION)))
            except NotFoundError:
                break
            before = next((other for other in opened.manifest.schema.top_level if other.id == item.id), None)
            if before is None or not self._is_same(before):
                break
            older = _entries(self._store, before)
            if older is None:
                break
            found |= self._by(opened, [key for key in entries if entries[key] == current[key] != older.get(key)])
            entries, item = {key: told for key, told in older.items() if current.get(key) == told}, before
        return frozenset(found)

    def _is_same(self, other: Field) -> bool:
        """Whether a column was declared as it is now."""
        return all(
            declared.text_of(other.metadata, key) == declared.text_of(self._item.metadata, key) for key in _SAME_KEYS
        ) and (other.logical_type, other.name) == (self._item.logical_type, self._item.name)

    def _by(self, opened: OpenVersion, numbers: list[int]) -> set[bytes]:
        """Those of the fragments into which a version put the file of the values, and which are as they were then."""
        made = transaction_of(self._store, opened)
        if made is None or not isinstance(made.operation, DataReplacement):
            return set()
        files = {one.fragment_id: one.new_file for one in made.operation.replacements}
        then, found = FragmentList.of(opened.manifest.fragments), set[bytes]()
        for number in numbers:
            file, before, now = files.get(number), then.get(number), self._now.get(number)
            if file is None or before is None or now is None or not self._value_ids <= {*file.fields}:
                continue
            if any(self._value_ids & {*other.fields} for other in now.files if other.path != file.path):
                continue
            proof = proof_of(now, self._ids)
            if proof == proof_of(before, self._ids) and any(other.path == file.path for other in now.files):
                found.add(proof)
        return found


def _entries(store: Store, item: Field) -> Mapping[int, bytes] | None:
    """Fragment ids and digests of a record; {} for one that tells none, None for a column that keeps none."""
    told = declared.text_of(item.metadata, _SIGNATURES)
    if not told:
        return None
    if not told.startswith(_SIDECAR):
        return {} if told == "{}" else None
    name = told.removeprefix(_SIDECAR)
    if len(name) != 64 or not set(name) <= set("0123456789abcdef"):
        raise ValueError("its name is no digest")
    path = f"_computed/{name}.sig"
    if store.size(path) > _MOST_BYTES:
        raise ValueError("it is too large")
    data = bytes(store.get(path))
    if hashlib.sha256(data).hexdigest() != name:
        raise ValueError("it is not what its name says")
    count = int.from_bytes(data[len(_MAGIC) : _HEAD], "little")
    if data[: len(_MAGIC)] != _MAGIC or len(data) != _HEAD + count * _ENTRY.size:
        raise ValueError("it is damaged, or of another format")
    return dict(_ENTRY.iter_unpack(data[_HEAD:]))
