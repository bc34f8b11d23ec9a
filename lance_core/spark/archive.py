"""lance_core as one zip file, for executors that have its dependencies but not itself; and a driver as one zip file.

::

    write_archive("/tmp/lance_core.zip")       spark-submit --py-files /tmp/lance_core.zip, or session.addArtifacts(…)
    write_application("/tmp/lance_job.jar")    python lance_job.jar '{"spec": 1, ...}'    runs a job, as `main.py` does

Pure Python imports from a zip; what is compiled (Arrow, numpy, numba) cannot, and comes with the cluster or with a packed
environment (ADR 023). A standalone cluster takes no Python program in cluster mode, but it takes a jar, which is a zip by
another name: the second form is what the Airflow operators submit there (ADR 024). To place it once, where all workers of
a cluster reach it: `python -m lance_core.spark.archive lance_job.jar`. Standard library only.
"""

from __future__ import annotations

import io
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "lance_core"
_FIXED = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that the same files give the same bytes."""


BUNDLED = "lance_job.zip"
"""The package inside an application: a separate zip, because numba keeps no compiled kernels for code in a `.jar`."""
_MAIN = f"""\
import sys
import zipfile

with zipfile.ZipFile(sys.argv[0]) as application:
    if {BUNDLED!r} in application.namelist():
        sys.path.insert(0, application.extract({BUNDLED!r}))

from lance_core.spark.submit import run

sys.exit(run())
"""
"""What Python runs when it is given the application; the package is unpacked into the folder it runs in."""


def write_archive(target: str) -> str:
    """Write the zip and return its path. The same installation gives the same bytes."""
    Path(target).write_bytes(_package())
    return target


def write_application(target: str, *, with_package: bool = True) -> str:
    """Write a zip that Python can run and return its path; without the package it must be installed where that runs."""
    with zipfile.ZipFile(target, "w") as archive:
        _add(archive, "__main__.py", _MAIN.encode())
        if with_package:
            _add(archive, BUNDLED, _package())
    return target


def _package() -> bytes:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:  # pragma: no cover - this module is part of it
        raise ModuleNotFoundError(PACKAGE)
    root, content = Path(found.origin).parent, io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".typed") and "__pycache__" not in path.parts:
                _add(archive, f"{PACKAGE}/{path.relative_to(root).as_posix()}", path.read_bytes())
    return content.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _FIXED)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    sys.stdout.write(write_application(*(sys.argv[1:2] or ["lance_job.jar"])) + "\n")
