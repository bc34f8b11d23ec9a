"""The staged lane in requests, as the repository's own server counts them: they do not depend on the machine."""

from __future__ import annotations

import pytest

from bench.object_client import object_server
from bench.staged_lane import Lane


@pytest.mark.parametrize(("count", "requests"), [(1, 18), (30, 18 + 29 * 5)])
def test_requests_of_a_commit(count: int, requests: int) -> None:
    with object_server() as server:
        lane = Lane(server)
        refs = lane.stage(count)
        seen = lane.watch(lambda: lane.commit(refs), latency_ms=0)
    assert seen.requests <= requests, str(seen)
    assert seen.operations["DELETE"] == 0, str(seen)
