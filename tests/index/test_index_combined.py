"""CombinedFieldsQuery: several columns as one text, with the rows and scores of the official library."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import lance.query
import pyarrow as pa
import pytest

import lance_core.query
from lance_core.dataset.handle.open import dataset
from lance_core.errors import InputError
from lance_core.query import CombinedFieldsQuery, FullTextQueryType
from tests.index.text_tables import difference

WORDS = ["apple", "fox", "dog", "zebra", "box", "quick"]
ASKED = ("fox", "fox zebra", "zebra fox fox", "nothing fox", "quick box apple", "")


def texts(count: int, seed: int, first: int = 0) -> pa.Table:
    rng = random.Random(seed)

    def column() -> list[str | None]:
        weights = [8, 4, 2, 1, 1, 1]
        return [
            None if rng.random() < 0.1 else " ".join(rng.choices(WORDS, weights, k=rng.randint(0, 9))) for _ in range(count)
        ]

    return pa.table({"id": range(first, first + count), "s": column(), "t": column()})


def same(uri: str, make: Any, **options: Any) -> int:
    """Both libraries' answers, compared; how many rows."""
    theirs = lance.dataset(uri).to_table(columns=["id", "_score"], full_text_query=make(lance.query), **options)
    ours = dataset(uri).to_table(["id", "_score"], full_text_query=make(lance_core.query), **options)
    assert difference(theirs, ours) is None, difference(theirs, ours)
    return ours.num_rows


def ask_all(uri: str) -> int:
    total = 0
    for text in ASKED:
        for boosts in (None, [3.0, 1.5]):
            for name in ("AND", "OR"):

                def make(q: Any, text: str = text, boosts: Any = boosts, name: str = name) -> Any:
                    return q.CombinedFieldsQuery(text, ["s", "t"], boosts=boosts, operator=q.FullTextOperator(name))

                total += same(uri, make)
    return total


@pytest.mark.parametrize("stable", [False, True])
def test_combined_fields(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(120, 1), uri, max_rows_per_file=50, enable_stable_row_ids=stable)
    dataset(uri).create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False)
    lance.dataset(uri).create_scalar_index("t", "INVERTED", stem=False, remove_stop_words=False, with_position=True)
    assert ask_all(uri) > 500
    lance.dataset(uri).delete("id % 7 = 1")
    lance.write_dataset(texts(30, 2, first=120), uri, mode="append")
    assert ask_all(uri) > 500
    for options in ({"filter": "id < 60", "prefilter": True}, {"filter": "id < 60", "limit": 5}, {"limit": 7}):
        same(uri, lambda q: q.CombinedFieldsQuery("fox zebra", ["s", "t"]), **options)
    same(uri, lambda q: q.BooleanQuery([
        (q.Occur.MUST, q.CombinedFieldsQuery("fox", ["s", "t"])), (q.Occur.SHOULD, q.MatchQuery("box", "s")),
    ]))  # fmt: skip
    dataset(uri).drop_index("t_idx")
    assert ask_all(uri) > 500


def test_refusals_of_combined_fields(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(40, 1), uri)
    table = dataset(uri)
    with pytest.raises(InputError, match="none of the columns"):
        table.to_table(full_text_query=CombinedFieldsQuery("fox", ["s", "t"]))
    table.create_scalar_index("s", "INVERTED")
    table.create_scalar_index("t", "INVERTED", stem=False)
    for call in (table.to_table, lance.dataset(uri).to_table):
        query: Any = CombinedFieldsQuery if call == table.to_table else lance.query.CombinedFieldsQuery
        with pytest.raises((InputError, ValueError)):
            call(full_text_query=query("fox", ["s", "t"]))
    for columns, boosts in (([], None), (["s", "s"], None), (["s", "t"], [1.0]), (["s", "t"], [0.5, 1.0])):
        with pytest.raises(InputError):
            CombinedFieldsQuery("fox", columns, boosts=boosts)
    assert CombinedFieldsQuery("fox", ["s"]).query_type() is FullTextQueryType.COMBINED_FIELDS
