"""Verdicts on a pair of transactions: mine, not yet committed, and theirs, which landed after the version I read.

OK        mine applies to the newer version as it is
REBASE    mine applies after its deletion vectors or bitmaps were brought up to date
RETRY     mine has to be planned again
NEVER     planning again cannot help
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Outcome(enum.IntEnum):
    """From harmless to hopeless; the verdict on several transactions is the largest of theirs."""

    OK = 0
    REBASE = 1
    RETRY = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and for all but OK why."""

    outcome: Outcome
    reason: str = ""


OK = Verdict(Outcome.OK)


def rebase(reason: str) -> Verdict:
    """Mine must be brought up to date."""
    return Verdict(Outcome.REBASE, reason)


def retry(reason: str) -> Verdict:
    """Mine must be planned again."""
    return Verdict(Outcome.RETRY, reason)


def never(reason: str) -> Verdict:
    """Mine makes no sense any more."""
    return Verdict(Outcome.NEVER, reason)
