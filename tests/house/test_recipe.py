"""CONTRIBUTING's recipe for an operator, followed in a copy of the repository: seven files, and every guard is content."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("lance_core", "airflow_lance", "docs", ".ci", "pyproject.toml", "CONTRIBUTING.md",
          "tests/airflow/test_operator_list.py", "tests/jobs/specs/test_specs.py", "tests/matrix/dags/lance_matrix.py",
          "tests/house/test_faces.py")  # fmt: skip
GUARDS = ("tests/airflow/test_operator_list.py", "tests/jobs/specs/test_specs.py", "tests/house/test_faces.py")

SPEC = '''

@dataclass(frozen=True, kw_only=True)
class CountRowsSpec(JobSpec):
    """Count the rows that a filter selects."""

    kind: ClassVar[str] = "count_rows"

    filter: str
'''

ACT = '''"""Count the rows that a filter selects."""

from __future__ import annotations

from lance_core.dataset import dataset
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.specs.definition import CountRowsSpec


def count_rows(spec: CountRowsSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "num_rows"}."""
    table = dataset(spec.uri, storage_options=spec.resolved_options())
    return Report(spec.kind, {"version": table.version, "num_rows": table.count_rows(spec.filter)})
'''

ROW = """    "count_rows": Kind(f"{_SPECS}.definition:CountRowsSpec", act=f"{_ACTS}.count_rows:count_rows"),
"""

OPERATOR = '''"""Count rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_lance.operators.immediate import LanceImmediateOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import ImmediateArguments


class LanceCountRowsOperator(LanceImmediateOperator):
    """Count rows.

    Raises:
        AirflowFailException: a filter that cannot be read.
    """

    spec = "lance_core.jobs.specs.definition:CountRowsSpec"

    template_fields: Sequence[str] = (*LanceImmediateOperator.template_fields, "filter")

    def __init__(self, *, filter: str, **kwargs: Unpack[ImmediateArguments]) -> None:
        super().__init__(**kwargs)
        self.filter = filter
'''

RUN = """
import sys
import pyarrow as pa
import lance_core
from airflow_lance import LanceCountRowsOperator
from lance_core.jobs import api

lance_core.write_dataset(pa.table({"id": range(10)}), sys.argv[1])
task = LanceCountRowsOperator(task_id="count", uri=sys.argv[1], filter="id < 4")
assert api.run(task.make_spec(uri=sys.argv[1], identity=""), options={})["num_rows"] == 4
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What the guards read; the rest of the tests stays where it is."""
    place = tmp_path / "copy"
    for name in COPIED:
        source, target = ROOT / name, place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(
                source, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules", "frontend", "images")
            )
        else:
            shutil.copyfile(source, target)
    return place


def _follow(place: Path) -> list[str]:
    """The steps of the recipe for a kind that takes effect at once; the files that they touch."""
    touched = []

    def add(path: str, text: str, *, after: str | None = None) -> None:
        file = place / path
        before = file.read_text() if file.exists() else ""
        assert after is None or before.count(after) == 1, f"{path} is not as the recipe has it"
        file.write_text(before + text if after is None else before.replace(after, after + text))
        touched.append(path)

    faces = "airflow_lance/operators/__init__.py"
    home = "airflow_lance.operators.count_rows"
    add("lance_core/jobs/specs/definition.py", SPEC)
    add("lance_core/jobs/acts/count_rows.py", ACT)
    add("lance_core/jobs/kinds.py", ROW, after="KINDS: Mapping[str, Kind] = {\n")
    add("airflow_lance/operators/count_rows.py", OPERATOR)
    add(faces, f'    "LanceCountRowsOperator": "{home}",\n', after="OPERATORS: Mapping[str, str] = {\n")
    add(faces, f"    from {home} import LanceCountRowsOperator as LanceCountRowsOperator\n", after="if TYPE_CHECKING:\n")
    add("docs/operators.md", "\n## LanceCountRowsOperator\n\nCounts rows.\n")
    add("tests/matrix/dags/lance_matrix.py", "# LanceCountRowsOperator\n")
    return touched


def _run(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(place)}
    return subprocess.run(
        [sys.executable, *command], cwd=place, env=environment, capture_output=True, text=True, timeout=400
    )


def test_a_new_operator_takes_seven_files(copy: Path, tmp_path: Path) -> None:
    told = (copy / "CONTRIBUTING.md").read_text()
    recipe = told[told.index("**An operator**") :]
    touched = _follow(copy)
    assert len({*touched}) == 7
    for path in touched:
        folder = f"{Path(path).parent}/"
        assert path in recipe or folder in recipe, f"the recipe does not name {path}"
    for path in re.findall(r"`((?:lance_core|airflow_lance|tests|docs)/[\w/.]*[\w/])`", recipe):
        assert (ROOT / path).exists(), f"the recipe names {path}, which does not exist"
    done = _run(copy, "-c", RUN, str(tmp_path / "t.lance"))
    assert done.returncode == 0, done.stderr
    # Random specs say nothing of the new one, and take long where many tests run at once.
    chosen = ("-k", "not any_spec_survives_json", *GUARDS)
    guards = _run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:warnings", *chosen)
    assert guards.returncode == 0, guards.stdout[-3000:]


def test_the_guards_miss_what_a_step_leaves_out(copy: Path) -> None:
    _follow(copy)
    (copy / "airflow_lance" / "operators" / "forgotten.py").write_text(OPERATOR.replace("CountRowsOp", "ForgottenOp"))
    guards = _run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:warnings", "-k", "folder", GUARDS[0])
    assert guards.returncode == 1
    assert "LanceForgottenOperator" in guards.stdout
