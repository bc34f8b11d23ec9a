"""Checks the models of the commit protocol exhaustively, and that they find the bugs planted in them. `make model` runs it.

`commit.pml` is the protocol of today's records, `decisions.pml` that of the few records that will follow them
(docs/adr/057-few-records.md).

Needs `spin` (Debian: apt-get install spin) and a C compiler; without them it fails. Standard library only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MODEL = Path(__file__).with_name("commit.pml")
DECISIONS = Path(__file__).with_name("decisions.pml")

CONFIGURATIONS: Mapping[str, Sequence[str]] = {
    "two commits and one who gives up, 2 crashes, 1 put in doubt": ("-DCRASHES=2", "-DAPPENDS=0", "-DPRUNES=0"),
    "one commit, one who gives up, one who appends and prunes, 2 crashes, 1 put in doubt": ("-DCRASHES=2", "-DCOMMITTERS=1"),
    "the same, of an attempt that is later_only": ("-DCRASHES=2", "-DCOMMITTERS=1", "-DLATER"),
    "one commit, one who gives up, a further try of staging and its commit, one who appends and prunes, 1 put in doubt": (
        *("-DCRASHES=0", "-DCOMMITTERS=1", "-DLATER", "-DAGAIN"),
    ),
    "one commit, one who gives up, a further try of staging and its commit, 1 crash, 1 put in doubt": (
        *("-DCRASHES=1", "-DAPPENDS=0", "-DPRUNES=0", "-DCOMMITTERS=1", "-DLATER", "-DAGAIN"),
    ),
    "two commits, one who gives up, one who appends and prunes, 1 put in doubt": ("-DCRASHES=0",),
    "one commit that decides by the group, one who gives up, one who appends and prunes, 1 crash, 1 put in doubt": (
        *("-DCRASHES=1", "-DCOMMITTERS=1", "-DGROUP"),
    ),
    "two commits that decide by the group, one who gives up, 1 crash, 1 put in doubt": (
        *("-DCRASHES=1", "-DAPPENDS=0", "-DPRUNES=0", "-DGROUP"),
    ),
}
"""All states of each are visited."""

BUGS: Mapping[str, str] = {
    "NO_FENCE": "a commit publishes without the fence",
    "LOOKS_BEFORE_FENCE": "a commit looks at the files before it has the fence",
    "IGNORES_FENCE_VERSION": "a commit does not mind a version that withdraws the attempt",
    "NO_LOOK_AFTER_PUT": "a commit believes its put without a look at what the newest version comes from",
    "DELETES_IN_DOUBT": "a commit deletes the files of its former try although that put may have landed",
    "CLEARS_BEFORE_LEDGER": "the records are cleared away before the ledger is told",
    "LOOKS_BEFORE_FLAG": "who gives up looks first and raises the flag afterwards",
    "NO_FENCE_VERSION": "who gives up deletes although a put may be on its way",
    "GUESSES_PAST_GAPS": "who gives up takes a gap in the history for proof",
    "READS_LEDGER_ONCE": "who gives up read the ledger before the log, and not again behind a gap",
    "LIFTS_FENCE_FIRST": "the fence goes before the files",
    "FORGETS_DOUBT": "a commit that ends with a put in doubt removes its claim",
    "ASKS_LEDGER_EARLY": "staging reads the ledger before the version behind which its attempt can have landed",
    "NOT_ASKED_WHAT_IS_STAGED": "staging does not ask what is staged before it reads the ledger",
    "TRUSTS_STRAYS": "a manifest that was put where others had been pruned is taken for history",
    "GROUP_DECIDES_FOR_GOOD": "what was decided by the group for one version is not decided again for the next",
    "GROUP_IS_NOT_KEPT_APART": "who gives up does not keep commits from deciding by the group",
    "GROUP_IS_NO_EVIDENCE": "behind a gap nobody asks what was decided by the group",
    "GROUP_GOES_EARLY": "the record of the group is removed while it decides",
}
"""Planted one at a time: at least one configuration must show a violation."""

_WHERE: Mapping[str, str] = {"ASKS_LEDGER_EARLY": "-DAGAIN", "NOT_ASKED_WHAT_IS_STAGED": "-DAGAIN", "GROUP": "-DGROUP"}
"""Bugs, by the beginnings of their names, that show only in configurations with a certain part: those come first."""

_TRIES = ("-DABORTS", "-DKILLS=0", "-DDOUBTS=0")
_GAPS = ("-DSTAGED", "-DABORTS", "-DAPPENDS=1", "-DOUTSIDE_PRUNES", "-DDOUBTS=0")
_GROUP = ("-DSTAGED", "-DGROUP", "-DCLEANUP=1", "-DAPPENDS=1", "-DDOUBTS=0")
_PRUNED = ("-DSTAGED", "-DCLEANUP=1", "-DAPPENDS=2", "-DDOUBTS=0")
_FOLD = ("-DONE_TRY", "-DABORTS", "-DFOLD", "-DKILLS=0", "-DDOUBTS=0")
_FOLD_TRIES = ("-DCOMMITTERS=0", "-DABORTS", "-DFOLD", "-DKILLS=0", "-DDOUBTS=0")

FEW_RECORDS: Mapping[str, Sequence[str]] = {
    "two tries of staging and a commit, 1 kill": ("-DKILLS=1", "-DDOUBTS=0"),
    "two tries of staging, a commit and an abort": _TRIES,
    "a commit and an abort, 1 kill, 1 put in doubt": ("-DSTAGED", "-DABORTS"),
    "two commits and an abort": ("-DSTAGED", "-DABORTS", "-DCOMMITTERS=2", "-DKILLS=0", "-DDOUBTS=0"),
    "two commits of two identities, 1 kill, 1 put in doubt": ("-DSTAGED", "-DGROUP", "-DCOMMITTERS=2"),
    "a commit of two identities, a cleanup, a version of others, 1 kill": _GROUP,
    "a commit, a cleanup, two versions of others, 1 kill": _PRUNED,
    "a commit, an abort, one who appends and prunes, 1 kill": _GAPS,
    "one try of staging, a commit, an abort, a fold of decisions": _FOLD,
    "a try of staging, its commit, the task cleared, the next try and its commit": (
        *("-DCLEAR", "-DCOMMITTERS=2", "-DKILLS=0", "-DDOUBTS=0"),
    ),
}
"""All states of each are visited."""

RULES: Mapping[str, tuple[Sequence[str], str]] = {
    "ADOPTED_IS_NOT_SPARED": (_TRIES, "the deleter does not spare what a living attempt adopts"),
    "ADOPTS_WITHOUT_RECORD": (_TRIES, "an attempt adopts without a record that says so"),
    "ADOPTS_WITHOUT_DECISION": (_TRIES, "an attempt adopts what nobody has decided against"),
    "ADOPTS_WHAT_OTHERS_ABORT": (_TRIES, "an attempt adopts although another has decided before"),
    "STALE_TRY_DELETES": (_TRIES, "a stale try deletes by its own name, without a decision"),
    "VERSIONS_BEFORE_ADOPTERS": (_TRIES, "the deleter lists the versions before it lists who adopts"),
    "DELETES_WITHOUT_LISTING": (_TRIES, "the deleter does not list the versions"),
    "STARTED_BEFORE_FILES": (_TRIES, "who collects litter lists the attempts before the files"),
    "STATE_IS_NOT_WHOLE": (_TRIES, "a decision carries what it changes, and not the whole state"),
    "LOSER_DOES_NOT_READ": (_TRIES, "who loses a number puts the same under the next"),
    "NO_INTENT": (_GAPS, "a commit has no intent"),
    "INTENT_AFTER_MANIFEST": (_GAPS, "the intent comes after the manifest"),
    "ABORT_WITHOUT_INTENT": (_GAPS, "an abort of finished work has no intent"),
    "ABORT_WITHOUT_VERSION": (_GAPS, "an abort of finished work is no version"),
    "IGNORES_ABORT_VERSION": (_GAPS, "a commit does not mind a version that aborts the attempt"),
    "DELETES_BEFORE_LISTING": (_GAPS, "an abort does not read what came before its version"),
    "GUESSES_PAST_GAPS": (_GAPS, "a gap in the log is taken for proof"),
    "ORDER_OF_ABSENCE": (_GAPS, "intents and decisions are read before the log, and not again behind a gap"),
    "DECISIONS_BEFORE_INTENTS": (_GAPS, "behind a gap the intents are listed, and the decisions not read again"),
    "STALE_ATTEMPT": (_GAPS, "a commit goes on although its attempt is not the one in the state"),
    "INTENT_GOES_BEFORE_DECISIONS": (_GROUP, "the intent is removed before the decisions"),
    "INTENT_GOES_WITH_THE_FIRST": (_GROUP, "the intent is removed when one of its identities has its decision"),
    "CLEANUP_DOES_NOT_SETTLE": (_GROUP, "a cleanup prunes versions whose intents it has not settled"),
    "CLEANUP_LISTS_INTENTS_FIRST": (_GROUP, "a cleanup lists the intents before it knows which versions it prunes"),
    "CLEANUP_SAYS_NOTHING": (_PRUNED, "a cleanup does not record up to which version all is decided"),
    "SEGMENT_AFTER_NUMBERS": (_FOLD, "numbers are removed before their segment is there"),
    "NUMBERS_ARE_FREE_AGAIN": (_FOLD, "a number at or below the highest of the segment counts"),
    "VOID_IS_NOT_SEEN": (_FOLD, "an abort trusts its number without a look behind it"),
    "FOLDS_WHAT_IS_BUSY": (_FOLD_TRIES, "decisions are folded while an attempt is alive or an intent names them"),
}
"""Rules of the few records, left out one at a time: the configuration must show a violation."""

SPARE: Mapping[str, tuple[Sequence[str], str]] = {
    "HIGHEST_FIRST": (_FOLD, "a fold removes the highest numbers first"),
    "SEGMENTS_FIRST": (_FOLD, "a look-up reads the segment before it lists the numbers"),
}
"""Rules that the others make spare: the model holds without each. They cost nothing, and are kept."""


def main() -> int:
    """0: the model holds, and every bug was found."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed, and nothing was checked. Debian: apt-get install spin gcc", file=sys.stderr)
            return 2
    wrong = 0
    for name, defines in CONFIGURATIONS.items():
        violation, states = verify(defines)
        print(f"{name}: {violation or 'holds'} ({states:,} states)", flush=True)
        wrong += violation is not None
    for bug, about in BUGS.items():
        found = find(bug)
        print(f"BUG_{bug} ({about}): {found or 'NOT FOUND'}", flush=True)
        wrong += found is None
    return 1 if wrong + main_few_records() else 0


