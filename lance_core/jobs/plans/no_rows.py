"""A source without rows: an append of nothing makes no version; a replacement by nothing is refused unless it was meant.

An upstream that failed halfway gives an empty file as easily as an empty day does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.errors import InputError
from lance_core.jobs.plans.new_columns import Conclude
from lance_core.jobs.runtime.lifecycle import NothingToDoError
from lance_core.jobs.runtime.protocols import StagedOperation, TaskResult

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


@dataclass(frozen=True)
class NothingWithoutRows:
    """What the results amount to; without rows the work is done, and makes no version."""

    inner: Conclude
    uri: str

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """NothingToDoError for no rows, before anything is finished."""
        staged = self.inner(results)
        if not staged.num_rows:
            log.info("append %s: the source has no rows, so there is no new version", self.uri)
            raise NothingToDoError
        return staged
