"""Set-ups of scenarios: the table, its staged transactions, and the actors. Small, because the schedules do the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulation import actors as do
from tests.simulation import outsider
from tests.simulation.model import IdentityWork, appended, deleted, overwritten
from tests.simulation.scenario import Stage

BASE = (0, 1, 2, 3)
LINK = 100
"""Rows from here on are those that scenarios add."""


_OUTSIDER = frozenset({"outsider", "cleanup"})


def of_outsider(ids: tuple[int, ...], actor: str = "outsider") -> IdentityWork:
    """Rows that an actor adds by itself."""
    return IdentityWork(f"{ids} of {actor}", "", (appended(ids),), lambda: None, actor=actor)


def abort_meets_commit() -> Stage:
    """An attempt is aborted while its commit lands it."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    (ref,) = do.stage(work)
    return Stage((work,), {"commit": do.commit(work), "abort": do.abort(ref)})


def abort_by_hand() -> Stage:
    """A person aborts what is listed after a killed commit and its retry."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    do.stage(work)
    return Stage((work,), {"commit": do.commit(work), "retry": do.commit(work), "abort": do.abort_listed(work)})


def zombie() -> Stage:
    """A first try of a staging task wakes up beside the second."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    return Stage((work,), {"try 1": work.stage, "try 2": work.stage, "commit": do.commit(work)})


