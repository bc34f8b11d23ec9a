"""An answer that is cut off, wherever that is, fails no call of a store: what may be repeated is, and what a conditional put
or a delete did before its answer was lost is known afterwards."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from lance_core.errors import AlreadyExistsError, LanceError, NotFoundError
from lance_core.fetch import ByteRange
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from tests.stores.cutting_proxy import PLACES, Cut, CuttingProxy, Place, cutting_proxy
from tests.stores.emulators import new_bucket, s3_options

ENGINES = ("obstore", "fsspec")
BODY = bytes(range(256)) * 40
LARGE = BODY * 1100
"""Written in parts."""
MANY = 1100
"""More than one page of a listing."""


class Call(NamedTuple):
    """A call of a store, what it has to give, and the ability that it needs."""

    run: Callable[[Any], Any]
    expected: Any
    ability: str = "get"


def _written(store: Store, data: bytes) -> bytes:
    with contextlib.closing(store.open_writer("written")) as writer:
        writer.write(data)
    return bytes(store.get("written")) if len(data) < len(LARGE) else data[: store.size("written")]


def _created(store: Store) -> bytes:
    store.put_if_absent("created", BODY)
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("created", b"other")
    return bytes(store.get("created"))


def _put(store: Store) -> bytes:
    store.put("put", BODY)
    return bytes(store.get("put"))


def _deleted_one(store: Store) -> list[str]:
    store.delete("gone/0")
    return sorted(store.list_names("gone"))


def _deleted_many(store: Any) -> list[str]:
    store.delete_many(["gone/0", "gone/2"])
    return sorted(store.list_names("gone"))


CALLS = {
    "get": Call(lambda store: bytes(store.get("a")), BODY),
    "get a range": Call(lambda store: [bytes(part) for part in store.get_ranges("a", [ByteRange(3, 900)])], [BODY[3:900]]),
    "get ranges": Call(
        lambda store: [bytes(part) for part in store.get_ranges("a", [ByteRange(1, 300), ByteRange(700, 2000)])],
        [BODY[1:300], BODY[700:2000]],
    ),
    "size": Call(lambda store: store.size("a"), len(BODY)),
    "stat": Call(lambda store: store.stat("a").size, len(BODY)),
    "list": Call(lambda store: [entry.path for entry in store.list("few/")], ["few/0", "few/1"]),
    "first entries": Call(
        lambda store: [entry.path for entry in store.first_entries("few")[0]], ["few/0", "few/1"], "first_entries"
    ),
    "names": Call(lambda store: sorted(store.list_names("few")), ["0", "1"]),
    "names after": Call(lambda store: [*store.names_after("few", "0")], ["1"], "names_after"),
    "folders": Call(lambda store: [*store.list_folders("")], ["few", "gone", "many"]),
    "list many": Call(lambda store: len({entry.path for entry in store.list("many/")}), MANY),
    "put": Call(_put, BODY),
    "put if absent": Call(_created, BODY),
    "write": Call(lambda store: _written(store, BODY), BODY),
    "write in parts": Call(lambda store: _written(store, LARGE), LARGE),
    "delete one": Call(_deleted_one, ["1", "2"]),
    "delete many": Call(_deleted_many, ["1"], "delete_many"),
}


@pytest.fixture(scope="module")
def proxy(moto_endpoint: str) -> Iterator[CuttingProxy]:
    with cutting_proxy(moto_endpoint) as found:
        yield found


@pytest.fixture(scope="module", params=ENGINES)
def store(request: pytest.FixtureRequest, moto_endpoint: str, proxy: CuttingProxy) -> Store:
    options = {**s3_options(moto_endpoint), "store_engine": request.param}
    uri = f"s3://{new_bucket(moto_endpoint)}/t"
    plain = resolve_store(uri, options)
    plain.put("a", BODY)
    for path in ("few/0", "few/1", *(f"many/{number:04}" for number in range(MANY))):
        plain.put(path, b"x")
    found = resolve_store(uri, {**options, "aws_endpoint": proxy.endpoint})
    assert found.has_put_if_absent  # tried out before anything is cut off
    return found


def _fresh(store: Store) -> None:
    for number in range(3):
        store.put(f"gone/{number}", b"x")
    for path in ("created", "written", "put"):
        with contextlib.suppress(NotFoundError):
            store.delete(path)


@pytest.mark.parametrize(
    "place",
    [pytest.param(place, marks=() if place in ("no answer", "in the body") else pytest.mark.slow) for place in PLACES],
)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_whose_answer_is_cut_off_gives_the_same(name: str, place: Place, store: Store, proxy: CuttingProxy) -> None:
    """Each of its requests in turn."""
    call = CALLS[name]
    if not hasattr(store, call.ability):
        pytest.skip("this store has no such call")
    for is_reset in (False, True):
        for skipped in itertools.count():
            _fresh(store)
            proxy.arm(Cut(place, is_reset, skipped))
            try:
                assert call.run(store) == call.expected, proxy.cut_off
            except LanceError as error:
                raise AssertionError(f"{proxy.cut_off}: {error}") from error
            finally:
                proxy.disarm()
            if not proxy.cut_off:
                break
        assert skipped > 0
