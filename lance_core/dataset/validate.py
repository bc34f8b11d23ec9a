"""Check that a version is whole: what the manifest says agrees with itself and with the files.

::

    ids unique and ascending, files open and of the right length, deletions in range and as many as said, row ids complete
"""

from __future__ import annotations

from lance_core.dataset.fragments import FragmentReader
from lance_core.dataset.snapshot import Snapshot
from lance_core.errors import CorruptFileError
from lance_core.format.fragment import Fragment
from lance_core.format.schema import TOMBSTONE


def check_snapshot(snapshot: Snapshot, *, deep: bool = True) -> int:
    """Check a version; `deep` opens every data and deletion file. Returns the number of files opened.

    Raises CorruptFileError for the first thing that is wrong, NotFoundError for a file that is missing.
    """
    manifest = snapshot.manifest
    ids = [fragment.id for fragment in manifest.fragments]
    if len(set(ids)) != len(ids):
        raise CorruptFileError(f"{snapshot.uri}: version {snapshot.version} has a fragment id twice", uri=snapshot.uri)
    if ids and manifest.max_fragment_id is not None and max(ids) > manifest.max_fragment_id:
        raise CorruptFileError(f"{snapshot.uri}: fragment {max(ids)} is above the largest id {manifest.max_fragment_id}")
    for fragment in manifest.fragments:
        _check_entry(snapshot, fragment)
    if not deep:
        return 0
    return sum(check_fragment(FragmentReader(snapshot, fragment)) for fragment in manifest.fragments)


def _check_entry(snapshot: Snapshot, fragment: Fragment) -> None:
    seen: set[int] = set()
    for file in fragment.files:
        live = [field for field in file.fields if field != TOMBSTONE]
        if seen & set(live):
            raise CorruptFileError(f"{snapshot.uri}: fragment {fragment.id} has a field in two files", uri=snapshot.uri)
        seen.update(live)
    if snapshot.manifest.uses_stable_row_ids and fragment.row_ids is None:
        raise CorruptFileError(f"{snapshot.uri}: fragment {fragment.id} lacks row ids", uri=snapshot.uri)


def check_fragment(reader: FragmentReader) -> int:
    """Open everything a fragment consists of. Returns the number of data files."""
    fragment = reader.fragment
    for file in fragment.files:
        opened = reader.open(file)
        if opened.num_rows != fragment.physical_rows:
            raise CorruptFileError(
                f"{reader.snapshot.uri}: {file.path} has {opened.num_rows} rows, "
                f"the manifest says {fragment.physical_rows} for fragment {fragment.id}"
            )
    _ = reader.deleted
    if reader.row_ids is not None and len(reader.row_ids) != fragment.physical_rows:
        raise CorruptFileError(f"{reader.snapshot.uri}: fragment {fragment.id} has {len(reader.row_ids)} row ids")
    return len(fragment.files)
