"""Every supported Airflow, each in an environment of its own: import all modules, then run one DAG of all operators; once
for each release that `make test` has not, the pages in a browser, and a stranger's first days (`stranger.py`).

::

    python tests/matrix/run_matrix.py                        # all of them; environments are kept in .venv-matrix/
    python tests/matrix/run_matrix.py 2.11.2-py3.10 3.1.8-py3.13
    -> | Airflow | Python | common.compat | pyarrow | result |      exit status 1 when one of them failed

Interpreters are those that uv or pyenv has installed; a combination whose interpreter or packages cannot
be had here is named in the table as not run.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.matrix.stranger import environment_of, rows_problems, walk, wheel_in  # noqa: E402  (run as a script)

ENVIRONMENTS = REPOSITORY / ".venv-matrix"

MATRIX = (
    *(("2.11.2", python) for python in ("3.10", "3.11", "3.12")),
    *(("3.0.6", python) for python in ("3.10", "3.11", "3.12")),
    *(("3.1.8", python) for python in ("3.10", "3.11", "3.12", "3.13")),
    *(("3.2.2", python) for python in ("3.10", "3.11", "3.12", "3.13")),
    *(("3.3.2", python) for python in ("3.10", "3.11", "3.12", "3.13", "3.14")),
)
"""Every Airflow from 2.11 on, with every Python that both it and this package support."""

PINS = {
    "3.0.6": ("fastapi<0.117",),
    "3.2.2": ("fastapi<0.137", "starlette<1.2", "cadwyn<7", "svcs<26"),
}
"""Where an Airflow does not run with the newest release of what it depends on; its own constraints file says the same."""

WITH_PAGES = ("3.1.8", "3.2.2")
"""Releases whose UI has places for the pages, beside the one that `make test` runs with."""

WITH_STRANGER = ("2.11.2", "3.1.8")
"""Releases whose first days are walked through, beside those of the one that `make test` runs with."""

MOST_SECONDS = 600
"""What the first days of a stranger may take by the clock; where others use the processors, of processor time."""

PROBE = """
import importlib, json, os
from importlib.metadata import version
from airflow_lance.get_provider_info import get_provider_info
info = get_provider_info()
groups = [group for room in ("operators", "sensors", "hooks", "triggers") for group in info[room]]
names = [name for group in groups for name in group["python-modules"]]
for name in [*names, "airflow_lance.assets", "airflow_lance.pools", "airflow_lance.lineage", "airflow_lance.ui.plugin"]:
    importlib.import_module(name)
found = {"compat": version("apache-airflow-providers-common-compat"), "arrow": version("pyarrow"), "modules": len(names)}
print("PROBE " + json.dumps(found))
"""


@dataclass(frozen=True)
class Row:
    """What became of one combination."""

    airflow: str
    python: str
    result: str
    compat: str = ""
    arrow: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it ran, or there is no such interpreter here."""
        return not self.result.startswith("failed")


def main(chosen: list[str]) -> int:
    """Run the combinations (all of them without names) and print the table."""
    rows: list[Row] = []
    for airflow, python in MATRIX:
        if chosen and f"{airflow}-py{python}" not in chosen:
            continue
        row = _run(airflow, python)
        if airflow in WITH_PAGES and row.result.startswith("green") and not _has_word(rows, airflow, "the pages"):
            row = replace(row, result=_pages(airflow, python, row.result))
        if airflow in WITH_STRANGER and row.result.startswith("green") and not _has_word(rows, airflow, "a stranger"):
            row = replace(row, result=_stranger(airflow, python, row.result))
        rows.append(row)
        print(f"{airflow} on Python {python}: {row.result}", file=sys.stderr, flush=True)
    print("| Airflow | Python | common.compat | pyarrow | result |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {row.airflow} | {row.python} | {row.compat} | {row.arrow} | {row.result} |")
    return 0 if rows and all(row.is_good for row in rows) else 1


def _run(airflow: str, python: str) -> Row:
    interpreter = _find(python)
    if interpreter is None:
        return Row(airflow, python, f"not run: no Python {python} on this machine")
    place = ENVIRONMENTS / f"{airflow}-py{python}"
    problem = _install(place, interpreter, airflow)
    if problem:
        return Row(airflow, python, f"failed: {problem}")
    with tempfile.TemporaryDirectory(prefix="lance-matrix-") as home:
        return _try(airflow, python, place / "bin" / "python", Path(home))


def _has_word(rows: list[Row], airflow: str, word: str) -> bool:
    return any(row.airflow == airflow and word in row.result for row in rows)


def _stranger(airflow: str, python: str, result: str) -> str:
    """The result with that of a stranger's first days added; the official library of this environment judges the rows."""
    with tempfile.TemporaryDirectory(prefix="lance-stranger-") as place:
        home = Path(place) / "home"
        home.mkdir()
        there = ENVIRONMENTS / f"{airflow}-py{python}" / "bin" / "python"
        commands = environment_of(wheel_in(Path(place) / "wheels"), Path(place) / "fresh", interpreter=there)
        began, before = time.monotonic(), _spent()
        walked = walk(commands, home, airflow=airflow)
        seconds, spent = time.monotonic() - began, _spent() - before
        problems = [*walked.problems] or rows_problems(walked.table)
        # It works with one processor at a time; over the last minutes more than that are wanted by others, then.
        load = os.getloadavg()[2]
        judged = seconds if load < (os.cpu_count() or 1) else spent
        took = f"{seconds:.0f} s ({spent:.0f} s of processor time, load {load:.1f})"
        if judged > MOST_SECONDS:
            problems.append(f"{took}; {MOST_SECONDS} s are allowed")
    if problems:
        (ENVIRONMENTS / f"{airflow}-py{python}-stranger.log").write_text("\n".join(problems))
        return f"failed: a stranger's first days: {problems[0].splitlines()[0][:200]}"
    return f"{result}, a stranger's first days in {took}"


