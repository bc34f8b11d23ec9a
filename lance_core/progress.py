"""Progress of writes and index builds, with the official library's names (`lance.progress`).

::

    class Bar(FragmentWriteProgress):
        def begin(self, fragment, **kwargs): ...
        def complete(self, fragment, **kwargs): ...

    write_dataset(table, "/t.lance", progress=Bar())
    ds.create_scalar_index("id", "BTREE", progress_callback=print)      prints IndexProgress
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlparse

if TYPE_CHECKING:
    from lance_core.format.fragment import Fragment

CountProgress = Callable[[int, int], None]
"""A function of how much is done and how much there is, in the unit of the verb that calls it."""


@dataclass(frozen=True)
class IndexProgress:
    """How far an index build has come; `completed` and `total` are None where they are not known."""

    event: Literal["start", "progress", "complete"]
    stage: str
    completed: int | None = None
    total: int | None = None
    unit: str = ""

    @property
    def fraction(self) -> float | None:
        """The share that is done, None where it is not known."""
        if self.completed is None or not self.total:
            return None
        return min(self.completed / self.total, 1.0)


@contextmanager
def reporting(callback: Callable[[IndexProgress], None] | None, stage: str) -> Iterator[None]:
    """Tell `callback` that a stage begins, and that it is complete unless it fails."""
    if callback is not None:
        callback(IndexProgress("start", stage))
    yield
    if callback is not None:
        callback(IndexProgress("complete", stage))


class FragmentWriteProgress(ABC):
    """What a write calls for every fragment; the id of a fragment is not given before it is committed."""

    @abstractmethod
    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """A fragment is about to be written."""

    @abstractmethod
    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """A fragment is written."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Takes no note of fragments that are written."""

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing when a fragment begins."""

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing when a fragment is complete."""


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Keeps a file per fragment in a local folder: `fragment_0.in_progress` while it is written, `fragment_0.json` after.

    Fragments are numbered in the order in which they begin.
    """

    PROGRESS_EXT = ".in_progress"

    def __init__(self, base_uri: str, metadata: Mapping[str, str] | None = None) -> None:
        parts = urlparse(base_uri)
        self._folder = Path(parts.path if parts.scheme == "file" else base_uri)
        self._metadata = dict(metadata or {})
        self._begun = 0
        self._completed = 0

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Write the marker file of a fragment whose writing begins."""
        self._folder.mkdir(parents=True, exist_ok=True)
        told = {"fragment_id": self._begun, "metadata": self._metadata}
        self._marker(self._begun).write_text(json.dumps(told), encoding="utf-8")
        self._begun += 1

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Write what the fragment is, and remove the marker."""
        described = {
            "id": self._completed,
            "physical_rows": fragment.physical_rows,
            "files": [asdict(file) for file in fragment.files],
        }
        path = self._folder / f"fragment_{self._completed}.json"
        path.write_text(json.dumps(described, default=str), encoding="utf-8")
        self._marker(self._completed).unlink(missing_ok=True)
        self._completed += 1

    def _marker(self, number: int) -> Path:
        return self._folder / f"fragment_{number}{self.PROGRESS_EXT}"
