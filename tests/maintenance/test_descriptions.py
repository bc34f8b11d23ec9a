"""What people say of tables, where other tools find it, and how fresh rows are by the table's own rule."""

from __future__ import annotations

import json
import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.edit.description import Description, describe, description_of
from lance_core.dataset.snapshot.snapshot import open_snapshot
from lance_core.errors import InputError, LanceError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.definition import DescribeSpec
from lance_core.maintenance.actions import act
from lance_core.maintenance.doctor import diagnose
from lance_core.maintenance.facts.column import MOST_VALUES, column_page
from lance_core.maintenance.freshness import MOST_VERSIONS, freshness_of

HOUR = 3600.0


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "orders.lance")
    address = pa.array([{"city": "Berlin", "lines": ["a", "b"]}, {"city": None, "lines": []}, None])
    lance_core.write_dataset(pa.table({"id": [1, 2, 3], "price": [0.5, None, float("nan")], "to": address}), place)
    return place


def test_the_words_are_where_the_official_library_finds_them(uri: str) -> None:
    spec = DescribeSpec(
        uri=uri, description="one row an order", owner="shop", columns={"to.city": {"owner": "post"}, "id": "which"}
    )
    done = run_job(spec).to_dict()
    assert (done["version"], done["changed"]) == (2, True)
    table = lance.dataset(uri)
    assert table.metadata == {"comment": "one row an order", "owner": "shop"}
    assert table.schema.field("id").metadata == {b"comment": b"which"}
    assert table.schema.field("to").type.field("city").metadata == {b"owner": b"post"}
    assert run_job(spec).to_dict() == {**done, "changed": False}, "said already: no version"
    table.validate()


def test_what_the_official_library_says_is_read(uri: str) -> None:
    lance.dataset(uri).update_metadata({"comment": "from elsewhere"})
    assert description_of(open_snapshot(uri).manifest) == Description(text="from elsewhere")


def test_no_letters_take_a_word_away_and_none_leaves_it(uri: str) -> None:
    described = describe(open_snapshot(uri), Description(text="orders", owner="shop"), {"id": Description(text="which")})
    left = describe(described, Description(text=""), {"id": Description(text="")})
    assert description_of(left.manifest) == Description(owner="shop")
    assert not left.manifest.schema.find("id").metadata


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "nothing is said"),
        ({"fresh_within": "soon"}, "'soon' is not a duration"),
        ({"description": "x" * 10_001}, "10,001 letters"),
        ({"columns": {"id": 7}}, r"columns\['id'\]: expected a text"),
        ({"columns": {"id": {"descripton": "x"}}}, "with description and owner"),
        ({"columns": {"idd": "x"}}, "idd"),
    ],
)
def test_a_wrong_word_changes_nothing(uri: str, spec: dict[str, object], words: str) -> None:
    with pytest.raises(LanceError, match=words):
        run_job(DescribeSpec(uri=uri, **spec))  # type: ignore[arg-type]
    assert lance.dataset(uri).version == 1


def test_the_button_says_the_same_as_the_operator(uri: str) -> None:
    act("describe", uri, {"description": "orders", "fresh_within": "2days"})
    act("describe", uri, {"column": "price", "description": "in euros", "owner": ""})
    table = lance.dataset(uri)
    assert table.metadata == {"comment": "orders", "fresh_within": "2days"}
    assert table.schema.field("price").metadata == {b"comment": b"in euros"}
    with pytest.raises(InputError, match="of a table, not of a column"):
        act("describe", uri, {"column": "price", "fresh_within": "2days"})


