"""Checks the model of the commit protocol exhaustively, and that it finds the bugs planted in it. `make model` runs it.

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
    return 1 if wrong else 0


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
