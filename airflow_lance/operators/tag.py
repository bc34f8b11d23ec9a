"""Tag a version of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceTagOperator(LanceImmediateOperator):
    """Create, move or forget a tag; twice is the same as once. Arguments of `LanceImmediateOperator`, and

    Args:
        tag: the name. (templated)
        action: "set" creates or moves it, "create" refuses to move it, "delete" forgets it.
        version: the version to name; None is the newest. (templated)

    Raises:
        AirflowFailException: a tag of that name for another version, where `action` is "create"; or no such version.
    """

    spec = "lance_core.jobs.specs.maintenance:TagSpec"
    renamed: ClassVar[Mapping[str, str]] = {"name": "tag"}

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "tag", "version")

    def __init__(
        self,
        *,
        tag: str,
        action: Literal["create", "set", "delete"] = "set",
        version: int | str | None = None,
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.tag = tag
        self.action = action
        self.version = version