def main_few_records() -> int:
    """How much of the model of the few records is not as it should be."""
    wrong = 0
    for name, defines in FEW_RECORDS.items():
        violation, states = verify(defines, model=DECISIONS)
        print(f"{name}: {violation or 'holds'} ({states:,} states)", flush=True)
        wrong += violation is not None
    for rules, needed in ((RULES, True), (SPARE, False)):
        for rule, (defines, about) in rules.items():
            violation, states = verify((*defines, f"-DBUG_{rule}"), model=DECISIONS)
            print(f"BUG_{rule} ({about}): {violation or 'holds'} after {states:,} states", flush=True)
            wrong += (violation is not None) != needed
    return wrong


def find(bug: str) -> str | None:
    """How a planted bug shows, and where; None when it does not."""
    part = next((part for name, part in _WHERE.items() if bug.startswith(name)), "")
    for name, defines in sorted(CONFIGURATIONS.items(), key=lambda item: bool(part) and part not in item[1]):
        violation, states = verify((*defines, f"-DBUG_{bug}"))
        if violation is not None:
            return f"{violation} after {states:,} states of: {name}"
    return None


def verify(defines: Sequence[str], *, model: Path = MODEL) -> tuple[str | None, int]:
    """(violation or None, number of states) of a whole search. RuntimeError when it did not end."""
    with tempfile.TemporaryDirectory() as folder:
        _run(["spin", "-a", *defines, str(model)], folder)
        _run(["gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], folder)
        told = _run(["./pan", "-m500000"], folder)
    violation = re.search(r"pan:\d+: (.*) \(at depth \d+\)", told)
    states = re.search(r"(\d+) states, stored", told)
    if states is None or "max search depth too small" in told or "out of memory" in told:
        raise RuntimeError(told)
    return (violation[1] if violation else None), int(states[1])


def _run(command: Sequence[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and command[0] != "./pan":
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
