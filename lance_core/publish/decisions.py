"""The decision log of an identity: numbered records, each put if absent. The highest number is the answer.

::

    _lance_core/decisions/5d2c….000001.json   {"outcome": "finished",  "attempt": "00ff…", "finished": {…}, …}
    _lance_core/decisions/5d2c….000002.json   {"outcome": "committed", "attempt": "00ff…", "committed": {"version": 7, …}, …}

Every record carries the whole state of the identity after it: what is finished and waits, what was committed, which attempts
are aborted. So the record of an abort never hides what another try has finished. Who loses a number reads again before it
does anything. What arrives at or below the highest number that is folded into a segment is void, so no number is ever free
again. (Design: docs/adr/057-few-records.md.)
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lance_core.commit import naming
from lance_core.errors import AlreadyExistsError, CorruptFileError, FormatError, NotFoundError, StoreError, StoreRefusedError
from lance_core.io.abilities import ListsInOrder
from lance_core.io.parallel import begin, each
from lance_core.io.store import Store
from lance_core.publish.model import StagedTransaction
from lance_core.publish.records import FORMAT, Record, decode_record, encode_record, parse_record, unsupported
from lance_core.publish.segments import folded_records
from lance_core.publish.table_id import is_other_table, table_id_of
from lance_core.table.transaction import Transaction
from lance_core.wire.transaction import decode_transaction, encode_transaction

log = logging.getLogger(__name__)

FINISHED, ABORTED, COMMITTED = "finished", "aborted", "committed"
_OUTCOMES = (FINISHED, ABORTED, COMMITTED)
_ALWAYS = ("identity", "number", "outcome", "attempt", "by", "decided_at")
SETTLED_BY_HAND = "settled by hand"

_MAX_INLINE = 64 << 10
"""Bytes of a record's spec and transaction; larger ones are read from their own files."""
_MAX_TRIES = 8
_LISTED_TOGETHER = 18
"""Digits that the identities of one task's map indices have in common (see `jobs.specs.identity`)."""
_FEW = 3


@dataclass(frozen=True, slots=True)
class CommittedWork:
    """Where an identity was committed, and with which attempt's files ("" when the history does not tell), and who asked."""

    identity: str
    version: int
    attempt: str = ""
    transaction: str = ""
    digest: str = ""
    table_id: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    committed_at: float = 0.0

    @property
    def has_witness(self) -> bool:
        """Whether the log can show that it is true: the version's transaction is known."""
        return self.transaction not in ("", SETTLED_BY_HAND)


