"""The staged lane in requests, as the repository's own server counts them: they do not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import lance_core
from bench.object_client import RunningServer, object_server
from bench.staged_lane import Lane, rows
from lance_core.errors import StoreError
from lance_core.io.abilities import DeletesMany
from lance_core.io.many import delete_committed
from lance_core.io.memory import MemoryStore
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish import publisher
from lance_core.publish.commit import commit_staged


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


@pytest.mark.parametrize(("count", "requests", "depth"), [(1, 9, 7), (2, 17, 14), (30, 15 + 30 * 3, 14), (100, 215, 14)])
def test_requests_of_a_commit(server: RunningServer, count: int, requests: int, depth: int) -> None:
    lane = Lane(server)
    refs = lane.stage(count)
    seen = lane.watch(lambda: lane.commit(refs), latency_ms=200)
    assert seen.requests <= requests, str(seen)
    # Answers are late enough for those of very many to begin together on a busy machine as well: 12 in a row for 100.
    assert seen.depth <= depth, str(seen)
    assert seen.operations["DELETE"] == 0, str(seen)


def test_the_page_says_what_it_costs(server: RunningServer) -> None:
    """The numbers of requests are just those, and no more follow one another than the page says."""
    page = (Path(__file__).parents[2] / "docs/protocol.md").read_text()
    table = page.split("| what | requests | in a row |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    told = {name: (int(requests), int(depth)) for name, requests, depth in (_cells(line) for line in table)}
    found, lane = {}, Lane(server)
    lane.stage(1)
    found["staging one append"] = lane.watch(lambda: lane.stage(1), latency_ms=0)
    for count, name in ((1, "commit of one"), (100, "commit of 100")):
        lane = Lane(server)
        refs = lane.stage(count)
        found[name] = lane.watch(partial(lane.commit, refs), latency_ms=200)
    found["the same again: 100 committed already"] = lane.watch(partial(lane.commit, refs), latency_ms=200)
    assert {name: seen.requests for name, seen in found.items()} == {name: counts[0] for name, counts in told.items()}
    assert all(seen.depth <= told[name][1] for name, seen in found.items()), {n: str(seen) for n, seen in found.items()}
    limits = {
        "staging one append": 10,
        "commit of one": 9,
        "commit of 100": 215,
        "the same again: 100 committed already": 110,
    }
    assert all(told[name][0] <= most for name, most in limits.items())


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_requests_of_a_commit_by_its_references_and_by_its_identity(server: RunningServer) -> None:
    """The decision has the transaction, so that is not read."""
    lane = Lane(server)
    for given in ("references", "an identity"):
        (ref,) = lane.stage(1)
        spec = CommitSpec.of([ref], uri=lane.uri, storage_options=lane.options)
        asked = spec if given == "references" else replace(spec, references=())
        seen = lane.watch(partial(run_job, asked), latency_ms=0)
        # Who passes identities only has the decisions looked up, segments included.
        assert seen.requests <= 9 + (given != "references"), f"{given}: {seen}"


def test_work_that_was_planned_long_ago_is_listed_first(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version is likely then, and a put in vain costs more than a listing."""
    lane = Lane(server)
    monkeypatch.setattr(publisher, "_FRESH_SECONDS", 0.0)
    (old,) = lane.stage(1)
    seen = lane.watch(lambda: commit_staged(resolve_store(lane.uri, server.options), [old]), latency_ms=0)
    assert seen.requests <= 10, str(seen)
    (old,) = lane.stage(1)
    lance_core.write_dataset(rows(9), lane.uri, mode="append", storage_options=server.options)
    seen = lane.watch(lambda: commit_staged(resolve_store(lane.uri, server.options), [old]), latency_ms=0)
    assert seen.requests <= 16, str(seen)


class _Wide(MemoryStore, DeletesMany):
    """Removes many objects in one request, which the store may refuse."""

    is_wide = True
    refuses = False

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.removed: list[str] = []
        self.num_requests = 0

    def delete_many(self, paths: object) -> None:
        wanted = [*paths]  # type: ignore[call-overload]
        self.num_requests += bool(wanted)
        if self.refuses and len(wanted) > 3:
            raise StoreError("one of them was refused")
        for path in wanted:
            self.delete(path)
            self.removed.append(path)


@pytest.mark.parametrize("refuses", [False, True])
def test_files_of_a_landing_go_first_and_records_at_once_where_that_is_not_refused(refuses: bool) -> None:
    store = _Wide(f"delete-landed-{refuses}")
    files, groups, last = ["data/a", "data/b"], [["r/1", "r/1.fence"], ["r/2", "r/2.fence"]], ["claim"]
    for path in (*files, *groups[0], *groups[1], *last):
        store.put(path, b"x")
    store.refuses = refuses
    delete_committed(store, files, groups, last=last)
    assert sorted(store.removed) == sorted([*files, *groups[0], *groups[1], *last])
    assert not [*store.list("")]
    order = store.removed.index
    assert max(map(order, files)) < min(map(order, (*groups[0], *groups[1]))) < order("claim")
    assert all(order(group[0]) < order(group[1]) for group in groups)
    if not refuses:
        assert store.num_requests == 2
