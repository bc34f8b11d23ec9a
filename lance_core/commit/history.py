"""Check that a version that was just put is an ancestor of the newest, and list the log whole.

A removed number may be free again::

    a commit reads version 4 and pauses; others commit 5, 6, 7 and prune 4, 5, 6; the commit puts "its" version 5
    version 6 or 7 does not come from that 5     -> the put published nothing: it is a stray manifest

    look_since(store, 4)                         -> versions 5, 7 (6 is gone for good)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from lance_core.commit import naming
from lance_core.commit.deletion_files import read_deletions
from lance_core.commit.identities import identities_of, writers_of
from lance_core.commit.manifests import (
    OpenVersion,
    exists,
    find_latest_version,
    manifest_paths,
    open_path,
    open_version,
    version_numbers,
)
from lance_core.commit.rebase import deletion_store
from lance_core.commit.references import fragment_paths
from lance_core.commit.transactions import transaction_of
from lance_core.errors import CommitStateUnknownError, LanceError, NotFoundError, RetryableConflictError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata
from lance_core.format.manifest import Manifest, WriterVersion
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.table.build import build
from lance_core.table.carried import added_fragments, new_indices, new_schema, rewritten_fragments, written_fragments
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations import Clone, CreateIndex, Delete, Merge, Overwrite, Restore, Rewrite, Update, UpdateMode
from lance_core.table.transaction import Transaction

Named = frozenset[tuple[int, str]]
"""Data and deletion files, each with the id of the fragment that refers to it."""

_MAX_LOOKS = 10
_BRANCHES = "tree"
_ANYBODY = WriterVersion("lance_core", "0.0.0")


def is_ancestor(store: Store, mine: Manifest, transaction: Transaction, *, may_be_twice: bool = False) -> bool:
    """Whether the version `mine`, which is listed, is the newest or an ancestor of the newest.

    `transaction` made it. CommitStateUnknownError when that cannot be determined. `may_be_twice`: its files in a later
    version prove nothing, because its writer may have put it again at another number.
    """
    if find_latest_version(store) == mine.version:
        return True
    for _ in range(_MAX_LOOKS):
        later = [number for number in version_numbers(store) if number > mine.version]
        if not later:
            return True
        try:
            child = open_version(store, later[0])
            return _comes_from(store, child, mine, transaction, may_be_twice=may_be_twice)
        except NotFoundError:
            continue  # pruned while we looked
    raise _unknown(store, mine)


def follows(store: Store, first: OpenVersion, before: int) -> bool:
    """Whether a version is the one that followed version `before`; False for a stray that fills a pruned one's number."""
    if before == 0:
        return True
    if exists(store, naming.manifest_path(before, first.scheme)):
        return True  # what it was built on is there, so its number has not been pruned
    transaction = transaction_of(store, first)
    return transaction is not None and is_ancestor(store, first.manifest, transaction)


def _comes_from(store: Store, child: OpenVersion, mine: Manifest, transaction: Transaction, *, may_be_twice: bool) -> bool:
    theirs = transaction_of(store, child)
    if theirs is None or child.manifest.version != mine.version + 1:
        return _is_shown(store, child.manifest, mine, transaction, may_be_twice=may_be_twice)
    if may_be_twice and theirs.uuid == transaction.uuid:
        raise _unknown(store, mine)  # the same work again, brought up to another version of this number perhaps
    if isinstance(theirs.operation, (Overwrite, Restore, Clone)):
        return True  # whatever was before is not in it
    operation = transaction.operation
    if isinstance(operation, CreateIndex) and _uuids(operation.new_indices) & _uuids(child.manifest.indices):
        return True
    try:
        expected = build(mine, theirs, timestamp_ns=0, writer_version=_ANYBODY)
    except LanceError:
        return False  # it refers to what is not in mine
    if isinstance(operation, CreateIndex):
        return _knew_indices(operation, child.manifest, theirs, expected)
    if _named(expected) != _named(child.manifest) or not _has_entries(transaction, child.manifest, expected):
        return False
    if not _knew(store, child.manifest, theirs, mine, _ids(_written(_named(mine), transaction))):
        return False
    return _knew_schema(store, child.manifest, theirs, mine, transaction)


def _is_shown(store: Store, later: Manifest, mine: Manifest, transaction: Transaction, *, may_be_twice: bool) -> bool:
    """Whether a version further on shows that it comes from `mine`; CommitStateUnknownError where it shows nothing."""
    everything, after = _named(mine), _named(later)
    brought = _brought(everything, mine, transaction)
    before = _ids(everything - brought)
    if brought & after and not may_be_twice:
        absent = _absent_members(mine, transaction, brought, after)
        if absent is None:
            return True
        if (_ids(absent) - before) & _ids(after):
            return False  # another commit has committed the others of its members, in another version of this number
        raise _unknown(store, mine)
    if not brought & after and (_ids(brought) - before) & _ids(after):
        return False  # the id of a new fragment is given once, and there it stands for another one
    only_deletes = bool(brought) and all(path.startswith(f"{naming.DELETIONS}/") for _, path in brought)
    if only_deletes and not may_be_twice and _has_deletions(store, later, mine, _ids(brought)):
        return True  # whatever it comes from, the rows are not there
    raise _unknown(store, mine)


