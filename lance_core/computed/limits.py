"""What a refresh may use, and what it used: rows, seconds, and what functions say they spent.

::

    SpendingLimits(rows=10_000, seconds=3600, spent={"usd": 20})     a refresh ends when the first of them is used up
    return Computed(values, spent={"usd": 0.04, "requests": 1})     from the function, for one call

A refresh that ends so keeps what it computed; the other rows stay stale for the next one. What a function spends is known
after a call, so calls that are under way may go beyond the limit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_core.errors import InputError

Clock = Callable[[], float]


@dataclass(frozen=True)
class Computed:
    """The values that a function computed for one batch, and what that cost, by names of its own such as "usd"."""

    values: Any
    spent: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SpendingLimits:
    """Bounds of one refresh; None and names that are absent are unbounded. InputError for a bound that is no bound."""

    rows: int | None = None
    seconds: float | None = None
    spent: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("max_rows", self.rows), ("max_seconds", self.seconds), *self.spent.items()):
            if value is not None and not value > 0:
                raise InputError(f"{name} must be more than 0, got {value}")

    @property
    def is_unbounded(self) -> bool:
        """Whether nothing is bounded."""
        return self.rows is None and self.seconds is None and not self.spent


UNBOUNDED = SpendingLimits()


class Meter:
    """What one refresh used of its budget. For several threads."""

    def __init__(self, budget: SpendingLimits = UNBOUNDED, *, clock: Clock = time.monotonic) -> None:
        self._budget, self._clock, self._begin = budget, clock, clock()
        self._lock = threading.Lock()
        self.rows = self.calls = 0
        self.spent: dict[str, float] = {}

    def note(self, *, calls: int = 0, rows: int = 0, spent: Mapping[str, float] | None = None) -> None:
        """Calls that were made, the rows in them, and what they cost."""
        with self._lock:
            self.calls += calls
            self.rows += rows
            for name, amount in (spent or {}).items():
                self.spent[name] = self.spent.get(name, 0.0) + float(amount)

    @property
    def used_up(self) -> str:
        """Which bound is reached: "rows", "seconds" or a name of the function's own; "" for none."""
        if self._budget.rows is not None and self.rows >= self._budget.rows:
            return "rows"
        if self._budget.seconds is not None and self._clock() - self._begin >= self._budget.seconds:
            return "seconds"
        return next((name for name, most in self._budget.spent.items() if self.spent.get(name, 0.0) >= most), "")

    def allowed(self, wanted: int) -> int:
        """How many of so many rows may be given to the function now."""
        if self.used_up:
            return 0
        return wanted if self._budget.rows is None else min(wanted, self._budget.rows - self.rows)

    def share(self, parts: int) -> SpendingLimits:
        """What is left, for each of so many that work at once; what is used up is as small as a budget can be."""
        rest = self._budget
        rows = None if rest.rows is None else max(1, (rest.rows - self.rows) // parts)
        seconds = None if rest.seconds is None else max(1e-3, rest.seconds - (self._clock() - self._begin))
        spent = {name: max(1e-9, most - self.spent.get(name, 0.0)) / parts for name, most in rest.spent.items()}
        return SpendingLimits(rows, seconds, spent)


class Pace:
    """Keeps calls apart, so that no more than so many begin in a second. For several threads."""

    def __init__(
        self, calls_per_second: float | None, *, clock: Clock = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._gap = 0.0 if calls_per_second is None else 1.0 / calls_per_second
        self._clock, self._sleep, self._next = clock, sleep, 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Sleep until the next call may begin."""
        if not self._gap:
            return
        with self._lock:
            now = self._clock()
            begin = max(now, self._next)
            self._next = begin + self._gap
        if begin > now:
            self._sleep(begin - now)
