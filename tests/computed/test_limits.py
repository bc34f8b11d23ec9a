"""Budgets, errors of functions, concurrency: what a refresh may use, and what becomes of rows that a function refuses."""

from __future__ import annotations

import importlib.util
import linecache
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.computed.failures import MAX_ROWS, FailedNote, FailedRows, read_failed, write_failed
from lance_core.computed.functions import code_digest
from lance_core.computed.limits import Meter, Pace, SpendingLimits
from lance_core.computed.policies import ErrorPolicy, seconds_before, shown_error
from lance_core.errors import InputError
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.columns import DeclareColumnSpec
from lance_core.maintenance.erasure import Erasure, erase, find_holders
from tests.computed.work import NAME, declare, refresh, write_numbers


class EndpointError(Exception):
    """What a client of an endpoint raises."""

    def __init__(self, status: int) -> None:
        super().__init__("Bearer very-secret")
        self.status_code = status
        self.response = Response(status)


class Response:
    """An answer that asks to be asked again at once."""

    def __init__(self, status: int) -> None:
        self.status_code, self.headers = status, {"Retry-After": "0"}


class ImpatientError(KeyError):
    """Known by the class that it derives from."""

    response = Response(200)


class Work:
    """Doubles numbers, at 2 cents a row; raises what it is told to raise, once for each entry."""

    def __init__(self, *errors: Exception | None, bad: frozenset[int] = frozenset()) -> None:
        self.errors, self.bad = list(errors), bad
        self.given: list[int] = []
        self.calls = 0

    def __call__(self, batch: pa.RecordBatch) -> lance_core.Computed:
        numbers = batch.column("x").to_pylist()
        self.calls += 1
        self.given += numbers
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        if self.bad & {*numbers}:
            raise ValueError(f"numbers {numbers} are a secret")
        return lance_core.Computed([number * 2 for number in numbers], spent={"cents": 2 * len(numbers)})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return write_numbers(tmp_path)


def filled(uri: str) -> int:
    return lance_core.dataset(uri).count_rows("y IS NOT NULL")


def right(uri: str) -> bool:
    rows = lance_core.dataset(uri).to_table().to_pylist()
    return all(row["y"] in (None, 2 * row["x"]) for row in rows)


@pytest.mark.parametrize(("most", "first"), [(1, 1), (6, 6), (10, 10), (13, 13), (20, 20), (100, 20)])
def test_a_budget_of_rows_is_kept_to_the_row_and_the_next_refresh_goes_on(uri: str, most: int, first: int) -> None:
    declare(uri)
    work = Work()
    report = refresh(uri, work, max_rows=most)
    assert (len(work.given), filled(uri), right(uri)) == (first, first, True)
    assert (report.stopped, report.columns["y"].left) == ("rows" if most < 20 else "", 20 - first)
    rounds = 0
    while refresh(uri, work, max_rows=most).stopped:
        rounds += 1
    assert (sorted(work.given), filled(uri), right(uri)) == ([*range(20)], 20, True)
    assert rounds <= 20


def test_a_budget_of_what_a_function_spends_ends_after_the_call_that_reaches_it(uri: str) -> None:
    declare(uri)
    work = Work()
    report = refresh(uri, work, max_spent={"cents": 9})
    assert (report.stopped, report.spent, filled(uri)) == ("cents", {"y": {"cents": 16.0}}, 8)
    assert refresh(uri, work).spent == {"y": {"cents": 24.0}}
    assert sorted(work.given) == [*range(20)]


def test_a_meter_knows_seconds_and_shares_what_is_left() -> None:
    now = [100.0]
    meter = Meter(SpendingLimits(rows=10, seconds=5.0, spent={"usd": 2.0}), clock=lambda: now[0])
    meter.note(rows=4, spent={"usd": 1.0})
    assert (meter.used_up, meter.allowed(9)) == ("", 6)
    assert meter.share(2) == SpendingLimits(3, 5.0, {"usd": 0.5})
    now[0] = 105.0
    assert (meter.used_up, meter.allowed(9)) == ("seconds", 0)


@pytest.mark.parametrize("bad", [{"max_rows": 0}, {"max_seconds": 0.0}, {"max_spent": {"usd": -1}}, {"concurrency": 0},
                                 {"calls_per_second": 0.0}])  # fmt: skip
def test_a_bound_that_is_none_is_refused(uri: str, bad: dict[str, Any]) -> None:
    declare(uri)
    with pytest.raises(InputError):
        refresh(uri, Work(), **bad)


def test_values_of_a_refresh_that_died_behind_its_commit_are_removed(uri: str) -> None:
    declare(uri)
    refresh(uri, Work())
    (note,) = Path(uri, "_lance_core", "columns").glob("*/fresh")
    left = note.parent / "results" / f"{'00' * 16}-{'00' * 8}.values"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"what was computed")
    note.unlink()  # it is written behind the values' removal
    report = refresh(uri, Work())
    assert (report.stale, report.columns["y"].calls, left.exists()) == (0, 0, False)


