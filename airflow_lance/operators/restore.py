"""Make an old version of a table the newest again: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.operators.immediate import LanceImmediateOperator, given, whole

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceRestoreOperator(LanceImmediateOperator):
    """Restore a version at most once per task instance, also after retries and clears.

    Arguments of `LanceImmediateOperator`, and

    :param version: the version to restore; this or `tag`. (templated)
    :param tag: the tag whose version to restore. (templated)
    :param expected_version: the newest version that may be undone; None is the newest when the task runs. (templated)
    :param if_moved: what to do when the table has newer versions than that: "fail" (nobody's commit is overruled unseen), or
        "overwrite".
    """

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "version", "tag", "expected_version")

    def __init__(
        self,
        *,
        version: int | str | None = None,
        tag: str | None = None,
        expected_version: int | str | None = None,
        if_moved: Literal["fail", "overwrite"] = "fail",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.version = version
        self.tag = tag
        self.expected_version = expected_version
        self.if_moved = if_moved

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A RestoreSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.maintenance import RestoreSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            version=whole(self.version),
            tag=self.tag,
            expected_version=whole(self.expected_version),
            if_moved=self.if_moved,
        )
        return read_spec(RestoreSpec, {"uri": uri, "identity": identity, **fields})
