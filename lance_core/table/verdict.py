"""Verdicts on a pair of transactions: mine, not yet committed, and theirs, which landed after the version I read.

OK        mine applies to the newer version as it is
REBASE    mine applies after its deletion vectors or bitmaps were brought up to date
RETRY     mine has to be planned again
NEVER     planning again cannot help
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class VerdictKind(enum.IntEnum):
    """From harmless to hopeless; the verdict on several transactions is the largest of theirs."""

    OK = 0
    REBASE = 1
    RETRY = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and for all but OK why."""

    kind: VerdictKind
    reason: str = ""


OK = Verdict(VerdictKind.OK)


def rebase(reason: str) -> Verdict:
    """Mine must be brought up to date."""
    return Verdict(VerdictKind.REBASE, reason)


def retry(reason: str) -> Verdict:
    """Mine must be planned again."""
    return Verdict(VerdictKind.RETRY, reason)


def never(reason: str) -> Verdict:
    """Mine makes no sense any more."""
    return Verdict(VerdictKind.NEVER, reason)
