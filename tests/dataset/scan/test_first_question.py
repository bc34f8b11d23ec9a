"""The first question of a process to an index: answered without pandas and without the compiler, which cost more than it."""

from __future__ import annotations

import subprocess
import sys

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core

ROWS = 2000
QUESTIONS = {
    "BTREE": "filter='key = 7'",
    "BTREE of strings": "filter=\"name = 'name 7'\"",
    "BITMAP": "filter='small IN (3, 4, 5, 6)'",
    "ZONEMAP": "filter='rising > 1990 AND rising IS NOT NULL'",
    "BLOOMFILTER": "filter='bloom = 7'",
    "LABEL_LIST": "filter=\"array_has_any(tags, ['t3', 't4'])\"",
    "NGRAM": "filter=\"contains(grams, 'word 17')\"",
    "INVERTED": "full_text_query='text 17', limit=5",
    "IVF_FLAT": "nearest={'column': 'flat', 'q': Q, 'k': 5}",
    "IVF_SQ": "nearest={'column': 'sq', 'q': Q, 'k': 5}",
    "IVF_PQ": "nearest={'column': 'pq', 'q': Q, 'k': 5}",
    "IVF_RQ": "nearest={'column': 'rq', 'q': Q, 'k': 5}",
}
ASK = """
import sys
import numpy as np
import lance_core
Q = np.linspace(-1, 1, 16).astype(np.float32)
found = lance_core.dataset(sys.argv[1]).to_table(columns=[], with_row_id=True, strict_index=True, {question})
assert found.num_rows, "nothing found"
assert "pandas" not in sys.modules, "pandas"
assert "numba" not in sys.modules, "numba"
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table with an index of each kind; the official library builds those over values and texts."""
    uri = str(tmp_path_factory.mktemp("first") / "t.lance")
    numbers = range(ROWS)
    flat = pa.array(np.random.default_rng(1).normal(size=ROWS * 16).astype(np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(flat, 16)
    columns = {
        "key": [number * 7 % ROWS for number in numbers], "name": [f"name {number}" for number in numbers],
        "small": [number % 40 for number in numbers], "rising": [*numbers], "bloom": [*numbers],
        "tags": [[f"t{number % 9}"] for number in numbers], "grams": [f"word {number}" for number in numbers],
        "text": [f"some text {number}" for number in numbers],
        **dict.fromkeys(("flat", "sq", "pq", "rq"), vectors),
    }  # fmt: skip
    dataset = lance.write_dataset(pa.table(columns), uri)
    kinds = {"key": "BTREE", "name": "BTREE", "small": "BITMAP", "rising": "ZONEMAP", "bloom": "BLOOMFILTER"}
    for column, kind in {**kinds, "tags": "LABEL_LIST", "grams": "NGRAM", "text": "INVERTED"}.items():
        dataset.create_scalar_index(column, kind)
    for column in ("flat", "sq", "pq", "rq"):
        more: dict[str, int] = {"num_sub_vectors": 4} if column == "pq" else {}
        lance_core.dataset(uri).create_index(column, f"IVF_{column.upper()}", num_partitions=4, **more)
    return uri


@pytest.mark.parametrize("kind", QUESTIONS)
def test_first_questions_import_neither_pandas_nor_numba(kind: str, table: str) -> None:
    code = ASK.replace("{question}", QUESTIONS[kind])
    done = subprocess.run([sys.executable, "-c", code, table], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
