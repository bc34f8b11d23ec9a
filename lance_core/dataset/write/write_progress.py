"""How far a write has come, which a function or an object of the caller hears while rows are written.

::

    write_dataset(rows, uri, progress=lambda done: print(done.rows, done.bytes))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lance_core.format.fragment import Fragment


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """How far a write has come: rows and fragments finished or being written, bytes of finished files."""

    rows: int
    fragments: int
    bytes: int


@runtime_checkable
class FragmentProgress(Protocol):
    """The progress of every fragment: see `lance_core.progress.FragmentWriteProgress`."""

    def begin(self, fragment: Fragment) -> None:
        """A fragment is about to be written."""
        ...

    def complete(self, fragment: Fragment) -> None:
        """A fragment is written."""
        ...


Progress = Callable[[WriteProgress], None] | FragmentProgress
"""A function that is called now and then, or an object that hears of every fragment."""