def slow_stage() -> Stage:
    """A staging task longer than its lease, beside gc."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    return Stage((work,), {"stage": work.stage, "gc": do.gc(hours_ahead=2), "commit": do.commit(work)})


def changed_work() -> Stage:
    """A staging task asks for other work while the commit lands the former."""
    do.begin_table(BASE)
    old, new = do.append_work("append", (100,)), do.append_work("append", (100, 101))
    do.stage(old)
    either = IdentityWork("append", old.identity, (*old.changes, *new.changes), old.stage)
    return Stage((either,), {"commit": do.commit(old), "stage other work": new.stage})


def changed_work_by_clock() -> Stage:
    """The same, by a clock two hours ahead."""
    made = changed_work()
    ahead = do.skewed(made.actors["stage other work"], hours=2)
    return Stage(made.works, {**made.actors, "stage other work": ahead})


def rebased_delete() -> Stage:
    """A delete that must be rebased, on a store that answers late."""
    do.begin_table(BASE)
    first, second = do.delete_work("delete 1", 1), do.delete_work("delete 2", 2)
    do.stage(first, second)
    do.commit(first)()
    return Stage((second,), {"commit": do.commit(second)})


def rebased_twice() -> Stage:
    """Two commit tasks of a delete that must be rebased: the one that lands removes the file which the other rebases."""
    (work,) = rebased_delete().works
    return Stage((work,), {"commit": do.commit(work), "second commit": do.commit(work)})


def moved_fold() -> Stage:
    """A fold of three while another commit moves its base."""
    do.begin_table(BASE)
    works = (do.delete_work("delete 1", 1), do.update_work("update 3", 3), do.append_work("append", (100,)))
    other = do.delete_work("delete 2", 2)
    do.stage(*works, other)
    return Stage((*works, other), {"commit": do.commit(*works), "other commit": do.commit(other)})


def fold_and_gc() -> Stage:
    """A fold beside gc by a clock two hours ahead."""
    do.begin_table(BASE)
    works = (do.delete_work("delete 1", 1), do.delete_work("delete 2", 2), do.append_work("append", (100,)))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(*works), "gc": do.gc(hours_ahead=2)})


def same_commit_twice() -> Stage:
    """Two commit tasks of the same work."""
    do.begin_table(BASE)
    works = (do.append_work("append 1", (100,)), do.append_work("append 2", (101,)))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(*works), "second commit": do.commit(*works)})


def overlapping_commits() -> Stage:
    """Two commit tasks that share a member."""
    do.begin_table(BASE)
    works = (do.append_work("append 1", (100,)), do.append_work("append 2", (101,)), do.delete_work("delete", 1))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(*works[:2]), "second commit": do.commit(*works[1:])})


def shared_member_aborted() -> Stage:
    """Two commit tasks that share a member, which is aborted, beside gc by a clock two hours ahead."""
    do.begin_table(BASE)
    works = (do.append_work("append 1", (100,)), do.append_work("append 2", (101,)), do.delete_work("delete", 1))
    refs = do.stage(*works)
    actors = {
        "commit": do.commit(*works[:2]),
        "second commit": do.commit(*works[1:]),
        "abort": do.abort(refs[1]),
        "gc": do.gc(hours_ahead=2),
    }
    return Stage(works, actors)


def moved_group() -> Stage:
    """Two appends of one group are committed while one of them is aborted and another library moves the table."""
    do.begin_table(BASE)
    works = (do.append_work("append 1", (100,)), do.append_work("append 2", (101,)))
    refs = do.stage(*works)
    actors = {"commit": do.commit(*works), "abort": do.abort(refs[1]), "outsider": do.outside_append((200,))}
    return Stage((*works, of_outsider((200,), "outsider")), actors, _OUTSIDER)


def pruned_group() -> Stage:
    """A group of appends is committed, while another library appends, compacts and prunes."""
    do.begin_table(BASE)
    works = (do.append_work("append 1", (100,)), do.append_work("append 2", (101,)))
    do.stage(*works)
    outside = do.in_turn(do.outside_append((200,)), outsider.compact, do.outside_prune)
    return Stage((*works, of_outsider((200,), "outsider")), {"commit": do.commit(*works), "outsider": outside}, _OUTSIDER)


def pruned_overlap() -> Stage:
    """Two commits share a member, while another library appends, deletes and prunes."""
    do.begin_table(BASE)
    works = (do.append_work("append 1", (100,)), do.append_work("append 2", (101,)))
    do.stage(*works)
    outside = do.in_turn(do.outside_append((200,)), do.outside_delete(2), do.outside_prune)
    gone = IdentityWork("2 deleted", "", (deleted((2).__eq__),), lambda: None, actor="outsider")
    actors = {"commit": do.commit(*works), "second commit": do.commit(works[0]), "outsider": outside}
    return Stage((*works, of_outsider((200,), "outsider"), gone), actors, _OUTSIDER)


def two_replacements() -> Stage:
    """Two replacements of one day."""
    do.begin_table(BASE)
    works = (do.replace_work("replace 1", LINK, (101, 102), 1), do.replace_work("replace 2", LINK, (102, 103), 2))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(works[0]), "second commit": do.commit(works[1])})


def two_merges() -> Stage:
    """Two merges that insert one key."""
    do.begin_table(BASE)
    works = (do.merge_work("merge 1", (1, 100), 1), do.merge_work("merge 2", (2, 100), 2))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(works[0]), "second commit": do.commit(works[1])})


def replacement_and_append() -> Stage:
    """A replaced day gets a row in the meantime."""
    do.begin_table(BASE)
    works = (do.replace_work("replace", LINK, (101,), 1), do.append_work("append", (102,)))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(works[0]), "second commit": do.commit(works[1])})


def outside_prune() -> Stage:
    """Another library appends and prunes during a commit."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    do.stage(work)
    outside = do.in_turn(do.outside_append((200,)), do.outside_prune)
    return Stage((work, of_outsider((200,), "outsider")), {"commit": do.commit(work), "outsider": outside}, _OUTSIDER)


def outside_prune_and_gc() -> Stage:
    """The same beside gc."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    do.stage(work)
    outside = do.in_turn(do.outside_append((200,)), do.outside_prune)
    actors = {"commit": do.commit(work), "gc": do.gc(), "outsider": outside}
    return Stage((work, of_outsider((200,), "outsider")), actors, _OUTSIDER)


def our_cleanup_and_gc() -> Stage:
    """Our own cleanup beside a commit and gc."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    do.stage(work)
    other = do.in_turn(do.outside_append((200,)), do.cleanup)
    actors = {"commit": do.commit(work), "gc": do.gc(), "cleanup": other}
    return Stage((work, of_outsider((200,), "cleanup")), actors, _OUTSIDER, again=do.cleanup)


