"""Find out whether an identity has landed. The ledger shows where to search, the log decides, nothing is guessed.

::

    ledger record       its own or a folded one; it counts if the log does not contradict it: its version is not beyond
                        the newest, and, where that version is still there, it carries the identity, and where it is not,
                        the record is of this table's incarnation; else the record is void (a table made again)
    log                 the transaction of every version after the one the work was staged on
    log with gaps       files of the attempt in the newest version prove the landing; else the attempt's fence tells which
                        commits were about to publish it: if none was, or each of them has ended without a doubt, the ledger
                        is read once more, because the commit that landed it has updated it by now; else it is unknown
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from lance_core.commit import naming
from lance_core.commit.history import is_ancestor
from lance_core.commit.identities import carries
from lance_core.commit.manifests import Listing, OpenAt, list_once, load_manifest, open_or_none, version_numbers
from lance_core.commit.references import referenced_files
from lance_core.commit.transactions import load_transaction, transaction_of
from lance_core.errors import CommitStateUnknownError, CorruptFileError, NotFoundError
from lance_core.format.manifest import Manifest
from lance_core.io.parallel import begin, each
from lance_core.io.store import Store
from lance_core.publish.model import StagedTransaction
from lance_core.publish.registry.attempts import read_finished
from lance_core.publish.registry.claims import is_claimed
from lance_core.publish.registry.fences import publishers
from lance_core.publish.registry.incarnation import incarnation_of, is_other
from lance_core.publish.registry.ledger import (
    Landing,
    complete_version,
    folded_of,
    landing_of,
    landings_of,
    own_landings,
    record_fold,
    record_landed,
)
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

_FEW = 4
"""So many versions are read sooner than the note up to where the ledger is complete."""


def find_landed(store: Store, identity: str, since_version: int, *, own_commit: str | None = None) -> int | None:
    """The version at which an identity landed, None when it certainly has not.

    Looks at the ledger, then at the transaction of every version after `since_version` (0: from the beginning). Raises
    CommitStateUnknownError when some of those are gone, the ledger is silent, and a commit was about to publish it.
    `own_commit` names the caller's own commit, which says nothing.
    """
    return find_landed_many(store, {identity: since_version}, own_commit=own_commit)[identity]


def find_landed_many(
    store: Store,
    since: Mapping[str, int],
    *,
    own_commit: str | None = None,
    unknown: dict[str, CommitStateUnknownError] | None = None,
    listed: Callable[[Listing], None] = lambda _: None,
    later_only: Collection[str] = (),
    open_at: OpenAt = open_or_none,
) -> dict[str, int | None]:
    """`find_landed` for many identities, each with the version it was staged on; the log is read once.

    With `unknown`, those whose outcome is unknown are put there instead of being raised. `listed` gets the versions that
    there are. `later_only` names those that cannot have landed in the version they were staged on, or before: where every
    version since is there, the log alone decides about them, and the ledger is not asked. `open_at` opens a version, for a
    caller that asks for the same ones again.
    """
    first = begin(store, lambda: list_once(store))
    asked = [identity for identity in since if identity not in later_only]
    known = dict(zip(asked, own_landings(store, asked), strict=True))
    listing = first()
    late = [identity for identity in since if identity in later_only and not listing.is_complete_since(since[identity])]
    known.update(zip(late, own_landings(store, late), strict=True))
    if any(item is not None and item.version > max(listing.numbers, default=0) for item in known.values()):
        listing = list_once(store)  # a record of a version younger than the listing would look void
    present = listing.numbers
    listed(listing)
    damaged: dict[str, CorruptFileError] = {}
    known.update(folded_of(store, [identity for identity, item in known.items() if item is None], damaged=damaged))
    void = void_landings(store, [item for item in known.values() if item is not None], present)
    found: dict[str, int | None] = dict.fromkeys(since)
    found.update({name: item.version for name, item in known.items() if item is not None and name not in void})
    for identity, error in damaged.items():
        doubt = CommitStateUnknownError(str(error), uri=store.uri)
        if unknown is None:
            raise doubt
        unknown[identity] = doubt
    silent = {name: since[name] for name, version in found.items() if version is None and name not in damaged}
    if silent and present:
        found.update(_look_in_log(store, silent, present, own_commit=own_commit, doubts=unknown, open_at=open_at))
    return found


def known_landing(store: Store, identity: str) -> Landing | None:
    """The ledger's record of an identity, if the log does not contradict it."""
    landing = landing_of(store, identity)
    if landing is None or void_landings(store, [landing], version_numbers(store)):
        return None
    return landing


