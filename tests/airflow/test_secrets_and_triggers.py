"""Secrets stand neither in rendered fields nor in trigger rows; a slow store makes nobody else wait."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.sensors.version import LanceVersionSensor
from airflow_lance.triggers import condition as condition_module
from airflow_lance.triggers.condition import LanceConditionTrigger
from airflow_lance.triggers.looks import MAX_STORES, Looks, store_of
from airflow_lance.triggers.staging import LanceStagingTrigger
from airflow_lance.triggers.version import LanceVersionTrigger
from lance_core.conditions import TableFacts, VersionAtLeast
from lance_core.errors import InputError, StoreError
from lance_core.io.options import KNOWN_OPTIONS, PLAIN_OPTIONS
from lance_core.jobs.specs.plain_options import is_plain_option, secret_values

SECRET = "planted-hunter2-secret"
SECRET_OPTIONS = sorted(
    (KNOWN_OPTIONS - PLAIN_OPTIONS - {"manifest_store_url"}) | {"base_1.account_key", "an_option_of_tomorrow"}
)
URL = f"postgresql://user:{SECRET}@db/manifests"


def _make(kind: str, options: dict[str, Any]) -> Any:
    if kind == "append":
        return LanceAppendOperator(task_id="t", uri="t", source={"format": "csv", "paths": ["x"]}, storage_options=options)
    if kind == "commit":
        return LanceCommitOperator(task_id="t", staged=[], storage_options=options)
    return LanceVersionSensor(task_id="t", uri="t", min_version=1, storage_options=options)


@pytest.mark.parametrize("kind", ["append", "commit", "sensor"])
def test_a_literal_secret_on_an_operator_is_refused(kind: str) -> None:
    for name in SECRET_OPTIONS:
        for value in (SECRET, "{{ var.value.key }}"):
            with pytest.raises(InputError, match="reference") as caught:
                _make(kind, {name: value})
            assert SECRET not in str(caught.value)
        assert _make(kind, {name: {"env": "KEY"}}).storage_options
    with pytest.raises(InputError):
        _make(kind, {"manifest_store_url": URL})
    plain = dict.fromkeys(PLAIN_OPTIONS, "x") | {"manifest_store_url": "sqlite:////data/m.db", "base_1.region": "eu"}
    assert _make(kind, plain).storage_options == plain


def test_a_template_that_renders_a_secret_is_refused_when_it_is_rendered() -> None:
    operator = _make("append", {"endpoint": "{{ where }}"})
    with pytest.raises(InputError):
        operator.render_template_fields({"where": f"https://user:{SECRET}@host"})


@pytest.mark.parametrize("make", [
    lambda options: LanceConditionTrigger(uri="t", condition={}, lance_conn_id="c", storage_options=options),
    lambda options: LanceVersionTrigger(uri="t", storage_options=options),
    lambda options: LanceStagingTrigger(uri="t", identity="i", lance_conn_id="c", storage_options=options),
])  # fmt: skip
def test_a_trigger_row_holds_options_whole_and_no_literal_secret(make: Any) -> None:
    options = {"endpoint": "http://127.0.0.1:9", "region": "eu", "account_key": {"env": "KEY"}}
    assert make(options).serialize()[1]["storage_options"] == options
    with pytest.raises(InputError):
        make({"account_key": SECRET}).serialize()


def test_what_is_secret_in_other_fields_is_found() -> None:
    plain = {
        "source": {"format": "jdbc", "options": {"password": SECRET, "url": "x"}},
        "conf": {"spark.hadoop.fs.s3a.secret.key": "another-one", "spark.executor.memory": "1g"},
        "paths": [f"https://host/x?sig={SECRET}"],
        "predicate": "token = 'not a secret'",
    }
    assert sorted(secret_values(plain)) == sorted([SECRET, "another-one", f"https://host/x?sig={SECRET}"])
    assert not is_plain_option("endpoint", URL)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Looks at `s3://slow` answer after 5 s, or when the test is over; those of others at once."""
    over = threading.Event()
    seen: list[str] = []

    def look(uri: str, **_: Any) -> TableFacts:
        seen.append(uri)
        if uri.startswith("s3://slow"):
            over.wait(5.0)
            return TableFacts(uri=uri, exists=False)
        return TableFacts(uri=uri, version=3)

    monkeypatch.setattr(condition_module, "look", look)
    yield over
    over.set()


async def _first(trigger: LanceConditionTrigger) -> float:
    began = time.monotonic()
    async for _ in trigger.run():
        return time.monotonic() - began
    raise AssertionError("no event")


def _trigger(uri: str) -> LanceConditionTrigger:
    condition = VersionAtLeast(version=3).to_dict()
    return LanceConditionTrigger(uri=uri, condition=condition, lance_conn_id="lance_default", poke_interval=60)


def test_200_triggers_on_a_slow_store_make_no_other_trigger_wait(slow: threading.Event) -> None:
    async def everything() -> list[float]:
        waiting = [asyncio.create_task(_first(_trigger(f"s3://slow/{number}"))) for number in range(200)]
        await asyncio.sleep(0.05)
        # Others come while all of those wait: of this library on other stores, and of anybody who uses asyncio's threads.
        times = await asyncio.gather(*[_first(_trigger(f"s3://fast/{number}")) for number in range(20)])
        began = time.monotonic()
        await asyncio.gather(*[asyncio.to_thread(time.sleep, 0.001) for _ in range(6)])
        times.append(time.monotonic() - began)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return times

    times = asyncio.run(everything())
    assert max(times) < 0.5, times


def test_many_triggers_on_one_table_make_one_look() -> None:
    looks, calls = Looks(), []

    def action() -> int:
        calls.append(1)
        time.sleep(0.05)
        return 7

    async def everything() -> list[int]:
        return await asyncio.gather(*[looks.look("s", "q", action) for _ in range(50)])

    assert (asyncio.run(everything()), len(calls)) == ([7] * 50, 1)


def test_a_look_that_never_ends_is_given_up_and_a_failed_one_is_not_shared() -> None:
    looks, over = Looks(), threading.Event()

    def fails() -> int:
        raise StoreError("down")

    async def everything() -> int:
        with pytest.raises(StoreError, match="has not answered"):
            await looks.look("s", "q", over.wait, seconds=0.05)
        with pytest.raises(StoreError, match="down"):
            await looks.look("s", "other", fails)
        return await looks.look("s", "other", lambda: 1)

    assert asyncio.run(everything()) == 1
    over.set()


def test_looks_remember_a_bounded_number_of_stores() -> None:
    """A triggerer lives for months, and a store's name may be in a template."""
    looks = Looks()

    async def everything() -> list[int]:
        return [await looks.look(f"s3://bucket-{number}", str(number), lambda: 1) for number in range(300)]

    assert sum(asyncio.run(everything())) == 300
    assert len(looks._stores) == len(looks._pools) == MAX_STORES


def test_an_unexpected_error_ends_a_wait_and_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: Any, **__: Any) -> TableFacts:
        raise RecursionError("deep")

    monkeypatch.setattr(condition_module, "look", look)

    async def event() -> Any:
        async for found in _trigger("/t").run():
            return found
        return None

    assert "RecursionError" in json.dumps(asyncio.run(event()).payload)


def test_stores_are_told_apart() -> None:
    assert store_of("s3://a/x", "c") == store_of("s3://a/y", "c") != store_of("s3://b/x", "c")
    assert store_of("/data/x", "c") == store_of("flights", "c") == "c"
