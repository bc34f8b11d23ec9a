"""Are the files of a version there? A comparison of listings with the manifest, bounded in requests; no file is opened.

::

    check_presence(snapshot, max_requests=10)
    -> Presence(num_files=412, requests=2, missing=(), wrong_size=())
    -> Presence(num_files=31000, requests=10, unchecked="the comparison needs more than 10 requests")

Blobs beside data files are not compared: the manifest does not name them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lance_core.commit import naming
from lance_core.commit.manifests import latest_version
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import NotFoundError, StoreError
from lance_core.io.store import Store

OBJECTS_PER_REQUEST = 1000
"""What the object stores return with one request of a listing."""
MAX_REQUESTS = 10
"""What the pages and the quick doctor spend on a table: up to 10,000 objects."""
ASKED_SINGLY = 3
"""So many files of a folder are requested one by one: a listing has to go through old files, too."""
MAX_NAMED = 50


@dataclass(frozen=True, slots=True)
class Presence:
    """What a comparison found. `unchecked` says why it was not finished; empty when every file was compared.

    `missing` and `wrong_size` name at most `MAX_NAMED` files each; `num_missing` and `num_wrong_size` count all of them.
    """

    num_files: int
    requests: int = 0
    missing: tuple[str, ...] = ()
    wrong_size: tuple[str, ...] = ()
    num_missing: int = 0
    num_wrong_size: int = 0
    unchecked: str = ""

    @property
    def is_damaged(self) -> bool:
        """Whether a file is missing, or has another size than the manifest says."""
        return bool(self.missing or self.wrong_size)


@dataclass
class _Folder:
    """Files that a version needs of one folder of one store: path -> size in bytes, None where the manifest has none."""

    store: Store
    path: str
    wanted: dict[str, int | None] = field(default_factory=dict)


class _TooMany(Exception):
    """The bound of requests was reached."""


def check_presence(snapshot: Snapshot, *, max_requests: int = MAX_REQUESTS) -> Presence:
    """Compare the files of a version with what the stores list, with at most `max_requests` requests.

    A store that does not answer leaves them unchecked. Raises CorruptFileError for a base path that is not defined.
    """
    num_fragments = len(snapshot.manifest.fragments)
    if num_fragments > max_requests * OBJECTS_PER_REQUEST:
        return _beyond(f"the files of {num_fragments} fragments", num_fragments, 0, max_requests)
    folders = _folders(snapshot)
    num_files = sum(len(folder.wanted) for folder in folders)
    requests = 0
    missing: list[str] = []
    wrong: list[str] = []
    try:
        for folder in folders:
            found, spent = _sizes(folder, max_requests - requests)
            requests += spent
            for path, size in folder.wanted.items():
                if path not in found:
                    missing.append(path)
                elif size is not None and found[path] != size:
                    wrong.append(path)
    except _TooMany:
        return _beyond(f"{num_files} files", num_files, requests, max_requests)
    except (StoreError, OSError) as error:
        return Presence(num_files=num_files, requests=requests, unchecked=str(error))
    if (missing or wrong) and (newest := latest_version(snapshot.store)) != snapshot.version:
        # A cleanup may have removed what only this version needs.
        text = f"version {newest} was committed while the files of version {snapshot.version} were compared"
        return Presence(num_files=num_files, requests=requests, unchecked=text)
    return Presence(
        num_files=num_files,
        requests=requests,
        missing=tuple(missing[:MAX_NAMED]),
        wrong_size=tuple(wrong[:MAX_NAMED]),
        num_missing=len(missing),
        num_wrong_size=len(wrong),
    )


def _beyond(what: str, num_files: int, requests: int, max_requests: int) -> Presence:
    text = f"the comparison of {what} with listings needs more than {max_requests} requests"
    return Presence(num_files=num_files, requests=requests, unchecked=text)


def _folders(snapshot: Snapshot) -> list[_Folder]:
    found: dict[tuple[int | None, str], _Folder] = {}
    for base_id, path, size in _wanted(snapshot):
        store, is_root = snapshot.store_of(base_id)
        name = path.partition("/")[0] if is_root else ""
        folder = found.setdefault((base_id, name), _Folder(store, f"{name}/" if name else ""))
        folder.wanted[path if is_root else path.removeprefix(f"{naming.DATA}/")] = size
    return list(found.values())


def _wanted(snapshot: Snapshot) -> Iterator[tuple[int | None, str, int | None]]:
    """(base, path, size or None) of every file that the manifest names."""
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            yield file.base_id, naming.data_path(file.path), file.file_size_bytes or None
        deletion = fragment.deletion_file
        if deletion is not None:
            path = naming.deletion_path(fragment.id, deletion.read_version, deletion.id, deletion.file_type)
            yield deletion.base_id, path, None
    for index in snapshot.manifest.indices:
        for part in index.files:
            yield index.base_id, f"{naming.INDICES}/{index.uuid}/{part.path}", part.size_bytes


def _sizes(folder: _Folder, max_requests: int) -> tuple[Mapping[str, int], int]:
    """Sizes of the wanted files that are there, and how many requests that took."""
    if len(folder.wanted) <= ASKED_SINGLY:
        if len(folder.wanted) > max_requests:
            raise _TooMany
        return {path: size for path in folder.wanted if (size := _size(folder.store, path)) is not None}, len(folder.wanted)
    found: dict[str, int] = {}
    count = 0
    for count, entry in enumerate(folder.store.list(folder.path), 1):
        if count > max_requests * OBJECTS_PER_REQUEST:
            raise _TooMany
        if entry.path in folder.wanted:
            found[entry.path] = entry.size
    return found, max(1, -(-count // OBJECTS_PER_REQUEST))


def _size(store: Store, path: str) -> int | None:
    try:
        return store.size(path)
    except NotFoundError:
        return None
