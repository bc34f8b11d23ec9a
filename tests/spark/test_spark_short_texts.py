"""Short texts that repeat, which the bridge keeps from row to row: no text may be taken for another one."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.spark.conftest import needs_format

pytestmark = [pytest.mark.spark, needs_format]

# Beginnings and endings of each other, bytes of zero, of more than one byte, around 8 and 16 bytes.
FEW = [
    "",
    "\0",
    "a",
    "a\0",
    "a\0\0",
    "ab",
    "abcdefg",
    "abcdefg\0",
    "abcdefgh",
    "abcdefgha",
    "aabcdefgh",
    "é",
    "日本語",
    "日本",
]
LONG = ["x" * 15, "x" * 16, "x" * 17, "x" * 16 + "y", "abcdefgh" * 2, "abcdefgh" * 2 + "\0", "y" * 40]


@pytest.mark.parametrize("seed", range(3))
def test_texts_that_repeat_are_themselves(spark: Any, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    rows = 6_000
    # The second third has other texts than the first; those of the last are all unlike.
    early, late = rng.sample(FEW, 6), [*rng.sample(FEW, 9), *rng.sample(LONG, 3), None]
    texts = [
        *(rng.choice(early) for _ in range(rows // 3)),
        *(rng.choice(late) for _ in range(rows // 3)),
        *(f"{rng.randrange(10**9):b}"[: rng.randrange(20)] for _ in range(rows // 3)),
    ]
    lists = [[rng.choice(late) for _ in range(rng.randrange(3))] for _ in range(rows)]
    table = pa.table({"id": range(rows), "text": texts, "list": lists, "part": [{"text": text} for text in texts[::-1]]})
    lance.write_dataset(table, str(tmp_path / "t.lance"))
    frame = (
        spark.read.format("lance").option("batchSize", str(rng.choice([100, 700, 16_384]))).load(str(tmp_path / "t.lance"))
    )

    found = {row["id"]: row for row in frame.collect()}
    assert [found[number]["text"] for number in range(rows)] == texts
    assert [found[number]["list"] for number in range(rows)] == lists
    assert [found[number]["part"]["text"] for number in range(rows)] == texts[::-1]
    counted = {row["text"]: row["count"] for row in frame.groupBy("text").count().collect()}
    assert counted == Counter(texts)
    inside = {
        row["text"]: row["count"] for row in frame.selectExpr("explode(list) as text").groupBy("text").count().collect()
    }
    assert inside == Counter(text for items in lists for text in items)
