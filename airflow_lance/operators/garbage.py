"""Remove what dead attempts and commits left behind: takes effect at once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_lance.operators.immediate import LanceImmediateOperator, given
from lance_core.errors import InputError

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceGarbageOperator(LanceImmediateOperator):
    """Remove files and records of attempts whose lease is over, by name. Arguments of `LanceImmediateOperator`, and

    :param abandon_after: staged work that has waited longer for its commit is aborted and named in a warning, so that it
        pins no version any more: a `timedelta`, longer than the longest DAG run. None keeps it for ever.
    :param dry_run: remove nothing, only tell.
    """

    def __init__(self, *, abandon_after: timedelta | None = None, dry_run: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.abandon_after = abandon_after
        self.only_report = dry_run  # BaseOperator has a method of that name

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """Return a GarbageSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.maintenance import GarbageSpec
        from lance_core.jobs.specs.spec import read_spec

        if self.abandon_after is not None and not isinstance(self.abandon_after, timedelta):
            raise InputError(
                f"garbage: abandon_after must be a timedelta, got {self.abandon_after!r}",
                cure="Pass abandon_after=timedelta(days=7).",
            )
        seconds = None if self.abandon_after is None else self.abandon_after.total_seconds()
        fields = given(abandon_after_seconds=seconds)
        return read_spec(GarbageSpec, {"uri": uri, "identity": identity, "dry_run": self.only_report, **fields})
