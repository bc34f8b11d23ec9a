"""The watcher of versions: every newer version is told, the watermark survives the triggerer."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk import Asset, AssetWatcher
from airflow.triggers.base import BaseEventTrigger

from airflow_lance.assets import create_asset
from airflow_lance.triggers.version import LanceVersionTrigger
from lance_core.errors import StoreError
from tests.airflow.operator_support import make_table


class States(dict[str, Any]):
    """An asset's state store."""

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self[key] = json.loads(json.dumps(value))


def _append(uri: str) -> None:
    lance.write_dataset(pa.table({"id": [1], "day": [1]}), uri, mode="append")


def _trigger(uri: str, store: Any = None, **kwargs: Any) -> LanceVersionTrigger:
    kind, arguments = LanceVersionTrigger(uri=uri, poke_interval=0.01, **kwargs).serialize()
    assert kind == "airflow_lance.triggers.version.LanceVersionTrigger"
    trigger = LanceVersionTrigger(**arguments)
    trigger.asset_state_store = store
    return trigger


def _events(trigger: LanceVersionTrigger, count: int, between: Callable[[], None] = lambda: None) -> list[dict[str, Any]]:
    async def take() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        async for event in trigger.run():
            found.append(event.payload)  # type: ignore[arg-type]
            if len(found) == count:
                break
            between()
        await asyncio.sleep(0)
        return found

    return asyncio.run(asyncio.wait_for(take(), timeout=30))


def test_every_newer_version_is_told(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0, 10)
    found = _events(_trigger(uri, min_version=2), 3, lambda: _append(uri))
    assert [(event["since"], event["version"]) for event in found] == [(1, 2), (2, 3), (3, 4)]
    assert found[0]["facts"]["num_rows"] == 20


def test_what_came_while_nobody_watched_is_told_from_the_watermark(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    store = States()
    trigger = _trigger(uri, store)

    async def begin() -> None:
        task = asyncio.create_task(anext(trigger.run()))  # type: ignore[arg-type]
        while "lance_version" not in store:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(begin(), timeout=30))
    (first,) = lance.dataset(uri).get_transactions(1)
    assert store == {"lance_version": 1, "lance_table_id": first.uuid}
    _append(uri)
    _append(uri)
    (event,) = _events(_trigger(uri, store), 1)
    assert (event["since"], event["version"]) == (1, 3)


def test_a_look_that_fails_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    trigger = _trigger(uri, min_version=1)
    looks, look = [StoreError("throttled")], trigger._look
    monkeypatch.setattr(trigger, "_look", lambda: _raise(looks.pop()) if looks else look())
    assert _events(trigger, 1)[0]["version"] == 1


def _raise(error: Exception) -> Any:
    raise error


def test_an_asset_takes_it_as_its_watcher() -> None:
    assert issubclass(LanceVersionTrigger, BaseEventTrigger)
    trigger = LanceVersionTrigger(uri="/data/t.lance")
    asset = create_asset(uri="/data/t.lance", name="flights", watchers=[AssetWatcher(name="versions", trigger=trigger)])
    assert isinstance(asset, Asset)
    assert (asset.uri, asset.watchers[0].trigger) == ("lance://file/data/t.lance", trigger)
    assert isinstance(BaseEventTrigger.hash(*trigger.serialize()), int)


def test_several_assets_share_a_watch_without_a_watermark(tmp_path: Path) -> None:
    class Several(States):
        async def aget(self, key: str, default: Any = None) -> Any:
            raise ValueError("2 concrete inlets")

    uri = make_table(tmp_path / "t.lance", 0)
    assert _events(_trigger(uri, Several(), min_version=1), 1)[0]["version"] == 1


@pytest.mark.parametrize("known", [True, False], ids=["table_id", "number only"])
def test_a_table_made_again_is_told_from_its_first_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    uri = make_table(tmp_path / "t.lance", 0, 10, 20)
    trigger = _trigger(uri, min_version=3)
    look = trigger._look
    names = iter(["first", "second", "second", "second"] if known else [""] * 9)
    monkeypatch.setattr(trigger, "_look", lambda: replace(look(), table_id=next(names)))

    def again() -> None:
        shutil.rmtree(uri)
        # With a name for each table even one with more versions than the old one is known as another.
        make_table(Path(uri), *([0, 10, 20, 30] if known else [0]))

    found = _events(trigger, 2, again)
    assert [(event["since"], event["version"], event["rows"]) for event in found] == (
        [(2, 3, 30), (0, 4, 40)] if known else [(2, 3, 30), (0, 1, 10)]
    )
    assert [event["table_id"] for event in found] == (["first", "second"] if known else ["", ""])


@pytest.mark.parametrize("error", [RecursionError("deep"), KeyError(0), OverflowError("large"), AttributeError("rows")])
def test_no_error_ends_a_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    trigger = _trigger(uri, States(), min_version=1)
    real, failures = trigger._look, iter([error])

    def look() -> Any:
        for failure in failures:
            raise failure
        return real()

    monkeypatch.setattr(trigger, "_look", look)
    assert [event["version"] for event in _events(trigger, 1)] == [1]


def test_a_watermark_that_cannot_be_kept_ends_no_watch(tmp_path: Path) -> None:
    class Broken(States):
        async def aset(self, key: str, value: Any) -> None:
            raise OSError("the database is away")

    uri = make_table(tmp_path / "t.lance", 0)
    found = _events(_trigger(uri, Broken(), min_version=1), 2, lambda: _append(uri))
    assert [event["version"] for event in found] == [1, 2]
