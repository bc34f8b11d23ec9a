"""What the doctor says, and what its checks look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from lance_core.commit.manifests import VersionEntry
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.versions.transaction_log import LogEntry
from lance_core.maintenance.observe import Observation
from lance_core.maintenance.policy import ServiceLevels
from lance_core.publish.model import StagedEntry

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One problem. `size` in `unit` is its extent, `cost` its consequence, `cure` is a command or a setting."""

    code: str
    severity: Severity
    title: str
    size: float
    unit: str
    cost: str
    cure: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def extent(self) -> str:
        """`size` in `unit` as people say it: "50 fragments", "1 attempt"."""
        one = self.unit.removesuffix("s") if self.size == 1 and self.unit.isalpha() else self.unit
        return f"{self.size:g} {one}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Patient:
    """What the checks look at; read once for all of them."""

    uri: str
    snapshot: Snapshot
    observation: Observation
    versions: Sequence[VersionEntry]
    staged: Sequence[StagedEntry]
    log: Sequence[LogEntry]
    levels: ServiceLevels
    now: float


class Check(Protocol):
    """One question about a table."""

    def __call__(self, patient: Patient) -> Iterator[Finding]:
        """Yield what is wrong."""