def void_landings(store: Store, landings: Iterable[Landing], present: Sequence[int]) -> dict[str, str]:
    """Records that are not of this table as it is, by identity, with the reason: it was made again or restored."""
    newest, there = (present[-1] if present else 0), set(present)
    void: dict[str, str] = {}
    by_version: dict[int, list[Landing]] = {}
    pruned: list[Landing] = []
    for landing in landings:
        if landing.version > newest:
            void[landing.identity] = f"it refers to version {landing.version}, but the newest version is {newest}"
        elif landing.has_witness and landing.version in there:
            by_version.setdefault(landing.version, []).append(landing)
        elif landing.incarnation:
            pruned.append(landing)
    for version, items in by_version.items():
        transaction = _load(store, version)
        others = [item for item in items if transaction is not None and not _made_it(transaction, item)]
        if others and transaction is not None and _may_be_stray(store, version, transaction, there, may_be_twice=True):
            pruned.extend(item for item in others if item.incarnation)  # theirs was pruned, and the number taken again
            continue
        void.update({item.identity: f"version {version} of this table has another transaction" for item in others})
    incarnation = incarnation_of(store, present=there) if pruned else ""
    for landing in pruned:
        if is_other(landing.incarnation, incarnation):
            void[landing.identity] = (
                f"it belongs to incarnation {landing.incarnation}, but the table has incarnation {incarnation}"
            )
    for identity, reason in void.items():
        log.warning("%s: the ledger record of %s is ignored: %s", store.uri, identity, reason)
    return void


def _made_it(transaction: Transaction, landing: Landing) -> bool:
    return transaction.uuid == landing.transaction or carries(transaction, landing.identity)


def _look_in_log(
    store: Store,
    silent: Mapping[str, int],
    present: Sequence[int],
    *,
    own_commit: str | None,
    doubts: dict[str, CommitStateUnknownError] | None,
    open_at: OpenAt,
) -> dict[str, int | None]:
    known = set(present)
    wanted = range(min(silent.values()) + 1, present[-1] + 1)
    if len(wanted) > _FEW or not known.issuperset(wanted):
        # Of these the ledger would know.
        wanted = range(max(wanted.start, min(complete_version(store), present[-1]) + 1), wanted.stop)
    found: dict[str, int | None] = dict.fromkeys(silent)
    unknown = [version for version in wanted if version not in known]
    numbers = [version for version in wanted if version in known]
    for version, opened in zip(numbers, each(store, numbers, open_at), strict=True):
        transaction = None if opened is None else transaction_of(store, opened)
        if transaction is None:
            unknown.append(version)
            continue
        landed = [identity for identity in silent if carries(transaction, identity)]
        # Where the number before is there, a tag may keep it alone: what would count as a landing is judged all the same.
        if (landed or (version - 1 not in known and version != 1)) and _may_be_stray(store, version, transaction, known):
            unknown.append(version)
            continue
        found.update(dict.fromkeys(landed, version))
        if landed:
            record_fold(
                store, landed, version=version, transaction=transaction, incarnation=incarnation_of(store, present=known)
            )
    if unknown:
        open_ends = {item: base for item, base in silent.items() if found[item] is None}
        for identity, version in _in_use(store, open_ends).items():
            found[identity] = version
            del open_ends[identity]
        for doubt in [*_doubts(store, open_ends, unknown, own_commit=own_commit)]:
            if doubts is None:
                raise doubt[1]
            doubts[doubt[0]] = doubt[1]
            del open_ends[doubt[0]]
        found.update(_told_meanwhile(store, open_ends))
    return found


def _told_meanwhile(store: Store, identities: Iterable[str]) -> dict[str, int]:
    """The ledger once more, behind the fences: a commit tells it before it lifts its fence or drops its claim."""
    asked = [*identities]
    landings = [item for item in landings_of(store, asked) if item is not None]
    void = void_landings(store, landings, version_numbers(store))
    return {item.identity: item.version for item in landings if item.identity not in void}