@dataclass(frozen=True, slots=True)
class DecisionState:
    """What is decided about an identity. `number` 0: nothing yet.

    `aborted`: attempts, and who has decided so. `superseded`: finished attempts in whose place another one was staged; their
    files stay until the identity is committed or aborted, because a commit of them may still be under way. `spec` and
    `transaction` are those of the finished attempt, where the record has them.
    """

    identity: str
    number: int = 0
    outcome: str = ""
    attempt: str = ""
    by: str = ""
    decided_at: float = 0.0
    finished: StagedTransaction | None = None
    committed: CommittedWork | None = None
    aborted: Mapping[str, str] = field(default_factory=dict)
    superseded: tuple[str, ...] = ()
    spec: Mapping[str, Any] | None = None
    transaction: Transaction | None = field(default=None, compare=False, repr=False)

    def is_aborted(self, attempt: str) -> bool:
        """Whether an attempt is decided against."""
        return attempt in self.aborted

    def is_decided(self, attempt: str) -> bool:
        """Whether an attempt has come to its end."""
        return attempt in self.aborted or (self.committed is not None and self.committed.attempt == attempt)

    def is_finished(self, attempt: str) -> bool:
        """Whether just this attempt waits for its commit."""
        return self.finished is not None and self.finished.attempt == attempt

    def is_open(self, attempt: str) -> bool:
        """Whether an attempt is neither decided nor finished nor superseded."""
        return not (self.is_decided(attempt) or self.is_finished(attempt) or attempt in self.superseded)

    def finish(self, staged: StagedTransaction, *, spec: Mapping[str, Any], transaction: Transaction) -> DecisionState:
        """The state after `staged` has finished; what it takes the place of is superseded."""
        before = self.finished
        return replace(
            self._next(FINISHED, staged.attempt, by=staged.attempt),
            finished=replace(staged, number=self.number + 1),
            superseded=self.superseded if before is None else (*self.superseded, before.attempt),
            spec=dict(spec),
            transaction=transaction,
        )

    def abort(self, attempt: str, *, by: str) -> DecisionState:
        """The state after an attempt is aborted; with one that had finished, those that it superseded."""
        is_whole = self.is_finished(attempt)
        gone = (attempt, *self.superseded) if is_whole else (attempt,)
        left = tuple(item for item in self.superseded if item not in gone)
        aborted = {**self.aborted, **dict.fromkeys(gone, by)}
        state = replace(self._next(ABORTED, attempt, by=by), aborted=aborted, superseded=left)
        return replace(state, finished=None, spec=None, transaction=None) if is_whole else state

    def commit(self, work: CommittedWork, *, by: str) -> DecisionState:
        """The state after the identity was committed."""
        if not work.attempt and self.finished is not None:
            work = replace(work, attempt=self.finished.attempt)
        state = self._next(COMMITTED, work.attempt, by=by)
        return replace(state, committed=work, finished=None, spec=None, transaction=None)

    def _next(self, outcome: str, attempt: str, *, by: str) -> DecisionState:
        return replace(self, number=self.number + 1, outcome=outcome, attempt=attempt, by=by, decided_at=time.time())

    def void(self) -> DecisionState:
        """The state of a table that was made again: the numbers are taken, and say nothing."""
        return DecisionState(self.identity, self.number)

    def attempts(self) -> tuple[str, ...]:
        """Every attempt that it names."""
        found = [*self.superseded, *self.aborted]
        found += [item.attempt for item in (self.finished, self.committed) if item is not None and item.attempt]
        return tuple(dict.fromkeys(found))

    def to_plain(self) -> Record:
        """The record."""
        done = {} if self.committed is None else asdict(self.committed)
        parts = {
            "finished": None if self.finished is None else self.finished.to_dict(),
            "committed": {name: value for name, value in done.items() if value and name != "identity"},
            "aborted": dict(self.aborted),
            "superseded": [*self.superseded],
        }
        plain = {"format": FORMAT, **{name: getattr(self, name) for name in _ALWAYS}}
        plain.update({name: value for name, value in parts.items() if value})
        if self.transaction is not None and self.spec is not None:
            plain.update(_inline(self.spec, self.transaction))
        return plain


def decision_path(identity: str, number: int) -> str:
    """Where a decision is."""
    return f"{naming.DECISIONS}/{naming.checked_identity(identity)}.{number:06d}.json"


def parse_decision_name(name: str) -> tuple[str, int] | None:
    """(identity, number) of a decision's name; None for any other."""
    stem, _, number = name.removesuffix(".json").rpartition(".")
    is_one = bool(stem) and name.endswith(".json") and len(number) == 6 and number.isdigit()
    return (stem, int(number)) if is_one else None


def read_decision(store: Store, identity: str, number: int) -> DecisionState | None:
    """One decision; None when there is none. CorruptFileError, UnsupportedRecordError."""
    path = decision_path(identity, number)
    try:
        data = bytes(store.get(path))
    except NotFoundError:
        return None
    where = f"{store.uri}: {path}"
    try:
        found = parse_decision(decode_record(data, where=where), identity, where=where)
    except CorruptFileError as error:
        raise error if error.cure else _damaged(str(error)) from error
    if found.number != number:
        raise _damaged(f"{where}: the record is decision {found.number}")
    return found


