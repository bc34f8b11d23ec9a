"""The scenarios by name: what each is about, and the faults that the systematic search tries in it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation import setups
from tests.simulation.kinds import KINDS_IN_SITUATIONS
from tests.simulation.scenario import Scenario
from tests.simulation.schedule import CRASH, ERROR, JUMP, LATE, LOST, STALE
from tests.simulation.wider import WIDER

_PLAIN = (CRASH, LOST, LATE)
_CLOCKS = (CRASH, JUMP)

NAMED: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "abort-meets-commit", "an attempt is aborted while its commit lands it", setups.abort_meets_commit, (CRASH,)
        ),
        Scenario(
            "abort-by-hand",
            "a person aborts what is listed after a killed commit and its retry",
            setups.abort_by_hand,
            (CRASH, ERROR),
        ),
        Scenario("zombie", "a first try of a staging task wakes up beside the second", setups.zombie, (CRASH, LATE)),
        Scenario("slow-stage", "a staging task longer than its lease, beside gc", setups.slow_stage, _CLOCKS),
        Scenario(
            "changed-work",
            "a staging task asks for other work while the commit lands the former",
            setups.changed_work,
            _PLAIN,
        ),
        Scenario("changed-work-by-clock", "the same, by a clock two hours ahead", setups.changed_work_by_clock, _PLAIN),
        Scenario(
            "rebased-delete",
            "a delete that must be rebased, on a store that answers late",
            setups.rebased_delete,
            (*_PLAIN, STALE),
        ),
        Scenario("rebased-twice", "two commit tasks of a delete that must be rebased", setups.rebased_twice, _PLAIN),
        Scenario("moved-fold", "a fold of three while another commit moves its base", setups.moved_fold, _PLAIN),
        Scenario("fold-and-gc", "a fold beside gc by a clock two hours ahead", setups.fold_and_gc, _CLOCKS),
        Scenario("same-commit-twice", "two commit tasks of the same work", setups.same_commit_twice, _PLAIN),
        Scenario("overlapping-commits", "two commit tasks that share a member", setups.overlapping_commits, _PLAIN),
        Scenario(
            "shared-member-aborted",
            "two commit tasks that share a member, which is aborted, beside gc",
            setups.shared_member_aborted,
            _PLAIN,
        ),
        Scenario(
            "moved-group",
            "one of two appends that are decided together is aborted, while another library moves the table",
            setups.moved_group,
            _PLAIN,
        ),
        Scenario(
            "pruned-group",
            "appends that are decided together, while another library appends, compacts and prunes",
            setups.pruned_group,
            _PLAIN,
            prunes=True,
        ),
        Scenario(
            "pruned-overlap",
            "two commits share a member, while another library appends, deletes and prunes",
            setups.pruned_overlap,
            _PLAIN,
            prunes=True,
        ),
        Scenario("two-replacements", "two replacements of one day", setups.two_replacements, _PLAIN),
        Scenario("two-merges", "two merges that insert one key", setups.two_merges, _PLAIN),
        Scenario("replacement-and-append", "a replaced day gets a row in between", setups.replacement_and_append, _PLAIN),
        Scenario(
            "outside-prune", "another library appends and prunes during a commit", setups.outside_prune, _PLAIN, prunes=True
        ),
        Scenario("outside-prune-and-gc", "the same beside gc", setups.outside_prune_and_gc, (CRASH,), prunes=True),
        Scenario(
            "our-cleanup-and-gc", "our own cleanup beside a commit and gc", setups.our_cleanup_and_gc, (CRASH,), prunes=True
        ),
        Scenario(
            "ledger-and-prune",
            "the ledger cannot be written, and the history is pruned",
            setups.ledger_and_prune,
            (CRASH, ERROR),
            prunes=True,
        ),
        Scenario(
            "settle",
            "a user settles a commit whose landing no history can show any more",
            setups.settle,
            (CRASH, LOST, LATE),
            prunes=True,
        ),
        Scenario(
            "folded-ledger",
            "two folds of the ledger, a commit between them, and old work done again",
            setups.folded_ledger,
            _PLAIN,
        ),
        Scenario(
            "pruned-number", "the number that a commit is about to take is pruned", setups.pruned_number, _PLAIN, prunes=True
        ),
        Scenario(
            "pruned-compaction",
            "a delete takes a pruned number below a compaction that moved its row",
            setups.pruned_compaction,
            _PLAIN,
            prunes=True,
        ),
        Scenario(
            "pruned-delete",
            "a delete takes a pruned number below another delete from the same fragment",
            setups.pruned_delete,
            _PLAIN,
            prunes=True,
        ),
        Scenario(
            "pruned-far-below",
            "a delete takes a number that was pruned with those above it but the newest",
            setups.pruned_far_below,
            _PLAIN,
            prunes=True,
        ),
        Scenario(
            "tagged-number",
            "the same, but a tag keeps the version before that number",
            setups.tagged_number,
            _PLAIN,
            prunes=True,
        ),
        Scenario(
            "compaction-beside-deletes",
            "a compaction and a delete of its rows",
            setups.compaction_beside_deletes,
            (CRASH, LATE),
        ),
        Scenario("compaction-folded", "a compaction brought up beside another fold", setups.compaction_folded, (CRASH,)),
        Scenario(
            "column-files",
            "column files are merged while rows of their fragments are deleted and moved",
            setups.column_files,
            (CRASH, LATE),
        ),
        Scenario("index-upkeep", "an index is built while its fragments are rewritten", setups.index_upkeep, (CRASH,)),
        Scenario("restore", "an old version is restored while a commit lands", setups.restore, _PLAIN),
        Scenario("overwrite", "an overwrite beside an append", setups.overwrite, _PLAIN),
        Scenario("branch", "a branch is made while the main line is pruned", setups.branch, (CRASH,), prunes=True),
        Scenario(
            "killed-commit", "a commit dies, its work is aborted, its retry goes on", setups.killed_commit, (CRASH, LATE)
        ),
        Scenario(
            "new-columns",
            "two appends bring the same column, beside a delete and another append",
            setups.new_columns,
            _PLAIN,
        ),
        Scenario("everything", "all of them at once", setups.everything, _PLAIN, prunes=True),
    )
}

SCENARIOS: Mapping[str, Scenario] = {**NAMED, **KINDS_IN_SITUATIONS, **WIDER}
"""Those by name, every kind of staged work in every situation of `kinds`, and those of `wider`."""
