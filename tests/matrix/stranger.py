"""A stranger's first days, from a wheel in an environment of its own: the quick start, then three days of the tutorial.

::

    walk(bin, home, airflow="3.3.2")  ->  Walk(problems=["the second day's file is late: ..."], table=Path("daily.lance"))

The environment's commands do everything; what they left is judged by the caller, with the official library. It runs in
`make test` on the Airflow of the repository and in `make matrix` on 2.11 and 3.1.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

QUIET = {
    r"example_local_kubernetes_executor\.py": "a DAG of Airflow's own that needs Kubernetes; it says so with a traceback",
}
"""Lines before a traceback that the reader did not cause and this package cannot prevent, with reasons."""

CAUSED = {
    "Task failed with exception": "Airflow's line for a task that failed; the stranger left its file out, or broke it",
    "ERROR - Task failed; ti=": "the same in 2.11, which says it twice",
    "ERROR - Marking run <DagRun tutorial_daily": "2.11: the run that failed with its task",
    "Traceback (most recent call last)": "Airflow prints the exception of a failed task, and the one that was its cause",
}
"""Loud lines of the turns that must fail, with reasons; a turn that must succeed has none."""

MOST = 10
"""Loud lines of one failed task: 3.3 has three; 2.11 prints up to four twice, and two of its own."""

OLD_IMPORTS = {
    r"^from airflow\.sdk import (.*)$": {
        "DAG": "from airflow import DAG",
        "task": "from airflow.decorators import task",
        "chain": "from airflow.models.baseoperator import chain",
    },
}
"""What the pages tell people of Airflow 2.11 to write instead."""


@dataclass(frozen=True)
class Day:
    """One time that the stranger runs a day: the files that came before it, and what must become of it.

    `told` are patterns that the log must have where the run fails: what is wrong, in the reader's words.
    """

    name: str
    date: str
    files: dict[str, str]
    tasks: dict[str, str]
    told: tuple[str, ...] = ()


HEAD = "id,city\n"
DAYS = (
    Day(
        "the first day",
        "2013-01-01",
        {"orders-2013-01-01.csv": "1,Berlin\n2,Lagos\n", "corrections-2013-01-01.csv": "2,Accra\n"},
        {"load": "success", "correct": "success", "check": "success"},
    ),
    Day(
        "the second day's file is late",
        "2013-01-02",
        {},
        {"load": "failed", "correct": "upstream_failed", "check": "upstream_failed"},
        (r"orders-2013-01-02\.csv",),
    ),
    Day(
        "it has come, and the corrections are an empty file",
        "2013-01-02",
        {"orders-2013-01-02.csv": "3,Lima\n4,Pune\n", "corrections-2013-01-02.csv": ""},
        {"load": "success", "correct": "skipped", "check": "success"},
    ),
    Day(
        "an order of the third day has no city",
        "2013-01-03",
        {"orders-2013-01-03.csv": "5,Kyiv\n6,\n", "corrections-2013-01-03.csv": "1,Bonn\n1,Trier\n"},
        {"load": "failed", "correct": "upstream_failed", "check": "upstream_failed"},
        (r"city",),
    ),
    Day(
        "the order is mended; a correction is there twice",
        "2013-01-03",
        {"orders-2013-01-03.csv": "5,Kyiv\n6,Oslo\n"},
        {"load": "success", "correct": "failed", "check": "upstream_failed"},
        (r"id",),
    ),
    Day(
        "the corrections are mended, and the day is run again",
        "2013-01-03",
        {"corrections-2013-01-03.csv": "1,Bonn\n6,Bergen\n"},
        {"load": "success", "correct": "success", "check": "success"},
    ),
)
ROWS = {1: "Bonn", 2: "Accra", 3: "Lima", 4: "Pune", 5: "Kyiv", 6: "Bergen"}
"""What the table has in the end."""


@dataclass(frozen=True)
class Walk:
    """What went wrong, in sentences; and the table that the days left."""

    problems: list[str]
    table: Path


def loud_lines(text: str) -> list[str]:
    """The lines of errors and tracebacks in what commands have printed, but for those of `QUIET`."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    is_loud = re.compile(r"\[error|\[critical|\bERROR\b|\bCRITICAL\b|^\W*Traceback \(most recent call last\)")
    excused = [any(re.search(cause, before) for cause in QUIET) for before in ["", *lines]]
    return [line for line, known in zip(lines, excused, strict=False) if is_loud.search(line) and not known]


def page_of(name: str) -> tuple[str, str, str]:
    """The install line, the DAG file and the commands of a page's quick start."""
    blocks = re.findall(r"```(\w+)\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    install = next(code for kind, code in blocks if kind == "sh" and "pip install" in code)
    dag = next(code for kind, code in blocks if kind == "python" and "first_table" in code)
    return install, dag, next(code for kind, code in blocks if kind == "sh" and "dags test first_table" in code)


def for_release(code: str, airflow: str) -> str:
    """A DAG file as the pages say it is written on a release of Airflow."""
    if not airflow.startswith("2."):
        return code
    for pattern, instead in OLD_IMPORTS.items():
        found = re.search(pattern, code, re.MULTILINE)
        if found:
            names = [name.strip() for name in found[1].split(",")]
            code = code.replace(found[0], "\n".join(instead[name] for name in names))
    return code


def prepare(home: Path, dag: str, *, path: Path) -> dict[str, str]:
    """A home folder with the DAG where the page says; the environment of a person whose commands are in `path`."""
    folder = home / "airflow" / "dags"
    folder.mkdir(parents=True)
    (folder / "first_table.py").write_text(dag)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHONPATH", "PIP_"))}
    return {
        **kept,
        "HOME": str(home),
        "PATH": os.pathsep.join([str(path), os.environ["PATH"]]),
        "AIRFLOW_HOME": str(home / "airflow"),
        "NUMBA_CACHE_DIR": str(home / "kernels"),
    }


def wheel_in(folder: Path) -> Path:
    """The package as a stranger would get it."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True, timeout=300)
    return next(folder.glob("airflow_provider_lance-*.whl"))


def environment_of(wheel: Path, place: Path, *, interpreter: Path = Path(sys.executable)) -> Path:
    """Where the commands of an environment are that has this wheel, and else what an interpreter's environment has."""
    made = [str(interpreter), "-m", "venv", "--without-pip", str(place)]
    subprocess.run(made, check=True, timeout=300)
    (packages,) = place.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as packed:  # pure Python: installed where it is unpacked
        packed.extractall(packages)
    # A line of a .pth file adds a folder without the .pth files in it: those of an editable installation stay out.
    (there,) = interpreter.parents[1].glob("lib/python*/site-packages")
    (packages / "installed_here.pth").write_text(f"{there}\n")
    for name, function in (("airflow", "airflow.__main__:main"), ("lance", "lance_core.cli.main:main")):
        module, _, called = function.partition(":")
        script = place / "bin" / name
        script.write_text(f"#!{place}/bin/python\nimport sys\nfrom {module} import {called}\nsys.exit({called}())\n")
        script.chmod(0o755)
    return place / "bin"


RUN_A_DAY = """
import json, sys
from datetime import datetime, timezone
from pathlib import Path
sys.path.insert(0, sys.argv[1])
if sys.argv[4].startswith("2."):
    from airflow.providers.fab.auth_manager import models  # its command line does; a run is not removed without
from tutorial_daily import daily_dag

raw, days, old = Path(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4].startswith("2.")
for number, day in enumerate(days):
    for name, rows in day["files"].items():
        (raw / name).write_text(rows)
    print(f"<<<{number}", flush=True)
    print(f"<<<{number}", file=sys.stderr, flush=True)
    when = datetime.fromisoformat(day["date"]).replace(tzinfo=timezone.utc)
    run = daily_dag.test(**{"execution_date" if old else "logical_date": when})
    states = {ti.task_id: str(getattr(ti.state, "value", ti.state)) for ti in run.get_task_instances()}
    print("STATES " + json.dumps(states), flush=True)
"""
"""Runs the days in one process, as `if __name__ == "__main__": dag.test()` does; Airflow's API is started once."""


def walk(commands: Path, home: Path, *, airflow: str) -> Walk:
    """The quick start and the three days, with the commands in a folder; `home` is empty."""
    _, dag, script = page_of("README.md")
    env = prepare(home, for_release(dag, airflow), path=commands)
    problems: list[str] = []
    script = script if not airflow.startswith("2.") else script.replace("airflow dags reserialize\n", "")
    done = subprocess.run(["bash", "-euc", script], env=env, cwd=home, capture_output=True, text=True, timeout=900)
    problems += _judge("the quick start", done, "Berlin")
    problems += [f"the quick start: {line}" for line in loud_lines(done.stdout + done.stderr)]
    return Walk([*problems, *_three_days(env, home, airflow)], home / "data" / "tutorial" / "daily.lance")


def rows_problems(table: Path) -> list[str]:
    """What the official library finds wrong with the rows that the days left."""
    import lance

    dataset = lance.dataset(table)
    dataset.validate()
    rows = sorted((row["id"], row["city"]) for row in dataset.to_table().to_pylist())
    return [] if rows == sorted(ROWS.items()) else [f"the table has {rows}"]


def _judge(name: str, done: subprocess.CompletedProcess[str], wanted: str) -> list[str]:
    if done.returncode == 0 and wanted in done.stdout:
        return []
    return [f"{name}: status {done.returncode}, {wanted!r} not printed: {(done.stdout + done.stderr)[-2000:]}"]


def _three_days(env: dict[str, str], home: Path, airflow: str) -> list[str]:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    code = next(text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if '"tutorial_daily"' in text)
    raw = home / "data" / "tutorial" / "raw"
    raw.mkdir(parents=True)
    dags = home / "airflow" / "dags"
    (dags / "tutorial_daily.py").write_text(for_release(code, airflow).replace('"/data/', f'"{home}/data/'))
    if not airflow.startswith("2."):
        stored = subprocess.run(["airflow", "dags", "reserialize"], env=env, capture_output=True, text=True, timeout=300)
        loud = loud_lines(stored.stdout + stored.stderr)
        if stored.returncode or loud:
            return [f"airflow dags reserialize: status {stored.returncode}", *loud]
    days = [
        {"date": day.date, "files": {name: HEAD * bool(rows) + rows for name, rows in day.files.items()}} for day in DAYS
    ]
    command = ["python", "-c", RUN_A_DAY, str(dags), str(raw), json.dumps(days), airflow]
    done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, timeout=900)
    (home / "days.log").write_text(done.stdout + "\n======\n" + done.stderr)
    printed = [re.split(r"<<<\d\n", text)[1:] for text in (done.stdout, done.stderr)]
    if done.returncode or {len(parts) for parts in printed} != {len(DAYS)}:
        return [f"the days: status {done.returncode}: {(done.stdout + done.stderr)[-3000:]}"]
    return [
        f"{day.name}: {text}" for day, *parts in zip(DAYS, *printed, strict=True) for text in _day(day, "\n".join(parts))
    ]


def _day(day: Day, text: str) -> list[str]:
    states = json.loads(next(line for line in text.splitlines() if line.startswith("STATES "))[len("STATES ") :])
    problems = [] if states == day.tasks else [f"{states} instead of {day.tasks}: {text[-3000:]}"]
    loud = loud_lines(text)
    fails = [name for name, state in day.tasks.items() if state == "failed"]
    allowed = [line for line in loud if any(cause in line for cause in CAUSED)] if fails else []
    problems += [line for line in loud if line not in allowed]
    problems += [f"{len(allowed)} loud lines for {len(fails)} failed tasks"] if len(allowed) > MOST * len(fails) else []
    return problems + [f"the log does not say {pattern}" for pattern in day.told if not re.search(pattern, text)]