def test_the_command_says_it_and_shows_it(uri: str) -> None:
    from click.testing import CliRunner

    from lance_core.cli.main import cli

    words = ["--description", "orders", "--fresh-within", "2days", "--column", "id=which", "--column-owner", "id=shop"]
    said = CliRunner().invoke(cli, ["describe", uri, *words, "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.output) == {
        "version": 2, "description": "orders", "owner": None, "fresh_within": "2days",
        "columns": {"id": {"description": "which", "owner": "shop"}},
    }  # fmt: skip
    shown = CliRunner().invoke(cli, ["describe", uri])
    assert "orders" in shown.output and "which" in shown.output
    assert lance.dataset(uri).version == 2


def test_only_changed_rows_make_a_table_fresh(uri: str) -> None:
    now = time.time()
    assert freshness_of(open_snapshot(uri), now) is None
    described = describe(open_snapshot(uri), Description(fresh_within="2h"), {})
    found = freshness_of(described, now + HOUR)
    assert found is not None and found.state == "fresh"
    # An hour ago a setting was changed and the table compacted, as far as the clock of this question goes: no row did.
    found = freshness_of(described, now + 3 * HOUR)
    assert found is not None and found.state == "late"
    lance_core.dataset(uri).update_config({"a": "b"})
    assert [item.code for item in diagnose(uri, now=now + 3 * HOUR)] == ["late-rows"]
    lance_core.dataset(uri).delete("id = 3")
    assert "late-rows" not in {item.code for item in diagnose(uri, now=now + HOUR)}


def test_maintenance_hides_no_late_table(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lance_core.dataset(uri)
    days_ago = time.time_ns() - 5 * 86400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: days_ago)
    lance_core.write_dataset(pa.table({"id": [9]}), uri, mode="append")
    monkeypatch.undo()
    describe(open_snapshot(uri), Description(fresh_within="1day"), {})
    lance_core.dataset(uri).optimize.compact_files()
    found = freshness_of(open_snapshot(uri), time.time())
    assert found is not None and found.state == "late", (found, table.version)


def test_many_versions_that_change_no_row_are_not_looked_through(uri: str) -> None:
    table = describe(open_snapshot(uri), Description(fresh_within="2h"), {})
    for number in range(MOST_VERSIONS):
        lance_core.dataset(uri).update_config({"number": str(number)})
    found = freshness_of(open_snapshot(uri), time.time())
    assert found is not None and found.state == "unchecked", table.version


def test_statistics_of_columns(uri: str) -> None:
    price = column_page(uri, "price")
    assert (price["rows"], price["nulls"], price["nan"], price["min"], price["max"], price["mean"]) == (
        3,
        1,
        1,
        0.5,
        0.5,
        0.5,
    )
    assert price["complete"] and price["bytes"]
    city = column_page(uri, "to.city")
    assert (city["nulls"], city["min"], city["distinct"], city["top"]) == (2, "Berlin", 1, [{"value": "Berlin", "count": 1}])
    assert column_page(uri, "to.lines")["lengths"] == [0, 2]
    with pytest.raises(InputError, match="no column 'prize'"):
        column_page(uri, "prize")


def test_statistics_say_what_they_did_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "many.lance")
    lance_core.write_dataset(pa.table({"id": range(MOST_VALUES + 5)}), uri)
    whole = column_page(uri, "id")
    assert (whole["distinct"], whole["top"], whole["max"], whole["complete"]) == (None, [], MOST_VALUES + 4, True)
    monkeypatch.setattr("lance_core.maintenance.facts.column.MOST_ROWS", 100)
    part = column_page(uri, "id")
    assert (part["rows"], part["total_rows"], part["max"], part["complete"]) == (100, MOST_VALUES + 5, 99, False)


def test_statistics_agree_with_duckdb(tmp_path: Path) -> None:
    import random

    import duckdb

    random.seed(5)
    values = {
        "n": pa.array([random.choice([None, *range(-50, 50)]) for _ in range(3000)], pa.int32()),
        "f": pa.array([random.choice([None, random.gauss(0, 9)]) for _ in range(3000)]),
        "s": pa.array([random.choice([None, "", "ä", "zz", "a" * 40]) for _ in range(3000)]),
        "d": pa.array([random.choice([None, 10, 20_000]) for _ in range(3000)], pa.date32()),
        "b": pa.array([random.choice([None, True, False]) for _ in range(3000)]),
    }
    drawn = pa.table(values)
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(drawn, uri, max_rows_per_file=700)
    for name in values:
        asked = f"SELECT count(*) - count({name}), min({name}), max({name}), count(DISTINCT {name}) FROM drawn"
        nulls, low, high, distinct = duckdb.sql(asked).fetchall()[0]
        found = column_page(uri, name)
        plain = (low, high) if isinstance(low, int | float | str) else (str(low), str(high))
        assert (found["nulls"], found["min"], found["max"], found["distinct"]) == (nulls, *plain, distinct), name
