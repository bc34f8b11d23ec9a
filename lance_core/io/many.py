"""Many small objects at once: removed together, or looked for together.

::

    delete_all(store, [a, b, c])                  one look at each folder, several threads where the disk is slow
    missing(store, [a, b, c])                     a listing where many are requested, single questions otherwise
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, islice

from lance_core.errors import NotFoundError, StoreError
from lance_core.io.abilities import DeletesMany
from lance_core.io.local.store import LocalStore
from lance_core.io.parallel import each
from lance_core.io.pool import in_io_pool, io_pool
from lance_core.io.store import Store

_TRIED = 4
_QUICK_SECONDS = 0.00015
"""Removing a file takes ten microseconds, or waits for the disk where its blocks are given back at once: threads help."""
_NUM_SHARES = 16
_MANY = 64
_VERY_MANY = 4096
_SHARE = 1024
_LISTED_PER_ASKED = 16
"""Names of a listing come 1,000 at a time, one page after the other; single questions 64 at a time."""


def delete_all(store: Store, paths: Iterable[str]) -> None:
    """Remove objects in no certain order; killed, any of them may be left."""
    delete_groups(store, [[path] for path in paths])


def delete_groups(store: Store, groups: Sequence[Sequence[str]]) -> None:
    """Remove the objects of each group, the last one of it last; groups at once."""
    if not isinstance(store, DeletesMany):
        each(store, groups, _delete_group)
        return
    many, is_wide = store.delete_many, store.is_wide
    if is_wide:
        # One request removes many in no certain order: all but the last of their groups first.
        many(path for group in groups for path in group[:-1])
        many(group[-1] for group in groups if group)
        return
    first, rest = groups[:_TRIED], groups[_TRIED:]
    began = time.monotonic()
    many(chain.from_iterable(first))
    is_quick = time.monotonic() - began < _QUICK_SECONDS * sum(map(len, first))
    if is_quick or len(rest) < 2 or in_io_pool():
        many(chain.from_iterable(rest))
        return
    shares = [rest[start::_NUM_SHARES] for start in range(min(_NUM_SHARES, len(rest)))]
    list(io_pool(store.uri).map(lambda share: many(chain.from_iterable(share)), shares))


def delete_committed(store: Store, files: Sequence[str], groups: Sequence[Sequence[str]], *, last: Sequence[str]) -> None:
    """Remove what a commit has left over: files, then the records of each attempt, then `last`; these two in one request
    where the store takes many. Such a request has no order and may be done by half, so it is one of records only: each of
    them is found by garbage collection by itself, a file only by its records. What a store refuses in it, it says."""
    delete_all(store, files)
    if isinstance(store, DeletesMany) and store.is_wide:
        with suppress(StoreError):
            store.delete_many([*chain.from_iterable(groups), *last])
            return
    delete_groups(store, groups)
    delete_all(store, last)


def missing(store: Store, paths: Sequence[str]) -> list[str]:
    """The paths at which there is nothing, in order.

    On a store that is far, many files of a folder are looked for in its listing, which tells a thousand a request, but no
    further than that is fewer requests in a row than asking for each of them, many at once. Very many of a
    local folder as well: threads that ask wait for each other, several times as long as it takes to read the names.
    """
    asked: Sequence[str] = paths
    if len(paths) >= _MANY and not store.is_local:
        unseen = set(paths)
        for folder in sorted({path.partition("/")[0] for path in paths}):
            unseen.difference_update(
                entry.path for entry in islice(store.list(f"{folder}/"), len(paths) * _LISTED_PER_ASKED)
            )
        asked = [path for path in paths if path in unseen]
    if len(paths) >= _VERY_MANY and isinstance(store, LocalStore):
        asked = store.not_listed(paths, most=len(paths) * _LISTED_PER_ASKED)
        shares = [asked[start : start + _SHARE] for start in range(0, len(asked), _SHARE)]
        return [path for found in each(store, shares, lambda _, share: store.missing(share)) for path in found]
    return [path for path in each(store, asked, _if_missing) if path is not None]


def _if_missing(store: Store, path: str) -> str | None:
    try:
        store.size(path)
    except NotFoundError:
        return path
    return None


def _delete_group(store: Store, paths: Sequence[str]) -> None:
    for path in paths:
        store.delete(path)