def parse_decision(plain: Record, identity: str, *, where: str) -> DecisionState:
    """A record as the state that it carries."""
    text, done = plain.get("transaction"), plain.get("committed")
    given: dict[str, Any] = {"identity": identity, **plain, "transaction": None}
    if isinstance(done, Mapping):
        given["committed"] = {**done, "identity": identity}
    if isinstance(text, str):
        try:
            given["transaction"] = decode_transaction(base64.b64decode(text, validate=True))
        except (ValueError, FormatError) as error:
            raise _damaged(f"{where}: transaction: {error}") from error
    found = parse_record(DecisionState, given, where=where)
    if not found.number or not found.outcome:
        raise _damaged(f"{where}: the number or the outcome is missing")
    if found.outcome not in _OUTCOMES:
        raise unsupported(where, "outcome", expected=" or ".join(_OUTCOMES), got=found.outcome)
    for owner in (found.identity, identity if found.finished is None else found.finished.identity):
        if owner != identity:
            raise _damaged(f"{where}: the record belongs to {owner}")
    return found


def _damaged(text: str) -> CorruptFileError:
    return CorruptFileError(text, cure="Run `lance staged repair`; it sets what is damaged aside, and names it.")


def look(store: Store, identity: str, *, start: int = 1) -> DecisionState:
    """The state of an identity: its numbers by name, then the segments. `start`: a number that is known to have been
    there."""
    return look_many(store, [identity], starts={identity: start})[identity]


def look_many(
    store: Store,
    identities: Sequence[str],
    *,
    starts: Mapping[str, int] | None = None,
    damaged: dict[str, CorruptFileError] | None = None,
) -> dict[str, DecisionState]:
    """`look` of many at once: a group of one task by one listing where the store's listings show all that was put.

    With `damaged`, an identity whose records cannot be read is put there, and has no state.
    """
    wanted = [*dict.fromkeys(identities)]
    highest = _highest(store, wanted)
    # Behind the numbers: beside the reading of the highest ones, unless the numbers are found by reading them.
    folding = begin(store, lambda: folded_records(store, wanted)) if wanted and len(highest) == len(wanted) else None

    def read(store: Store, identity: str) -> DecisionState | CorruptFileError | None:
        start, number = (starts or {}).get(identity, 1), highest.get(identity)
        try:
            if number is not None:
                return read_decision(store, identity, number) if number else None
            found = last_of(store, identity, start)
            return last_of(store, identity, 1) if found is None and start > 1 else found
        except CorruptFileError as error:
            if damaged is None:
                raise
            return error

    found = dict(zip(wanted, each(store, wanted, read), strict=True))
    folded = folded_records(store, wanted) if folding is None else folding()
    states: dict[str, DecisionState] = {}
    for identity in wanted:
        own = found[identity]
        try:
            if isinstance(own, CorruptFileError):
                raise own
            if own is None and highest.get(identity):
                states[identity] = look(store, identity)  # folded in the meantime
            else:
                states[identity] = _with_segments(store, identity, own, folded.get(identity))
        except CorruptFileError as error:
            if damaged is None:
                raise
            damaged[identity] = error
    return states


def _highest(store: Store, identities: Sequence[str]) -> dict[str, int]:
    """The highest number of each identity that shares its beginning with others, 0 for none, where a listing is complete and
    in order."""
    groups: dict[str, list[str]] = {}
    for identity in identities:
        groups.setdefault(identity[:_LISTED_TOGETHER], []).append(identity)
    groups = {prefix: members for prefix, members in groups.items() if len(members) > _FEW}
    if not groups or not isinstance(store, ListsInOrder) or not store.lists_in_order:
        return {}
    highest = {identity: 0 for members in groups.values() for identity in members}
    for prefix in groups:
        for identity, number in _numbers(store, prefix):
            if identity in highest:
                highest[identity] = max(number, highest[identity])
    return highest


def _numbers(store: ListsInOrder, prefix: str) -> Iterable[tuple[str, int]]:
    last, page = prefix, 1000
    while True:
        names = store.names_after(f"{naming.DECISIONS}/", last, most=page)
        for name in names:
            found = parse_decision_name(name)
            if not name.startswith(prefix):
                return
            if found is not None:
                yield found
        if len(names) < page:
            return
        last = names[-1]


def last_of(store: Store, identity: str, start: int = 1) -> DecisionState | None:
    """The last of the numbers from one on that are there without a gap."""
    found, number = None, start
    while (following := read_decision(store, identity, number)) is not None:
        found, number = following, number + 1
    return found


