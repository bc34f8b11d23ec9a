"""The key that decides about an attempt: publish or withdraw. It is written by put-if-absent, so the first writer wins.

::

    _lance_core/staged/{identity}.{attempt}.fence.json   {"outcome": "publish", "commit": "9c…"}   before its first manifest
                                                         {"outcome": "withdraw", "by": "gc"}        before its first deletion

    _lance_core/staged/{identity}.{attempt}.fencea.json  …fenceb.json, …          further commits that publish it

    _lance_core/fences/{group}.json                      in place of the fences of many attempts (see `group_fences`)

    _lance_core/ledger/withdrawn/{identity}.{attempt}.json   remembered when all else is gone, for zombies of the attempt

A commit that finds the fence at "publish" by another one adds itself, under the next letter that is free: so each commit
that may have sent a manifest is found by name, and its claim tells whether it ended in doubt (see `publishers`).

No lease and no clock has a say. A commit that finds "withdraw" refuses the attempt; a process that withdraws an attempt that
is fenced for "publish" has to make such a publication lose first (see `staging.remove`).
"""

from __future__ import annotations

import string
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

from lance_core.commit import naming
from lance_core.errors import CorruptFileError, NotFoundError, StoreError
from lance_core.io.abilities import SharesContent
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.record_types import PUBLISH, WITHDRAW, Fence, GroupFence, parse_record
from lance_core.publish.records import FORMAT, decode_record, encode_record, put_first, unsupported, write_record
from lance_core.publish.registry.group_fences import about, read_group

_KIND = "fence"
_CHAIN = (_KIND, *(f"{_KIND}{letter}" for letter in string.ascii_lowercase))
_SHARED_BY = 1024
"""Names of one file at most: file systems allow thousands at least."""
_DAMAGED = Fence(PUBLISH, by="damaged record")


def fence_path(identity: str, attempt: str) -> str:
    """Where the fence of an attempt is."""
    return naming.staged_path(identity, _KIND, attempt=attempt)


def read_fence(store: Store, identity: str, attempt: str) -> Fence | None:
    """The decision about an attempt, None while there is none. A damaged one counts as "publish": hands off.

    UnsupportedRecordError for a decision that only a newer release knows.
    """
    return _read(store, fence_path(identity, attempt))


def _read(store: Store, path: str) -> Fence | None:
    try:
        data = bytes(store.get(path))
    except NotFoundError:
        return None
    try:
        where = f"{store.uri}: {path}"
        fence = parse_record(Fence, decode_record(data, where=where), where=where)
    except CorruptFileError:
        return _DAMAGED
    return _known(fence, where)


def _known(fence: Fence, where: str) -> Fence:
    if fence.outcome not in (PUBLISH, WITHDRAW):
        raise unsupported(where, "outcome", expected=f"{PUBLISH} or {WITHDRAW}", got=fence.outcome)
    return fence


def publishers(store: Store, identity: str, attempt: str, *, group: str) -> list[Fence] | None:
    """The decisions of commits to publish an attempt; [] when there is none or it was withdrawn, None when one of them is
    damaged."""
    own = _chain_of(store, identity, attempt)
    if own is None or any(item.withdraws for item in own):
        return None if own is None else []
    first = about(read_group(store, group), (identity, attempt))
    if first is not None and not first.commit:
        return None
    return own if first is None else [first, *own]


def fence_alone(store: Store, identity: str, attempt: str, *, commit: str) -> bool:
    """Decide for publication by a commit without a claim (see `Fence.alone`), if nobody has decided before."""
    return _put(store, identity, attempt, Fence(PUBLISH, commit=commit, since=time.time(), alone=True)).commit == commit


def end_alone(store: Store, identity: str, attempt: str, *, commit: str, is_gone: bool) -> None:
    """Say in a fence that its commit, which has no claim, has ended or has one by now: from here on its claim decides.
    Where the attempt was gone (`is_gone`), nobody can publish it, and the fence goes as well."""
    found = read_fence(store, identity, attempt)
    if found is None or not found.alone or found.commit != commit:
        return
    if is_gone:
        store.delete(fence_path(identity, attempt))
    else:
        _write(store, identity, attempt, replace(found, alone=False))


def _chain_of(store: Store, identity: str, attempt: str) -> list[Fence] | None:
    found = []
    for kind in _CHAIN:
        path = naming.staged_path(identity, kind, attempt=attempt)
        try:
            data = bytes(store.get(path))
        except NotFoundError:
            break
        try:
            where = f"{store.uri}: {path}"
            fence = parse_record(Fence, decode_record(data, where=where), where=where)
        except CorruptFileError:
            return None
        found.append(_known(fence, where))
    return found


def chain_paths(identity: str, attempt: str) -> list[str]:
    """Where the fence of an attempt and the records of further commits may be, in the order in which they are removed."""
    return [naming.staged_path(identity, kind, attempt=attempt) for kind in reversed(_CHAIN)]


def fence_for_publishing(store: Store, attempts: Sequence[tuple[str, str]], *, commit: str) -> dict[tuple[str, str], Fence]:
    """Decide for publication; what was decided first for each (identity, attempt): by whom, or that it is withdrawn."""

    mine = Fence(PUBLISH, commit=commit, since=time.time())

    def put(store: Store, item: tuple[str, str]) -> Fence:
        first = found = _put(store, *item, mine)
        for kind in _CHAIN[1:]:
            if found.withdraws or found.commit == commit:
                return first
            found = _put(store, *item, mine, kind=kind)
        if found.commit != commit:
            many = f"{len(_CHAIN)} commits of attempt {item[1]} of {item[0]} were killed"
            raise StoreError(f"{store.uri}: {many}", uri=store.uri, cure="Abort the attempt and stage again.")
        return first

    first = _put_shared(store, attempts, mine)
    left = [item for item in attempts if item not in first]
    first.update(zip(left, each(store, left, put), strict=True))
    return {item: first[item] for item in attempts}


