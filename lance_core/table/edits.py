"""Small changes of one fragment or one index entry, each a pure function.

with_file(fragment with files a(1, 2) b(3), c(3))   ->   files a(1, 2) c(3)
"""

from __future__ import annotations

from dataclasses import replace

from lance_core.errors import InputError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.index import IndexMetadata, RewrittenIndex
from lance_core.format.schema import TOMBSTONE


def check_fragment(fragment: Fragment) -> Fragment:
    """The fragment itself, unless its files contradict each other (InputError)."""
    seen: set[int] = set()
    for file in fragment.files:
        fields, columns = len(file.fields), len(file.column_indices)
        if columns and columns != fields:
            raise InputError(f"data file {file.path!r} lists {fields} fields but {columns} columns")
        live = [field for field in file.fields if field != TOMBSTONE]
        if len(set(live)) != len(live) or not seen.isdisjoint(live):
            raise InputError(f"fragment {fragment.id} holds a field twice: data file {file.path!r} repeats one of {live}")
        seen.update(live)
    return fragment


def changed_fragment(before: Fragment | None, after: Fragment) -> Fragment:
    """What takes the place of `before`: without dead files, and checked where its files are other ones."""
    if before is not None and before.files == after.files:
        return after
    return check_fragment(without_dead_files(after))


def with_file(fragment: Fragment, new_file: DataFile) -> Fragment:
    """The fragment with `new_file` instead of the file that holds exactly its fields, or beside files that hold none.

    InputError when a file holds only some of them: half a file cannot be replaced.
    """
    fields = frozenset(new_file.fields)
    same = [file for file in fragment.files if frozenset(file.fields) == fields and file.version == new_file.version]
    if same:
        return replace(fragment, files=tuple(new_file if file is same[0] else file for file in fragment.files))
    if any(fields.intersection(file.fields) for file in fragment.files):
        raise InputError(
            f"no single file of fragment {fragment.id} holds exactly fields {sorted(fields)} in the same storage version",
            cure="Replace the columns of one data file as a whole.",
        )
    return replace(fragment, files=(*fragment.files, new_file))


def with_columns_moved(fragment: Fragment, new: DataFile) -> Fragment:
    """The fragment with a file of columns, which are dead in the files that had them; a file of dead columns alone goes."""
    moved = {number for number in new.fields if number != TOMBSTONE}
    files = tuple(
        item
        if moved.isdisjoint(item.fields)
        else replace(item, fields=tuple(TOMBSTONE if number in moved else number for number in item.fields))
        for item in fragment.files
    )
    return without_dead_files(replace(fragment, files=(*files, new)))


def without_dead_files(fragment: Fragment) -> Fragment:
    """A file whose every column is a tombstone holds nothing."""
    files = tuple(file for file in fragment.files if not file.fields or any(field != TOMBSTONE for field in file.fields))
    return fragment if len(files) == len(fragment.files) else replace(fragment, files=files)


def renamed(index: IndexMetadata, change: RewrittenIndex | None) -> IndexMetadata:
    """The entry of a segment after its addresses were translated into a new one."""
    if change is None:
        return index
    return replace(
        index,
        uuid=change.new_id,
        details=change.new_index_details or index.details,
        index_version=change.new_index_version,
        files=change.new_index_files,
        base_id=None,
    )


def rebased(fragment: Fragment, base_id: int) -> Fragment:
    """The fragment as another table sees it: files without a base of their own are below `base_id`."""
    files = tuple(file if file.base_id is not None else replace(file, base_id=base_id) for file in fragment.files)
    deletion = fragment.deletion_file
    if deletion is not None and deletion.base_id is None:
        deletion = replace(deletion, base_id=base_id)
    return replace(fragment, files=files, deletion_file=deletion)


def homed(fragment: Fragment) -> Fragment:
    """The fragment with all its files below the table's own root."""
    deletion = fragment.deletion_file
    return replace(
        fragment,
        files=tuple(replace(file, base_id=None) for file in fragment.files),
        deletion_file=None if deletion is None else replace(deletion, base_id=None),
    )


def files_of(fragment: Fragment, fields: frozenset[int]) -> dict[int, str]:
    """field id -> path of the file that holds it, for those of `fields` the fragment has."""
    return {field: file.path for file in fragment.files for field in fields.intersection(file.fields)}
