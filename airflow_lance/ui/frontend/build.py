"""Build the pages, or check that the committed build is the one that these sources make. Needs node 20.19 or newer and npm.

::

    python airflow_lance/ui/frontend/build.py            builds into airflow_lance/ui/dist
    python airflow_lance/ui/frontend/build.py --check    builds elsewhere and compares, byte by byte
    python airflow_lance/ui/frontend/build.py --test     the unit tests of the sources

Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "dist"
RECORD = "SOURCES.sha256"
INPUTS = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


def sources_digest() -> str:
    """One digest of everything that the build is made from."""
    digest = hashlib.sha256()
    files = [HERE / name for name in INPUTS] + sorted(path for path in (HERE / "src").rglob("*") if path.is_file())
    for path in files:
        digest.update(path.relative_to(HERE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def build(place: Path) -> None:
    """Check the types and build into `place`, with a record of the sources."""
    _install()
    _run(str(HERE / "node_modules/.bin/tsc"), "--noEmit")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for part in ("plugin", "alone"):
        _run(str(HERE / "node_modules/.bin/vite"), "build", "--logLevel", "warn", "--outDir", str(place), LANCE_PART=part)
    shutil.copyfile(HERE / "index.html", place / "index.html")
    (place / RECORD).write_text(sources_digest() + "\n")


def differences(place: Path) -> list[str]:
    """Files that differ between the committed build and `place`."""
    names = {path.relative_to(root).as_posix() for root in (BUILT, place) for path in root.rglob("*") if path.is_file()}
    return sorted(name for name in names if _bytes(BUILT / name) != _bytes(place / name))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _install() -> None:
    """Install what package-lock.json names, unless that is what is installed."""
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    record = HERE / "node_modules" / ".lock.sha256"
    if record.is_file() and record.read_text() == lock:
        return
    _run("npm", "ci", "--silent", "--no-audit", "--no-fund")
    record.write_text(lock)


def _run(*command: str, **environment: str) -> None:
    known = {name: value for name, value in os.environ.items() if name != "NODE_ENV"}
    subprocess.run(command, cwd=HERE, check=True, env={**known, **environment})


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the pages, or check the committed build.")
    parser.add_argument("--check", action="store_true", help="build elsewhere and compare with the committed build")
    parser.add_argument("--test", action="store_true", help="run the unit tests")
    asked = parser.parse_args()
    if shutil.which("npm") is None:
        print("npm is needed to build the pages: install node 20.19 or newer", file=sys.stderr)
        return 1
    if asked.test:
        _install()
        _run(str(HERE / "node_modules/.bin/vitest"), "run")
        return 0
    if not asked.check:
        build(BUILT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "dist"
        build(place)
        changed = differences(place)
    if changed:
        print(f"the committed build differs from the sources: {', '.join(changed)}; run `make ui`", file=sys.stderr)
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