def fence_for_withdrawal(
    store: Store, identity: str, attempt: str, *, by: str, decided: GroupFence | None
) -> tuple[Fence, bool]:
    """Decide to withdraw an attempt: the decision, and whether this call made it. `decided`: what `group_fences.keep_apart`
    has found about its group."""
    theirs = about(decided, (identity, attempt))
    if theirs is not None:
        found = read_fence(store, identity, attempt)
        return (found, False) if found is not None and found.withdraws else (theirs, False)
    mine = Fence(WITHDRAW, by=by, since=time.time())
    found = _put(store, identity, attempt, mine)
    return found, found is mine


def note_fence_version(store: Store, identity: str, attempt: str, *, by: str, version: int) -> None:
    """A fence version is in the log: the attempt is withdrawn, whatever was decided before."""
    _write(store, identity, attempt, Fence(WITHDRAW, by=by, since=time.time(), version=version))


def remove_fence(store: Store, identity: str, attempt: str) -> None:
    """The last step of an attempt's end."""
    further = _chain_of(store, identity, attempt)
    for path in chain_paths(identity, attempt)[-max(1, len(_CHAIN if further is None else further)) :]:
        store.delete(path)


def remove_further(store: Store, identity: str, attempt: str) -> None:
    """Remove the records of further commits, where the fence itself is gone."""
    for kind in _CHAIN[1:]:
        path = naming.staged_path(identity, kind, attempt=attempt)
        if _read(store, path) is None:
            return
        store.delete(path)


def list_fences(store: Store) -> dict[tuple[str, str], Fence]:
    """Every decision on record, by (identity, attempt)."""
    names = store.list_names(f"{naming.STAGED}/")
    keys = [key for name in names if (key := naming.parse_attempt_record(name, _KIND)) is not None]
    found = zip(keys, each(store, keys, lambda place, key: read_fence(place, *key)), strict=True)
    return {key: fence for key, fence in found if fence is not None}


def list_further(store: Store) -> list[tuple[tuple[str, str], str]]:
    """(identity, attempt) and path of the records of further commits whose first one is gone."""
    names = store.list_names(f"{naming.STAGED}/")
    names = [name for name in names if f".{_KIND}" in name]
    decided = {naming.parse_attempt_record(name, _KIND) for name in names}
    found = [(key, name) for name in names for kind in _CHAIN[1:] if (key := naming.parse_attempt_record(name, kind))]
    return [(key, f"{naming.STAGED}/{name}") for key, name in found if key not in decided]


def remember_withdrawal(store: Store, identity: str, attempt: str) -> None:
    """Keep in mind that an attempt was withdrawn, beyond its records."""
    memory = {"format": FORMAT, "attempt": attempt, "since": time.time()}
    # It only helps to find files: when this machine dies, so does the zombie that might write them.
    write_record(store, _memory_path(identity, attempt), memory, durable=False)


def is_remembered(store: Store, identity: str, attempt: str) -> bool:
    """Whether an attempt was withdrawn, though none of its records is left."""
    try:
        store.size(_memory_path(identity, attempt))
    except NotFoundError:
        return False
    return True


def list_remembered(store: Store) -> dict[tuple[str, str], float]:
    """(identity, attempt) of withdrawals that are kept in mind, with the time since when (seconds since the epoch)."""
    found = {}
    for entry in store.list(f"{naming.WITHDRAWN}/"):
        identity, _, attempt = entry.path.removeprefix(f"{naming.WITHDRAWN}/").removesuffix(".json").rpartition(".")
        if identity:
            found[(identity, attempt)] = entry.modified
    return found


def forget_withdrawal(store: Store, identity: str, attempt: str) -> None:
    """Nobody needs to know any more."""
    store.delete(_memory_path(identity, attempt))


def _memory_path(identity: str, attempt: str) -> str:
    return f"{naming.WITHDRAWN}/{naming.checked_identity(identity)}.{attempt}.json"


def _put_shared(store: Store, attempts: Sequence[tuple[str, str]], fence: Fence) -> dict[tuple[str, str], Fence]:
    """Put one fence under the names of many attempts where a store can; those that have a fence already are left out."""
    if len(attempts) < 2 or not isinstance(store, SharesContent):
        return {}
    data, by_path = encode_record(_plain(fence)), {fence_path(*item): item for item in attempts}
    paths, taken = [*by_path], set[str]()
    for start in range(0, len(paths), _SHARED_BY):
        # Each name is linked by itself, and links fail where there is one already: the first writer wins here, too.
        taken.update(store.put_same_if_absent(paths[start : start + _SHARED_BY], data, durable=False))
    return {item: fence for path, item in by_path.items() if path not in taken}


def _put(store: Store, identity: str, attempt: str, fence: Fence, *, kind: str = _KIND) -> Fence:
    path = naming.staged_path(identity, kind, attempt=attempt)
    return put_first(store, path, fence, data=encode_record(_plain(fence)), read=_read)


def _write(store: Store, identity: str, attempt: str, fence: Fence) -> None:
    write_record(store, fence_path(identity, attempt), _plain(fence))


def _plain(fence: Fence) -> dict[str, object]:
    return {"format": FORMAT, **asdict(fence)}
