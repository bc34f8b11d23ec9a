"""The environment of a fresh interpreter that keeps its bytecode, as one that runs installed packages does.

::

    subprocess.run([sys.executable, "-c", code], env=as_installed())

pip compiles what it installs. A checkout is compiled at its first import, and never keeps that where
`PYTHONDONTWRITEBYTECODE` is set: each process would then pay for it again, which no user does.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def as_installed() -> dict[str, str]:
    """Return this process's environment, with a folder of the bench's own for bytecode."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "lance-bench-bytecode")}
