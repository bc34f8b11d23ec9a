"""The roots for new data files: that of the table, or registered base paths.

::

    write_dataset(t, "/t", initial_bases=[DatasetBasePath("/disk1", "one"), DatasetBasePath("s3://b/x", "two")],
                  target_bases=["one", "two"])
    -> file 1 to /disk1, file 2 to s3://b/x, file 3 to /disk1, …      each DataFile says which: base_id = 1, 2, 1

Files are directly in a base; in `data/` below one that is the root of a table (`is_dataset_root`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lance_core.commit.base_paths import open_base
from lance_core.commit.naming import data_path
from lance_core.errors import InputError
from lance_core.format.manifest import BasePath
from lance_core.io.store import Store


@dataclass(frozen=True)
class WriteTarget:
    """A store for data files, and how files there are named."""

    store: Store
    base_id: int | None = None
    is_root: bool = True

    def path_of(self, name: str) -> str:
        """The path of a data file in the store."""
        return data_path(name) if self.is_root else name


def DatasetBasePath(path: str, name: str | None = None, is_dataset_root: bool = False, id: int | None = None) -> BasePath:
    """A base path, under the official library's name and with its order of arguments; `id` None: the next free one."""
    return BasePath(id or 0, path, name, is_dataset_root)


def as_bases(given: Iterable[Any] | None) -> tuple[BasePath, ...]:
    """Bases as the caller wrote them (ours, or anything with path, name, is_dataset_root, id), with ids from 1 on."""
    found: list[BasePath] = []
    for item in given or ():
        if not isinstance(getattr(item, "path", None), str):
            raise InputError(f"expected a base path, got {item!r}", cure="Pass lance_core.DatasetBasePath(path, name).")
        base = BasePath(item.id or 0, item.path, item.name, bool(item.is_dataset_root))
        if any(base.clashes_with(known) for known in found):
            raise InputError(f"base path {base.name or base.path!r} is passed twice")
        found.append(base)
    taken = {base.id for base in found}
    free = (number for number in range(1, 2 * len(found) + 1) if number not in taken)
    return tuple(base if base.id else replace(base, id=next(free)) for base in found)


def choose_targets(
    own: Store,
    bases: Sequence[BasePath],
    *,
    targets: Sequence[str] | None,
    target_all: bool | None,
    storage_options: Mapping[str, str] | None,
    is_new: bool = False,
) -> tuple[WriteTarget, ...]:
    """The places that files are written to in turn; () is the table's own alone.

    `targets` are names or paths of bases; `target_all` True: every base and the table's own place, False: every base.
    The table's own uri among the targets is its own place. `is_new`: the caller names the bases in this very call, as he
    does with a target that is a uri. Raises InputError for a target that is no base.
    """
    if targets and target_all is not None:
        raise InputError("target_bases cannot be combined with target_all_bases", cure="Pass only one of them.")
    if target_all is not None:
        chosen = sorted(bases, key=lambda base: base.id)
        first = (WriteTarget(own),) if target_all else ()
        return first + tuple(_open(base, own, storage_options, is_callers=is_new) for base in chosen)
    found = []
    for target in targets or ():
        base = None if target == own.uri else _find(bases, target)
        callers = is_new or (base is not None and target == base.path)
        found.append(WriteTarget(own) if base is None else _open(base, own, storage_options, is_callers=callers))
    return tuple(found)


def _find(bases: Sequence[BasePath], target: str) -> BasePath:
    for base in bases:
        if target in (base.name, base.path):
            return base
    known = ", ".join(base.name or base.path for base in bases) or "none"
    raise InputError(f"{target!r} is not a base path of this table", cure=f"Known: {known}. Register it with add_bases.")


def _open(base: BasePath, own: Store, storage_options: Mapping[str, str] | None, *, is_callers: bool) -> WriteTarget:
    store = open_base(base, table_uri=own.uri, storage_options=storage_options, is_callers=is_callers)
    return WriteTarget(store, base.id, base.is_dataset_root)
