"""Clone a version of a table as a new table or branch.

::

    shallow_clone(snapshot of /a.lance, "/b.lance")     nothing is copied; /b.lance finds its files below base path /a.lance
    deep_clone(snapshot of /a.lance, "/b.lance")        data, deletion and index files are copied, wherever they lay
    create_branch(snapshot, "feat/x")                   a shallow clone at tree/feat/x, with a name
"""

from __future__ import annotations

import os
import uuid as uuids
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from lance_core.commit.manifests import find_latest_version, load_manifest, open_version
from lance_core.commit.naming import DATA, INDICES, data_path, deletion_path
from lance_core.commit.put_manifest import commit_clone
from lance_core.dataset.refs.branches import (
    TREE,
    BranchRef,
    branch_path,
    check_branch_name,
    encode_branch,
    list_branches,
    place_of,
    read_branch,
)
from lance_core.dataset.refs.clones import note_clone
from lance_core.dataset.refs.tags import list_tags
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import AlreadyExistsError, InputError, LanceError
from lance_core.fetch import ByteRange
from lance_core.format.fragment import ExternalFile, Fragment
from lance_core.format.manifest import Manifest
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.table.moment import now_ns
from lance_core.table.operations.clone import Clone

Target = str | os.PathLike[str]
_COPY_BYTES = 16 << 20
_File = tuple[Store, str, str]
"""Where a file is: store and path; and where it goes below the clone."""


def shallow_clone(snapshot: Snapshot, target: Target, options: Mapping[str, str] | None = None) -> Snapshot:
    """A new table at `target` that reads this version's files where they are. A cleanup by this library keeps them.

    Raises AlreadyExistsError when there is a table.
    """
    access = snapshot.storage_options if options is None else options
    store = resolve_store(target, access)
    # Written down first: a cleanup of the source that runs in the meantime must know.
    note_clone(snapshot.store, uri=store.uri, version=snapshot.version)
    return Snapshot(store, commit_clone(store, _clone(snapshot), snapshot.manifest), access)


def deep_clone(snapshot: Snapshot, target: Target, options: Mapping[str, str] | None = None) -> Snapshot:
    """A new table at `target` with copies of all files of this version. Raises AlreadyExistsError when there is a table."""
    access = snapshot.storage_options if options is None else options
    store = resolve_store(target, access)
    if find_latest_version(store) is not None:
        raise AlreadyExistsError(f"there is already a table at {store.uri}", uri=store.uri)
    copied: list[str] = []
    try:
        for source, path, goes_to in _files(snapshot):
            copied.append(goes_to)
            _copy(source, path, store, goes_to)
        manifest = commit_clone(store, _clone(snapshot, is_shallow=False), snapshot.manifest)
    except LanceError:
        for path in copied if find_latest_version(store) is None else ():
            with suppress(LanceError):
                store.delete(path)
        raise
    return Snapshot(store, manifest, access)


def create_branch(snapshot: Snapshot, name: str, *, metadata: Mapping[str, Any] | None = None) -> Snapshot:
    """A branch that begins with this version. Raises AlreadyExistsError, InputError for a name that is none.

    A branch of this version that was never named, because its maker died, is taken over.
    """
    root = snapshot.root
    path = branch_path(name)
    if path.rsplit("/", 1)[-1] in root.list_names("_refs/branches/"):
        raise AlreadyExistsError(f"{root.uri} already has a branch {name!r}", uri=root.uri, cure="Choose another name.")
    parent = snapshot.manifest.branch
    above = () if parent is None else read_branch(root, parent).identifier
    branch = BranchRef(
        name=name,
        parent_branch=parent,
        parent_version=snapshot.version,
        identifier=(*above, (snapshot.version, uuids.uuid4().hex)),
        created_at=now_ns() // 10**9,
        manifest_size=open_version(snapshot.store, snapshot.version).size,
        metadata=dict(metadata or {}),
    )
    place = place_of(root, name)
    manifest = _unnamed(place, snapshot, name)
    if manifest is None:
        manifest = commit_clone(place, _clone(snapshot, branch=name), snapshot.manifest)
    root.put_if_absent(path, encode_branch(branch))
    return Snapshot(place, manifest, snapshot.storage_options)


def _unnamed(place: Store, snapshot: Snapshot, name: str) -> Manifest | None:
    newest = find_latest_version(place)
    if newest != snapshot.version:
        return None
    manifest = load_manifest(place, newest)
    return manifest if manifest.branch == name else None


def delete_branch(root: Store, name: str) -> None:
    """Remove a branch and its files. InputError when a tag or another branch refers to it, NotFoundError."""
    check_branch_name(name)
    branches = list_branches(root)
    found = branches.get(name) or read_branch(root, name)
    users = [f"branch {item.name!r}" for item in branches.values() if item.is_below(found)]
    users += [f"tag {tag.name!r}" for tag in list_tags(root).values() if tag.branch == name]
    if users:
        raise InputError(f"branch {name!r} of {root.uri} is in use by {', '.join(users)}", cure="Delete those first.")
    # The name goes first: a branch without one is nobody's, a name without a branch would be broken.
    root.delete(branch_path(name))
    others = [f"{TREE}/{other}/" for other in branches if other.startswith(f"{name}/")]
    for entry in [*root.list(f"{TREE}/{name}/")]:
        if not any(entry.path.startswith(other) for other in others):
            root.delete(entry.path)


def _clone(snapshot: Snapshot, *, is_shallow: bool = True, branch: str | None = None) -> Clone:
    return Clone(
        is_shallow=is_shallow,
        ref_version=snapshot.version,
        ref_path=snapshot.uri,
        ref_name=snapshot.manifest.branch,
        branch_name=branch,
    )


def _files(snapshot: Snapshot) -> Iterator[_File]:
    """Every file the version needs."""
    for fragment in snapshot.manifest.fragments:
        yield from _of_fragment(snapshot, fragment)
    for index in snapshot.manifest.indices:
        store, _ = snapshot.store_of(index.base_id)
        for entry in store.list(f"{INDICES}/{index.uuid}/"):
            yield store, entry.path, entry.path


def _of_fragment(snapshot: Snapshot, fragment: Fragment) -> Iterator[_File]:
    for file in fragment.files:
        store, is_root = snapshot.store_of(file.base_id)
        path = data_path(file.path)
        prefix = f"{DATA}/" if is_root else ""
        yield store, prefix + file.path, path
        blobs = f"{file.path.removesuffix('.lance')}/"
        for entry in store.list(prefix + blobs):
            yield store, entry.path, f"{DATA}/{entry.path.removeprefix(prefix)}"
    deletion = fragment.deletion_file
    if deletion is not None:
        path = deletion_path(fragment.id, deletion.read_version, deletion.id, deletion.file_type)
        yield snapshot.store_of(deletion.base_id)[0], path, path
    for item in (fragment.row_ids, fragment.created_at_versions, fragment.last_updated_at_versions):
        if isinstance(item, ExternalFile):
            yield snapshot.store, item.path, item.path


def _copy(source: Store, path: str, target: Store, goes_to: str) -> None:
    size = source.size(path)
    if size == 0:
        target.put(goes_to, b"")
        return
    writer = target.open_writer(goes_to)
    try:
        for start in range(0, size, _COPY_BYTES):
            (part,) = source.get_ranges(path, [ByteRange(start, min(start + _COPY_BYTES, size))])
            writer.write(part)
        writer.close()
    except BaseException:
        writer.abort()
        raise
