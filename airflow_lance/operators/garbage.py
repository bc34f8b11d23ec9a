"""Remove what dead attempts and commits left behind: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.execution.arguments import given
from airflow_lance.operators.immediate import LanceImmediateOperator
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceGarbageOperator(LanceImmediateOperator):
    """Remove files and records of attempts whose lease is over, by name. Arguments of `LanceImmediateOperator`, and

    Args:
        abandon_after: staged work that has waited longer for its commit is aborted and named in a warning, so that it
            pins no version any more: a `timedelta`, longer than the longest DAG run. None keeps it for ever.
        dry_run: remove nothing, only tell.

    Raises:
        InputError: `abandon_after` is no `timedelta`.
        AirflowFailException: no such table.
    """

    spec = "lance_core.jobs.specs.maintenance:GarbageSpec"
    renamed: ClassVar[Mapping[str, str]] = {"dry_run": "only_report"}

    def __init__(
        self, *, abandon_after: timedelta | None = None, dry_run: bool = False, **kwargs: Unpack[ImmediateArguments]
    ) -> None:
        super().__init__(**kwargs)
        self.abandon_after = abandon_after
        self.only_report = dry_run  # BaseOperator has a method of that name

    def spec_fields(self) -> dict[str, Any]:
        """The spec's fields. InputError for what is no timedelta."""
        if self.abandon_after is not None and not isinstance(self.abandon_after, timedelta):
            raise InputError(
                f"garbage: abandon_after must be a timedelta, got {self.abandon_after!r}",
                cure="Pass abandon_after=timedelta(days=7).",
            )
        seconds = None if self.abandon_after is None else self.abandon_after.total_seconds()
        return {**super().spec_fields(), **given(abandon_after_seconds=seconds)}
