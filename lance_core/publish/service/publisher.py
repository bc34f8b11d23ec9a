"""What a commit call writes: its claim, its fences, the files of its tries and its manifests.

::

    wait_for_claim                         before the first file and the first fence
    commit(fold, newest)                   one version, with a claim: rebased, fenced, put, tried again
    end                                    none of its puts can land any more: the claim goes

`in_doubt` says that a put may still land, or that a file which was written in vain is still there: then the claim stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from lance_core.commit import naming
from lance_core.commit.committed import AlsoJudge, Committed
from lance_core.commit.conflicts import delete_quietly
from lance_core.commit.loop import commit_in_detail
from lance_core.commit.manifests import KnownVersions, OpenVersion, open_version
from lance_core.commit.once import rebase_onto
from lance_core.commit.rebase import Rebased
from lance_core.commit.references import fragment_paths
from lance_core.errors import CommitStateUnknownError
from lance_core.io.many import delete_all
from lance_core.io.parallel import begin
from lance_core.io.store import Store
from lance_core.publish.registry.claims import Claim, drop_claim, renew_claim, write_claim
from lance_core.publish.service.clearing import quietly
from lance_core.publish.service.errors import InDoubtError, NotWholeError, in_doubt
from lance_core.publish.service.fold import Fold
from lance_core.publish.service.grow import grow
from lance_core.publish.service.merge_rows import merge_rows
from lance_core.publish.service.preconditions import Concerns, judge_members
from lance_core.publish.staging.drain import Loaded, require_whole
from lance_core.table.carried import written_fragments
from lance_core.table.draft import TableOptions
from lance_core.table.transaction import Transaction

Key = tuple[str, str]
"""Identity and attempt."""


class Publisher:
    """The writing half of one commit call."""

    def __init__(self, store: Store, claim: Claim, *, options: TableOptions | None, max_retries: int) -> None:
        self._store, self._options, self._max_retries = store, options, max_retries
        self.claim = claim
        self.versions = KnownVersions()
        self.concerns: Concerns | None = None
        self.in_doubt = False
        self.fenced: set[Key] = set()
        """Attempts that this call has decided to publish."""
        self.shared: set[Key] = set()
        """Those of them that another commit had decided to publish before."""
        self.groups: set[str] = set()
        """Groups whose records this call has put: one of another commit is evidence, and stays."""
        self._whole: set[Key] = set()
        self._together: frozenset[Key] = frozenset()
        self._decided_for = 0
        self._claimed = begin(store, partial(write_claim, store, claim))

    @property
    def records(self) -> list[str]:
        """What may be removed when all has landed, in this order: records of groups, whose versions are history then, and
        the claim. Nothing while a put is in doubt."""
        if self.in_doubt:
            return []
        return [*filter(None, map(naming.group_path, sorted(self.groups))), self.claim.path]

    def wait_for_claim(self) -> None:
        """The claim is there when this returns."""
        self._claimed()

    def renew_claim(self, members: Mapping[str, str], *, uuids: Iterable[str] = ()) -> None:
        """Say in the claim what may be published; writes only changes."""
        self.claim = renew_claim(self._store, self.claim, uuids=uuids, attempts=members)

    def end(self, *, records: Sequence[str] = ()) -> None:
        """This commit is over and none of its puts can land: a claim's absence says so. `records` go as well."""
        if self.in_doubt:
            return
        quietly(self._claimed)
        quietly(partial(delete_all, self._store, [path for path in records if path != self.claim.path]))
        quietly(partial(drop_claim, self._store, self.claim))

    def commit(self, fold: Fold, newest: OpenVersion | None) -> Committed:
        """Publish a fold; `newest` is the newest version, if that was read after what this call has published last."""
        if not fold.settles_late:
            return self._publish(fold, fold.transaction, newest)
        onto, uuid, commit = newest or open_version(self._store), fold.transaction.uuid, self.claim.commit
        by_uuid, known = {item.ref.identity: item for item in fold.members}, self.versions

        def onto_newest(transaction: Transaction) -> Rebased:
            judge = self._judge_for([by_uuid[transaction.uuid]])
            return rebase_onto(self._store, transaction, onto, attempt=commit, also_judge=judge, open_at=known)

        if fold.grows:
            return self._publish(fold, grow(fold.members, onto.manifest, uuid=uuid, rebase=onto_newest), newest)
        merged = merge_rows(self._store, fold.members, onto.manifest, uuid=uuid, attempt=commit, rebase=onto_newest)
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
        try:
            return commit_in_detail(
                self._store,
                transaction,
                newest=newest,
                max_retries=self._max_retries,
                options=self._options,
                strict=fold.strict,
                attempt=self.claim.commit,
                before_put=lambda version: self._require_whole(fold, version),
                on_doubt=self._note_doubt,
                also_judge=self._judge_for(fold.members),
                open_at=self.versions,
                keeps_files=self.in_doubt,
            )
        except CommitStateUnknownError as error:
            # The next call looks at the log before it does anything: this one is safe to repeat, unlike a bare commit.
            raise in_doubt(self._store, transaction, error) from error

    def _require_whole(self, fold: Fold, version: int) -> None:
        """Before the first put that may carry them: decide for publication, and see that all is there. What was decided by a
        group was so for one version only."""
        if version != self._decided_for:
            self._whole -= self._together
            self._together = frozenset()
        fresh = [item for item in fold.members if (item.ref.identity, item.ref.attempt) not in self._whole]
        if not fresh:
            return
        self._decided_for = version
        decided = require_whole(self._store, fresh, commit=self.claim.commit, version=version)
        self.shared |= decided.shared
        self._together |= decided.together
        self.groups.update(item.ref.group for item in fresh if (item.ref.identity, item.ref.attempt) in decided.together)
        self.fenced.update((item.ref.identity, item.ref.attempt) for item in fresh)
        whole = [item for item in fresh if item.ref.identity not in decided.refusals]
        self._whole.update((item.ref.identity, item.ref.attempt) for item in whole)
        if decided.refusals:
            raise NotWholeError(decided.refusals)

    def _judge_for(self, members: Sequence[Loaded]) -> AlsoJudge | None:
        return None if self.concerns is None else partial(judge_members, self._store, members, self.concerns)