def ledger_and_prune() -> Stage:
    """The ledger cannot be written, and the history is pruned."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    do.stage(work)
    outside = do.in_turn(outsider.compact, do.outside_prune)
    return Stage((work,), {"commit": do.commit(work), "outsider": outside}, _OUTSIDER)


def settle() -> Stage:
    """A user settles a commit whose landing no history can show any more."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    do.stage(work)
    outside = do.in_turn(do.outside_append((200,)), outsider.compact, do.outside_prune)
    actors = {"commit": do.commit(work), "outsider": outside, "user": do.settle(work, (100,))}
    return Stage((work, of_outsider((200,), "outsider")), actors, _OUTSIDER)


def folded_ledger() -> Stage:
    """Two folds of the ledger, a commit between them, and work that landed in a history that is gone done again."""
    do.begin_table(BASE)
    old, new = do.append_work("old", (100,)), do.append_work("new", (101,))
    do.stage(old)
    do.commit(old)()
    do.outside_append((200,))()
    do.outside_prune()
    again = do.in_turn(old.stage, do.commit(old))
    second = do.in_turn(new.stage, do.commit(new), do.fold_records)
    actors = {"fold": do.fold_records, "second fold": second, "again": again}
    return Stage((new,), actors, _OUTSIDER, again=do.outside_prune)


def pruned_number() -> Stage:
    """The number that a commit is about to take is pruned."""
    return _number_is_pruned(do.outside_prune)


def tagged_number() -> Stage:
    """The same, but the version before that number stays, because it has a tag."""
    return _number_is_pruned(do.outside_prune_but(1))


def _number_is_pruned(
    prune: Callable[[], object], *, work: IdentityWork | None = None, ids: Sequence[int] = (200, 201)
) -> Stage:
    do.begin_table(BASE)
    work = work or do.append_work("append", (100,))
    do.stage(work)
    outside = do.in_turn(*(do.outside_append((item,)) for item in ids), prune)
    rows = tuple(of_outsider((item,), "outsider") for item in ids)
    return Stage((work, *rows), {"commit": do.commit(work), "outsider": outside}, _OUTSIDER)


def pruned_compaction() -> Stage:
    """A delete takes a pruned number below a compaction that moved its row."""
    return _delete_is_pruned((), outsider.compact)


def pruned_delete() -> Stage:
    """A delete takes a pruned number below another delete from the same fragment."""
    return _delete_is_pruned((0,), do.outside_delete(0))


def pruned_far_below() -> Stage:
    """A delete takes a pruned number two and more below the only version that is left, which has its fragment."""
    return _number_is_pruned(do.outside_prune, work=do.delete_work("delete", 1), ids=(200, 201, 202))


def _delete_is_pruned(deletes: tuple[int, ...], last: Callable[[], object]) -> Stage:
    do.begin_table(BASE, (2, 3))
    work = do.delete_work("delete", 1)
    do.stage(work)
    outside = do.in_turn(do.outside_append((200,)), last, do.outside_prune)
    gone = [IdentityWork(f"{item} deleted", "", (deleted(item.__eq__),), lambda: None, actor="outsider") for item in deletes]
    actors = {"commit": do.commit(work), "outsider": outside}
    return Stage((work, of_outsider((200,), "outsider"), *gone), actors, _OUTSIDER)


def compaction_beside_deletes() -> Stage:
    """A compaction and a delete of its rows."""
    do.begin_table((0, 1), (2, 3))
    compaction, deletion = do.compact_work("compact"), do.delete_work("delete", 1)
    do.stage(compaction, deletion)
    return Stage((compaction, deletion), {"commit": do.commit(compaction), "second commit": do.commit(deletion)})