def _spent() -> float:
    """The processor time of all programs that were started here and have ended: a busy machine takes no more of it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pages(airflow: str, python: str, result: str) -> str:
    """The result with that of the browser tests added; the browser and the tests are this environment's own."""
    release = airflow.rpartition(".")[0]
    # Without -q, which the settings have: twice it leaves out the line that says how many passed.
    command = [sys.executable, "-m", "pytest", "-rs", "tests/ui/pages/test_releases.py", "-k", release]
    env = {**os.environ, "LANCE_RELEASE_PYTHON": str(ENVIRONMENTS / f"{airflow}-py{python}" / "bin" / "python")}
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=3600)
    if done.returncode or " passed" not in done.stdout:
        (ENVIRONMENTS / f"{airflow}-py{python}-pages.log").write_text(done.stdout + done.stderr)
        return f"{'failed' if done.returncode else result + '; not run'}: the pages: {_last(done.stdout)}"
    return f"{result}, the pages"


def _find(python: str) -> str | None:
    asked = subprocess.run([*_uv(), "python", "find", python], capture_output=True, text=True, env=_uv_env())
    if asked.returncode == 0 and asked.stdout.strip():
        return asked.stdout.strip()
    # pyenv hides all but the chosen version from the search path.
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return next((str(path) for path in sorted(root.glob(f"versions/{python}.*/bin/python{python}"))), None)


def _install(place: Path, interpreter: str, airflow: str) -> str:
    """Make the environment unless it is there; why it cannot be made, "" for none."""
    if not (place / "bin" / "python").exists():
        made = subprocess.run([*_uv(), "venv", "--quiet", "--python", interpreter, str(place)], env=_uv_env())
        if made.returncode:
            return "the environment could not be made"
    command = [*_uv(), "pip", "install", "--quiet", "--python", str(place / "bin" / "python")]
    wanted = [f"apache-airflow=={airflow}", "apache-airflow-providers-common-compat", "pandas", *PINS.get(airflow, ())]
    here = f"{REPOSITORY}[duckdb]"
    done = subprocess.run([*command, *wanted, "--editable", here], env=_uv_env(), capture_output=True, text=True)
    return "" if done.returncode == 0 else f"packages: {(done.stderr.strip().splitlines() or ['no message'])[-1].strip()}"


def _try(airflow: str, python: str, interpreter: Path, home: Path) -> Row:
    env = _airflow_env(home)
    probe = subprocess.run([interpreter, "-c", PROBE], env=env, capture_output=True, text=True, timeout=300)
    line = next((text for text in probe.stdout.splitlines() if text.startswith("PROBE ")), None)
    if line is None:
        return Row(airflow, python, f"failed: import: {_last(probe.stderr)}")
    found = json.loads(line.removeprefix("PROBE "))
    versions = {"compat": found["compat"], "arrow": found["arrow"]}
    place = env["LANCE_MATRIX_PLACE"]
    conf = {"action": "tag", "uri": f"{place}/everything.lance", "arguments": {"name": "by_hand"}}
    run = ["dags", "test", "lance_matrix", "2013-01-01", "--conf", json.dumps(conf)]
    commands = (["db", "migrate"], *_serialize(airflow), run)
    for arguments in commands:
        try:
            done = subprocess.run(
                [interpreter, "-m", "airflow", *arguments], env=env, capture_output=True, text=True, timeout=3600
            )
        except subprocess.TimeoutExpired:
            return Row(airflow, python, f"failed: airflow {' '.join(arguments[:2])} took more than an hour", **versions)
        if done.returncode:
            (ENVIRONMENTS / f"{airflow}-py{python}.log").write_text(done.stdout + done.stderr)
            return Row(airflow, python, f"failed: airflow {' '.join(arguments[:2])}: {_last(done.stderr)}", **versions)
    return Row(airflow, python, f"green: {found['modules']} modules, the whole DAG", **versions)


def _serialize(airflow: str) -> list[list[str]]:
    """From Airflow 3 on a DAG is run as it is stored."""
    return [] if airflow.startswith("2.") else [["dags", "reserialize"]]


def _airflow_env(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    return {
        **kept,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(HERE / "dags"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(HERE / "dags")]),
        "LANCE_MATRIX_PLACE": str(home / "lake"),
        "AIRFLOW_CONN_LANCE_DEFAULT": json.dumps({"conn_type": "lance", "extra": {"base_uri": str(home / "lake")}}),
    }


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


def _uv() -> list[str]:
    return [sys.executable, "-m", "uv"]


def _uv_env() -> dict[str, str]:
    return {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
