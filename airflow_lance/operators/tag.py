"""Tag a version of a table: takes effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.operators.immediate import LanceImmediateOperator, given, whole

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceTagOperator(LanceImmediateOperator):
    """Create, move or forget a tag; twice is the same as once. Arguments of `LanceImmediateOperator`, and

    :param tag: the name. (templated)
    :param action: "set" creates or moves it, "create" refuses to move it, "delete" forgets it.
    :param version: the version to name; None is the newest. (templated)
    """

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "tag", "version")

    def __init__(
        self,
        *,
        tag: str,
        action: Literal["create", "set", "delete"] = "set",
        version: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tag = tag
        self.action = action
        self.version = version

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """A TagSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.maintenance import TagSpec
        from lance_core.jobs.specs.spec import read_spec

        fields = given(name=self.tag, action=self.action, version=whole(self.version))
        return read_spec(TagSpec, {"uri": uri, "identity": identity, **fields})
