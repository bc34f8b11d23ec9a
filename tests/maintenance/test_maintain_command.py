"""`lance maintain`: the plan is printed and nothing is done, or it is carried out and leaves evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from click.testing import CliRunner

import lance_core
from lance_core.cli.main import cli
from lance_core.maintenance.find import find_tables

POLICY = """
base_uri: {base}
levels: {{min_fragments: 8, target_rows_per_fragment: 1000, max_versions: 5, keep_versions: 2, keep_seconds: 0}}
budget: {{backoff_seconds: 0}}
"""


def lake(tmp_path: Path) -> str:
    for name in ("sales/orders.lance", "sales/items.lance", "log.lance"):
        for number in range(9):
            data = pa.table({"id": range(number * 20, number * 20 + 20)})
            lance_core.write_dataset(data, str(tmp_path / name), mode="append" if number else "create")
    (tmp_path / "policy.yaml").write_text(POLICY.format(base=tmp_path))
    return str(tmp_path / "policy.yaml")


def test_tables_are_found_without_opening_them(tmp_path: Path) -> None:
    lake(tmp_path)
    (tmp_path / "log.lance" / "_versions" / "broken.manifest").write_bytes(b"")
    found = [table.uri for table in find_tables(str(tmp_path))]
    assert found == [str(tmp_path / name) for name in ("log.lance", "sales/items.lance", "sales/orders.lance")]


def test_a_plan_changes_nothing_until_it_is_run(tmp_path: Path) -> None:
    policy = lake(tmp_path)
    shown = CliRunner().invoke(cli, ["maintain", policy, "--json"])
    assert shown.exit_code == 0, shown.output
    assert len(json.loads(shown.stdout)["steps"]) == 6
    assert len(lance_core.dataset(str(tmp_path / "log.lance")).get_fragments()) == 9

    done = CliRunner().invoke(cli, ["maintain", policy, "--run"])
    assert done.exit_code == 0, done.output
    assert "9 fragments become 1" in done.stdout
    for name in ("sales/orders.lance", "sales/items.lance", "log.lance"):
        table = lance_core.dataset(str(tmp_path / name))
        assert (len(table.get_fragments()), table.count_rows()) == (1, 180)
    assert lance_core.dataset(str(tmp_path / "_maintenance")).count_rows(filter="outcome = 'done'") == 6
    again = CliRunner().invoke(cli, ["maintain", policy, "--run", "--json"])
    assert json.loads(again.stdout)["steps"] == []


def test_a_table_that_cannot_be_observed_is_an_alarm(tmp_path: Path) -> None:
    policy = lake(tmp_path)
    for manifest in (tmp_path / "log.lance" / "_versions").iterdir():
        manifest.write_bytes(b"damaged")
    shown = CliRunner().invoke(cli, ["maintain", policy])
    assert shown.exit_code == 1
    assert "ALARM" in shown.output and "log.lance" in shown.output
    assert "sales/orders.lance" in shown.output


def test_a_wrong_policy_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("base_uri: /t\nlevels: {max_version: 3}\n")
    shown = CliRunner().invoke(cli, ["maintain", str(tmp_path / "p.yaml")])
    assert shown.exit_code == 1
    assert "p.yaml:2" in str(shown.exception)
