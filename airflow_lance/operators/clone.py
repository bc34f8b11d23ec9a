"""Clone a version of a table to another uri: takes effect at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.connection import plain_uri
from airflow_lance.operators.immediate import LanceImmediateOperator, given, whole

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceCloneOperator(LanceImmediateOperator):
    """Clone a version; a table that is at the target already is left as it is. Arguments of `LanceImmediateOperator`, and

    :param target: the clone's full uri. (templated)
    :param version: a version or a tag; None is the newest. (templated)
    :param depth: "shallow" refers to this table's files, "deep" copies them.
    """

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "target", "version")

    def __init__(
        self,
        *,
        target: str | os.PathLike[str],
        version: int | str | None = None,
        depth: Literal["shallow", "deep"] = "shallow",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.target = plain_uri(target)
        self.version = version
        self.depth = depth

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A CloneSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.definition import CloneSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(
            target=self.target,
            version=whole(self.version),
            depth=self.depth,
        )
        return read_spec(CloneSpec, {"uri": uri, "identity": identity, **fields})
