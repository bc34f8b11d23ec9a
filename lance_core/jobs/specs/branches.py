"""Spec of the job that publishes what a branch changed: write, audit, publish. Standard library only.

::

    {"spec": 1, "kind": "publish_branch", "uri": "/t.lance", "branch": "audit/2013-01-01", "identity": "5d2c..."}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from lance_core.errors import InputError
from lance_core.jobs.specs.edits import EditSpec


@dataclass(frozen=True, kw_only=True)
class PublishBranchSpec(EditSpec):
    """Bring the changes of a branch to the main line that it began from, as one version.

    Rows that the branch added are written again for the main line; rows that it deleted or changed are deleted there. So the
    branch may go afterwards. The commit judges it as work that was planned on the version where the branch began.

    `version`: that of the branch which was checked; None is its newest. `if_moved`: what becomes of a branch that replaced
    rows when others have added rows to the main line since: "fail", because the branch never saw them, or "publish" all the
    same. A branch that only appended or only deleted does not mind.
    """

    kind: ClassVar[str] = "publish_branch"

    branch: str
    version: int | None = None
    if_moved: Literal["fail", "publish"] = "fail"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.branch.strip():
            raise InputError("publish_branch: branch is empty")