def _absent_members(mine: Manifest, transaction: Transaction, brought: Named, after: Named) -> Named | None:
    """What a transaction has brought for those of its members of which a later version has nothing; None when it has
    something of each, or a file of the commit itself: nobody else can have brought that.

    ::

        mine    5  a and b, of a commit that slept
        theirs  5  a, of another commit; it was removed
        ->      version 7 has the file of a, and not that of b
    """
    attempts = [writers_of(note) for note in identities_of(transaction).values()]
    there = [path for _, path in brought & after]
    if len(attempts) < 2 or any(naming.is_of_attempt(path, _attempt_of(mine)) for path in there):
        return None
    absent = [writers for writers in attempts if not any(naming.is_of_any(path, writers) for path in there)]
    return frozenset(item for item in brought if naming.is_of_any(item[1], chain(*absent))) if absent else None


def _knew(store: Store, child: Manifest, theirs: Transaction, mine: Manifest, changed: frozenset[int]) -> bool:
    """Whether `theirs` was made with what `mine` did to the fragments `changed`, which `theirs` may have replaced itself.

    ::

        mine    fragment 0 without row 7        theirs  fragments 0 and 1 -> 2, read from fragment 0 with row 7
        ->      version `child` has fragment 2 in any case, but with the row that was deleted

    No writer moves the rows of a fragment, or names all fragments, on top of a version that changed one of them since it
    was read; whoever deletes from such a fragment repeats its deletions.
    """
    operation = theirs.operation
    groups = operation.groups if isinstance(operation, Rewrite) else ()  # as they were when it was planned
    read = {item.id: item for group in groups for item in group.old_fragments if item.id in changed}
    left = FragmentList.of(child.fragments).pick(changed)
    for number, fragment in FragmentList.of(mine.fragments).pick(changed).items():
        if number in read and _state(read[number]) != _state(fragment):
            return False
        if isinstance(operation, Merge) and (number not in left or not _state(fragment)[0] <= _state(left[number])[0]):
            return False
        if number not in left and isinstance(operation, Update) and not _has_predecessor(store, mine):
            raise _unknown(store, mine)  # all of its rows were written again: those that `mine` had left, or more
    is_as_it_was = not isinstance(operation, Merge) or _others(child, changed) == _others(mine, changed)
    if not is_as_it_was and not _has_predecessor(store, mine):
        raise _unknown(store, mine)  # what it was made from had other rows, or it brought some itself
    return _has_deletions(store, child, mine, changed & left.keys())


def _others(manifest: Manifest, changed: frozenset[int]) -> Mapping[int, tuple[int, int] | None]:
    """The deletion files of the fragments that are not among `changed`."""
    return {item.id: _state(item)[1] for item in manifest.fragments if item.id not in changed}


def _knew_schema(store: Store, child: Manifest, theirs: Transaction, mine: Manifest, transaction: Transaction) -> bool:
    """Whether the fields of `child` are those of `mine`, or what `theirs` may have made of them.

    ::

        mine    a, without c        theirs  an append, a delete: they change no field
        ->      version `child` with a and c comes from another one
    """
    before, after = _fields(mine), _fields(child)
    new = after.keys() - before.keys()
    if before == after:
        return True
    if new_schema(theirs.operation) is None or (new and min(new) < next_field_id(mine)):
        return False
    is_kept = before.items() <= after.items() or new_schema(transaction.operation) is None
    if not is_kept and not _has_predecessor(store, mine):
        raise _unknown(store, mine)  # it dropped or renamed fields that `mine` had changed, or never knew
    return True


def _fields(manifest: Manifest) -> Mapping[int, tuple[int, str, bool]]:
    return {item.id: (item.parent_id, item.name, item.nullable) for item in manifest.schema.fields}


def _has_entries(transaction: Transaction, child: Manifest, expected: Manifest) -> bool:
    """Whether `child` has the base paths, and what the transaction wrote into maps and `expected` still holds."""
    for name, keys in transaction.operation.touches().keys.items():
        wanted, there = _entries(expected, name), _entries(child, name)
        if any(there.get(key) != wanted.get(key) for key in (wanted.keys() | there.keys() if keys is None else keys)):
            return False
    return {base.id for base in expected.base_paths} <= {base.id for base in child.base_paths}


def _entries(manifest: Manifest, name: str) -> Mapping[str, str] | Mapping[str, bytes]:
    """A map by its name among `Touches.keys`; empty for a field that is gone."""
    if name == "config":
        return manifest.config
    if name == "table":
        return manifest.table_metadata
    if name == "schema":
        return manifest.schema.metadata
    found = manifest.schema.by_id.get(int(name.removeprefix("field:")))
    return {} if found is None else found.metadata


