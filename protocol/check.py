"""Checks the model of publication exhaustively, and that it misses each rule that is left out. `make model` runs it.

`decisions.pml` is the model of the five records (docs/adr/057-few-records.md).

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

MODEL = Path(__file__).with_name("decisions.pml")

_TRIES = ("-DABORTS", "-DKILLS=0", "-DDOUBTS=0")
_GAPS = ("-DSTAGED", "-DABORTS", "-DAPPENDS=1", "-DOUTSIDE_PRUNES", "-DDOUBTS=0")
_GROUP = ("-DSTAGED", "-DGROUP", "-DCLEANUP=1", "-DAPPENDS=1", "-DDOUBTS=0")
_PRUNED = ("-DSTAGED", "-DCLEANUP=1", "-DAPPENDS=2", "-DDOUBTS=0")
_FOLD = ("-DONE_TRY", "-DABORTS", "-DFOLD", "-DKILLS=0", "-DDOUBTS=0")
_FOLD_TRIES = ("-DCOMMITTERS=0", "-DABORTS", "-DFOLD", "-DKILLS=0", "-DDOUBTS=0")
_SUPERSEDED = ("-DSTAGED", "-DSUPERSEDE", "-DCOMMITTERS=2", "-DDOUBTS=0")
_SUPERSEDED_ABORT = ("-DSTAGED", "-DSUPERSEDE", "-DABORTS", "-DDOUBTS=0")
_SUPERSEDED_BOTH = ("-DSTAGED", "-DSUPERSEDE", "-DCOMMITTERS=2", "-DABORTS", "-DKILLS=0", "-DDOUBTS=0")

CONFIGURATIONS: Mapping[str, Sequence[str]] = {
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
    "two commits, one stages the work again, 1 kill": _SUPERSEDED,
    "a commit that stages the work again and an abort, 1 kill": _SUPERSEDED_ABORT,
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
    "SUPERSEDES_WITHOUT_LOOK": (_SUPERSEDED, "an attempt supersedes another without a look at the log"),
    "SUPERSEDED_GOES_AT_ONCE": (_SUPERSEDED, "the files of a superseded attempt go at once"),
    "ABORTS_THE_SUPERSEDED_ALONE": (_SUPERSEDED_ABORT, "an abort leaves what stands in the place of its attempt"),
    "ABORT_NAMES_THE_LAST_ONLY": (_SUPERSEDED_BOTH, "the version of an abort does not name superseded attempts"),
    "FOLDS_WHAT_IS_BUSY": (_FOLD_TRIES, "decisions are folded while an attempt is alive or an intent names them"),
}
"""Rules, left out one at a time: the configuration must show a violation."""

SPARE: Mapping[str, tuple[Sequence[str], str]] = {
    "HIGHEST_FIRST": (_FOLD, "a fold removes the highest numbers first"),
    "SEGMENTS_FIRST": (_FOLD, "a look-up reads the segment before it lists the numbers"),
}
"""Rules that the others make spare: the model holds without each. They cost nothing, and are kept."""


def main() -> int:
    """0: the model holds, and every rule that was left out is missed."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed, and nothing was checked. Debian: apt-get install spin gcc", file=sys.stderr)
            return 2
    wrong = 0
    for name, defines in CONFIGURATIONS.items():
        violation, states = verify(defines)
        print(f"{name}: {violation or 'holds'} ({states:,} states)", flush=True)
        wrong += violation is not None
    for rules, needed in ((RULES, True), (SPARE, False)):
        for rule, (defines, about) in rules.items():
            violation, states = verify((*defines, f"-DBUG_{rule}"))
            print(f"BUG_{rule} ({about}): {violation or 'holds'} after {states:,} states", flush=True)
            wrong += (violation is not None) != needed
    return 1 if wrong else 0


def verify(defines: Sequence[str]) -> tuple[str | None, int]:
    """(violation or None, number of states) of a whole search. RuntimeError when it did not end."""
    with tempfile.TemporaryDirectory() as folder:
        _run(["spin", "-a", *defines, str(MODEL)], folder)
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
