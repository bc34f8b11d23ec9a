"""Requests that are repeated, how often and with what waits; those that are not; sizes that are wrong; secrets in errors."""

from __future__ import annotations

import errno
import logging
import pickle
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import pytest

from lance_core import errors
from lance_core.errors import AlreadyExistsError, CorruptFileError, LanceError, NotFoundError, StoreError, StoreRefusedError
from lance_core.fetch import ByteRange
from lance_core.io.answers import NoAnswerError
from lance_core.io.remote import errors as remote_errors
from lance_core.io.remote.errors import Redactor, Retries, TransientError, retrying
from lance_core.io.remote.store import RemoteStore

SECRET = "hunter2hunter2hunter2"


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waits.append(seconds)

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(remote_errors, "time", clock)
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    return clock


def s3_error(code: str, status: int) -> Exception:
    class ClientError(Exception):
        response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}  # noqa: RUF012

    return ClientError(f"An error occurred ({code}) with key {SECRET}")


def gcs_error(status: int) -> Exception:
    module = pytest.importorskip("gcsfs.retry", reason="gcsfs is not installed (extra gcs)")
    error: Exception = module.HttpError({"code": status, "message": f"said {SECRET}"})
    return error


def azure_error(code: str, status: int) -> Exception:
    module = pytest.importorskip("azure.core.exceptions", reason="the packages of Azure are not installed (extra azure)")
    error: Exception = module.HttpResponseError(message=f"said {SECRET}")
    error.status_code, error.error_code = status, code  # type: ignore[attr-defined]
    return error


def reset() -> Exception:
    wrapped = OSError(5, "wrapped")
    wrapped.__cause__ = ConnectionResetError(f"peer, {SECRET}")
    return wrapped


class Failing:
    """fsspec's memory file system whose requests fail, for a while or for good."""

    def __init__(self, error: Callable[[], Exception], times: int) -> None:
        self._fs = fsspec.filesystem("memory")
        self._error = error
        self._times = times
        self.calls = 0

    def _asked(self) -> None:
        self.calls += 1
        if self.calls <= self._times:
            raise self._error()

    def cat_file(self, path: str, **kwargs: Any) -> Any:
        self._asked()
        return self._fs.cat_file(path, **kwargs)

    def pipe_file(self, path: str, data: bytes, **kwargs: Any) -> None:
        self._asked()
        self._fs.pipe_file(path, data)

    def find(self, path: str, **kwargs: Any) -> Any:
        self._asked()
        return self._fs.find(path, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fs, name)


def store_of(fs: Any, retries: Retries = remote_errors.DEFAULT_RETRIES) -> RemoteStore:
    root = f"/{uuid.uuid4().hex}/t"
    redact = Redactor({"aws_secret_access_key": SECRET})
    return RemoteStore(lambda: fs, root=root, uri=f"s3://x{root}", conditional=True, redact=redact, retries=retries)


THROTTLED = [
    pytest.param(lambda: s3_error("SlowDown", 503), id="S3 SlowDown"),
    pytest.param(lambda: s3_error("RequestTimeout", 400), id="S3 RequestTimeout"),
    pytest.param(lambda: s3_error("InternalError", 500), id="S3 InternalError"),
    pytest.param(lambda: gcs_error(429), id="GCS 429"),
    pytest.param(lambda: gcs_error(503), id="GCS 503"),
    pytest.param(lambda: azure_error("ServerBusy", 503), id="Azure ServerBusy"),
    pytest.param(lambda: azure_error("OperationTimedOut", 500), id="Azure OperationTimedOut"),
    pytest.param(reset, id="connection reset"),
]


@pytest.mark.parametrize("error", THROTTLED)
def test_throttled_requests_are_repeated_with_growing_waits(error: Callable[[], Exception], clock: Clock) -> None:
    fs = Failing(error, times=3)
    store = store_of(fs)
    store.put("a", b"rows")
    assert (fs.calls, clock.waits) == (4, [0.2, 0.4, 0.8])
    fs.calls = 1
    assert bytes(store.get("a")) == b"rows"
    assert (fs.calls, clock.waits[3:]) == (4, [0.2, 0.4])
    fs.calls = 2
    assert [entry.path for entry in store.list("")] == ["a"]
    assert (fs.calls, clock.waits[5:]) == (4, [0.2])


@pytest.mark.parametrize("error", THROTTLED)
def test_throttled_for_good(error: Callable[[], Exception], clock: Clock) -> None:
    fs = Failing(error, times=1 << 30)
    with pytest.raises(TransientError) as caught:
        store_of(fs).get("a")
    longest = [2.0] * 6 if isinstance(caught.value, NoAnswerError) else [3.2, 6.4, 10.0, 10.0, 10.0, 10.0]
    assert (fs.calls, clock.waits) == (11, [0.2, 0.4, 0.8, 1.6, *longest])
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None, "the backend's own error may hold a secret"
    with pytest.raises(TransientError):
        store_of(fs, Retries(times=1)).get("a")
    assert fs.calls == 13
    clock.waits.clear()
    with pytest.raises(TransientError):
        store_of(fs, Retries(times=100, seconds=60)).get("a")
    assert 50 <= sum(clock.waits) <= 60
    assert max(clock.waits) == longest[-1]


