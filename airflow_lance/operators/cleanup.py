"""Remove old versions and the files only they need: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lance.execution.arguments import given
from airflow_lance.operators.immediate import LanceImmediateOperator
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments

_MOST_DAYS = 999_999_999
"""What Python's `timedelta` can hold."""


class LanceCleanupOperator(LanceImmediateOperator):
    """Clean a table up. Staged work, tagged versions and the memory of what was committed stay. Arguments of
    `LanceImmediateOperator`, and

    Args:
        older_than_days: versions at least that old go; without any bound 14 days.
        retain_versions: the newest so many stay, whatever their age. (templated)
        delete_unverified: files of no version go at once, not after seven days. Only when no other writer is at work.
        error_if_tagged_old_versions: fail when an old version is tagged, instead of keeping it.
        explain: only report what would go.

    Raises:
        InputError: an age that is no number of days.
        AirflowFailException: a tagged version is old, and `error_if_tagged_old_versions`.
    """

    spec = "lance_core.jobs.specs.maintenance:CleanupSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "retain_versions")

    def __init__(
        self,
        *,
        older_than_days: float | None = None,
        retain_versions: int | str | None = None,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = False,
        explain: bool = False,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.older_than_days = older_than_days
        self.retain_versions = retain_versions
        self.delete_unverified = delete_unverified
        self.error_if_tagged_old_versions = error_if_tagged_old_versions
        self.explain = explain

    def spec_fields(self) -> dict[str, Any]:
        """The spec's fields. InputError for what is no number of days."""
        days = self.older_than_days
        is_number = isinstance(days, (int, float)) and not isinstance(days, bool)
        if days is not None and not (is_number and 0 <= days <= _MOST_DAYS):
            raise InputError(
                f"cleanup: older_than_days must be a number of days, 0 or more, got {days!r}",
                cure="Pass older_than_days=7 to remove versions that are a week old.",
            )
        return {**super().spec_fields(), **given(older_than_seconds=None if days is None else days * 86_400)}
