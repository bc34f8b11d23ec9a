"""The files that a transaction adds and that a manifest references. Pure.

::

    Append(fragments=[f]) with f.files = (DataFile("0101…a1….lance"),)   -> ["data/0101…a1….lance"]
    manifest.indices = (IndexMetadata(uuid="3f…"),)                      -> everything below "_indices/3f…/"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from lance_core.commit import naming
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.table.carried import new_indices, replacing_files, written_fragments
from lance_core.table.operations.base import Operation
from lance_core.table.transaction import Transaction


def fragment_paths(fragments: Iterable[Fragment]) -> Iterator[str]:
    """Data and deletion files of fragments, below the root of the table they are in."""
    for fragment in fragments:
        for file in fragment.files:
            yield naming.data_path(file.path)
        deletion = fragment.deletion_file
        if deletion is not None:
            yield naming.deletion_path(fragment.id, deletion.read_version, deletion.id, deletion.file_type)


def data_paths(transaction: Transaction, *, writers: Sequence[str]) -> list[str]:
    """Files that a staged transaction names and these attempts wrote."""
    fragments = written_fragments(transaction.operation)
    plain = fragments.plain_paths if isinstance(fragments, FragmentList) and len(writers) == 1 else None
    if plain is not None:  # new fragments of one file each alone, kept as bytes
        return naming.paths_of_attempt([naming.data_path(path) for path in plain], writers[0])
    named = dict.fromkeys(fragment_paths(fragments))
    named.update(dict.fromkeys(naming.data_path(file.path) for file in replacing_files(transaction.operation)))
    named.update(dict.fromkeys(_index_paths(transaction.operation)))
    return [path for path in named if naming.is_of_any(path, writers)]


def deletion_paths(transaction: Transaction, *, attempt: str) -> list[str]:
    """Those of `data_paths` that are deletion files."""
    fragments = written_fragments(transaction.operation)
    if isinstance(fragments, FragmentList) and not fragments.any_with("deletion_file"):
        return []
    found = dict.fromkeys(fragment_paths(fragment for fragment in fragments if fragment.deletion_file is not None))
    return [path for path in found if path.startswith(f"{naming.DELETIONS}/") and naming.is_of_attempt(path, attempt)]


def referenced_files(manifest: Manifest) -> Iterator[str]:
    """Every file a version needs. Of indices the folder, ending in "/". Names are unique, so base paths do not matter."""
    yield from fragment_paths(manifest.fragments)
    for index in manifest.indices:
        yield f"{naming.INDICES}/{index.uuid}/"
    if manifest.transaction_file:
        yield naming.transaction_path(manifest.transaction_file)


def is_referenced(path: str, referenced: Set[str]) -> bool:
    """Whether a file is needed: itself, as part of an index, or as a blob beside a data file that is."""
    if path in referenced:
        return True
    parts = path.split("/")
    if parts[0] == naming.INDICES and len(parts) > 2:
        return f"{naming.INDICES}/{parts[1]}/" in referenced
    # data/{stem}/{blob}.blob belongs to data/{stem}.lance
    return parts[0] == naming.DATA and len(parts) > 2 and f"{naming.DATA}/{parts[1]}.lance" in referenced


def _index_paths(operation: Operation) -> Iterator[str]:
    for index in new_indices(operation):
        yield from (f"{naming.INDICES}/{index.uuid}/{file.path}" for file in index.files)
        if naming.INDEX_CHECKSUMS_HINT in index.metadata:
            yield f"{naming.INDICES}/{index.uuid}/{naming.INDEX_CHECKSUMS}"
