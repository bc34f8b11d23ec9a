"""Scenarios that a wider world needs: strict work, two of one kind in one commit, and faults that come in pairs."""

from __future__ import annotations

from collections.abc import Mapping

from lance_core.io.resolve import resolve_store
from lance_core.publish.model import StagedTransaction
from tests.simulation import actors as do
from tests.simulation import outsider, setups
from tests.simulation.model import IdentityWork
from tests.simulation.scenario import Scenario, Stage
from tests.simulation.schedule import CRASH, ERROR, LATE, LOST, PAIRS
from tests.simulation.stores import URI

_PLAIN = (CRASH, LOST, LATE)


def strict_overwrite() -> Stage:
    """A strict overwrite beside an append, which must never be erased."""
    do.begin_table(setups.BASE)
    append = do.append_work("append", (100,))
    overwrite = do.strict_overwrite("overwrite", (7, 8), over=setups.BASE, actor="commit")
    do.stage(overwrite, append)
    return Stage((overwrite, append), {"commit": do.commit(overwrite), "second commit": do.commit(append)})


def two_replacements_in_one() -> Stage:
    """Two replacements of one day, which has no rows yet, in one commit, beside a commit of the first."""
    do.begin_table(setups.BASE)
    low = setups.LINK
    works = (do.replace_work("replace 1", low, (101, 102), 1), do.replace_work("replace 2", low, (102, 103), 2))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(*works, tries=3), "second commit": do.commit(works[0], tries=3)})


def two_merges_in_one() -> Stage:
    """Two merges that insert one key, in one commit, beside a commit of the first."""
    do.begin_table(setups.BASE)
    works = (do.merge_work("merge 1", (1, 100), 1), do.merge_work("merge 2", (2, 100), 2))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(*works, tries=3), "second commit": do.commit(works[0], tries=3)})


def one_row_twice() -> Stage:
    """Two updates of one row in one commit, which stages the second again, beside a commit of the second alone."""
    do.begin_table(setups.BASE)
    works = (do.update_work("update 1", 1), do.update_work("update 1 again", 1))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(*works, tries=3), "second commit": do.commit(works[1], tries=3)})


def made_again() -> Stage:
    """A table that was made again where its ledger stayed: the same work is done once more, by two tries and a commit."""
    do.begin_table(setups.BASE)
    work = do.append_work("append", (100,))
    do.stage(work)
    do.commit(work)()
    store = resolve_store(URI)
    for entry in [*store.list("")]:
        if not entry.path.startswith("_lance_core/"):
            store.delete(entry.path)
    for number in range(3):
        other = do.append_work(f"new {number}", (number,))
        do.stage(other)
        do.commit(other)()
    return Stage((work,), {"again": do.in_turn(work.stage, do.commit(work)), "second commit": do.commit(work)})


def _staged_before_its_table(*works: IdentityWork) -> list[StagedTransaction]:
    """Appends that were staged when there was no table: their commit judges no version, whatever has been pruned."""
    refs = do.stage(*works)
    do.begin_table(setups.BASE)
    return refs


def pruned_abort() -> Stage:
    """An attempt is aborted beside its commit, while another library appends and prunes the version of the abort."""
    work = do.append_work("append", (100,))
    (ref,) = _staged_before_its_table(work)
    outside = do.in_turn(do.outside_append((200,)), do.outside_prune)
    actors = {"commit": do.commit(work), "abort": do.abort(ref), "outsider": outside}
    return Stage((work, setups.of_outsider((200,))), actors, frozenset({"outsider"}))


def created_and_aborted() -> Stage:
    """Two appends that find no table: both commits create it, and one of them is aborted."""
    works = (do.append_work("append 1", (100,)), do.append_work("append 2", (101,)))
    (ref, _) = do.stage(*works)
    actors = {"commit": do.commit(works[0], tries=3), "second commit": do.commit(works[1], tries=3), "abort": do.abort(ref)}
    return Stage(works, actors)


def abort_beside_superseding() -> Stage:
    """An attempt is aborted while its commit brings the work up to a newer version."""
    do.begin_table(setups.BASE)
    work, moved = do.update_work("update", 1), do.update_work("moved", 1)
    (ref, _) = do.stage(work, moved)
    do.commit(moved)()
    return Stage((work,), {"commit": do.commit(work, tries=3), "abort": do.abort(ref)})


def pruned_batch() -> Stage:
    """A batch of a stream, while another library compacts and prunes: the configuration tells of it, whatever is gone."""
    do.begin_table(setups.BASE)
    before, work = do.batch_work(6, (99,)), do.batch_work(7, (100,))
    before.stage()
    do.commit(before)()
    work.stage()
    outside = do.in_turn(do.outside_append((200,)), outsider.compact, do.outside_prune)
    actors = {"commit": do.commit(work), "outsider": outside}
    return Stage((work, setups.of_outsider((200,), "outsider")), actors, frozenset({"outsider"}), again=work.stage)


def settled_meanwhile() -> Stage:
    """Two commits of the same appends, beside our cleanup, which says up to where all is decided."""
    works = (do.append_work("append 1", (100,)), do.append_work("append 2", (101,)))
    _staged_before_its_table(*works)
    cleanup = do.in_turn(do.outside_append((200,)), do.cleanup)
    actors = {"commit": do.commit(*works), "second commit": do.commit(*works), "cleanup": cleanup}
    return Stage((*works, setups.of_outsider((200,), "cleanup")), actors, frozenset({"cleanup"}), again=do.cleanup)


def settled_by_cleanup() -> Stage:
    """A commit that may be killed, beside a compaction and our cleanup: nothing may be unknown behind that."""
    work = do.append_work("append", (100,))
    _staged_before_its_table(work)
    actors = {"commit": do.commit(work), "cleanup": do.in_turn(outsider.compact, do.cleanup)}
    return Stage((work,), actors, frozenset({"cleanup"}), again=do.cleanup)


WIDER: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario("strict-overwrite", "a strict overwrite beside an append", strict_overwrite, _PLAIN),
        Scenario(
            "two-replacements-in-one", "two replacements of one day in one commit", two_replacements_in_one, (CRASH, LATE)
        ),
        Scenario("one-row-twice", "two updates of one row, beside a commit of the second", one_row_twice, (CRASH, LATE)),
        Scenario("made-again", "a table is made again where its ledger stayed", made_again, _PLAIN),
        Scenario(
            "pruned-abort",
            "an attempt is aborted beside its commit, and the history is pruned",
            pruned_abort,
            (CRASH,),
            prunes=True,
        ),
        Scenario("pruned-batch", "a stream's batch, while another library prunes", pruned_batch, _PLAIN),
        Scenario("created-and-aborted", "two commits create the table, and one is aborted", created_and_aborted, _PLAIN),
        Scenario(
            "abort-beside-superseding",
            "an attempt is aborted while its commit brings it up",
            abort_beside_superseding,
            _PLAIN,
        ),
        Scenario("settled-meanwhile", "two commits of the same, beside our cleanup", settled_meanwhile, _PLAIN),
        Scenario("settled-by-cleanup", "a commit beside a compaction and our cleanup", settled_by_cleanup, _PLAIN),
        Scenario("two-merges-in-one", "two merges that insert one key, in one commit", two_merges_in_one, (CRASH, LATE)),
        Scenario(
            "rebased-delete-in-doubt",
            "a delete that must be rebased: a put in doubt, and then a refusal",
            setups.rebased_delete,
            (*_PLAIN, ERROR),
            pairs=PAIRS,
        ),
    )
}
