"""RaBitQ."""

from __future__ import annotations

from typing import Any


def train(dimension: int, num_bits: int, rng: Any) -> Any:
    raise NotImplementedError


def from_storage(told: Any, buffer: Any, *, where: str) -> Any:
    raise NotImplementedError