def test_an_erasure_removes_values_that_wait(uri: str) -> None:
    declare(uri)

    class EndedError(Exception):
        pass

    with pytest.raises(EndedError):
        refresh(uri, Work(None, None, EndedError()))
    waiting = [*Path(uri, "_lance_core", "columns").rglob("results/*.values")]
    assert len(waiting) == 2
    holders = find_holders(uri, "x = 1", options={})
    assert {holder.name for holder in holders} >= {str(path.relative_to(uri)) for path in waiting}
    report = erase(Erasure(uri=uri, predicate="x = 1", delete_unverified=True), options={})
    assert (report["lines"][0]["computed_values_removed"], report["is_gone"]) == (2, True)
    assert [*Path(uri, "_lance_core", "columns").rglob("results/*.values")] == []


def test_a_pace_keeps_calls_apart() -> None:
    now, slept = [0.0], list[float]()
    pace = Pace(4.0, clock=lambda: now[0], sleep=slept.append)
    for _ in range(3):
        pace.wait()
    now[0] = 10.0
    pace.wait()
    assert slept == [0.25, 0.5]


def test_a_call_is_made_again_where_the_policy_says_so(uri: str) -> None:
    declare(uri, on_error={"429": "retry", "5xx": "retry", "LookupError": "retry"}, retries=2, batch_size=20)
    work = Work(EndpointError(429), ImpatientError(), None, EndpointError(503), None)
    report = refresh(uri, work)
    assert (filled(uri), work.calls) == (20, 5)
    assert report.columns["y"].calls == 5
    lance_core.dataset(uri).update({"x": "x + 100"})
    with pytest.raises(EndpointError):
        refresh(uri, Work(EndpointError(429), EndpointError(429), EndpointError(429)))
    assert refresh(uri, Work()).columns["y"].changed == 20


def test_what_is_tried_in_vain_is_remembered_without_halving(uri: str) -> None:
    declare(uri, on_error={"503": "retry", "*": "skip"}, retries=1, batch_size=10)
    work = Work(EndpointError(503), EndpointError(503))
    report = refresh(uri, work)
    assert (report.columns["y"].failed_now, work.calls, filled(uri)) == (10, 3, 10)
    found = lance_core.failed_rows(uri, "y")
    assert found.total == 10
    assert {row.error.split(" at ")[0] for row in found.rows} == {"EndpointError 503"}
    assert "secret" not in repr(found)


def test_failed_rows_are_noted_counted_and_left_or_tried(uri: str) -> None:
    declare(uri, on_error={"ValueError": "skip"})
    bad = frozenset({3, 17})
    report = refresh(uri, Work(bad=bad))
    assert (report.columns["y"].failed_now, filled(uri)) == (2, 18)
    rows = lance_core.failed_rows(uri, "y").rows
    assert sorted(row.row for row in rows) == [3, (1 << 32) + 7]
    assert [row.tries for row in rows] == [1, 1]
    assert "secret" not in repr(rows)
    assert all(row.error.startswith("ValueError at test_limits.py:") for row in rows)

    left = Work()
    report = refresh(uri, left, retry_failed=False)
    assert (left.given, report.columns["y"].left, report.num_versions) == ([], 2, 0)
    assert lance_core.failed_rows(uri, "y").rows == rows

    lance_core.write_dataset(pa.table({"x": [30]}), uri, mode="append")
    refresh(uri, left, retry_failed=False)
    assert left.given == [30]
    refresh(uri, Work(bad=frozenset({17})))
    (row,) = lance_core.failed_rows(uri, "y").rows
    assert (row.row, row.tries) == ((1 << 32) + 7, 2)
    refresh(uri, Work())
    assert lance_core.failed_rows(uri, "y") == FailedRows()
    assert filled(uri) == 21


