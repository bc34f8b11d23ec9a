"""The static page about a table: what it shows, that nothing a table says becomes markup, and that it needs no network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa

import lance_core
from lance_core.maintenance.api import carry_out, plan_now
from lance_core.maintenance.policy import Budget, Policy, ServiceLevels
from lance_core.maintenance.report import table_report
from lance_core.maintenance.report_html import report_html

HOSTILE = "<script>alert(1)</script>"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def make(path: Path) -> str:
    uri = str(path)
    for number in range(12):
        data = pa.table({"id": range(number * 10, number * 10 + 10), f"c{HOSTILE}": ["x"] * 10})
        lance_core.write_dataset(data, uri, mode="append" if number else "create")
    table = lance_core.dataset(uri)
    table.create_scalar_index("id", "BTree", name=HOSTILE)
    table.delete("id < 30")
    table.tags.create("good", 3)
    return uri


def test_the_page_shows_the_table_and_runs_nothing(tmp_path: Path) -> None:
    uri = make(tmp_path / "a&b.lance")
    report = table_report(uri)
    page = report_html(report)
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "script" not in tags.seen and "a&amp;b.lance" in page and HOSTILE not in page
    assert not re.search(r"(src|href)\s*=|https?://", page)
    assert "default-src 'none'" in page
    for shown in ("90", "BTree", "good", "version 14: Delete, -30 rows", "tier "):
        assert shown in page
    assert report.health == 100 - sum({"error": 40, "warning": 15, "note": 3}[item.severity] for item in report.findings)


def test_an_empty_table_has_a_page(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": pa.array([], pa.int64())}), uri)
    assert "The table is healthy" in report_html(table_report(uri))


def test_the_page_shows_what_the_policy_did(tmp_path: Path) -> None:
    uri = make(tmp_path / "a.lance")
    lance_core.write_dataset(pa.table({"id": [1]}), str(tmp_path / "other.lance"))
    levels = ServiceLevels(min_fragments=2, max_fragments_per_gb=1.0, target_rows_per_fragment=1000)
    policy = Policy(base_uri=str(tmp_path), levels=levels, budget=Budget(backoff_seconds=0))
    carry_out(policy, plan_now(policy).steps, run="dag/run <1>")
    report = table_report(uri, policy=policy)
    (compacted,) = [row for row in report.upkeep if row.action == "compact"]
    assert {row.uri for row in report.upkeep} == {uri} and compacted.bytes_written > 0
    page = report_html(report)
    assert "Upkeep: predicted and real" in page and "dag/run &lt;1&gt;" in page and compacted.reason in page
    assert report_html(table_report(uri)).count("Upkeep") == 0
