"""One key that decides about many attempts at once: those that were planned on one version, for the version behind it.

::

    _lance_core/fences/{version}-{task}.json   {"outcome": "publish", "commit": "9c…", "attempts": {"5d2c…": "00ff…", …}}
                                               {"outcome": "apart"}

A commit of several attempts that were planned on the newest version puts it, and has decided about all of them with one
request, **for the version behind that one only**: for any other it needs the fences of the attempts. A process that
withdraws an attempt while no version is behind the one it was planned on puts "apart" first, so that no commit can decide
behind its back, and then the attempt's own fence. The first writer wins.

When there is a later version, the record decides nothing any more, whatever it says: what its commit has put has landed or
failed. It only tells, as fences do, which commit was about to publish an attempt. So "apart" may go then, and "publish" when
its attempts are settled.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from lance_core.commit import naming
from lance_core.commit.identities import Asked
from lance_core.errors import CorruptFileError, NotFoundError
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.record_types import APART, PUBLISH, Fence, GroupFence, parse_record
from lance_core.publish.records import FORMAT, decode_record, encode_record, put_first, unsupported

Key = tuple[str, str]
"""Identity and attempt."""

_MOST = 10_000
"""So many attempts one record names at most; of more, each has a fence of its own."""
_DAMAGED = GroupFence(PUBLISH)


def group_of(read_version: int, asked: Asked) -> str:
    """The group of attempts that were planned on one version, by the map indices of one task where a task asked."""
    if not asked.task_id:
        return str(read_version)
    task = "\n".join((asked.dag_id, asked.run_id, asked.task_id))
    return f"{read_version}-{hashlib.sha256(task.encode()).hexdigest()[:16]}"


def version_of(group: str) -> int:
    """The version that the attempts of a group were planned on; -1 for what is no name of a group."""
    return int(group.partition("-")[0]) if naming.group_path(group) else -1


def publish_together(
    store: Store, attempts: Sequence[Key], groups: Mapping[Key, str], *, commit: str, version: int
) -> tuple[dict[Key, Fence], dict[Key, Fence]]:
    """Decide for publication in `version`, group by group: the attempts about which this call has decided, and those about
    which another commit had. About the others nothing was decided here."""
    mine: dict[Key, Fence] = {}
    others: dict[Key, Fence] = {}
    by_group: dict[str, list[Key]] = {}
    for key in attempts:
        group = groups.get(key, "")
        if version_of(group) == version - 1 >= 0:
            by_group.setdefault(naming.group_path(group), []).append(key)
    for path, members in by_group.items():
        if len(members) < 2 or len(members) > _MOST:
            continue
        wanted = GroupFence(PUBLISH, commit=commit, since=time.time(), attempts=dict(members))
        found = _put(store, path, wanted)
        decided = {key: fence for key in members if (fence := _about(found, key)) is not None}
        (mine if found.commit == commit else others).update(decided)
    return mine, others


def keep_apart(store: Store, groups: Iterable[str], *, newest: int) -> dict[str, GroupFence]:
    """Make sure that no commit decides about attempts of these groups from now on, but by the attempts' own fences; what was
    decided first about each group, as far as it matters: `newest` is a version that there is."""
    open_groups = [group for group in dict.fromkeys(groups) if version_of(group) >= newest]
    apart = GroupFence(APART, since=time.time())
    found = each(store, open_groups, lambda store, group: _put(store, naming.group_path(group), apart))
    return dict(zip(open_groups, found, strict=True))


def list_groups(store: Store) -> dict[str, GroupFence]:
    """Everything on record, by group."""
    names = [name.removesuffix(".json") for name in store.list_names(f"{naming.FENCES}/") if name.endswith(".json")]
    groups = [group for group in names if naming.group_path(group)]
    found = zip(groups, each(store, groups, read_group), strict=True)
    return {group: decided for group, decided in found if decided is not None}


def read_group(store: Store, group: str) -> GroupFence | None:
    """What was decided about a group; None while nothing was. A damaged record decides about all of its attempts;
    UnsupportedRecordError for a decision that only a newer release knows."""
    path = naming.group_path(group)
    return _read(store, path) if path else None


def is_damaged(decided: GroupFence) -> bool:
    """Whether it cannot be read."""
    return decided is _DAMAGED


def about(decided: GroupFence | None, key: Key) -> Fence | None:
    """What a group's record says about one attempt: to be published, by whom; None where it says nothing."""
    return None if decided is None else _about(decided, key)


def _about(decided: GroupFence, key: Key) -> Fence | None:
    if decided is _DAMAGED:
        return Fence(PUBLISH, by="damaged record")
    identity, attempt = key
    if decided.outcome != PUBLISH or decided.attempts.get(identity) != attempt:
        return None
    return Fence(PUBLISH, commit=decided.commit, since=decided.since)


def _put(store: Store, path: str, wanted: GroupFence) -> GroupFence:
    return put_first(store, path, wanted, data=encode_record({"format": FORMAT, **asdict(wanted)}), read=_read)


def _read(store: Store, path: str) -> GroupFence | None:
    try:
        data = bytes(store.get(path))
    except NotFoundError:
        return None
    try:
        where = f"{store.uri}: {path}"
        found = parse_record(GroupFence, decode_record(data, where=where), where=where)
    except CorruptFileError:
        return _DAMAGED
    if found.outcome not in (PUBLISH, APART):
        raise unsupported(where, "outcome", expected=f"{PUBLISH} or {APART}", got=found.outcome)
    return found
