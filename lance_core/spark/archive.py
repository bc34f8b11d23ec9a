"""lance_core as one zip file, for executors that have its dependencies but not itself.

::

    write_archive("/tmp/lance_core.zip")       spark-submit --py-files /tmp/lance_core.zip, or session.addArtifacts(…)

Pure Python imports from a zip; what is compiled (Arrow, numpy, numba) cannot, and comes with the cluster or with a packed
environment (ADR 023). Standard library only.
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "lance_core"
_FIXED = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that the same files give the same bytes."""


def write_archive(target: str) -> str:
    """Write the zip and return its path. The same installation gives the same bytes."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:  # pragma: no cover - this module is part of it
        raise ModuleNotFoundError(PACKAGE)
    root = Path(found.origin).parent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".typed") and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(f"{PACKAGE}/{path.relative_to(root).as_posix()}", _FIXED)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return target
