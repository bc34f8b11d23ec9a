"""The staged lane in requests, as the repository's own server counts them: they do not depend on the machine."""

from __future__ import annotations

import pytest

from bench.object_client import object_server
from bench.staged_lane import Lane
from lance_core.commit.bulk import delete_landed
from lance_core.errors import StoreError
from lance_core.io.abilities import DeletesMany
from lance_core.io.memory import MemoryStore


@pytest.mark.parametrize(("count", "requests"), [(1, 12), (30, 12 + 29 * 4)])
def test_requests_of_a_commit(count: int, requests: int) -> None:
    with object_server() as server:
        lane = Lane(server)
        refs = lane.stage(count)
        seen = lane.watch(lambda: lane.commit(refs), latency_ms=0)
    assert seen.requests <= requests, str(seen)
    assert seen.operations["DELETE"] == 0, str(seen)


class _Wide(MemoryStore, DeletesMany):
    """Removes many objects in one request, which the store may refuse."""

    is_wide = True
    refuses = False

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.removed: list[str] = []
        self.num_requests = 0

    def delete_many(self, paths: object) -> None:
        self.num_requests += 1
        wanted = [*paths]  # type: ignore[call-overload]
        if self.refuses and len(wanted) > 3:
            raise StoreError("one of them was refused")
        for path in wanted:
            self.delete(path)
            self.removed.append(path)


@pytest.mark.parametrize("refuses", [False, True])
def test_what_a_landing_leaves_goes_at_once_and_files_first_where_that_is_refused(refuses: bool) -> None:
    store = _Wide(f"delete-landed-{refuses}")
    files, groups, last = ["data/a", "data/b"], [["r/1", "r/1.fence"], ["r/2", "r/2.fence"]], ["claim"]
    for path in (*files, *groups[0], *groups[1], *last):
        store.put(path, b"x")
    store.refuses = refuses
    delete_landed(store, files, groups, last=last)
    assert sorted(store.removed) == sorted([*files, *groups[0], *groups[1], *last])
    assert not [*store.list("")]
    if refuses:
        order = store.removed.index
        assert max(map(order, files)) < min(map(order, (*groups[0], *groups[1]))) < order("claim")
        assert all(order(group[0]) < order(group[1]) for group in groups)
    else:
        assert store.num_requests == 1
