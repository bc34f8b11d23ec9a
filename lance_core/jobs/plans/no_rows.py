"""A source without rows: an append of nothing makes no version; a replacement by nothing is refused unless it was meant.

An upstream that failed halfway gives an empty file as easily as an empty day does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.plans.new_columns import Conclude
from lance_core.jobs.runtime.lifecycle import note_nothing_to_do
from lance_core.jobs.runtime.protocols import StagedOperation, TaskResult
from lance_core.jobs.specs.spec import AppendSpec
from lance_core.publish.model import StagedTransaction
from lance_core.publish.staging.remove import remove_attempt

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RefusesNoRows:
    """What the results amount to, unless the source had no rows."""

    inner: Conclude
    kind: str
    uri: str

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """InputError for no rows; the table is as it was."""
        staged = self.inner(results)
        if not staged.num_rows:
            raise InputError(
                f"{self.kind}: the source has no rows, so rows of the table would go and none would take their place",
                uri=self.uri,
                cure="The table is as it was. Check the source, or pass allow_empty=True where no rows is the right answer.",
            )
        return staged


def nothing_added(spec: AppendSpec, staged: StagedTransaction) -> StagedTransaction:
    """The reference of an append that was just staged; one without rows counts as landed instead, without a version."""
    brings_columns = spec.schema_drift in ("add_extra", "fill_and_add")
    if not staged.transaction_path or staged.num_rows or staged.creates or brings_columns:
        return staged
    log.info("append %s: the source has no rows, so there is no new version", spec.uri)
    store = resolve_store(spec.uri, spec.resolved_options())
    # Noted first: a kill in between leaves what garbage collection knows as landed.
    nothing = note_nothing_to_do(store, spec)
    remove_attempt(store, spec.identity, staged.attempt, by="nothing to do", landed_too=True)
    return nothing
