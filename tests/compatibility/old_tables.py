"""The packed tables of old releases (`make_old_tables.py`), unpacked when they are asked for."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

PACKED = Path(__file__).parent / "fixtures" / "old"
CHANGED = Path(__file__).parent / "fixtures" / "changed"
"""Tables whose rows were deleted before and after their indices were built, updated, moved and appended."""
CRASHES_THE_OFFICIAL_LIBRARY = {("0.9.19", "columns-0.1")}
"""Written damaged by that release: 14.0.2 ends the process when it reads it, and we call it corrupt."""


def releases(packed: Path = PACKED) -> list[str]:
    """The releases there are tables of, oldest first."""
    names = (path.name.removesuffix(".tar.xz") for path in packed.glob("*.tar.xz"))
    return sorted(names, key=lambda name: tuple(map(int, name.split("."))))


def unpack(release: str, into: Path, packed: Path = PACKED) -> dict[str, dict[str, Any]]:
    """Unpack the tables of a release below `into`; returns what the release said of each: rows, version."""
    shutil.rmtree(into, ignore_errors=True)
    with tarfile.open(packed / f"{release}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    told: dict[str, dict[str, Any]] = json.loads((into / "made.json").read_text())["made"]
    return {name: made for name, made in told.items() if (release, name) not in CRASHES_THE_OFFICIAL_LIBRARY}
