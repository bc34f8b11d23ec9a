"""Find out whether an identity was committed. Decisions show it first, the log decides, nothing is guessed.

::

    decision        `committed`; it is void if the log contradicts it: its version is beyond the newest, or is there and
                    does not carry the identity, or is gone and was one of another table
    log             the transaction of every version after the one the work was staged on
    log with gaps   intents, then what is settled and the decisions once more, then the log once more. What no intent names
                    whose base is below the gap was not in it. Files of the attempt in the newest version prove the rest;
                    what they do not is unknown

`settled.json` is a version: what was committed up to it has its decision. A cleanup raises it before it prunes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lance_core.commit import naming
from lance_core.commit.history import is_ancestor
from lance_core.commit.identities import aborts_of, carries, identities_of
from lance_core.commit.manifests import Listing, OpenAt, list_once, load_manifest, open_or_none, version_numbers
from lance_core.commit.references import referenced_files
from lance_core.commit.transactions import load_transaction, read_transaction_file, transaction_of
from lance_core.errors import CommitStateUnknownError, CorruptFileError, NotFoundError
from lance_core.format.manifest import Manifest
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.decisions import CommittedWork, DecisionState, look_many, say_committed
from lance_core.publish.intent import Intent, list_intents, named_by
from lance_core.publish.model import StagedTransaction
from lance_core.publish.records import FORMAT, read_as, write_record
from lance_core.publish.staged_properties import staged_writers
from lance_core.publish.table_id import Load, is_other_table, keep_table_id, table_id_of
from lance_core.table.stream_batches import has_come
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

SETTLED_PATH = f"{naming.PRIVATE}/settled.json"
TO_SETTLE = (
    "Check whether its rows are in the table, then run `lance staged abort --certain` (they are not) or "
    "`lance staged settle --version N` (they are)"
)
_FEW = 4
"""So many versions are read sooner than the note up to where all is settled."""
_MAX_LOOKS = 10


@dataclass(frozen=True, slots=True)
class Settled:
    """`settled.json`."""

    version: int = 0


@dataclass(frozen=True)
class LogSearch:
    """What is asked: identities with the version that each was staged on. `own`: the commit of the caller, whose intent says
    nothing. `commits_only`: intents of aborts say nothing, either. `open_at` opens a version, for a caller that asks for the
    same ones again; `listing` are the versions as it has just listed them. `is_fresh`: its states were read behind its
    intent; else what is settled says nothing until they are read again, behind `prepare`, which waits for the intent.
    `notes`: whether what the log shows gets its decision."""

    since: Mapping[str, int]
    own: str = ""
    commits_only: bool = False
    open_at: OpenAt = open_or_none
    listing: Listing | None = None
    is_fresh: bool = True
    prepare: Callable[[], None] = lambda: None
    notes: bool = True


@dataclass
class Found:
    """What is known: versions of what was committed, errors of what is unknown, the states of all, attempts that a version
    of the log says are aborted."""

    versions: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, CommitStateUnknownError] = field(default_factory=dict)
    states: dict[str, DecisionState] = field(default_factory=dict)
    aborted: dict[str, tuple[str, ...]] = field(default_factory=dict)


def find_committed(store: Store, identity: str, since_version: int) -> int | None:
    """The version at which an identity was committed, None when it certainly was not.

    Looks at its decisions, then at the transaction of every version after `since_version` (0: from the beginning). Raises
    CommitStateUnknownError when some of those are gone and an intent names it.
    """
    found = search(store, LogSearch({identity: since_version}))
    for error in found.unknown.values():
        raise error
    return found.versions.get(identity)


def search(store: Store, asked: LogSearch, *, states: Mapping[str, DecisionState] | None = None) -> Found:
    """Find out about many identities; the log is read once. `states`: what the caller has just read."""
    found, damaged = Found(), dict[str, CorruptFileError]()
    found.states.update(look_many(store, [*asked.since], damaged=damaged) if states is None else states)
    for identity, error in damaged.items():
        found.unknown[identity] = CommitStateUnknownError(str(error), uri=store.uri, cure=error.cure or "")
    listing = asked.listing or list_once(store)
    newest = max(listing.numbers, default=0)
    if any(state.committed is not None and state.committed.version > newest for state in found.states.values()):
        listing = list_once(store)  # one of a version younger than the listing would look void
    _take_decided(store, found, listing.numbers)
    if listing.numbers:
        _look_in_log(store, asked, found, listing.numbers)
    return found


def _take_decided(store: Store, found: Found, present: Sequence[int]) -> None:
    committed = [state.committed for state in found.states.values() if state.committed is not None]
    void = void_work(store, committed, present) if committed else {}
    for identity in void:
        found.states[identity] = found.states[identity].void()
    found.versions.update({item.identity: item.version for item in committed if item.identity not in void})


def known_commit(store: Store, state: DecisionState) -> CommittedWork | None:
    """The decision that an identity was committed, if the log does not contradict it."""
    found = state.committed
    return None if found is None or void_work(store, [found], version_numbers(store)) else found


def void_work(store: Store, works: Iterable[CommittedWork], present: Sequence[int]) -> dict[str, str]:
    """Decisions that are not of this table as it is, by identity, with the reason: it was made again or restored."""
    newest, there = (present[-1] if present else 0), set(present)
    void: dict[str, str] = {}
    by_version: dict[int, list[CommittedWork]] = {}
    pruned: list[CommittedWork] = []
    for work in works:
        if work.version > newest:
            void[work.identity] = f"it refers to version {work.version}, but the newest version is {newest}"
        elif work.has_witness and work.version in there:
            by_version.setdefault(work.version, []).append(work)
        elif work.table_id:
            pruned.append(work)
    for version, items in by_version.items():
        transaction = _load(store, version)
        made = set() if transaction is None else {transaction.uuid, *identities_of(transaction)}
        others = [item for item in items if transaction and not {item.identity, item.transaction} & made]
        if others and transaction is not None and _may_be_stray(store, version, transaction, there, may_be_twice=True):
            pruned.extend(item for item in others if item.table_id)  # theirs was pruned, and the number taken again
            continue
        void.update({item.identity: f"version {version} of this table has another transaction" for item in others})
    table_id = table_id_of(store, present=there) if pruned else ""
    for work in pruned:
        if is_other_table(work.table_id, table_id):
            void[work.identity] = f"it belongs to table {work.table_id}, but this one is {table_id}"
    for identity, reason in void.items():
        log.warning("%s: the decision that %s was committed is ignored: %s", store.uri, identity, reason)
    return void


def _look_in_log(store: Store, asked: LogSearch, found: Found, present: Sequence[int]) -> None:
    """The log, and behind a gap: intents, what is settled, decisions, the log once more."""
    named: dict[str, list[Intent]] = {}
    known: dict[str, int] = {}
    settled: int | None = None if asked.is_fresh else 0
    for _ in range(_MAX_LOOKS):
        silent = {name: since for name, since in asked.since.items() if not _is_known(found, name)}
        if not silent:
            return
        gaps, settled = _read_log(store, asked, found, silent, present, settled)
        gaps = {name: gap for name, gap in gaps.items() if not _is_known(found, name)}
        # What was seen before the intents and the decisions: nothing of it is unknown that no intent names.
        doubtful = {name: gap for name, gap in gaps.items() if known.get(name, 0) >= gap and name in named}
        _judge_gaps(store, found, doubtful, asked)
        open_gaps = {name: gap for name, gap in gaps.items() if known.get(name, 0) < gap}
        if not open_gaps:
            return
        asked.prepare()
        intents = [item for item in list_intents(store) if not (asked.commits_only and item.aborts)]
        for name, gap in open_gaps.items():
            named.pop(name, None)
            named.update(named_by(intents, [name], below=gap, but=asked.own))
        settled = settled_version(store)
        found.states.update(look_many(store, [*open_gaps], damaged={}))
        present = version_numbers(store)
        _take_decided(store, found, present)
        known.update(open_gaps)
    what = f"{store.uri}: versions were removed {_MAX_LOOKS} times while they were read"
    raise CommitStateUnknownError(what, uri=store.uri, cure="Retry when the cleanup of old versions has finished.")


def _is_known(found: Found, identity: str) -> bool:
    return identity in found.versions or identity in found.unknown


def _read_log(
    store: Store, asked: LogSearch, found: Found, silent: Mapping[str, int], present: Sequence[int], settled: int | None
) -> tuple[dict[str, int], int | None]:
    """The highest number that is gone, of each identity for which one is; and what is settled, if that was asked."""
    there = set(present)
    wanted = range(min(silent.values()) + 1, present[-1] + 1)
    if settled is None and (len(wanted) > _FEW or not there.issuperset(wanted)):
        settled = settled_version(store)
    if settled:  # of these the decisions would tell
        wanted = range(max(wanted.start, min(settled, present[-1]) + 1), wanted.stop)
    gone = [version for version in wanted if version not in there]
    numbers = [version for version in wanted if version in there]
    for version, opened in zip(numbers, each(store, numbers, asked.open_at), strict=True):
        transaction = None if opened is None else transaction_of(store, opened)
        if transaction is None:
            gone.append(version)
            continue
        carried = [identity for identity in silent if carries(transaction, identity)]
        aborts = aborts_of(transaction)
        # Where the number before is there, a tag may keep it alone: what would count is judged all the same.
        if (carried or (version - 1 not in there and version != 1)) and _may_be_stray(store, version, transaction, there):
            gone.append(version)
            continue
        found.aborted.update({identity: aborts[identity] for identity in silent if identity in aborts})
        for identity in carried:
            work = committed_in(transaction, identity, version=version, table_id=table_id_of(store, present=there))
            _take(store, asked, found, work, by="the log")
    gaps = {name: max((number for number in gone if number > since), default=0) for name, since in silent.items()}
    return {name: gap for name, gap in gaps.items() if gap}, settled


def committed_in(transaction: Transaction, identity: str, *, version: int, table_id: str) -> CommittedWork:
    """What the log says about an identity that a version carries."""
    note = identities_of(transaction).get(identity, {})
    asked = note.get("asked")
    return CommittedWork(
        identity=identity,
        version=version,
        attempt=str(note.get("attempt", "")),
        transaction=transaction.uuid,
        digest=str(note.get("digest", "")),
        table_id=table_id,
        asked=asked if isinstance(asked, Mapping) else {},
    )


def _judge_gaps(store: Store, found: Found, doubtful: Mapping[str, int], asked: LogSearch) -> None:
    """What an intent names whose base is below the gap: the newest version tells, or it is unknown."""
    if not doubtful:
        return
    newest = load_manifest(store)
    told = {item.identity: (item, is_in) for item, is_in in _told_by(store, newest, found, doubtful)}
    shown = _load(store, newest.version) if any(is_in for _, is_in in told.values()) else None
    for identity, gap in doubtful.items():
        staged, is_in = told.get(identity, (None, False))
        if staged is None:
            what = f"{store.uri}: it is unknown whether {identity} was committed: no decision says so, "
            what += f"a commit or an abort of it had begun, and the history of version {gap} was removed"
            found.unknown[identity] = CommitStateUnknownError(what, uri=store.uri, version=gap, cure=f"{TO_SETTLE}.")
        elif is_in:
            made = "" if shown is None else shown.uuid  # whose files are its own: the log shows it
            work = CommittedWork(identity, newest.version, staged.attempt, made, staged.digest, table_id_of(store))
            _take(store, asked, found, work, by="the newest version")


def _take(store: Store, asked: LogSearch, found: Found, work: CommittedWork, *, by: str) -> None:
    state = found.states[work.identity]
    state = say_committed(store, work, by=by, known=state) if asked.notes else state.commit(work, by=by)
    found.states[work.identity], found.versions[work.identity] = state, work.version


def _told_by(
    store: Store, newest: Manifest, found: Found, identities: Iterable[str]
) -> Iterator[tuple[StagedTransaction, bool]]:
    """Finished work of which the newest version tells: it was committed, because its files are there, or it is a batch of a
    stream, whose last one stands in the configuration."""
    # Not the transaction's file: a version that aborts an attempt names its own after that attempt.
    used = [path for path in referenced_files(newest) if not path.startswith(f"{naming.TRANSACTIONS}/")]
    for identity in identities:
        state = found.states[identity]
        staged = state.finished
        if staged is None:
            continue
        transaction = state.transaction or read_transaction_file(store, staged.transaction_path)
        writers = (staged.attempt,) if transaction is None else staged_writers(transaction, staged.attempt)
        if any(naming.is_of_any(path, (*writers, *state.superseded)) for path in used):
            yield staged, True
        elif transaction is not None and (has_it := has_come(newest.config, transaction)) is not None:
            yield staged, has_it


def _may_be_stray(
    store: Store, version: int, transaction: Transaction, known: Collection[int], *, may_be_twice: bool = False
) -> bool:
    """Whether no later version comes from this one, or none can be seen to: it was put where others had been pruned (see
    `commit.history`). Also where it is gone by now: whoever has put it there may have found so, and removed it.

    Whosever it is: one that fills the number of a commit that was pruned would hide the gap. `may_be_twice` as there.
    """
    if version == max(known):
        return False  # nothing is above it
    try:
        return not is_ancestor(store, load_manifest(store, version), transaction, may_be_twice=may_be_twice)
    except (NotFoundError, CommitStateUnknownError):
        return True


def in_doubt(store: Store, since: Mapping[str, int]) -> dict[str, int]:
    """Identities of which it is unknown whether they were committed, each with a version whose history is gone.

    `since` gives the version that each was staged on. Reads only.
    """
    present = version_numbers(store)
    if not since or not present or {*present} >= {*range(min(since.values()) + 1, present[-1])}:
        return {}  # no history is gone
    unknown = search(store, LogSearch(since, notes=False)).unknown
    return {name: error.version for name, error in unknown.items() if error.version}


def settled_version(store: Store) -> int:
    """Up to which version all that was committed has its decision."""
    found = read_as(store, SETTLED_PATH, Settled)
    return 0 if found is None else found.version


def settle_history(store: Store, doomed: Sequence[int], *, newest: int, load: Load | None = None) -> None:
    """Before versions are pruned: finish the intents, give what the doomed versions carry its decision, and raise `settled`.

    `newest` was read before this call, and all doomed versions are below it. `load` gives the transaction of a version, for
    a caller that has read them already.
    """
    if not doomed:
        return
    intents, present = list_intents(store), version_numbers(store)
    table_id = keep_table_id(store, present=present, doomed=doomed, load=load)
    # What the versions that go say of identities, where nobody has noted it: their records may have been removed by hand.
    works = {
        identity: committed_in(transaction, identity, version=version, table_id=table_id)
        for version in sorted(doomed)
        if (transaction := (load or _load)(store, version)) is not None
        for identity in identities_of(transaction)
    }
    states = look_many(store, [*works], damaged={})
    each(store, [*states], lambda store, name: say_committed(store, works[name], by="cleanup", known=states[name]))
    found = settle_intents(store, intents)
    if not found.unknown and newest > settled_version(store):
        write_record(store, SETTLED_PATH, {"format": FORMAT, "version": newest})


def settle_intents(store: Store, intents: Iterable[Intent], *, but: Container[str] = ()) -> Found:
    """What intents name and the log knows gets its decision; the rest stays open."""
    bases: dict[str, int] = {}
    for intent in intents:
        for identity in intent.attempts:
            if identity not in but:
                bases[identity] = min(intent.base, bases.get(identity, intent.base))
    return search(store, LogSearch(bases)) if bases else Found()


def _load(store: Store, version: int) -> Transaction | None:
    try:
        return load_transaction(store, version)
    except NotFoundError:
        return None
