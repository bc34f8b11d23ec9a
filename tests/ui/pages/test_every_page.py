"""Every page, button, right, light and width, in a headless Chromium on a real API server."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest

from tests.ui.lake import make_copies
from tests.ui.pages.chromium import NARROW, Page
from tests.ui.pages.conftest import Visit
from tests.ui.pages.contrast import too_faint
from tests.ui.server import Server

pytestmark = pytest.mark.slow

PARTS = (
    "",
    "versions",
    "fragments",
    "indices",
    "schema",
    "staged",
    "failed",
    "rows",
    "storage",
    "doctor",
    "history",
    "diff/1/3",
)
TABLES = (
    "shop/orders.lance", "shop/clicks.lance", "shop/products.lance", "shop/doubtful.lance", "shop/reviews.lance",
    "big.lance",
)  # fmt: skip
NO_SUCH_VERSIONS = (("big.lance", "diff/1/3"), ("shop/doubtful.lance", "diff/1/3"))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", TABLES)
def test_every_part_of_every_table(visit: Visit, server: Server, name: str, part: str) -> None:
    if part == "rows":
        until_rows_are_read(server, name)
    page = visit(f"#/table/{server.tables[name]}/{part}")
    page.read(name, "h1")
    page.see(".section, .strip, [role=alert]")
    page.gone(".skeleton")
    faults = [item.text for item in page.all("[role=alert]")]
    assert faults == [] or (name, part) in NO_SUCH_VERSIONS, faults
    assert page.overflow() <= 0
    if not faults:
        assert page.complaints() == []


@pytest.mark.parametrize(
    "path", ["#/", "#/plan", "#/plan/history", "#/table/{clicks}", "#/table/{clicks}/versions", "#/table/{clicks}/staged"]
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screens_scroll_no_page_sideways(visit: Visit, server: Server, path: str, scheme: str) -> None:
    page = visit("#/")
    page.size(*NARROW)
    page.prefer(scheme)
    page.open(f"lance/{path.format(clicks=server.tables['shop/clicks.lance'])}")
    page.see(".section, .strip")
    page.gone(".skeleton")
    assert page.overflow() <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["#/", "#/plan", "#/table/{clicks}", "#/table/{clicks}/doctor"])
def test_every_text_can_be_read(visit: Visit, server: Server, path: str, scheme: str) -> None:
    page = visit("#/")
    page.prefer(scheme)
    page.open(f"lance/{path.format(clicks=server.tables['shop/clicks.lance'])}")
    page.see(".section, .strip")
    page.gone(".skeleton")
    assert too_faint(page, ".lance-ui") == []


def test_dark_follows_airflows_switch(visit: Visit, server: Server) -> None:
    page = visit("#/", inside="plugin/lance")
    page.see(".lance-ui[data-theme=light]")
    page.script("document.documentElement.classList.replace('light', 'dark')")
    page.see(".lance-ui[data-theme=dark]")
    page.script("localStorage.setItem('theme', 'dark')")
    page.open("lance/")
    page.see(".lance-ui[data-theme=dark]")


def test_our_styles_leave_airflow_alone(visit: Visit) -> None:
    page = visit("#/", inside="plugin/lance")
    page.see(".lance-ui table")
    look = "return [...document.querySelectorAll('a, button, p')].filter(item => !item.closest('.lance-ui')).map(item => {"
    look += " const style = getComputedStyle(item); return [style.font, style.color, style.padding].join() })"
    ours = page.script(look)
    page.script("document.adoptedStyleSheets = []")
    assert ours and page.script(look) == ours


@pytest.mark.parametrize("action", ["compact", "optimize_indices", "cleanup", "gc"])
def test_every_button_of_a_table(visit: Visit, server: Server, action: str) -> None:
    page = visit(f"#/table/{server.tables['shop/clicks.lance']}", "op")
    page.click(f".head [data-action={action}]")
    page.click("dialog [data-action=confirm]")
    page.read("queued", "[data-run]")


def test_the_doctor_offers_what_mends_a_table(visit: Visit, server: Server) -> None:
    number = server.tables["shop/features.lance"]
    page = visit(f"#/table/{number}/doctor", "op")
    page.read("Columns are spread over many files", ".findings")
    page.click(".findings [data-action=merge_columns]")
    page.click("dialog [data-action=confirm]")
    run = page.see("[data-run]").get_attribute("data-run")
    sent = server.call("GET", f"/api/v2/dags/lance_actions/dagRuns/{run}", user="admin").json()["conf"]
    assert (sent["action"], sent["uri"]) == ("merge_columns", str(server.lake / "shop/features.lance"))


def test_who_may_not_read_a_dag_sees_no_name_of_it(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/orders.lance']}/versions", "stranger")
    page.read("hidden", "table[aria-label=Versions]")
    assert "forget" not in page.text() and not page.all("a[href*='dags/']")
    clicks = server.tables["shop/clicks.lance"]
    page.script(f"location.hash = '#/table/{clicks}/staged'")
    page.read("shop/clicks.lance", "h1")
    page.read("hidden", ".lance-ui")
    assert "worker-1" not in page.script("return document.body.outerHTML")
    for action in ("compact", "optimize_indices", "cleanup", "gc", "abort"):
        assert page.refusal(f"[data-action={action}]"), f"{action} has no reason"
    page.script("location.hash = '#/plan'")
    assert page.refusal("[data-action=run_plan]")
    other = visit("dags/shop/plugin/lance-dag", "stranger", inside="")
    other.wait(lambda: "hidden" in other.text() or "may not" in other.text() or "403" in other.text(), "a refusal")
    assert "orders.lance" not in other.text()


def test_cleanup_takes_what_was_typed(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/clicks.lance']}", "op")
    page.click(".head [data-action=cleanup]")
    page.type("dialog input[name=older_than_days]", "7")
    page.type("dialog input[name=retain_versions]", "3")
    page.click("dialog [data-action=confirm]")
    run = page.see("[data-run]").get_attribute("data-run")
    sent = server.call("GET", f"/api/v2/dags/lance_actions/dagRuns/{run}", user="admin").json()["conf"]
    assert sent["arguments"] == {"older_than_days": 7, "retain_versions": 3}


def test_tag_and_restore_name_the_version(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/orders.lance']}/versions", "op")
    page.click("[aria-label='Tag version 1']")
    page.read("Version 1", "dialog")
    page.click("dialog [data-action=confirm]")
    assert page.all("dialog"), "a tag needs a name"
    page.type("dialog input[name=name]", "first")
    page.click("dialog [data-action=confirm]")
    page.read("queued", "[data-run]")
    page.click("[aria-label='Restore version 1']")
    page.read("Version 1 becomes the newest", "dialog")
    page.click("dialog [data-action=confirm]")
    page.wait(lambda: len(page.all("[data-run]")) == 2, "two runs")


def test_staged_work_can_be_aborted(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/clicks.lance']}/staged", "op")
    page.click("table [data-action=abort]")
    page.read("never lands", "dialog")
    page.click("dialog [data-action=confirm]")
    page.read("queued", "[data-run]")


def test_a_tag_can_be_removed(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/orders.lance']}/versions", "op")
    page.click("[aria-label='Remove the tag prod']")
    page.read("The tag prod of version 1 is removed", "dialog")
    page.click("dialog [data-action=confirm]")
    run = page.see("[data-run]").get_attribute("data-run")
    sent = server.call("GET", f"/api/v2/dags/lance_actions/dagRuns/{run}", user="admin").json()["conf"]
    assert (sent["action"], sent["arguments"]["name"], sent["arguments"]["action"]) == ("tag", "prod", "delete")


def test_work_in_doubt_can_be_settled(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/doubtful.lance']}/staged", "op")
    page.click("#doubt [data-action=settle]")
    page.read("the rows of this work are in the table", "dialog")
    page.click("dialog [data-action=confirm]")
    run = page.see("[data-run]").get_attribute("data-run")
    sent = server.call("GET", f"/api/v2/dags/lance_actions/dagRuns/{run}", user="admin").json()["conf"]
    assert sent["action"] == "settle" and sent["arguments"]["version"] == 2
    viewer = visit(f"#/table/{server.tables['shop/doubtful.lance']}/staged", "viewer")
    assert viewer.refusal("#doubt [data-action=settle]")


def test_the_plan_can_be_run(visit: Visit, server: Server) -> None:
    server.call("PATCH", "/api/v2/dags/lance_maintenance?update_mask=is_paused", {"is_paused": False}, user="admin")
    page = visit("#/plan", "op")
    page.read("compact", "#steps")
    page.click("[data-action=run_plan]")
    page.click("dialog [data-action=confirm]")
    page.read("queued", "[data-run]")


@pytest.fixture
def many(server: Server) -> Iterator[int]:
    """500 tables more."""
    place = server.lake / "many"
    place.mkdir()
    make_copies(place, server.lake / "shop" / "orders.lance", 500)
    try:
        until_all_are_seen(server, len(server.tables) + 500)
        yield len(server.tables) + 500
    finally:
        shutil.rmtree(place)
        until_all_are_seen(server, len(server.tables))


def until_all_are_seen(server: Server, count: int) -> None:
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        answer = server.get("api/tables?refresh=true").json()
        if len(answer["tables"]) == count and not answer["pending"]:
            return
        time.sleep(1)
    raise AssertionError(f"{len(answer['tables'])} tables, {answer['pending']} pending; expected {count}")


def test_five_hundred_tables(visit: Visit, many: int) -> None:
    page = visit("#/")
    rows = "table[aria-label=Tables] tbody tr"
    page.open("lance/#/")
    page.wait(lambda: len(page.all(rows)) == many, "all tables")
    assert asked(page) == ["/lance/api/me", "/lance/api/tables"], "one request for all of them"
    page.type("input[type=search]", "table_499")
    page.wait(lambda: len(page.all(rows)) == 1, "one table")


def test_ten_thousand_fragments_by_one_request(visit: Visit, server: Server) -> None:
    server.get(f"api/tables/{server.tables['big.lance']}")
    page = visit("#/")
    page.see("table tbody tr")
    page.open(f"lance/#/table/{server.tables['big.lance']}")
    page.see("#sizes .bar-row")
    assert asked(page) == ["/lance/api/me", f"/lance/api/tables/{server.tables['big.lance']}"]


def asked(page: Page) -> list[str]:
    """What the page asked its server for, in order, without the host."""
    names = page.script("return performance.getEntriesByType('resource').map(found => new URL(found.name).pathname)")
    return [str(name) for name in names if "/api/" in name]


def until_rows_are_read(server: Server, name: str) -> None:
    """The first read of rows loads compiled code; on a busy machine that takes longer than a page waits."""
    limit = time.monotonic() + 120
    while server.get(f"api/tables/{server.tables[name]}/rows").status == 504 and time.monotonic() < limit:
        time.sleep(1)


def search(page: Page) -> None:
    """Press the button until there is an answer: the first search of a kind loads compiled code."""

    def answered() -> bool:
        page.click("[data-action=search]")
        page.wait(lambda: page.text("[data-action=search]") == "Search", "the answer", 60)
        return not any("No answer within" in item.text for item in page.all("[role=alert]"))

    page.wait(answered, "an answer", 120)


def test_rows_filter_words_and_nearest(visit: Visit, server: Server) -> None:
    until_rows_are_read(server, "shop/products.lance")
    page = visit(f"#/table/{server.tables['shop/products.lance']}/rows")
    rows = "table[aria-label=Rows] tbody tr"
    page.wait(lambda: len(page.all(rows)) == 50, "a page of rows")
    page.type("input[name=filter]", "id = 7")
    search(page)
    page.wait(lambda: len(page.all(rows)) == 1, "one row")
    page.type("input[name=filter]", "id = (")
    search(page)
    page.read("id = (", "[role=alert]")
    page.type("input[name=filter]", "")
    page.type("input[name=text]", "jacket")
    search(page)
    page.wait(lambda: page.all(rows) and all("jacket" in item.text for item in page.all(rows)), "rows with the word")
    page.type("input[name=vector]", "1 1 1 0.5")
    search(page)
    page.read("_distance", "table[aria-label=Rows] thead")


def test_keys_reach_everything(visit: Visit, server: Server) -> None:
    from selenium.webdriver import Keys

    page = visit(f"#/table/{server.tables['shop/clicks.lance']}", "op")
    page.see("[data-action=compact]")
    page.gone(".skeleton")
    reached: set[str] = set()
    for _ in range(60):
        page.keys(Keys.TAB)
        seen = page.script(
            "const at = document.activeElement; const style = getComputedStyle(at);"
            "if (at === document.body) return ['', true];"
            "return [at.dataset.action || at.textContent, at.matches(':focus-visible') && style.outlineStyle !== 'none']"
        )
        assert seen[1], f"the focus on {seen[0]!r} cannot be seen"
        reached.add(seen[0])
    assert {"compact", "cleanup", "Versions", "Rows", "Plan"} <= reached
    page.script("document.querySelector('[data-action=compact]').focus()")
    page.keys(Keys.ENTER)
    page.see("dialog")
    page.keys(Keys.ESCAPE)
    page.gone("dialog")


def test_a_task_shows_what_it_landed(visit: Visit, server: Server) -> None:
    runs = server.call("GET", "/api/v2/dags/shop/dagRuns", user="admin").json()["dag_runs"]
    run = runs[0]["dag_run_id"]
    page = visit(f"dags/shop/runs/{run}/tasks/forget/plugin/lance-ti", inside="")
    page.read("shop/orders.lance", ".lance-ui .piece")
    page.read("committed", ".lance-ui .piece")
    page.read("few", ".lance-ui .piece")
    page.click(".lance-ui .piece header a")
    page.read("shop/orders.lance", ".lance-ui h1")
    assert "/plugin/lance#/table/" in page.driver.current_url


@pytest.mark.parametrize("place", ["plugin/lance-dag", "runs/{run}/plugin/lance-run", "tasks/forget/plugin/lance-task"])
def test_dags_runs_and_tasks_show_what_landed(visit: Visit, server: Server, place: str) -> None:
    run = server.call("GET", "/api/v2/dags/shop/dagRuns", user="admin").json()["dag_runs"][0]["dag_run_id"]
    page = visit(f"dags/shop/{place.format(run=run)}", inside="")
    page.read("shop/orders.lance", ".lance-ui .piece")
    page.read("committed", ".lance-ui .piece")
