"""The pages in a headless Chromium, on a real API server: what a user sees first."""

from __future__ import annotations

import pytest

from tests.ui.lake import HOSTILE, MANY_FRAGMENTS, PRIVATE
from tests.ui.pages.conftest import Visit
from tests.ui.server import Server

ROWS = "table[aria-label=Tables] tbody tr"


def test_the_list_shows_every_table_and_the_store_that_does_not_answer(visit: Visit, server: Server) -> None:
    page = visit()
    page.wait(lambda: len(page.all(ROWS)) == len(server.tables), "all tables")
    page.read("shop/orders", ROWS)
    page.read("far", ".notice.source")
    scores = [int(item.text) for item in page.all(f"{ROWS} .health b")]
    assert scores == sorted(scores), "the worst stands first"
    assert page.complaints() == []


def test_health_is_never_green_without_a_look_at_the_files(visit: Visit, server: Server) -> None:
    page = visit()
    page.wait(lambda: len(page.all(ROWS)) == len(server.tables), "all tables")
    page.read("1 not checked", ".figures, .strip")
    assert "all are well" not in page.text()
    page.read("shop/broken", f"{ROWS}:nth-child(2)")
    page.read("missing or damaged files", f"{ROWS}:nth-child(2) .health-cell")
    crowded = f"{ROWS}:has(a[href$='{server.tables['shop/crowded.lance']}'])"
    page.read("layout", f"{crowded} .health")
    assert not page.all(f"{crowded} .health .good, {crowded} .health .fill-good")
    page.open(f"lance/#/table/{server.tables['shop/crowded.lance']}")
    page.read("not checked", "#why")
    page.read("layout", ".head .health")
    page.open(f"lance/#/table/{server.tables['shop/broken.lance']}/doctor")
    page.read("Files of the newest version are missing", ".findings")


def test_errors_are_called_what_they_are_and_moments_are_ago(visit: Visit, server: Server) -> None:
    page = visit()
    page.wait(lambda: len(page.all(ROWS)) == len(server.tables), "all tables")
    torn = f"{ROWS}:has(a[href$='{server.tables['shop/torn.lance']}'])"
    page.read("damaged", torn)
    assert "unreachable" not in page.text(torn)
    assert len(page.all(f"{torn} td")) == 2, "the error has the row for itself"
    page.size(1280, 900)
    page.wait(lambda: page.script("return innerWidth === 1280"), "the width")
    inside = "const box = document.querySelector('table[aria-label=Tables]').parentElement;"
    assert page.script(f"{inside} return box.scrollWidth - box.clientWidth") <= 0, "columns beyond the card"
    page.read("is no folder", ".notice.source")
    clicks = f"{ROWS}:has(a[href$='{server.tables['shop/clicks.lance']}'])"
    page.read(" ago", clicks)
    commits = page.see(f"{clicks} svg.spark").get_attribute("aria-label")
    assert "at most" in commits and "an hour" in commits
    assert page.driver.title == "Tables - Lance"
    page.open(f"lance/#/table/{server.tables['shop/clicks.lance']}")
    page.wait(lambda: page.driver.title == "shop/clicks.lance - Lance", "the title")