def _with_segments(
    store: Store, identity: str, found: DecisionState | None, record: Record | CorruptFileError | None
) -> DecisionState:
    """What is at or below the number in the segments is void; what is above it counts."""
    seen = -1
    for _ in range(_MAX_TRIES):
        if isinstance(record, CorruptFileError):
            raise record
        folded = None if record is None else parse_decision(record, identity, where=f"{store.uri}: folded decisions")
        if folded is None or (found is not None and found.number > folded.number):
            return found or DecisionState(identity)
        if folded.number == seen:
            return folded  # nothing was above it, and it still is what was folded last
        seen = folded.number
        found = last_of(store, identity, seen + 1)
        record = folded_records(store, [identity]).get(identity)
        if record is None:  # an older generation has answered, where a late put took the hint back; or it was forgotten
            record = folded_records(store, [identity], is_newest=True).get(identity)
            found = found if record is not None else last_of(store, identity)
    raise StoreError(f"{store.uri}: decisions of {identity} are folded as fast as they are read", uri=store.uri)


Choose = Callable[[DecisionState], "DecisionState | None"]
"""The state after a decision; None when there is nothing to decide."""


def decide(store: Store, identity: str, choose: Choose, *, known: DecisionState | None = None) -> DecisionState:
    """Put a decision as the next number: the state then. Who loses the number reads again, and chooses again.

    `known`: the state as the caller has just read it. StoreError when the store does not answer, with what it said last.
    """
    state = look(store, identity) if known is None else known
    failure: StoreError | None = None
    for _ in range(_MAX_TRIES):
        following = choose(state)
        if following is None:
            return state
        failure = _put(store, following)
        if failure is None:
            return following
        state = look(store, identity)
    raise StoreError(f"{store.uri}: no decision about {identity} could be put: {failure}", uri=store.uri) from failure


def _put(store: Store, state: DecisionState) -> StoreError | None:
    """None when it is there, else why it is not. StoreRefusedError is raised: to ask again would not help."""
    path, data = decision_path(state.identity, state.number), encode_record(state.to_plain())
    try:
        store.put_if_absent(path, data)
        return None
    except StoreError as error:
        try:
            return None if bytes(store.get(path)) == data else error  # only the reply was lost, or somebody was first
        except NotFoundError:
            if isinstance(error, StoreRefusedError):
                raise error from None
            if not isinstance(error, AlreadyExistsError):
                log.info("%s: %s got no answer: %s", store.uri, path, error)
            return error


def say_committed(store: Store, work: CommittedWork, *, by: str, known: DecisionState | None = None) -> DecisionState:
    """Note that an identity was committed, as the caller has seen in the log."""

    def choose(state: DecisionState) -> DecisionState | None:
        before = state.committed
        if before is not None and before.version == work.version and not is_other_table(before.table_id, work.table_id):
            return None
        # Whoever calls has seen it in the log; another version is that of a table that was here before.
        return state.commit(replace(work, committed_at=time.time()), by=by)

    return decide(store, work.identity, choose, known=known)


def settle_by_hand(store: Store, identity: str, *, version: int) -> DecisionState:
    """Note a person's word that an identity was committed, where the history that would show it was removed."""
    work = CommittedWork(identity, version, transaction=SETTLED_BY_HAND, table_id=table_id_of(store))
    return say_committed(store, work, by=SETTLED_BY_HAND)


def list_identities(store: Store) -> dict[str, list[int]]:
    """Every identity that has decisions of its own, with their numbers, sorted."""
    found: dict[str, list[int]] = {}
    for name in store.list_names(f"{naming.DECISIONS}/"):
        parsed = parse_decision_name(name)
        if parsed is not None:
            found.setdefault(parsed[0], []).append(parsed[1])
    return {identity: sorted(numbers) for identity, numbers in sorted(found.items())}


def _inline(spec: Mapping[str, Any], transaction: Transaction) -> dict[str, Any]:
    """Spec and transaction, so that a commit need not read two more files; {} when large."""
    data = encode_transaction(transaction)
    if len(data) > _MAX_INLINE:
        return {}
    found = {"spec": dict(spec), "transaction": base64.b64encode(data).decode()}
    return found if len(encode_record(found)) <= _MAX_INLINE else {}
