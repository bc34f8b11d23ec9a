"""The committed build of the pages: fresh, small, without anything that runs text as code."""

from __future__ import annotations

import gzip
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FRONTEND = ROOT / "airflow_lance/ui/frontend"
BUILT = ROOT / "airflow_lance/ui/dist"
SOURCES = sorted(path for path in (FRONTEND / "src").rglob("*") if path.is_file())
MOST_COMPRESSED = 500_000


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lance_pages_build", FRONTEND / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed() -> bool:
    return shutil.which("node") is not None and (FRONTEND / "node_modules/.bin/vitest").exists()


def test_the_build_was_made_from_these_sources(build: ModuleType) -> None:
    assert (BUILT / "SOURCES.sha256").read_text().strip() == build.sources_digest(), "the sources changed: run `make ui`"


def test_the_bundle_is_small() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in BUILT.iterdir()}
    assert {"index.html", "app.js", "lance.umd.js"} <= sizes.keys()
    assert sum(sizes.values()) < MOST_COMPRESSED, sizes


def test_the_plugin_takes_the_hosts_react() -> None:
    assert "react.production" not in (BUILT / "lance.umd.js").read_text()
    assert len((BUILT / "lance.umd.js").read_bytes()) < len((BUILT / "app.js").read_bytes()) / 2


def test_no_source_runs_text_as_code_or_as_html() -> None:
    names = r"dangerouslySetInnerHTML|\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|\beval\("
    banned = re.compile(names + r"|new Function\(|javascript:")
    assert [path.name for path in SOURCES if banned.search(path.read_text())] == []


def test_the_page_asks_no_other_host() -> None:
    for path in SOURCES:
        assert re.findall(r"https?://[\w.-]+", path.read_text()) == [], path
    page = (BUILT / "index.html").read_text()
    assert '<base href="/">' in page and "://" not in page
    assert not re.search(r"<script(?![^>]*\bsrc=)", page), "an inline script is refused by the content security policy"


def test_the_pages_name_options_that_exist() -> None:
    """Every `[lance] option` in a text of the pages or of their server is one that something reads."""
    package = sorted((ROOT / "airflow_lance").rglob("*.py"))
    read = {name for path in package for name in re.findall(r'(?:configured|_number)\(\s*"(\w+)"', path.read_text())}
    told = {
        (path.name, name)
        for path in (*SOURCES, *package)
        if path in SOURCES or "/ui/" in path.as_posix()
        for name in re.findall(r"\[lance\] (\w+)", path.read_text())
    }
    assert {"pages_policy", "pages_rows"} <= {name for _, name in told}
    assert [(file, name) for file, name in sorted(told) if name not in read] == []


def test_the_lock_names_no_registry() -> None:
    lock = (FRONTEND / "package-lock.json").read_text()
    assert '"resolved"' not in lock and "registry" not in lock
    assert lock.count('"integrity"') > 10


def test_sources_are_short_files() -> None:
    assert [path.name for path in SOURCES if len(path.read_text().splitlines()) > 400] == []


def test_the_wheel_has_the_build_and_not_its_sources() -> None:
    from hatchling.builders.wheel import WheelBuilder

    names = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert "airflow_lance/ui/dist/lance.umd.js" in names and "airflow_lance/ui/dist/index.html" in names
    assert [name for name in names if "frontend" in name or "node_modules" in name] == []


def test_unit_tests_of_the_front_end() -> None:
    if not installed():
        pytest.skip("node or the packages of the pages are missing: `make ui-test` installs them and runs the same tests")
    done = subprocess.run(
        [str(FRONTEND / "node_modules/.bin/vitest"), "run"], cwd=FRONTEND, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_build_can_be_made_again_byte_by_byte() -> None:
    if not installed():
        pytest.skip("node or the packages of the pages are missing: `make ui-check` installs them and does the same")
    done = subprocess.run(
        [sys.executable, str(FRONTEND / "build.py"), "--check"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