def test_columns_are_found_by_words(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/features.lance']}/schema")
    columns = "table[aria-label=Columns] tbody tr"
    page.wait(lambda: page.script(f"return document.querySelectorAll('{columns}').length") == 2_000, "all columns")
    page.type("input[aria-label='Filter the columns']", "extra_7")
    page.wait(lambda: [item.text.split()[0] for item in page.all(columns)] == ["extra_7"], "one column")
    page.type("input[aria-label='Filter the columns']", "no such column")
    page.read("No column fits", "#schema")


def test_filter_and_sort(visit: Visit) -> None:
    page = visit()
    page.see(ROWS)
    page.type("input[type=search]", "clicks health<100")
    page.wait(lambda: len(page.all(ROWS)) == 1, "one table")
    assert "q=clicks" in page.driver.current_url, "a filter can be sent to somebody"
    page.type("input[type=search]", "helth<3")
    page.read("Not understood and left out: helth<3")
    page.click("input[type=search]")
    page.driver.execute_script("location.hash = '#/'")
    page.wait(lambda: len(page.all(ROWS)) > 3, "all tables again")
    page.click("th.n:nth-child(5) button")
    page.see("th:nth-child(5)[aria-sort=descending]")
    page.read("big", f"{ROWS}:first-child")


def test_a_table_from_top_to_bottom(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/clicks.lance']}")
    page.read("shop/clicks.lance", "h1")
    page.see(".timeline i")
    page.read("small", "#why")
    page.read("day_idx", "#coverage")
    page.read("manual__1", "#staged")
    assert page.overflow() <= 0
    assert page.complaints() == []


@pytest.mark.parametrize("inside", ["lance/", "plugin/lance"])
def test_no_script_of_a_table_runs(visit: Visit, server: Server, inside: str) -> None:
    page = visit("#/", inside=inside)
    page.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument",
        {"source": "window.ran = []; window.alert = text => window.ran.push(String(text))"},
    )
    page.driver.refresh()
    page.read("<img src=x onerror=alert(document.domain)>", ROWS)
    for part in ("", "/versions", "/schema", "/rows", "/doctor"):
        page.script(f"location.hash = '#/table/{server.tables[HOSTILE]}{part}'")
        page.read("<img src=x", "h1")
        page.gone(".skeleton")
        if part == "/rows":
            page.read("<img src=x onerror=alert(2)>", "table[aria-label=Rows]")
            page.read("<script>alert(1)</script>", "table[aria-label=Rows]")
    assert page.script("return window.ran") == []
    assert not page.all(".lance-ui img, .lance-ui script")


def test_a_viewer_sees_and_cannot_press(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/clicks.lance']}", "viewer")
    for action in ("compact", "optimize_indices", "cleanup", "gc", "tag", "restore", "abort"):
        assert page.refusal(f"[data-action={action}]"), f"{action} has no reason"
    page.click("[data-action=compact]")
    assert not page.all("dialog")
    page.script("location.hash = '#/plan'")
    assert page.refusal("[data-action=run_plan]")


def test_somebody_without_rights_is_told_so(visit: Visit) -> None:
    page = visit("#/", "nobody")
    page.read("You may not see the Lance pages")
    assert "shop" not in page.text()


def test_a_button_asks_and_then_triggers_a_run(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/clicks.lance']}", "op")
    page.click("[data-action=compact]")
    page.read("shop/clicks.lance", "dialog")
    page.click("dialog [data-action=cancel]")
    page.gone("dialog")
    page.click("[data-action=compact]")
    page.click("dialog [data-action=confirm]")
    run = page.see("[data-run]").get_attribute("data-run")
    page.read("queued", "[data-run]")
    assert server.get(f"api/actions/{run}").json()["state"] == "queued"


def test_the_pages_stand_in_airflows_own_page(visit: Visit, server: Server) -> None:
    page = visit("#/", inside="plugin/lance")
    page.read("shop/orders", ROWS)
    page.click(f"{ROWS} a[href$='{server.tables['shop/orders.lance']}']")
    page.read("shop/orders.lance", ".lance-ui h1")
    assert "/plugin/lance#/table/" in page.driver.current_url
    page.click(".tabs a[href$='/versions']")
    page.read("forget", "table[aria-label=Versions]")
    page.click("table[aria-label=Versions] a[href*='dags/shop']")
    page.gone(".lance-ui")
    page.wait(lambda: "/dags/shop/runs/" in page.driver.current_url, "the task's page")


def test_ten_thousand_fragments(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['big.lance']}")
    page.read(f"{MANY_FRAGMENTS:,}", ".strip")
    page.see("#sizes .bar-row")


def test_a_table_says_what_it_is_whose_and_who_uses_it(visit: Visit, server: Server) -> None:
    page = visit()
    page.type("input[type=search]", "owner:shop@example")
    page.wait(lambda: len(page.all(ROWS)) == 1, "the table of that owner")
    page.read("what is sold", ROWS)
    page.type("input[type=search]", "column:cheap")
    page.wait(lambda: len(page.all(ROWS)) == 1, "the table with that column")
    page.open(f"lance/#/table/{server.tables['shop/products.lance']}")
    page.read("what is sold", ".head")
    page.read("shop@example.com", ".head")
    page.read("fresh", ".head .badge.good")
    page.read("describe", "#used-by")
    page.read("reads", "#used-by")
    for width in (1280, 400):
        page.size(width, 900)
        assert page.overflow() <= 0
    assert page.complaints() == []


def test_statistics_and_words_of_columns(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/products.lance']}/schema")
    row = "table[aria-label=Columns] tbody tr"
    page.read("which", row)
    page.read("owner post", row)
    page.click(f"{row}:first-child [data-action=statistics]")
    page.read("299", ".statistics")
    page.read("distinct values", ".statistics")
    page.click(f"{row}:first-child [data-action=statistics]")
    page.gone(".statistics")
    assert page.complaints() == []


def test_a_column_is_described_by_a_run(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/products.lance']}/schema", "op")
    page.click("table[aria-label=Columns] tbody tr:first-child [data-action=describe-column]")
    page.read("Column id", "dialog")
    page.type("dialog textarea", "the number of the product")
    page.click("dialog [data-action=confirm]")
    run = page.see("[data-run]").get_attribute("data-run")
    sent = server.call("GET", f"/api/v2/dags/lance_actions/dagRuns/{run}", user="admin").json()["conf"]
    assert (sent["action"], sent["arguments"]["column"]) == ("describe", "id")
    assert sent["arguments"]["description"] == "the number of the product"
    assert sent["arguments"]["owner"] is None, "what nobody changed stays"


def test_work_of_a_dag_stands_with_its_run_and_says_what_is_gone(visit: Visit) -> None:
    page = visit("dags/desk/plugin/lance-dag", inside="")
    page.read("manual__", ".lance-ui .run summary")
    page.read("7 pieces of work", ".lance-ui .run summary")
    page.read("the table was dropped", ".lance-ui .piece")
    page.read("branch trial", ".lance-ui .piece")
    page.read("desk · tag", ".lance-ui .piece")
    assert len(page.all(".lance-ui .piece")) == 7
    page.click(".lance-ui .run summary")
    page.wait(lambda: not any(item.is_displayed() for item in page.all(".lance-ui .piece")), "the run closed")


def test_declared_columns_say_how_fresh_they_are(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/reviews.lance']}")
    page.read("loud", "#declared")
    shares = {
        item.text.split()[0]: page.script("return arguments[0].querySelector('[role=img]').ariaLabel", item)
        for item in page.all("#declared li")
    }
    assert shares == {
        "loud": "100 % of the rows are known to be fresh",
        "shelf": "0 % of the rows are known to be fresh",
        "mood": "0 % of the rows are known to be fresh",
    }
    assert "never refreshed" in page.text("#declared") and " ago" in page.text("#declared")
    assert "NaN" not in page.text() and page.overflow() <= 0


def test_failed_rows_are_a_tab(visit: Visit, server: Server) -> None:
    page = visit(f"#/table/{server.tables['shop/reviews.lance']}")
    page.read("3 rows failed", "#declared")
    page.click("#declared a[href$='/failed']")
    page.read("RefusedError", "#failed")
    rows = [item.text for item in page.all("table[aria-label='Failed rows'] tbody tr")]
    assert len(rows) == 3
    assert all("mood" in row and "422" in row and "shop · manual__1 · moods" in row for row in rows)
    assert "Failed rows 3" in page.text(".tabs.part-tabs")
    assert PRIVATE not in page.script("return document.body.outerHTML") and page.overflow() <= 0
    other = visit(f"#/table/{server.tables['shop/reviews.lance']}/failed", "stranger")
    other.read("hidden", "#failed")
    assert "moods" not in other.script("return document.body.outerHTML")
    page = visit(f"#/table/{server.tables['shop/orders.lance']}/failed")
    page.read("No column of the table is declared", "#failed")
