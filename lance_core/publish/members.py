"""The members of a commit: load their staged transactions, see that their files are there, and clear what is committed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lance_core.commit import naming
from lance_core.commit.references import data_paths, deletion_paths, fragment_paths
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import CorruptFileError, IncompatibleConflictError, LanceError, RetryableConflictError
from lance_core.io.many import delete_committed, missing
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.abort import AbortRequest, remove_attempts
from lance_core.publish.attempts import record_path
from lance_core.publish.decisions import DecisionState
from lance_core.publish.model import StagedTransaction
from lance_core.publish.staged_properties import facts_of, staged_writers
from lance_core.table.carried import written_fragments
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)


STAGE_AGAIN = "Abort the staged transaction (`lance staged abort`) and clear its staging task."


@dataclass(frozen=True, slots=True)
class Loaded:
    """A staged transaction with its reference."""

    ref: StagedTransaction
    transaction: Transaction

    @property
    def writers(self) -> tuple[str, ...]:
        """The attempts that wrote its files."""
        return staged_writers(self.transaction, self.ref.attempt)


def load_members(
    store: Store, refs: Sequence[StagedTransaction], states: Mapping[str, DecisionState]
) -> list[Loaded | LanceError]:
    """What references refer to; the refusal of one that cannot be committed."""

    def load(store: Store, ref: StagedTransaction) -> Loaded | LanceError:
        state = states.get(ref.identity)
        try:
            known = None if state is None or not state.is_finished(ref.attempt) else state.transaction
            if known is None and ref.transaction_path:
                known = read_transaction_file(store, ref.transaction_path)
        except LanceError as error:
            if error.retryable:
                raise
            return error
        if known is None:
            return files_gone(store, ref, [ref.transaction_path])
        if known.uuid == ref.identity:
            return Loaded(ref, known)
        # Committed work is found by the uuid: under another one it would not be found, and would be committed twice.
        what = f"{store.uri}: {ref.transaction_path}: the uuid is {known.uuid!r}, expected {ref.identity!r}"
        return CorruptFileError(what, uri=store.uri, cure=STAGE_AGAIN)

    return each(store, refs, load)


def lost_files(store: Store, items: Sequence[Loaded]) -> dict[str, LanceError]:
    """Refusals of those that have lost files, by identity; all files are looked for at once."""
    named = {item.ref.identity: data_paths(item.transaction, writers=item.writers) for item in items}
    gone = frozenset(missing(store, [path for paths in named.values() for path in paths]))
    lost = {item.ref: [path for path in named[item.ref.identity] if path in gone] for item in items}
    return {ref.identity: files_gone(store, ref, paths) for ref, paths in lost.items() if paths}


def files_gone(store: Store, ref: StagedTransaction, paths: Sequence[str]) -> IncompatibleConflictError:
    """The refusal of a member that is not whole."""
    what = f"{store.uri}: {len(paths)} staged files of {ref.identity} no longer exist, for example {paths[0]}"
    cure = "The cleanup of another library may have removed them before the commit; run the staging task again."
    return IncompatibleConflictError(what, uri=store.uri, cure=cure)


def was_aborted(store: Store, ref: StagedTransaction, state: DecisionState) -> IncompatibleConflictError:
    """The refusal of a member that does not wait for its commit."""
    now = "nothing is staged" if state.finished is None else f"attempt {state.finished.attempt} is staged"
    what = f"{store.uri}: attempt {ref.attempt} of {ref.identity} was aborted; for this identity {now}"
    return IncompatibleConflictError(what, uri=store.uri, cure="Run the staging task again and commit its result.")


def clear_committed(
    store: Store, items: Sequence[Loaded], published: Transaction, named: str, *, states: Mapping[str, DecisionState],
    last: Sequence[str] = (),
) -> None:  # fmt: skip
    """Remove what staged transactions left that were committed in `published`: files before records, so that a killed
    clearing is resumed by garbage collection.

    `named`: the transaction file of that version, which may be a staged one. `last`: what goes behind all else, in the same
    request where the store removes many at once.
    """
    by_name: list[Loaded] = []
    for item in items:
        state = states.get(item.ref.identity)
        is_more = facts_of(item.transaction).has_more or len(item.writers) > 1
        if is_more or (state is not None and state.superseded):
            by_name.append(item)
    keys = [(item.ref.identity, item.ref.attempt) for item in by_name]
    keys += [(name, former) for name, _ in keys if name in states for former in states[name].superseded]
    remove_attempts(store, keys, AbortRequest("its commit", committed_too=True))
    plain = [item.ref for item in items if item not in by_name]
    kept = naming.transaction_path(named) if named else ""
    files = [*_superseded(items, published), *(ref.transaction_path for ref in plain if ref.transaction_path != kept)]
    delete_committed(store, files, [[record_path(ref.identity, ref.attempt)] for ref in plain], last=last)


def _superseded(items: Iterable[Loaded], published: Transaction) -> list[str]:
    """Deletion files of committed attempts that a rebase or a fold replaced by others: the version does not name them."""
    staged = [path for item in items for path in deletion_paths(item.transaction, attempt=item.ref.attempt)]
    used = frozenset(fragment_paths(written_fragments(published.operation))) if staged else frozenset()
    return [path for path in staged if path not in used]


def quietly(action: Callable[[], object]) -> bool:
    """Do something that garbage collection does as well, when it fails here; whether it was done."""
    try:
        action()
    except LanceError as error:
        log.warning("left for garbage collection: %s", error)
        return False
    return True


class NotWholeError(LanceError):
    """Members that were given up, or lost files, since they were loaded."""

    def __init__(self, refusals: Mapping[str, LanceError]) -> None:
        super().__init__("; ".join(str(error) for error in refusals.values()))
        self.refusals = refusals


def outdated(
    store: Store, members: Sequence[Loaded], numbers: Sequence[int], theirs: Transaction, version: int
) -> MemberConflictError:
    """A version of others brought rows that staged transactions should have known: members at these positions."""
    ref = members[numbers[0]].ref
    what = f"{store.uri}: {ref.operation} {ref.identity} was planned on version {ref.read_version}, "
    what += f"but {theirs.operation.name} of version {version} has since added rows that it would have to change"
    cure = "Clear its staging task, or commit with re_execute=True."
    error = RetryableConflictError(what, uri=store.uri, version=ref.read_version, other_version=version, cure=cure)
    return blame(error, numbers)


class MemberConflictError(RetryableConflictError):
    """Some members of a fold, by position, have to be planned again; the others are fine. `outdated` met a version of
    others, `behind` another member, whose position it has."""

    outdated: tuple[int, ...] = ()
    behind: Mapping[int, int] = MappingProxyType({})


def blame(
    error: RetryableConflictError, outdated: Sequence[int], behind: Mapping[int, int] | None = None
) -> MemberConflictError:
    """The same conflict, with the members that it concerns."""
    found = MemberConflictError(str(error), uri=error.uri, version=error.version, other_version=error.other_version)
    found.outdated, found.behind = tuple(outdated), dict(behind or {})
    return found
