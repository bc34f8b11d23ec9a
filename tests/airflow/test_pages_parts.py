"""What the pages are made of, without a server: redaction, links, pools, the cache, the settings."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from airflow_lance.ui.answers import mentioned_dags, with_links
from airflow_lance.ui.cache import FactsCache
from airflow_lance.ui.errors import PageError, observed_error, page_error
from airflow_lance.ui.pool import Pools
from airflow_lance.ui.redact import PageRedactor
from airflow_lance.ui.settings import read_settings
from lance_core.errors import CorruptFileError, InputError, NotFoundError, StoreError
from lance_core.maintenance.facts.cells import cell


def test_secrets_are_removed_wherever_they_are() -> None:
    redactor = PageRedactor(["s3cr3t", "s3cr3t-and-more", "abc"])
    found = redactor.clean(
        {
            "text": "denied for s3cr3t-and-more, s3cr3t",
            "uri": "https://me:pw@host/t?sig=ab%2F&x=1",
            "list": ["AccountKey=zzz;x", {"s3cr3t": 1}],
            "my_password": "hunter2",
            "nan": float("nan"),
            "kept": [1, None, True, "abc", 2.5],
        }
    )
    assert found == {
        "text": "denied for ***, ***",
        "uri": "https://***@host/t?sig=***&x=1",
        "list": ["AccountKey=***;x", {"***": 1}],
        "my_password": "***",
        "nan": None,
        "kept": [1, None, True, "abc", 2.5],
    }


def test_names_of_dags_that_a_user_may_not_read_are_hidden() -> None:
    mention = {"dag_id": "secret", "run_id": "r", "task_id": "t", "map_index": -1, "host": "w", "identity": "5d"}
    answer = {"writers": [mention, {**mention, "dag_id": "open", "map_index": 2}, {**mention, "dag_id": None}]}
    assert set(mentioned_dags(answer)) == {"secret", "open"}
    found: Any = with_links(answer, frozenset({"open"}))
    hidden, shown, unknown = found["writers"]
    assert (hidden["dag_id"], hidden["run_id"], hidden["task_id"], hidden["host"], hidden["link"]) == (None,) * 5
    assert (hidden["hidden"], hidden["identity"]) == (True, "5d")
    assert (shown["link"], shown["hidden"]) == ("dags/open/runs/r/tasks/t/mapped/2", False)
    assert (unknown["link"], unknown["hidden"]) == (None, False)


def test_links_of_hostile_names_stay_inside_the_path() -> None:
    found: Any = with_links({"dag_id": "../x?y#z", "run_id": "a/b", "task_id": "<i>"}, frozenset({"../x?y#z"}))
    assert found["link"] == "dags/..%2Fx%3Fy%23z/runs/a%2Fb/tasks/%3Ci%3E"


def test_a_store_that_hangs_holds_up_no_other() -> None:
    pools, gate = Pools(threads=2), threading.Event()
    hanging = [pools.submit("hangs", gate.wait) for _ in range(10)]
    assert pools.submit("well", lambda: 7).result(timeout=10) == 7
    assert not any(future.done() for future in hanging)
    gate.set()
    assert all(future.result(timeout=10) for future in hanging)


def test_a_fact_is_gathered_once_for_all_who_ask_and_kept_for_a_while() -> None:
    now, calls, gate = [100.0], [0], threading.Event()
    cache: FactsCache[int] = FactsCache(Pools(threads=2), seconds=30, max_bytes=100, clock=lambda: now[0])

    def load() -> int:
        calls[0] += 1
        gate.wait(10)
        return calls[0]

    async def ask() -> list[int]:
        asked = [asyncio.ensure_future(cache.get("k", pool="p", load=load, timeout=10)) for _ in range(5)]
        await asyncio.sleep(0)
        gate.set()
        return [entry.value for entry in await asyncio.gather(*asked)]

    assert asyncio.run(ask()) == [1] * 5
    now[0] += 29
    assert asyncio.run(ask()) == [1] * 5
    now[0] += 2
    assert set(asyncio.run(ask())) == {2}


def test_a_slow_fact_is_a_timeout_and_is_kept_when_it_comes() -> None:
    gate = threading.Event()
    cache: FactsCache[str] = FactsCache(Pools(threads=1), seconds=30, max_bytes=100)

    async def ask(timeout: float) -> str:
        return (await cache.get("k", pool="p", load=lambda: str(gate.wait(30)), timeout=timeout)).value

    with pytest.raises(PageError, match="did not answer") as caught:
        asyncio.run(ask(0.05))
    assert caught.value.status == 504
    gate.set()
    assert asyncio.run(ask(30)) == "True"


def test_the_cache_is_bounded_and_forgets_what_was_used_least() -> None:
    cache: FactsCache[str] = FactsCache(Pools(threads=1), seconds=3600, max_bytes=100, size_of=len)

    async def ask(key: str, value: str) -> None:
        await cache.get(key, pool="p", load=lambda: value, timeout=10)

    for key in "abc":
        asyncio.run(ask(key, "x" * 40))
        _settle(lambda key=key: cache.peek(key) is not None)
    assert [cache.peek(key) is None for key in "abc"] == [True, False, False]
    assert cache.num_bytes == 80
    asyncio.run(ask("huge", "x" * 1000))
    assert cache.num_bytes == 80, "one that is larger than all of it is not kept"


def test_an_error_is_not_kept() -> None:
    answers: list[Any] = [StoreError("down"), "up"]
    cache: FactsCache[str] = FactsCache(Pools(threads=1), seconds=3600, max_bytes=100)

    def load() -> str:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return str(found)

    async def ask() -> str:
        return (await cache.get("k", pool="p", load=load, timeout=10)).value

    with pytest.raises(StoreError):
        asyncio.run(ask())
    assert asyncio.run(ask()) == "up"


def _settle(is_so: Any) -> None:
    limit = time.monotonic() + 10
    while not is_so() and time.monotonic() < limit:
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFoundError("gone"), "not_found"),
        (InputError("wrong"), "invalid"),
        (StoreError("down"), "unreachable"),
        (CorruptFileError("bad"), "damaged"),
        (OSError("down"), "unreachable"),
        (TimeoutError(), "timeout"),
        (ZeroDivisionError("a secret of the code"), "failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_error_has_a_code(error: Exception, code: str) -> None:
    found = page_error(error)
    assert found.code == code
    assert "a secret of the code" not in found.message


def test_an_error_of_an_observation_has_a_code() -> None:
    assert observed_error("StoreError: s3://x is down")["code"] == "unreachable"
    assert observed_error("StoreRefusedError: s3://x: 403")["code"] == "unreachable"
    assert observed_error("CorruptFileError: bytes")["code"] == "damaged"
    assert observed_error("FileNotFoundError: t")["code"] in ("unreachable", "damaged")


def test_cells_are_bounded() -> None:
    assert cell(2**60) == str(2**60)
    assert cell(float("inf")) == "inf"
    assert cell("x" * 501) == {"kind": "text", "value": "x" * 500, "length": 501}
    assert cell([0.5] * 768) == {"kind": "vector", "length": 768, "head": [0.5] * 8}
    assert cell(b"\x00\xff") == {"kind": "binary", "length": 2, "hex": "00ff"}
    assert cell({"a": [b"\x01", 2]}) == {"kind": "json", "value": '{"a": ["01", 2]}', "truncated": False}
    assert cell([]) == {"kind": "json", "value": "[]", "truncated": False}


@pytest.mark.parametrize(
    ("name", "value"), [("pages_rows", "everybody"), ("pages_timeout_seconds", "soon"), ("pages_cache_seconds", "-1")]
)
def test_a_wrong_setting_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"AIRFLOW__LANCE__{name.upper()}", value)
    with pytest.raises(InputError, match=name):
        read_settings()


def test_rows_are_off_unless_somebody_says_so() -> None:
    assert read_settings().rows == "nobody"


def test_the_plugin_imports_nothing_heavy() -> None:
    import json
    import subprocess
    import sys

    code = (
        "import sys, json, airflow.plugins_manager; before = set(sys.modules); import airflow_lance.ui.plugin; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    new = json.loads(shown.stdout.splitlines()[-1])
    assert [name for name in new if not name.startswith(("airflow_lance", "lance_core"))] == []
    assert len(new) < 10, new


def test_the_front_end_is_part_of_the_package() -> None:
    import airflow_lance.ui.app as app

    assert isinstance(app.DIST, Path)
    assert (app.DIST / "lance.umd.js").is_file()
    assert app.BASE in (app.DIST / "index.html").read_text(encoding="utf-8")