def _knew_indices(mine: CreateIndex, child: Manifest, theirs: Transaction, expected: Manifest) -> bool:
    """Whether `child` has no index that `mine` removed, and theirs has replaced what `mine` added, of which it has none."""
    added = _uuids(mine.new_indices)
    if (_uuids(mine.removed_indices) - added) & _uuids(child.indices):
        return False
    names = {index.name for index in new_indices(theirs.operation)}  # a new index takes the place of one of its name
    return not any(index.uuid in added and index.name not in names for index in expected.indices)


def _uuids(indices: Iterable[IndexMetadata]) -> frozenset[str]:
    return frozenset(index.uuid for index in indices)


def _has_predecessor(store: Store, mine: Manifest) -> bool:
    """Whether the version before is there, so that this number was hardly pruned: a tag may have kept that one alone."""
    before = mine.version - 1
    return before == 0 or any(exists(store, naming.manifest_path(before, scheme)) for scheme in naming.NamingScheme)


def _state(fragment: Fragment) -> tuple[frozenset[str], tuple[int, int] | None]:
    file = fragment.deletion_file
    return frozenset(item.path for item in fragment.files), None if file is None else (file.read_version, file.id)


def _has_deletions(store: Store, child: Manifest, mine: Manifest, numbers: frozenset[int]) -> bool:
    """Whether what `mine` deleted from these fragments is deleted in `child`, which has them all."""
    theirs = FragmentList.of(child.fragments).pick(numbers)
    for number, fragment in FragmentList.of(mine.fragments).pick(numbers).items():
        if number not in theirs:
            return False
        if _state(fragment)[1] == _state(theirs[number])[1]:
            continue
        there = read_deletions(deletion_store(store, child, theirs[number]), theirs[number])
        if not np.isin(read_deletions(deletion_store(store, mine, fragment), fragment), there).all():
            return False
    return True


def _named(manifest: Manifest) -> Named:
    return frozenset((fragment.id, path) for fragment in manifest.fragments for path in fragment_paths([fragment]))


def _ids(named: Named) -> frozenset[int]:
    return frozenset(number for number, _ in named)


def _written(named: Named, transaction: Transaction) -> Named:
    """Those of the fragments that the transaction made or changed."""
    files = {*fragment_paths(written_fragments(transaction.operation))}
    return frozenset(item for item in named if item[1] in files)


def _brought(named: Named, mine: Manifest, transaction: Transaction) -> Named:
    """Those that the transaction itself certainly brought: a fragment that it changed carries files that it had before."""
    operation = transaction.operation
    new = {*fragment_paths(added_fragments(operation)), *fragment_paths(rewritten_fragments(operation))}
    if isinstance(operation, Update) and operation.update_mode is UpdateMode.REWRITE_COLUMNS:
        fields = set(operation.fields_modified)
        files = chain.from_iterable(fragment.files for fragment in operation.updated_fragments)
        new.update(naming.data_path(file.path) for file in files if not fields.isdisjoint(file.fields))
    elif isinstance(operation, (Delete, Update)):
        changed = fragment_paths(operation.updated_fragments)
        new.update(path for path in changed if path.startswith(f"{naming.DELETIONS}/"))
    writers = [_attempt_of(mine), *chain.from_iterable(map(writers_of, identities_of(transaction).values()))]
    return frozenset(item for item in _written(named, transaction) if item[1] in new or naming.is_of_any(item[1], writers))


def _attempt_of(mine: Manifest) -> str:
    """The attempt of the commit itself; "" where its files name none, of which no file is."""
    return naming.attempt_prefix(naming.transaction_path(mine.transaction_file))


def _unknown(store: Store, mine: Manifest) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"{store.uri}: version {mine.version} was published, but it is unknown whether the newest version descends from it, "
        "because the versions in between were removed",
        uri=store.uri,
        version=mine.version,
        cure="Check whether its rows are in the table, then run `lance staged settle` or `lance staged abort --certain`.",
    )


def look_since(store: Store, since: int) -> list[OpenVersion]:
    """Every version after `since`, ascending, without those that are gone for good.

    The listing may lag behind, so the numbers behind its newest are requested by name; a manifest that vanishes under the
    reader makes it begin again, because the process that removed it may have published a version first.
    RetryableConflictError when versions vanish as fast as they are read.
    """
    for _ in range(_MAX_LOOKS):
        opened = each(store, [item for item in _complete_paths(store) if item[0] > since], _open_or_none)
        found = [item for item in opened if item is not None]
        if len(found) == len(opened):
            return found
    raise RetryableConflictError(
        f"{store.uri}: versions were removed {_MAX_LOOKS} times while they were read",
        uri=store.uri,
        cure="Retry when the cleanup of old versions has finished.",
    )


def _complete_paths(store: Store) -> list[tuple[int, str]]:
    """Number and path of every version, ascending: what is listed, and what follows it."""
    paths = manifest_paths(store)
    newest, path = paths[-1] if paths else (0, naming.manifest_path(1))
    parsed = naming.parse_manifest_name(path.rpartition("/")[2])
    scheme = naming.NamingScheme.V2 if parsed is None else parsed[1]
    while exists(store, path := naming.manifest_path(newest + 1, scheme)):
        newest += 1
        paths.append((newest, path))
    return paths


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
