"""The protocol of handles for builders and tasks: the current version, and a way to change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from lance_core.dataset.snapshot.snapshot import Snapshot


@runtime_checkable
class TableHandle(Protocol):
    """`LanceDataset`, seen from below."""

    @property
    def snapshot(self) -> Snapshot:
        """The current version."""

    def move_to(self, snapshot: Snapshot) -> None:
        """Stand on another version."""

    def update_config(self, values: Mapping[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Change the configuration."""

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove keys from the configuration."""