def test_a_restart_of_ten_seconds_is_waited_for(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the waits happen to be; and a place where nobody is at all is given up within half a minute."""
    for chosen, least, most in ((min, 10, 15), (max, 15, 30)):
        monkeypatch.setattr(random, "uniform", lambda low, high, chosen=chosen: chosen(low, high))
        clock.waits.clear()
        with pytest.raises(NoAnswerError):
            store_of(Failing(reset, times=1 << 30)).get("a")
        assert least < sum(clock.waits) < most


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (lambda: s3_error("AccessDenied", 403), StoreRefusedError),
        (lambda: s3_error("InvalidAccessKeyId", 403), StoreRefusedError),
        (lambda: s3_error("NoSuchKey", 404), NotFoundError),
        (lambda: s3_error("NoSuchBucket", 404), StoreRefusedError),
        (lambda: gcs_error(403), StoreRefusedError),
        (lambda: gcs_error(404), NotFoundError),
        (lambda: azure_error("AuthorizationFailure", 403), StoreRefusedError),
        (lambda: azure_error("ContainerNotFound", 404), StoreRefusedError),
        (lambda: PermissionError("no"), StoreRefusedError),
        (lambda: OSError(errno.EDQUOT, "quota"), StoreRefusedError),
        (lambda: s3_error("InvalidRequest", 400), StoreError),
    ],
)
def test_refusals_are_not_repeated(error: Callable[[], Exception], kind: type[Exception], clock: Clock) -> None:
    fs = Failing(error, times=1 << 30)
    for call in (lambda: store_of(fs).get("a"), lambda: store_of(fs).put("a", b"x")):
        fs.calls = 0
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind
        assert (fs.calls, clock.waits) == (1, [])
        assert SECRET not in str(caught.value)


def test_a_conditional_put_is_settled_by_what_is_there(clock: Clock) -> None:
    """Its reply may have been lost: what the second try finds may be its own."""

    class Losing(Failing):
        def pipe_file(self, path: str, data: bytes, *, mode: str = "overwrite") -> None:
            if mode == "create" and self._fs.exists(path):
                raise FileExistsError(path)
            self._fs.pipe_file(path, data)
            self._asked()

    store = store_of(Losing(reset, times=1))
    store.put_if_absent("a", b"x")
    assert bytes(store.get("a")) == b"x"
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("a", b"x")
    theirs = store_of(Losing(lambda: s3_error("SlowDown", 503), times=1))
    theirs.put("b", b"theirs")
    with pytest.raises(AlreadyExistsError):
        theirs.put_if_absent("b", b"ours")


def test_retrying_returns_the_first_answer(clock: Clock) -> None:
    answers: Iterator[int] = iter([7, 8])
    assert retrying(lambda: next(answers), Retries(times=0)) == 7
    assert not clock.waits


class Lying(Failing):
    """Says that everything is an exabyte long."""

    def __init__(self) -> None:
        super().__init__(OSError, times=0)

    def info(self, path: str, **kwargs: Any) -> Any:
        return {**self._fs.info(path, **kwargs), "size": 1 << 60}

    def find(self, path: str, **kwargs: Any) -> Any:
        return {name: {**info, "size": 1 << 60} for name, info in self._fs.find(path, **kwargs).items()}


def test_a_listing_that_claims_an_exabyte() -> None:
    store = store_of(Lying())
    store.put("a", b"rows")
    assert [entry.size for entry in store.list("")] == [1 << 60]
    assert bytes(store.get("a")) == b"rows"
    for asked in (ByteRange((1 << 60) - 8, 1 << 60), ByteRange(0, 1 << 60)):
        with pytest.raises((StoreError, CorruptFileError)):
            store.get_ranges("a", [asked])


def all_errors(root: type[LanceError] = LanceError) -> Iterator[type[LanceError]]:
    yield root
    for kind in root.__subclasses__():
        yield from all_errors(kind)


def test_no_error_shows_a_secret(caplog: pytest.LogCaptureFixture, clock: Clock) -> None:
    """Whatever a backend says, in whatever class of ours it ends: not in the text, its repr, its pickle, nor the log."""
    caplog.set_level(logging.DEBUG)
    kinds = {kind for kind in all_errors() if kind.__module__ == errors.__name__}
    assert len(kinds) >= 15
    makers: list[Any] = [
        *[maker.values[0] for maker in THROTTLED],
        lambda: s3_error("AccessDenied", 403),
        lambda: FileNotFoundError(SECRET),
        lambda: FileExistsError(SECRET),
        lambda: ValueError(f"https://user:{SECRET}@host"),
    ]
    for make in makers:
        store = store_of(Failing(make, times=1 << 30))
        calls: list[Callable[[], object]] = [
            lambda store=store: store.get("a"),  # type: ignore[misc]
            lambda store=store: store.put("a", b""),  # type: ignore[misc]
            lambda store=store: store.put_if_absent("a", b""),  # type: ignore[misc]
            lambda store=store: [*store.list("")],  # type: ignore[misc]
        ]
        for call in calls:
            try:
                call()
            except LanceError as error:
                shown = f"{error} {error!r} {vars(error)} {pickle.dumps(error)!r} {error.__cause__!r}"
                assert SECRET not in shown, shown
        assert SECRET not in repr(store)
        assert SECRET not in store.uri
    assert SECRET not in caplog.text


def test_every_error_survives_a_pickle() -> None:
    """They travel from Spark's executors; what they are made of is kept, so a redacted text stays one."""
    for kind in all_errors():
        if kind.__module__ != errors.__name__:
            continue
        error = kind("what happened", uri="s3://b/t")
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (kind, str(error))
