"""Mutants that change nothing, each with the proof. One is here by its name and the digest of its function's source, so that
it is tried again when the function changes; a test finds those that are gone."""

from __future__ import annotations

from collections.abc import Mapping

EQUIVALENT: Mapping[tuple[str, str], str] = {
    ("lance_core/publish/abort.py:_Aborting._abort_finished:swapped:0", "bd8812825a6e350c"): (
        "Two reads of which neither uses the other's answer, before the first write. The listing is there for what it "
        "refuses, and the number may be any that was the newest since the call began: the put of the version finds the last."
    ),
}