def compaction_folded() -> Stage:
    """A compaction brought up beside another fold."""
    do.begin_table((0, 1), (2, 3))
    works = (do.columns_work("columns"), do.compact_work("compact"), do.delete_work("delete", 1))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(works[0]), "second commit": do.commit(*works[1:])})


def column_files() -> Stage:
    """Column files are merged while rows of their fragments are deleted and moved."""
    do.begin_table((0, 1), (2, 3))
    columns = do.columns_work("columns")
    do.stage(columns)
    do.commit(columns)()
    works = (do.merge_files_work("merge files"), do.delete_work("delete", 1), do.compact_work("compact"))
    do.stage(*works)
    actors = {"commit": do.commit(*works[:2]), "second commit": do.commit(works[2]), "gc": do.gc(hours_ahead=2)}
    return Stage(works, actors)


def index_upkeep() -> Stage:
    """An index is built while its fragments are rewritten."""
    do.begin_table((0, 1), (2, 3))
    index, compaction = do.index_work("index"), do.compact_work("compact")
    do.stage(index, compaction)
    return Stage((index, compaction), {"commit": do.commit(index), "second commit": do.commit(compaction), "gc": do.gc()})


def restore() -> Stage:
    """An old version is restored while a commit lands."""
    do.begin_table(BASE, (4,))
    work = do.append_work("append", (100,))
    do.stage(work)
    restored = IdentityWork("restore", "", (overwritten(BASE),), lambda: None, actor="restore")
    actors = {"commit": do.commit(work), "restore": do.restore(1)}
    return Stage((work, restored), actors, again=do.restore(1))


def overwrite() -> Stage:
    """An overwrite beside an append."""
    do.begin_table(BASE)
    works = (do.overwrite_work("overwrite", (7, 8)), do.append_work("append", (100,)))
    do.stage(*works)
    return Stage(works, {"commit": do.commit(works[0]), "second commit": do.commit(works[1])})


def branch() -> Stage:
    """A branch is made while the main line is pruned."""
    do.begin_table(BASE)
    work = do.append_work("append", (100,))
    (ref,) = do.stage(work)
    do.commit(work)()
    more = do.in_turn(do.outside_append((200,)), do.outside_prune)
    actors = {"branch": do.branch, "abort": do.abort(ref), "outsider": more}
    return Stage((of_outsider((200,), "outsider"),), actors, _OUTSIDER)


def killed_commit() -> Stage:
    """A commit dies, its work is aborted, its retry goes on."""
    do.begin_table(BASE)
    work = do.delete_work("delete", 1)
    (ref,) = do.stage(work)
    return Stage((work,), {"commit": do.commit(work), "abort": do.abort(ref), "retry": do.commit(work, tries=3)})


def new_columns() -> Stage:
    """Two appends that bring the same column, beside a delete and an append of another library."""
    do.begin_table(BASE)
    works = (do.new_column_work("append 1", (100,)), do.new_column_work("append 2", (101,)), do.delete_work("delete", 1))
    do.stage(*works)
    outside = of_outsider((200,), "outsider")
    actors = {
        "commit": do.commit(works[0], works[2]),
        "second commit": do.commit(works[1]),
        "outsider": do.outside_append((200,)),
    }
    return Stage((*works, outside), actors, _OUTSIDER)


def everything() -> Stage:
    """All of them at once."""
    do.begin_table(BASE)
    works = (do.append_work("append", (100,)), do.delete_work("delete", 1), do.replace_work("replace", LINK, (101,), 1))
    refs = do.stage(*works)
    actors = {
        "commit": do.commit(*works, tries=3),
        "second commit": do.commit(*works[:2], tries=3),
        "abort": do.abort(refs[0]),
        "gc": do.gc(hours_ahead=1.5),
        "outsider": do.in_turn(do.outside_append((200,)), do.outside_prune),
    }
    return Stage((*works, of_outsider((200,), "outsider")), actors, _OUTSIDER)
