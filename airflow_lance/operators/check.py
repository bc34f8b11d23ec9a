"""Check a version of a table: the task fails without a retry at the first check that does not pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import Context
from airflow_lance.execution.triggering import pinned_version
from airflow_lance.operators.immediate import LanceImmediateOperator, given, whole

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceCheckOperator(LanceImmediateOperator):
    """Check a table as it is; nothing is changed. Arguments of `LanceImmediateOperator`, and

    :param checks: gates as for `LanceCommitOperator`, or those of `airflow_lance.checks`. (templated)
    :param version: a version, a tag, or "triggering": that of the asset event which triggered this run; None is the newest.
        (templated)
    """

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "checks", "version")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceImmediateOperator.template_fields_renderers, "checks": "json",
    }  # fmt: skip

    def __init__(self, *, checks: Sequence[Mapping[str, Any]], version: int | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.checks = list(checks)
        self.version = version

    def prepare(self, context: Context, *, uri: str) -> None:
        """Pin the version to that of the event which triggered this run, where that is requested."""
        self.version = pinned_version(self.version, context, uri=uri)

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A CheckSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.definition import CheckSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(gates=self.checks, version=whole(self.version))
        return read_spec(CheckSpec, {"uri": uri, "identity": identity, **fields})