def test_many_failed_rows_are_few_lines_of_the_log(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    declare(uri, on_error="skip")
    refresh(uri, Work(bad=frozenset(range(20))))
    told = [record.getMessage() for record in caplog.records if record.name == "lance_core.computed.functions"]
    assert len(told) == 11
    assert told[-1] == f"{NAME} failed for 20 rows in all: `lance refresh URI --failed` lists them"


def test_other_exceptions_end_the_refresh(uri: str) -> None:
    declare(uri, on_error={"TimeoutError": "skip"})
    with pytest.raises(ValueError, match="secret"):
        refresh(uri, Work(bad=frozenset({3})))


@pytest.mark.parametrize("bad", ["retry", {"*": "retry"}, {"999": "skip"}, {"ValueError": "ignore"}, 3])
def test_what_is_no_policy_is_refused(uri: str, bad: Any) -> None:
    with pytest.raises(InputError):
        declare(uri, on_error=bad)
    with pytest.raises(InputError, match="retries"):
        declare(uri, retries=-1)


def test_a_policy_goes_by_status_class_and_base() -> None:
    policy = ErrorPolicy({"404": "skip", "4xx": "fail", "OSError": "retry", "*": "skip"})
    assert policy.action(EndpointError(404)) == "skip"
    assert policy.action(EndpointError(400)) == "fail"
    assert policy.action(TimeoutError()) == "retry"
    assert policy.action(KeyError()) == policy.last == "skip"
    error = EndpointError(429)
    error.response.headers["Retry-After"] = "7"
    assert seconds_before(0, error) == 7.0
    assert 0 < seconds_before(3, KeyError()) <= 4.0
    assert shown_error(error) == "EndpointError 429"


def test_calls_at_once_are_at_once_and_give_the_same(uri: str) -> None:
    declare(uri, batch_size=2)
    meeting = threading.Barrier(5, timeout=30)

    class Meets(Work):
        def __call__(self, batch: pa.RecordBatch) -> lance_core.Computed:
            meeting.wait()
            return super().__call__(batch)

    work = Meets()
    report = refresh(uri, work, concurrency=5)
    assert (filled(uri), right(uri), work.calls, report.columns["y"].rows_given) == (20, True, 10, 20)


def test_the_note_of_failed_rows_is_bounded_and_never_in_the_way(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    write_failed(store, "ab" * 8, [FailedNote(number, "00", "E", 1, "now") for number in range(MAX_ROWS + 5)])
    found = read_failed(store, "ab" * 8)
    assert (len(found.rows), found.left_out, found.total) == (MAX_ROWS, 5, MAX_ROWS + 5)
    for text in (b"", b"[]", b'{"format": 9}', b'{"format": 1, "left_out": 0, "rows": [{}]}', b"[" * 100_000):
        store.put(f"_lance_core/columns/{'ab' * 8}/failed", text)
        assert read_failed(store, "ab" * 8) == FailedRows()


def test_code_that_changed_under_a_version_is_told(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                   caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    module = tmp_path / "changing_model.py"
    module.write_text("def work(batch):\n    return batch.column('x')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "changing_model:work"
    lance_core.declare_column(uri, "z", function=name, inputs=["x"], type=pa.int64(), functions=[name])
    assert lance_core.refresh_columns(uri, functions=[name]).code_changed == []
    module.write_text("def work(batch):\n    return batch.column('x')  # as before, or not\n")
    lance_core.write_dataset(pa.table({"x": [99]}), uri, mode="append")
    report = lance_core.refresh_columns(uri, functions=[name])
    assert (report.code_changed, report.stale) == (["z"], 1)
    assert "its version '' did not" in caplog.text


def test_a_job_that_declares_code_that_changed_says_so_once(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module = tmp_path / "declared_model.py"
    module.write_text("def work(batch):\n    return batch.column('x')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = DeclareColumnSpec(uri=uri, column="z", function="declared_model:work", inputs=("x",), data_type="bigint")
    run_job(spec)
    assert "changed" not in caplog.text
    module.write_text("def work(batch):\n    return batch.column('x')  # as before, or not\n")
    for _ in range(2):
        run_job(spec)
    assert caplog.text.count("the code of declared_model:work changed, the version '' of column 'z'") == 1


def test_of_a_file_that_is_no_module_the_functions_own_code_counts(tmp_path: Path) -> None:
    """A DAG file is loaded under a name that is not its own, and changes with every task in it."""

    def digest(text: str, name: str) -> str:
        path = tmp_path / "reviews.py"
        path.write_text(text)
        linecache.checkcache()
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return code_digest(module.words)

    work, other = "def words(batch):\n    return batch\n", "\nLATER = 1\n"
    assert digest(work, "prefixed_1_reviews") == digest(work + other, "prefixed_2_reviews")
    assert digest(work, "prefixed_3_reviews") != digest(work.replace("return", "return  "), "prefixed_4_reviews")
    assert digest(work, "reviews") != digest(work + other, "reviews")


def test_a_dry_run_tells_rows_and_bytes(uri: str) -> None:
    declare(uri, where="x >= 5")
    report = refresh(uri, Work(), dry_run=True)
    counts = report.columns["y"]
    assert (counts.stale, counts.not_wanted, counts.left, report.num_versions) == (20, 5, 20, 0)
    assert 15 * 8 <= counts.bytes_wanted <= 15 * 16


def test_two_refreshes_at_once_and_an_append_between_lose_nothing(uri: str) -> None:
    """Both compute the same rows at the same time; whoever publishes second finds its fragments done and yields."""
    declare(uri, batch_size=10)
    meeting = threading.Barrier(2, timeout=60)

    class Meets(Work):
        def __call__(self, batch: pa.RecordBatch) -> lance_core.Computed:
            if self.calls == 0:
                meeting.wait()
                if self is works[0]:
                    lance_core.write_dataset(pa.table({"x": [50]}), uri, mode="append")
                meeting.wait()
            return super().__call__(batch)

    works = [Meets(), Meets()]
    reports: list[Any] = []
    threads = [
        threading.Thread(target=lambda work=work: reports.append(refresh(uri, work, commit_every=1))) for work in works
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 2
    refresh(uri, Work())
    assert (filled(uri), right(uri), lance_core.dataset(uri).count_rows()) == (21, True, 21)
    assert refresh(uri, Work()).stale == 0
    assert len(works[0].given) + len(works[1].given) <= 2 * 20 + 2
