"""The spec of switching a column to another definition. Standard library only.

::

    {"spec": 1, "kind": "switch_column", "uri": "/t.lance", "column": "vector", "version": "2", "min_recall": 0.95}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lance_core.errors import InputError
from lance_core.jobs.specs.spec import JobSpec


@dataclass(frozen=True, kw_only=True)
class SwitchColumnSpec(JobSpec):
    """Let a column and its shadow change names in one version, so that the one declared with `version` is `column`.

    - `shadow`: where the other one is, `{column}_next` unless given;
    - `max_stale_share`: refused where no refresh has seen more of the shadow's rows, as a share, as they are now;
    - `min_recall`: refused where the shadow's vector index finds less of the `k` nearest than an exact search does, for
      `sample` rows as queries; None does not compare. `search`: how readers search, as {"nprobes": 20}.

    A column that is declared with `version` already is left as it is.
    """

    kind: ClassVar[str] = "switch_column"

    column: str
    version: str
    shadow: str | None = None
    max_stale_share: float = 0.0
    min_recall: float | None = None
    k: int = 10
    sample: int = 1000
    search: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_stale_share", "min_recall"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise InputError(f"switch_column: {name} must be between 0 and 1, got {value}")
        for name in ("k", "sample"):
            if getattr(self, name) < 1:
                raise InputError(f"switch_column: {name} must be at least 1, got {getattr(self, name)}")
        if self.shadow_name == self.column:
            raise InputError(f"switch_column: shadow is the column {self.column!r} itself")

    @property
    def shadow_name(self) -> str:
        """The column that takes the other's name."""
        return self.shadow or f"{self.column}_next"
