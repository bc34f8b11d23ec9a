"""The pages with many tables, many fragments and stores that do not answer: bounded reads, and nobody waits long."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lance_core
from airflow_lance.ui.service import Pages
from airflow_lance.ui.settings import PagesSettings
from airflow_lance.ui.table_rows import tables_answer
from tests.ui.lake import make_copies, make_many_fragments, rows

TABLES = 500
PATIENCE = 60.0
"""Seconds that a busy machine may take for what needs less than one."""


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield int(listener.getsockname()[1])


def connect(connection: Callable[[str, str], None], name: str, base: Path) -> None:
    connection(name, json.dumps({"conn_type": "lance", "extra": {"base_uri": str(base)}}))


def settings(*names: str, **options: float) -> PagesSettings:
    return PagesSettings(connections=names, **{"wait_seconds": PATIENCE, "timeout_seconds": PATIENCE, **options})  # type: ignore[arg-type]


def test_500_tables_are_listed_without_reading_any_data(tmp_path: Path, connection: Callable[[str, str], None]) -> None:
    lance_core.write_dataset(rows(0, 100), str(tmp_path / "template.lance"))
    shutil.rmtree(tmp_path / "template.lance" / "data")
    make_copies(tmp_path / "many", tmp_path / "template.lance", TABLES)
    connect(connection, "many", tmp_path / "many")
    pages = Pages(settings("many"))

    async def ask() -> dict[str, object]:
        sources = await pages.sources()
        return tables_answer(sources, await pages.look(sources), None, None, time.time())

    began = time.monotonic()
    answer = asyncio.run(ask())
    assert time.monotonic() - began < PATIENCE
    listed = answer["tables"]
    assert isinstance(listed, list)
    assert len(listed) == TABLES
    assert {row["state"] for row in listed} == {"ok"}
    assert {row["num_rows"] for row in listed} == {100}
    # Asked again, nothing is read at all.
    shutil.rmtree(tmp_path / "many")
    assert {row["state"] for row in asyncio.run(ask())["tables"]} == {"ok"}  # type: ignore[attr-defined]


def test_a_page_is_as_large_with_ten_thousand_fragments_as_with_ten(tmp_path: Path) -> None:
    from lance_core.maintenance.facts.table import observed_page
    from lance_core.maintenance.policy import ManagedTable, ServiceLevels

    sizes = []
    for count in (10, 10_000):
        make_many_fragments(tmp_path / f"{count}.lance", count)
        shutil.rmtree(tmp_path / f"{count}.lance" / "data")
        table = ManagedTable(uri=str(tmp_path / f"{count}.lance"))
        seen, page = observed_page(table, ServiceLevels())
        assert seen.num_fragments == count
        sizes.append(len(json.dumps(page)))
    assert sizes[1] < sizes[0] + 200


def test_a_store_that_does_not_answer_delays_nobody(
    tmp_path: Path, connection: Callable[[str, str], None], silent_port: int
) -> None:
    lance_core.write_dataset(rows(0, 10), str(tmp_path / "lake" / "t.lance"))
    connect(connection, "lake", tmp_path / "lake")
    options = {"endpoint": f"http://127.0.0.1:{silent_port}", "allow_http": "true", "region": "us-east-1"}
    options |= {"access_key_id": "k", "secret_access_key": "never-shown"}
    far = {"conn_type": "lance", "extra": {"base_uri": "s3://bucket/far", "storage_options": options}}
    connection("far", json.dumps(far))
    pages = Pages(settings("far", "lake", timeout_seconds=3.0, wait_seconds=3.0))

    async def ask() -> tuple[list[str], list[str | None]]:
        sources = await pages.sources()
        looked = await pages.look(sources)
        ok = [item.ref.name for item in looked if item.seen is not None]
        return ok, [None if found.error is None else found.error.code for found in sources]

    began = time.monotonic()
    assert asyncio.run(ask()) == (["t.lance"], ["timeout", None])
    assert time.monotonic() - began < PATIENCE
