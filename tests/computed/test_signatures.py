"""The note of fresh fragments: kept beside what was noted, and not for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.computed import signatures
from lance_core.computed.signatures import FreshNote
from lance_core.format.fragment import DataFile, Fragment
from lance_core.io.local.store import LocalStore

IDS = frozenset({0})


def fragment(number: int) -> Fragment:
    return Fragment(number, (DataFile(f"{number}.lance", (0,), (0,), 2, 1, 10, None),), 5)


def test_what_other_refreshes_saw_is_kept_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refreshes that a budget ends never see the table whole: what they noted of files that are gone must not pile up."""
    monkeypatch.setattr(signatures, "_MOST_KEPT", 10, raising=False)
    store = LocalStore(str(tmp_path))
    sizes = []
    for number in range(0, 60, 3):
        note = FreshNote(store, "ab" * 8, b"d" * 16)
        if number:  # the last three are there yet
            assert all(note.knows(fragment(number - back), IDS) for back in (1, 2, 3))
        for new in range(number, number + 3):
            note.add(fragment(new), IDS, is_whole=True)
        note.save(keeps=True)
        sizes.append((tmp_path / "_lance_core/columns" / ("ab" * 8) / "fresh").stat().st_size // 16)
    assert max(sizes) <= 12 + 3, sizes
    assert FreshNote(store, "ab" * 8, b"d" * 16).knows(fragment(59), IDS)