def _may_be_stray(
    store: Store, version: int, transaction: Transaction, known: set[int], *, may_be_twice: bool = False
) -> bool:
    """Whether no later version comes from this one, or none can be seen to: it was put where others had been pruned (see
    `history`). Also where it is gone by now: whoever has put it there may have found so, and removed it.

    Whosever it is: one that fills the number of a landing that was pruned would hide the gap. `may_be_twice` as there.
    """
    if version == max(known):
        return False  # nothing is above it
    try:
        return not is_ancestor(store, load_manifest(store, version), transaction, may_be_twice=may_be_twice)
    except (NotFoundError, CommitStateUnknownError):
        return True


def in_doubt(store: Store, since: Mapping[str, int]) -> dict[str, int]:
    """Identities of which it is unknown whether they have landed, each with the first version whose history is gone.

    `since` gives the version that each was staged on. Reads only: what is found to have landed is not put on record.
    """
    known = landings_of(store, list(since), damaged={})
    open_ends = {identity: since[identity] for identity, landing in zip(since, known, strict=True) if landing is None}
    present = set(version_numbers(store))
    if not open_ends or not present:
        return {}
    wanted = range(min(open_ends.values()) + 1, max(present) + 1)
    gone = [version for version in wanted if version not in present]
    if not gone:
        return {}
    for transaction in each(store, [version for version in wanted if version in present], _load):
        for identity in [item for item in open_ends if transaction is not None and carries(transaction, item)]:
            del open_ends[identity]
    for identity, _ in _members_in_use(store, load_manifest(store), [*open_ends]):
        del open_ends[identity]
    return {identity: error.version or gone[0] for identity, error in _doubts(store, open_ends, gone, own_commit=None)}


def _in_use(store: Store, identities: Iterable[str]) -> dict[str, int]:
    """Those whose files the newest version refers to: they have landed, at that version or before. It is noted as theirs."""
    newest = load_manifest(store)
    found: dict[str, int] = {}
    for identity, finished in _members_in_use(store, newest, identities):
        record_landed(
            store,
            identity,
            version=newest.version,
            transaction="",
            attempt=finished.attempt,
            digest=finished.digest,
            incarnation=incarnation_of(store),
        )
        found[identity] = newest.version
    return found


def _members_in_use(store: Store, newest: Manifest, identities: Iterable[str]) -> Iterator[tuple[str, StagedTransaction]]:
    # Not the transaction's file: a version that withdraws an attempt names its own after that attempt.
    used = [path for path in referenced_files(newest) if not path.startswith(f"{naming.TRANSACTIONS}/")]
    for identity in identities:
        finished = read_finished(store, identity)
        if finished is not None and any(naming.is_of_any(path, finished.writers) for path in used):
            yield identity, finished


def _doubts(
    store: Store, open_ends: Mapping[str, int], unknown: Sequence[int], *, own_commit: str | None
) -> Iterator[tuple[str, CommitStateUnknownError]]:
    """Where the log has gaps, the fences decide: no commit comes near a publication without one."""
    for identity, base in open_ends.items():
        gone = sorted(version for version in unknown if version > base)
        if gone and _was_to_be_published(store, identity, own_commit=own_commit):
            yield identity, _unknown(store, identity, gone)


def _was_to_be_published(store: Store, identity: str, *, own_commit: str | None) -> bool:
    finished = read_finished(store, identity)
    if finished is None:
        return False
    fences = publishers(store, identity, finished.attempt, group=finished.group)
    others = [item for item in fences or () if item.commit != own_commit]
    return fences is None or any(item.alone or is_claimed(store, item.commit) for item in others)


def _load(store: Store, version: int) -> Transaction | None:
    try:
        return load_transaction(store, version)
    except NotFoundError:
        return None


def _unknown(store: Store, identity: str, gone: Sequence[int]) -> CommitStateUnknownError:
    shown = f"{gone[0]}" if len(gone) == 1 else f"{gone[0]} to {gone[-1]}"
    return CommitStateUnknownError(
        f"{store.uri}: it is unknown whether {identity} has landed: the ledger has no record of it, "
        f"a commit of it had begun, and the history of version {shown} was removed",
        uri=store.uri,
        version=gone[0],
        cure="Check whether its rows are in the table, then run `lance staged abort --certain` (they are not) or "
        "`lance staged settle --version N` (they are).",
    )
