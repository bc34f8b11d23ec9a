"""Create, renew or remove a branch of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceBranchOperator(LanceImmediateOperator):
    """Create or delete a branch at most once per task instance. The result has the branch's own uri, which other
    operators take like a table's. Arguments of `LanceImmediateOperator`, and

    Args:
        branch: the name. (templated)
        action: "create"; "delete" with its files; or "renew": delete it where it is there, and begin it again.
        version: the version to begin at; None is the newest. (templated)
        tag: begin at what this tag stands for. (templated)
        from_branch: the branch that `version` is of; None is the main line. (templated)

    Raises:
        AirflowFailException: a branch of that name that begins elsewhere, or no such version or tag.
    """

    spec = "lance_core.jobs.specs.maintenance:BranchSpec"
    renamed: ClassVar[Mapping[str, str]] = {"name": "branch"}

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "branch", "version", "tag", "from_branch")

    def __init__(
        self,
        *,
        branch: str,
        action: Literal["create", "delete", "renew"] = "create",
        version: int | str | None = None,
        tag: str | None = None,
        from_branch: str | None = None,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.branch = branch
        self.action = action
        self.version = version
        self.tag = tag
        self.from_branch = from_branch
