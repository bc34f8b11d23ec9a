"""The site as a reader sees it: built, every page opened in a browser, wide and narrow, light and dark."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from airflow.sdk import BaseOperator

import airflow_lance
from airflow_lance.operators import OPERATORS
from tests.ui.pages.chromium import Page, chromium_commands, start
from tests.ui.pages.contrast import too_faint

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (1280, 400)
GROUPS = ["Start", "Use", "Operate", "Reference", "Develop"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if found.get("src"):
            self.loads.append(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "icon"):
            self.loads.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not importlib.util.find_spec("zensical") or not importlib.util.find_spec("mkdocstrings"):
        pytest.skip("zensical or mkdocstrings is missing: `make test` and `make docs` install both")
    target = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, str(ROOT / ".ci" / "site.py"), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def parsed(site: Path) -> dict[str, Links]:
    found = {}
    for path in site.rglob("*.html"):
        links = Links()
        links.feed(path.read_text(encoding="utf-8"))
        found[path.relative_to(site).as_posix()] = links
    return found


@pytest.fixture(scope="module")
def page(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if chromium_commands() is None:
        pytest.skip("no Chromium with its driver here: `make test` installs both where apt-get may")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    driver = start(tmp_path_factory.mktemp("chromium"))
    try:
        yield Page(driver, origin=f"http://127.0.0.1:{server.server_port}/")
    finally:
        driver.quit()
        server.shutdown()
        server.server_close()


def test_no_link_is_broken_and_nothing_is_loaded_from_elsewhere(site: Path, parsed: dict[str, Links]) -> None:
    broken = []
    for name, links in parsed.items():
        if name == "404.html":
            continue
        for target in [*links.links, *links.loads]:
            path, anchor = urldefrag(target)
            if "://" in path or path.startswith("mailto:"):
                assert target not in links.loads, f"{name} loads {target}"
                continue
            found = unquote(urljoin(name, path)) if path else name
            found = f"{found.rstrip('/')}/index.html".lstrip("/") if not Path(found).suffix else found
            if not (site / found).is_file() or (anchor and found in parsed and unquote(anchor) not in parsed[found].anchors):
                broken.append(f"{name}: {target}")
    assert broken == []


def test_every_page_fits_its_window(page: Page, parsed: dict[str, Links]) -> None:
    wide = []
    for width in WIDTHS:
        page.size(width, 900)
        for name in sorted(parsed):
            if name.startswith("adr/0") or name == "404.html":
                continue
            page.open(name.removesuffix("index.html"))
            if page.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth") > 0:
                wide.append(f"{name} at {width}")
            assert page.complaints() == [], name
    assert wide == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", "tutorial/", "failures/", "reference/operators/", "reference/cli/"])
def test_text_can_be_read(page: Page, path: str, scheme: str) -> None:
    page.size(1280, 900)
    page.prefer(scheme)
    page.driver.get("about:blank")
    # The choice of an earlier page is kept; a reader who comes for the first time has made none.
    kept = {"origin": page.origin.rstrip("/"), "storageTypes": "all"}
    page.driver.execute_cdp_cmd("Storage.clearDataForOrigin", kept)
    page.open(path)
    scheme_is = {"light": "default", "dark": "slate"}[scheme]
    page.see(f"body[data-md-color-scheme={scheme_is}]")
    page.wait(lambda: page.script("return document.getAnimations().length === 0"), "the colours")
    background = page.script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light"), background
    assert too_faint(page, ".md-content") == []


def test_the_front_page_says_what_it_is_and_leads_on(page: Page) -> None:
    page.size(1280, 900)
    page.prefer("light")
    page.open("")
    tabs = [item.text for item in page.all(".md-tabs__link")]
    assert tabs == GROUPS
    bottom = page.script("return document.querySelector('ol.flow').getBoundingClientRect().bottom")
    assert bottom < 900, "the flow stands on the first screen"
    steps = [item.text.splitlines()[0] for item in page.all("ol.flow > li")]
    assert steps == ["Plan", "Stage", "Check", "Commit"]


def test_the_reference_shows_signatures_and_tables_of_parameters(page: Page) -> None:
    page.size(1280, 900)
    page.open("reference/operators/")
    heading = "[id='airflow_lance.operators.append.LanceAppendOperator']"
    assert page.all(heading)
    signature = page.script(f'return document.querySelector("{heading}").nextElementSibling.innerText')
    assert "create" in signature and "bool" in signature and "True" in signature
    rows = page.script(
        f"return [...document.querySelector(\"{heading}\").closest('.doc-class').querySelectorAll('table tbody tr')]"
        ".map(row => row.innerText)"
    )
    assert any("create" in row and "the first append" in row for row in rows), rows
    assert "Args:" not in page.text(".md-content") and ":param" not in page.text(".md-content")
    shown: dict[str, list[str]] = page.script(
        "return Object.fromEntries([...document.querySelectorAll('.doc-class > .doc-heading')].map(heading => [heading.id,"
        " [...heading.closest('.doc-class').querySelectorAll('table tbody td:first-child')]"
        ".map(cell => cell.innerText.trim())]))"
    )
    lacking = {}
    of_airflow = {*inspect.signature(BaseOperator.__init__).parameters}
    for name, module in OPERATORS.items():
        operator = getattr(airflow_lance, name)
        taken = {*inspect.signature(operator).parameters} - of_airflow
        if "__init__" not in vars(operator):  # a base that takes what its own base does
            continue
        lacking[name] = sorted(taken - {*shown[f"{module}.{name}"]})
    assert {name: missing for name, missing in lacking.items() if missing} == {}, "every argument stands in the table"
    assert page.all(".md-content .highlight span.k, .md-content .highlight span.kc"), "code has colours"
    page.open("tutorial/")
    assert page.all(".md-content .md-code__button, .md-content .md-clipboard"), "code can be copied"
