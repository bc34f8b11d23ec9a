"""Tables of texts, and full text queries made at random for both libraries."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

WORDS = [
    "apple", "apples", "applet", "banana", "bandana", "cherry", "cherries", "running", "runner", "the", "of", "crème",
    "Straße", "fox", "foxes", "box", "dog", "fog", "a1", "b2", "42", "quick", "quickly", "zebra",
]  # fmt: skip
MISSPELT = ["nothing", "aple", "bananna", "foks"]


def texts(count: int, *, first: int = 0, seed: int = 0) -> pa.Table:
    """`id` counts up; `s` and `t` are texts of up to 25 words, some null, some empty."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(WORDS) + 1) ** 0.7
    weights /= weights.sum()

    def column() -> list[str | None]:
        lengths = rng.integers(0, 25, count)
        return [None if rng.random() < 0.03 else " ".join(rng.choice(WORDS, size, p=weights)) for size in lengths]

    return pa.table({"id": np.arange(first, first + count), "s": column(), "t": column()})


def words(rng: random.Random, most: int = 3) -> str:
    return " ".join(rng.choices(WORDS + MISSPELT, k=rng.randint(1, most)))


Make = Callable[[Any], Any]


def any_query(rng: random.Random, depth: int = 0) -> Make:
    """A function that makes the same query of either library's classes."""
    kinds = ("match", "match", "fuzzy", "all", "phrase", "multi", "boolean", "boost")
    kind = rng.choice(kinds if depth < 2 else ("match", "phrase", "all"))
    column, text = rng.choice("st"), words(rng)
    if kind == "match":
        boost = rng.choice([1.0, 2.5])
        return lambda q: q.MatchQuery(text, column, boost=boost)
    if kind == "fuzzy":
        more = {"fuzziness": rng.choice([None, 1, 2]), "prefix_length": rng.choice([0, 2])}
        more["max_expansions"] = rng.choice([50, 3])
        operator = rng.choice(["AND", "OR"])
        return lambda q: q.MatchQuery(text, column, operator=q.FullTextOperator(operator), **more)
    if kind == "all":
        return lambda q: q.MatchQuery(text, column, operator=q.FullTextOperator.AND)
    if kind == "phrase":
        # Of three words with slop the official library misses some.
        pair, slop = words(rng, 2), rng.choice([0, 1, 2])
        return (lambda q: q.PhraseQuery(text, column)) if slop == 0 else (lambda q: q.PhraseQuery(pair, column, slop=slop))
    if kind == "multi":
        boosts, operator = rng.choice([None, [1.0, 3.0]]), rng.choice(["AND", "OR"])
        return lambda q: q.MultiMatchQuery(text, ["s", "t"], boosts=boosts, operator=q.FullTextOperator(operator))
    one, other, third = (any_query(rng, depth + 1) for _ in range(3))
    if kind == "boost":
        return lambda q: q.BoostQuery(one(q), other(q), negative_boost=0.2)
    occurs = ["SHOULD" if rng.random() < 0.5 else "MUST", *rng.choices(["MUST", "SHOULD", "MUST_NOT"], k=2)]
    pairs = list(zip(occurs, (one, other, third), strict=True))
    return lambda q: q.BooleanQuery([(q.Occur(occur), make(q)) for occur, make in pairs])


def difference(theirs: pa.Table, ours: pa.Table) -> str | None:
    """What differs between two rankings, scores compared within 1e-4; rows that tie may come in any order."""
    left, right = (dict(zip(table["id"].to_pylist(), table["_score"].to_pylist(), strict=True)) for table in (theirs, ours))
    if theirs.num_rows != ours.num_rows:
        return f"{theirs.num_rows} rows, ours {ours.num_rows}"
    high, low = (sorted(scores.values(), reverse=True) for scores in (left, right))
    if any(abs(one - other) > 1e-4 for one, other in zip(high, low, strict=True)):
        return f"scores {high[:20]}, ours {low[:20]}"
    last = min(high, default=0.0) + 1e-4
    if {row for row, score in left.items() if score > last} != {row for row, score in right.items() if score > last}:
        return "other rows"
    if ours["_score"].to_pylist() != sorted(ours["_score"].to_pylist(), reverse=True):
        return "not in order"
    return None
