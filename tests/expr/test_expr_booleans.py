"""Booleans of Arrow as bytes of numpy: every offset and length gives what Arrow's own conversion gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import numpy_of, true_of
from lance_core.expr import evaluate, parse_value


def test_slices_at_every_bit() -> None:
    whole = pa.array(np.random.default_rng(2).random(70) < 0.4)
    for start in range(20):
        for length in (0, 1, 7, 8, 9, 33, 50):
            part = whole.slice(start, length)
            assert numpy_of(part, may_copy=True).tolist() == part.to_pylist()
            assert true_of(part).dtype == np.bool_


def test_nulls_count_as_false() -> None:
    values = pa.array([True, None, False, True]).slice(1)
    assert true_of(values).tolist() == [False, False, True]
    assert true_of(pa.array([], pa.bool_())).tolist() == []
    assert true_of(pa.chunked_array([[True], [], [False, None]])).tolist() == [True, False, False]


def test_a_match_left_over_by_an_index_is_a_condition() -> None:
    batch = pa.record_batch({"s": ["a", "b", None]})
    match = parse_value("regexp_match(s, 'a')", batch.schema)
    assert evaluate(match, batch).to_pylist() == [True, False, False]
