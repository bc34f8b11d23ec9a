"""The documentation as a site, in `site/`: the pages of `docs/` with the reference of the commands, made by zensical.

::

    python .ci/site.py [FOLDER]

What is generated goes into a copy, so that a build changes no file of the repository.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cli_reference import PLACE, page

from airflow_lance.operators import BASES, OPERATORS

ROOT = Path(__file__).resolve().parents[1]


OPERATORS_PLACE = "<!-- operators -->"


def operator_pages() -> str:
    """What mkdocstrings turns into the reference of all operators, their bases first."""
    modules = dict.fromkeys([*map(OPERATORS.get, BASES), *OPERATORS.values()])
    return "\n\n".join(f"::: {module}" for module in modules)


def build(target: Path) -> None:
    """Write the site into `target`, which is replaced. Warnings are errors."""
    with tempfile.TemporaryDirectory(prefix="lance-site-") as folder:
        place = Path(folder)
        shutil.copytree(ROOT / "docs", place / "docs")
        (place / ".ci").mkdir()
        for name in ("mkdocs.yml", ".ci/base_arguments.py"):
            shutil.copyfile(ROOT / name, place / name)
        commands = place / "docs" / "reference" / "cli.md"
        commands.write_text(commands.read_text(encoding="utf-8").replace(PLACE, page()), encoding="utf-8")
        operators = place / "docs" / "reference" / "operators.md"
        operators.write_text(
            operators.read_text(encoding="utf-8").replace(OPERATORS_PLACE, operator_pages()), encoding="utf-8"
        )
        zensical = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
        subprocess.run(zensical, cwd=place, check=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(place / "site", target)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve())
