"""The file of hashes names the versions that are tried together, each with the hashes of its files."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?: *; *([^\\\n]*))?", re.MULTILINE)


def _versions(name: str) -> dict[str, str]:
    """Versions of Python 3.11 by package."""
    found = {}
    for package, version, marker in _PINNED.findall((ROOT / name).read_text()):
        if not marker.startswith("python_version <"):
            found[re.sub(r"[._]", "-", package.lower())] = version
    return found


def test_the_hashes_are_those_of_the_versions_that_were_tried() -> None:
    constraints, locked = _versions("constraints.txt"), _versions("constraints-hashes.txt")
    tried = {name: constraints.get(name, version) for name, version in locked.items()}
    assert tried == locked, "run `make hashes`"
    assert len(locked) > 200


def test_every_package_has_hashes() -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "constraints-hashes.txt").read_text().strip())
    assert [entry.splitlines()[0] for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)] == []
