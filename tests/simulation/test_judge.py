"""What the judge sees is what is there, whatever it has seen before under the same names."""

from __future__ import annotations

import random
import secrets
import uuid

import pyarrow as pa
import pytest

import lance_core
from tests.simulation.determinism import installed
from tests.simulation.judge import Judge
from tests.simulation.stores import URI, world_of
from tests.simulation.world import World


def _without(deleted: int, monkeypatch: pytest.MonkeyPatch) -> World:
    """A table without one of its rows, whose files have the same names whichever row that is."""
    world, names = world_of(), random.Random(7)
    monkeypatch.setattr(secrets, "token_hex", lambda size=16: f"{names.getrandbits(8 * size):0{2 * size}x}")
    monkeypatch.setattr(secrets, "randbits", names.getrandbits)
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=names.getrandbits(128), version=4))
    with installed(world):
        lance_core.write_dataset(pa.table({"id": [0, 1, 2, 3], "value": [0] * 4}), URI).delete(f"id = {deleted}")
    return world


def test_the_same_names_with_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    judge, first, last = Judge(), _without(0, monkeypatch), _without(3, monkeypatch)
    names = [path for path in first.objects if path.startswith(("data/", "_deletions/"))]
    assert len(names) == 2
    assert names == [path for path in last.objects if path.startswith(("data/", "_deletions/"))]
    assert judge.rows(first) == ((1, 0), (2, 0), (3, 0))
    assert judge.rows(last) == ((0, 0), (1, 0), (2, 0))
    assert judge.rows(first) == ((1, 0), (2, 0), (3, 0))
