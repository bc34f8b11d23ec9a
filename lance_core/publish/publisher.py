"""What a commit call writes: its intent, the files of its tries and its manifests.

::

    wait_for_intent                        before the first manifest
    commit(fold, newest)                   one version: rebased, put, tried again
    end                                    none of its puts can arrive any more: the intent goes

`in_doubt` says that a put may still arrive, or that a file which was written in vain is still there: then the intent stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from lance_core.commit import naming
from lance_core.commit.backoff import DEFAULT_MAX_RETRIES
from lance_core.commit.committed import AlsoJudge, Committed
from lance_core.commit.conflicts import delete_quietly
from lance_core.commit.loop import LoopRequest, commit_in_detail, rebase_onto
from lance_core.commit.manifests import KnownVersions, OpenVersion, open_version
from lance_core.commit.rebase import Rebased
from lance_core.commit.references import fragment_paths
from lance_core.errors import CommitStateUnknownError
from lance_core.format.manifest import Manifest
from lance_core.io.parallel import begin
from lance_core.io.store import Store
from lance_core.publish.decisions import DecisionState
from lance_core.publish.errors import InDoubtError, NotWholeError, in_doubt
from lance_core.publish.fold import Fold, fold_uuid
from lance_core.publish.grow import grow
from lance_core.publish.intent import Intent, extend_intent, put_intent, remove_intent
from lance_core.publish.members import Loaded, lost_files, quietly
from lance_core.publish.merge import merge_rows
from lance_core.publish.model import StagedTransaction
from lance_core.publish.preconditions import Concerns, judge_members
from lance_core.table.carried import written_fragments
from lance_core.table.draft import TableOptions
from lance_core.table.transaction import Transaction

IfMoved = Literal["fail", "overwrite"]
Check = Callable[[Sequence[tuple[StagedTransaction, Transaction]], Manifest | None], None]
"""Called with what is about to be published and the newest version, before every publication; raises to refuse."""
ReExecute = Callable[[StagedTransaction, str], StagedTransaction]
"""Plans and stages one identity's work again on the newest version, in the place of a finished attempt; called while the
commit has its turn. The second argument names the commit that asks."""


@dataclass(frozen=True, kw_only=True)
class CommitRequest:
    """What is to be committed, and how.

    `if_moved`: whether a staged Overwrite or Restore refuses ("fail") or replaces ("overwrite") what came since it was
    planned. `options` matter when this creates the table. `re_execute` is asked to stage again what a concurrent commit
    invalidated; without it, or when `may_re_execute` says no of one of them, such a conflict is raised. `concerns` is called
    for each version between the one a member was planned on and the one that is written, right before it is written: if one
    brought rows that the member should have known, that is a conflict. With `partial`, members that cannot be committed are
    named in the result (`refused`) and the others are committed; if none can, the first refusal is raised. `states`: the
    decisions as the caller has just read them. `single`: one reference may be published by `single`; not if that was tried.
    """

    refs: tuple[StagedTransaction, ...]
    if_moved: IfMoved = "fail"
    options: TableOptions | None = None
    check: Check | None = None
    re_execute: ReExecute | None = None
    may_re_execute: Callable[[StagedTransaction], bool] = lambda _: True
    max_retries: int = DEFAULT_MAX_RETRIES
    concerns: Concerns | None = None
    partial: bool = False
    states: Mapping[str, DecisionState] = field(default_factory=dict)
    single: bool = True


class Publisher:
    """The writing half of one commit call."""

    def __init__(self, store: Store, request: CommitRequest, wanted: Mapping[str, StagedTransaction]) -> None:
        self._store, self._request = store, request
        members = {ref.identity: ref.attempt for ref in wanted.values()}
        self._intent = Intent(naming.new_attempt(), uuids=(fold_uuid(wanted.values()),), attempts=members)
        self.versions = KnownVersions()
        self.in_doubt = False
        self._whole: set[tuple[str, str]] = set()
        self._intended: Callable[[], Intent] | None = None

    @property
    def commit_id(self) -> str:
        """The name of this commit, which its files carry."""
        return self._intent.commit

    @property
    def records(self) -> list[str]:
        """What may be removed when all is committed and decided. Nothing while a put is in doubt."""
        return [] if self.in_doubt or self._intended is None else [self._intent.path]

    def intend(self, newest: int) -> None:
        """Begin to put the intent, once; `newest` is the newest version."""
        if self._intended is None:
            self._intent = replace(self._intent, base=newest)
            self._intended = begin(self._store, partial(put_intent, self._store, self._intent))

    @property
    def is_intended(self) -> bool:
        """Whether the intent is there, or on its way."""
        return self._intended is not None

    def wait_for_intent(self) -> None:
        """The intent is there when this returns."""
        if self._intended is not None:
            self._intended()

    def extend_intent(self, members: Mapping[str, str], *, uuids: Iterable[str] = ()) -> None:
        """Say in the intent what may be published; writes only changes."""
        self._intent = extend_intent(self._store, self._intent, uuids=uuids, attempts=members)

    def end(self) -> None:
        """This commit is over and none of its puts can arrive: the absence of its intent says so."""
        if self.in_doubt or self._intended is None:
            return
        quietly(self._intended)
        quietly(partial(remove_intent, self._store, self._intent))

    def commit(self, fold: Fold, newest: OpenVersion | None) -> Committed:
        """Publish a fold; `newest` is the newest version, if that was read after what this call has published last."""
        if not fold.settles_late:
            return self._publish(fold, fold.transaction, newest)
        onto, uuid = newest or open_version(self._store), fold.transaction.uuid
        by_uuid = {item.ref.identity: item for item in fold.members}

        def onto_newest(transaction: Transaction) -> Rebased:
            judge = self._judge_for([by_uuid[transaction.uuid]])
            asked = LoopRequest(attempt=self.commit_id, also_judge=judge, open_at=self.versions)
            return rebase_onto(self._store, transaction, onto, asked)

        if fold.grows:
            return self._publish(fold, grow(fold.members, onto.manifest, uuid=uuid, rebase=onto_newest), newest)
        merged = merge_rows(self._store, fold.members, onto.manifest, uuid=uuid, attempt=self.commit_id, rebase=onto_newest)
        try:
            done = self._publish(fold, merged.transaction, newest)
        except InDoubtError:
            raise  # the files may be in use
        except Exception:
            self._delete(merged.files)
            raise
        used = frozenset(fragment_paths(written_fragments(done.transaction.operation)))
        self._delete(path for path in merged.files if path not in used)
        return done

    def _delete(self, paths: Iterable[str]) -> None:
        self.in_doubt = not delete_quietly(self._store, *paths) or self.in_doubt

    def _note_doubt(self) -> None:
        self.in_doubt = True

    def _publish(self, fold: Fold, transaction: Transaction, newest: OpenVersion | None) -> Committed:
        asked = LoopRequest(
            max_retries=self._request.max_retries,
            options=self._request.options,
            strict=fold.strict,
            attempt=self.commit_id,
            before_put=lambda _: self._require_whole(fold),
            on_doubt=self._note_doubt,
            also_judge=self._judge_for(fold.members),
            newest=newest,
            open_at=self.versions,
            keeps_files=self.in_doubt,
        )
        try:
            return commit_in_detail(self._store, transaction, asked)
        except CommitStateUnknownError as error:
            # The next call looks at the log before it does anything: this one is safe to repeat, unlike a bare commit.
            raise in_doubt(self._store, transaction, error) from error

    def _require_whole(self, fold: Fold) -> None:
        """Before the first put that may carry them: see that all files are there. What aborts a finished attempt makes the
        put fail by a version before it deletes, so once is enough."""
        fresh = [item for item in fold.members if (item.ref.identity, item.ref.attempt) not in self._whole]
        refusals = lost_files(self._store, fresh) if fresh else {}
        self._whole.update((item.ref.identity, item.ref.attempt) for item in fresh if item.ref.identity not in refusals)
        if refusals:
            raise NotWholeError(refusals)

    def _judge_for(self, members: Sequence[Loaded]) -> AlsoJudge | None:
        concerns = self._request.concerns
        return None if concerns is None else partial(judge_members, self._store, members, concerns)
