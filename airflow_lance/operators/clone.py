"""Clone a version of a table to another uri: takes effect at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from airflow_lance.connection import plain_uri
from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceCloneOperator(LanceImmediateOperator):
    """Clone a version; a table that is at the target already is left as it is. Arguments of `LanceImmediateOperator`, and

    Args:
        target: the clone's full uri. (templated)
        version: a version or a tag; None is the newest. (templated)
        depth: "shallow" refers to this table's files, "deep" copies them.

    Raises:
        AirflowFailException: no such table, version or tag.
    """

    spec = "lance_core.jobs.specs.definition:CloneSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "target", "version")

    def __init__(
        self,
        *,
        target: str | os.PathLike[str],
        version: int | str | None = None,
        depth: Literal["shallow", "deep"] = "shallow",
        **kwargs: Unpack[ImmediateArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.target = plain_uri(target)
        self.version = version
        self.depth = depth
