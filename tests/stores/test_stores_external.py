"""Manifests published through a register elsewhere: the contract, the four steps, and every way to die between them."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    CorruptFileError,
    InputError,
    NotFoundError,
    StoreError,
)
from lance_core.io.external.dynamodb import DynamoRegister
from lance_core.io.external.sql import SqlRegister
from lance_core.io.external.store import ExternalStore, ManifestRegister
from lance_core.io.memory import MemoryStore
from lance_core.io.resolve import resolve_store, without_folder
from tests.commit.commit_support import append, create, live_rows
from tests.io.faulty_stores import FaultyStore
from tests.io.store_contract import StoreContract
from tests.stores.emulators import DDB_TABLE, dynamodb, s3_options

MANIFEST = "_versions/18446744073709551613.manifest"


class Careless(MemoryStore):
    """A store that cannot write only-if-absent."""

    has_put_if_absent = False

    def put_if_absent(self, path: str, data: Any, *, durable: bool = True) -> None:
        raise AssertionError("asked for a conditional put that this store does not have")

    def child(self, path: str) -> Careless:
        return Careless(self._name, folder=f"{self._folder}{path.rstrip('/')}")


class DyingRegister:
    """Breaks the nth call, before or after it happens."""

    def __init__(self, inner: ManifestRegister, *, fail_at: int, when: str, error: type[BaseException]) -> None:
        self._inner, self._left, self._when, self._error = inner, fail_at, when, error

    @property
    def broke(self) -> bool:
        return self._left <= 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._when == "before":
                raise self._error(f"before {name}")
            fails = self._left == 0
            result = getattr(self._inner, name)(*arguments)
            if fails:
                raise self._error(f"after {name}")
            return result

        return call


class Killed(BaseException):
    """The process dies: nobody catches this."""


@pytest.fixture
def register(tmp_path: Path) -> SqlRegister:
    return SqlRegister(f"sqlite:///{tmp_path / 'manifests.db'}")


class TestExternalOverCareless(StoreContract):
    @pytest.fixture
    def store(self, register: SqlRegister) -> ExternalStore:
        return ExternalStore(Careless(uuid.uuid4().hex), register, base="t")


class TestExternalOverMemory(StoreContract):
    @pytest.fixture
    def store(self, register: SqlRegister) -> ExternalStore:
        return ExternalStore(MemoryStore(uuid.uuid4().hex), register, base="t")


def test_the_four_steps(register: SqlRegister) -> None:
    inner = MemoryStore(uuid.uuid4().hex)
    store = ExternalStore(inner, register, base="t")
    store.put_if_absent(MANIFEST, b"two")
    assert bytes(inner.get(MANIFEST)) == b"two"
    assert register.get("t", 2) == f"t/{MANIFEST}"
    assert register.latest("t") == (2, f"t/{MANIFEST}")
    assert [entry.path for entry in inner.list("")] == [MANIFEST]
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent(MANIFEST, b"another two")
    store.delete(MANIFEST)
    assert register.latest("t") is None


def test_a_manifest_written_without_the_register_is_not_replaced(register: SqlRegister) -> None:
    inner = MemoryStore(uuid.uuid4().hex)
    inner.put(MANIFEST, b"before the register")
    with pytest.raises(AlreadyExistsError):
        ExternalStore(inner, register, base="t").put_if_absent(MANIFEST, b"x")
    assert bytes(inner.get(MANIFEST)) == b"before the register"


@pytest.fixture(params=["sql", "dynamodb"])
def any_register(request: pytest.FixtureRequest) -> ManifestRegister:
    if request.param == "sql":
        found: ManifestRegister = request.getfixturevalue("register")
        return found
    endpoint: str = request.getfixturevalue("moto_endpoint")
    dynamodb(endpoint)
    return DynamoRegister(DDB_TABLE, s3_options(endpoint))


@pytest.mark.parametrize("read", ["get", "size", "list", "list_names", "list_unfinished"])
def test_a_reader_publishes_what_a_dead_writer_committed(any_register: ManifestRegister, read: str) -> None:
    register, table = any_register, uuid.uuid4().hex
    inner = MemoryStore(uuid.uuid4().hex)
    staged = f"{MANIFEST}-{uuid.uuid4()}"
    inner.put(staged, b"two")
    store = ExternalStore(inner, register, base=table)
    assert list(store.list("")) == []
    assert [entry.path for entry in store.list_unfinished("")] == [staged]
    register.add(table, 2, f"{table}/{staged}", 3)
    argument = MANIFEST if read in ("get", "size") else "_versions/"
    [*getattr(store, read)(argument)] if read.startswith("list") else getattr(store, read)(argument)
    assert [entry.path for entry in inner.list("")] == [MANIFEST]
    assert register.get(table, 2) == f"{table}/{MANIFEST}"
    assert list(store.list_unfinished("")) == []


def test_rows_that_lead_elsewhere_are_refused(register: SqlRegister) -> None:
    store = ExternalStore(MemoryStore(uuid.uuid4().hex), register, base="t")
    for path in (f"other/{MANIFEST}-{uuid.uuid4()}", f"t/data/x.manifest-{uuid.uuid4()}"):
        register.add("t", 2, path, 3)
        with pytest.raises(CorruptFileError):
            store.list_names("_versions/")
        register.remove("t", 2)


def test_errors_of_the_database_show_no_url(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StoreError) as caught:
        SqlRegister(f"sqlite:///{tmp_path / 'f'}").get("t", 1)
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(InputError) as refused:
        SqlRegister("nonsense+driver://user:hunter2@host/db").get("t", 1)
    assert "hunter2" not in str(refused.value)


def test_two_registers_make_one_table(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    failures: list[BaseException] = []

    def begin(number: int) -> None:
        try:
            SqlRegister(url).add("t", number, "p", 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert SqlRegister(url).latest("t") == (7, "p")


def test_uris() -> None:
    assert without_folder("s3+ddb://b/t/tree/x?ddbTableName=m", "tree/x") == "s3+ddb://b/t?ddbTableName=m"
    assert without_folder("/a/t/tree/x/", "tree/x") == "/a/t"
    assert without_folder("/a/t", "tree/x") is None
    for uri in ("s3+ddb://b/t", "s3+ddb://b/t?ddbTableName=", "s3+ddb://b/t?ddbTableName=a&x=b", "s3+ddb://b/t?table=a"):
        with pytest.raises(InputError):
            resolve_store(uri)
    store = resolve_store("s3+ddb://b/t?ddbTableName=m")
    assert store.child("tree/x").uri == "s3+ddb://b/t/tree/x?ddbTableName=m"


@pytest.mark.parametrize("error", [Killed, StoreError])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("part", ["store", "register"])
def test_broken_at_every_step_of_a_commit(tmp_path: Path, part: str, when: str, error: type[BaseException]) -> None:
    fail_at, broke = 0, True
    while broke:
        fail_at += 1
        broke = _break_one(tmp_path / f"{fail_at}.db", part=part, when=when, error=error, fail_at=fail_at)
    assert fail_at > (12 if part == "store" else 3)


def _break_one(database: Path, *, part: str, when: Any, error: type[BaseException], fail_at: int) -> bool:
    """Commit onto a fresh table with one broken call. Whether that call was reached."""
    register = SqlRegister(f"sqlite:///{database}")
    inner = Careless(uuid.uuid4().hex)
    sound = ExternalStore(inner, register, base="t")
    create(sound, (1, 2))
    faulty = FaultyStore(inner, fail_at=fail_at if part == "store" else 0, when=when, error=error)
    dying: Any = DyingRegister(register, fail_at=fail_at if part == "register" else 1 << 30, when=when, error=error)
    broken = ExternalStore(faulty, dying, base="t")
    raised = False
    try:
        append(broken, (3,))
    except (Killed, StoreError, NotFoundError, CommitStateUnknownError):
        raised = True
    rows = live_rows(sound)
    assert rows in ([1, 2], [1, 2, 3])
    assert raised or rows == [1, 2, 3]
    append(sound, (4,))
    assert live_rows(sound) == [*rows, 4]
    numbers = [entry.version for entry in list_versions(sound)]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert len(numbers) == len(rows)
    for number in numbers:
        assert load_manifest(sound, number).version == number
        path = register.get("t", number)
        assert path is not None
        assert path.endswith(".manifest")
    return faulty.num_calls >= fail_at if part == "store" else bool(dying.broke)


class LateRegister:
    """The first `add` times out, and its row is there later."""

    def __init__(self, inner: ManifestRegister) -> None:
        self._inner = inner
        self.late: list[tuple[Any, ...]] = []
        self._is_first = True

    def add(self, *arguments: Any) -> None:
        if self._is_first:
            self._is_first = False
            self.late.append(arguments)
            raise StoreError("timed out")
        self._inner.add(*arguments)

    def land(self) -> None:
        for arguments in self.late:
            self._inner.add(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_row_that_is_added_late_blocks_nobody(any_register: ManifestRegister) -> None:
    base = uuid.uuid4().hex
    inner, late = MemoryStore(base), LateRegister(any_register)
    first, second = ExternalStore(inner, late, base=base), ExternalStore(inner, any_register, base=base)
    with pytest.raises(StoreError):
        first.put_if_absent(MANIFEST, b"timed out")
    late.land()
    with pytest.raises(NotFoundError):
        second.get(MANIFEST)
    second.put_if_absent(MANIFEST, b"two")
    assert bytes(first.get(MANIFEST)) == b"two"
    assert any_register.get(base, 2) == f"{base}/{MANIFEST}"
    with pytest.raises(AlreadyExistsError):
        first.put_if_absent(MANIFEST, b"another")
    assert [entry.path for entry in inner.list("")] == [MANIFEST]


class BetweenRegister:
    """Something happens right behind the first `add`."""

    def __init__(self, inner: ManifestRegister, happens: Callable[[], None]) -> None:
        self._inner, self._happens = inner, [happens]

    def add(self, *arguments: Any) -> None:
        self._inner.add(*arguments)
        if self._happens:
            self._happens.pop()()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize("other_writes", [False, True])
def test_a_staged_manifest_that_a_collection_takes_is_staged_again_or_lost(
    any_register: ManifestRegister, other_writes: bool
) -> None:
    base = uuid.uuid4().hex
    inner = MemoryStore(base)
    other = ExternalStore(inner, any_register, base=base)

    def collected() -> None:
        # By a clock that is an hour ahead every staged manifest looks abandoned.
        for entry in [*inner.list("_versions/")]:
            inner.delete(entry.path)
        if other_writes:
            other.put_if_absent(MANIFEST, b"the other's")

    store = ExternalStore(inner, BetweenRegister(any_register, collected), base=base)
    if other_writes:
        with pytest.raises(AlreadyExistsError):
            store.put_if_absent(MANIFEST, b"mine")
    else:
        store.put_if_absent(MANIFEST, b"mine")
    assert bytes(other.get(MANIFEST)) == (b"the other's" if other_writes else b"mine")
    assert [entry.path for entry in inner.list("")] == [MANIFEST]


def test_a_newest_version_whose_manifest_is_lost_is_not_dropped_silently(register: SqlRegister) -> None:
    inner = Careless(uuid.uuid4().hex)
    store = ExternalStore(inner, register, base="t")
    create(store, (1, 2))
    append(store, (3,))
    whole = bytes(inner.get(MANIFEST))
    inner.delete(MANIFEST)
    for refused in (lambda: list_versions(store), lambda: load_manifest(store), lambda: append(store, (4,))):
        with pytest.raises(CorruptFileError, match=r"version 2 was published") as caught:
            refused()
        assert "remove the row (t, 2)" in str(caught.value.cure)
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent(MANIFEST, b"another version 2")
    assert list(store.list("")), "whole listings are for whoever drops the table"
    inner.put(MANIFEST, whole)
    append(store, (4,))
    assert live_rows(store) == [1, 2, 3, 4]
    inner.delete("_versions/18446744073709551612.manifest")
    register.remove("t", 3)
    assert live_rows(store) == [1, 2, 3]


def test_a_version_that_a_cleanup_was_removing_keeps_its_number(register: SqlRegister) -> None:
    inner = Careless(uuid.uuid4().hex)
    store = ExternalStore(inner, register, base="t")
    create(store, (1, 2))
    for value in (3, 4):
        append(store, (value,))
    inner.delete(MANIFEST)
    assert [entry.version for entry in list_versions(store)] == [1, 3]
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent(MANIFEST, b"a put that comes late")
    with pytest.raises(NotFoundError):
        store.get(MANIFEST)
    store.delete(MANIFEST)
    assert register.get("t", 2) is None
    assert live_rows(store) == [1, 2, 3, 4]


def test_a_killed_drop_can_be_repeated(register: SqlRegister, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_core.dataset.versions import drop

    inner, stop_at = Careless(uuid.uuid4().hex), 0
    monkeypatch.setattr(drop, "resolve_store", lambda uri, options: ExternalStore(faulty, register, base="t"))
    faulty: Any = inner
    broke = True
    while broke:
        stop_at += 1
        create(ExternalStore(inner, register, base="t"), (1, 2))
        for value in (3, 4):
            append(ExternalStore(inner, register, base="t"), (value,))
        faulty = FaultyStore(inner, fail_at=stop_at, when="after", error=Killed)
        with contextlib.suppress(Killed):
            drop.drop_table("t")
        broke = faulty.num_calls >= stop_at
        faulty = inner
        drop.drop_table("t", ignore_not_found=True)
        assert list(inner.list("")) == []
        for number in (1, 2, 3):
            register.remove("t", number)  # at most one was left
    assert stop_at > 8
