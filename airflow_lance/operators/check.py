"""Check a version of a table: the task fails without a retry at the first check that does not pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import Context
from airflow_lance.execution.triggering import pinned_version
from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceCheckOperator(LanceImmediateOperator):
    """Check a table as it is; nothing is changed. Arguments of `LanceImmediateOperator`, and

    Args:
        checks: gates as for `LanceCommitOperator`, or those of `airflow_lance.checks`. (templated)
        version: a version, a tag, or "triggering": that of the asset event which triggered this run; None is the newest.
            (templated)

    Raises:
        AirflowFailException: a check that the table does not pass, or no such version.
    """

    spec = "lance_core.jobs.specs.definition:CheckSpec"
    renamed: ClassVar[Mapping[str, str]] = {"gates": "checks"}

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "checks", "version")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "checks": "json",
    }  # fmt: skip

    def __init__(
        self, *, checks: Sequence[Mapping[str, Any]], version: int | str | None = None, **kwargs: Unpack[ImmediateArguments]
    ) -> None:
        super().__init__(**kwargs)
        self.checks = list(checks)
        self.version = version

    def prepare(self, context: Context, *, uri: str) -> None:
        """Pin the version to that of the event which triggered this run, where that is requested."""
        self.version = pinned_version(self.version, context, uri=uri)
