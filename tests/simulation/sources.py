"""Which code this is: the commit, where there is one, and a digest of the sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

import lance_core


def digest_of_sources() -> str:
    """SHA-256 of the names and contents of every module of the package and of the simulated world."""
    found = hashlib.sha256()
    for root in (Path(lance_core.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*.py")):
            data = path.read_bytes()
            found.update(f"{path.relative_to(root).as_posix()} {len(data)}\n".encode() + data)
    return found.hexdigest()


def revision() -> str:
    """The commit that is checked out; "unknown" outside a checkout."""
    git = Path(lance_core.__file__).parents[1] / ".git"
    try:
        if git.is_file():  # a worktree of another checkout
            git = Path(git.read_text().partition(":")[2].strip())
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        common = git / "commondir"
        shared = (git / common.read_text().strip()).resolve() if common.exists() else git
        return _commit_of(shared, head.removeprefix("ref: "))
    except OSError:
        return "unknown"


def _commit_of(git: Path, name: str) -> str:
    loose, packed = git / name, git / "packed-refs"
    if loose.exists():
        return loose.read_text().strip()
    lines = packed.read_text().splitlines() if packed.exists() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "unknown")
