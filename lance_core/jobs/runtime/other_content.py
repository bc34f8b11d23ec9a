"""A try that finds its work done, while the files of its source are not those that were read: it says so.

::

    try 1 reads a.csv (60 bytes of 02:00), and is committed; somebody replaces a.csv; Airflow tries once more
    -> WARNING: append 5d2c… was committed as version 4 with 1 file, 60 bytes, newest of 02:00Z; now it has 1 file of 80

It is no error, because the work that was requested was done, once; a person who clears the task has it done again
(`on_clear`). A source that this process cannot list is not compared.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TypeVar

from lance_core.io.store import Store
from lance_core.jobs.runtime.committed_work import asked_of
from lance_core.jobs.runtime.protocols import JobSource
from lance_core.jobs.sources.source_files import SourceFile, differing, fingerprint, list_source_files, shown
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.spec import JobSpec, WriteSpec
from lance_core.publish.decisions import CommittedWork
from lance_core.publish.model import StagedTransaction

log = logging.getLogger(__name__)

S = TypeVar("S", bound=JobSpec)

_NAMED = 3


def with_files_of(source: JobSource | None, spec: S, *, known: str = "") -> S:
    """The spec with what its attempt's record says of the source: as it is about to be read, or as an earlier try has read
    it (`known`), whose rows were put aside. Other files now: a warning."""
    now = "" if source is None else fingerprint(source.files)
    if now and known and now != known:
        log.warning(
            "%s %s goes on with the rows that an earlier try read from %s, but its source is now %s. To have the new "
            "content, clear the task, or use another identity (key=, idempotency_key=).",
            spec.kind, spec.identity, shown(known), shown(now),
        )  # fmt: skip
    text = known or now
    return spec if spec.asked.get("source", "") == text else replace(spec, asked={**spec.asked, "source": text})


def warn_of_other_content(store: Store, spec: JobSpec, staged: StagedTransaction, committed: CommittedWork | None) -> None:
    """Log a warning where the source's files are not those that the work was done with, as far as both are known."""
    source = spec.source if isinstance(spec, (WriteSpec, AddColumnsSpec)) else None
    if source is None or source.callable:
        return
    asked = asked_of(store, committed, staged)
    known = "" if asked is None else asked.source
    files = list_source_files(source) if known else None
    if files is None or fingerprint(files) == known:
        return
    where = "is staged" if committed is None else f"was committed as version {committed.version}"
    log.warning(
        "%s %s %s with the content of %s, but its source is now %s%s. Nothing was read again: to have the new content, "
        "clear the task with on_clear=\"again\", or use another identity (key=, idempotency_key=).",
        spec.kind, spec.identity, where, shown(known), shown(fingerprint(files)) or "no file", _named(known, files),
    )  # fmt: skip


def _named(known: str, files: tuple[SourceFile, ...]) -> str:
    """The first few files that differ."""
    others = differing(known, files)
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return f"; new or changed: {', '.join(map(str, others[:_NAMED]))}{more}" if others else ""
