"""Some rows of columns of many full-zip pages: read and decoded together, whatever symbols each page has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError
from lance_core.file import projection
from lance_core.file.open import open_file
from lance_core.kernels import fsst
from lance_core.pages.read import few_values, fullzip
from tests.file.small_pages import opened_small_pages

ROWS = 3_000


def _table() -> pa.Table:
    """Long texts whose letters change from page to page, some of them rare enough to be escaped; vectors."""
    rng = np.random.default_rng(5)
    words = [f"{chr(97 + row // 400)}{row:x} " * 90 + f"é{row}\x00ÿ" * (row % 5 > 3) for row in range(ROWS)]
    nulls = rng.random(ROWS) < 0.1
    texts = pa.array(words, mask=nulls)
    noise = pa.array([rng.bytes(300 + row % 7) for row in range(ROWS)], pa.binary())
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=ROWS * 128)), 128)
    pair = pa.StructArray.from_arrays([texts, pa.array(range(ROWS))], ["text", "n"], mask=pa.array(rng.random(ROWS) < 0.2))
    return pa.table({"text": texts, "full": pa.array(words), "noise": noise, "vector": vectors, "pair": pair})


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pages each read took together."""
    found: list[int] = []
    for module, name in ((fullzip, "read_together"), (few_values, "read_zipped_values")):
        real = getattr(module, name)

        def spy(pages: Any, rows: Any, codecs: Any, real: Any = real) -> Any:
            found.append(len(pages))
            return real(pages, rows, codecs)

        monkeypatch.setattr(module, name, spy)
        if name == "read_zipped_values":
            monkeypatch.setattr("lance_core.pages.group.read_zipped_values", spy)
    return found


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("by", ["arrow", "kernel", "plain"])
def test_rows_of_many_pages(version: str, by: str, joined: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(fsst.decode), "is_worth_loading", lambda self, *_: by == "kernel" and self is fsst.decode)
    if by == "plain":
        monkeypatch.setattr("lance_core.codecs.fsst._MOST", 0)
    table = _table()
    # Files of earlier releases have pages of one width apart, too.
    monkeypatch.setattr("lance_core.file.v2.paged_body.extended_layout", lambda *_: None)
    opened, schema, _ = opened_small_pages(table, version)
    assert min(len(opened.columns([number])[0].pages) for number in range(4)) > 5
    rng = np.random.default_rng(6)
    for count in (2, 9, 60, 65, 200, 700, 1_500):
        rows = rng.choice(ROWS, count, replace=False).tolist()
        taken = opened.take(schema, rows)
        assert pa.Table.from_batches([taken]).equals(table.take(rows).combine_chunks()), count
    assert max(joined) > 5


def test_rows_at_the_edges_of_pages(joined: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    opened, schema, _ = opened_small_pages(table, "2.2")
    starts = [int(page.priority) for page in opened.columns([0])[0].pages]
    rows = sorted({row for start in starts for row in (start - 1, start, start + 1) if 0 <= row < ROWS} | {ROWS - 1})
    for few in (0, 64):
        monkeypatch.setattr(projection, "FEW_ROWS", few)
        assert pa.Table.from_batches([opened.take(schema, rows)]).equals(table.take(rows).combine_chunks())
    assert max(joined) > 5


@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("column", ["text", "full", "noise"])
def test_damage_names_the_column_and_its_pages(few: int, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "FEW_ROWS", few)
    opened, schema, store = opened_small_pages(_table().select([column]), "2.2")
    page = opened.columns([0])[0].pages[1]
    data = bytearray(store.get("data/x.lance"))
    data[page.buffers[1].start : page.buffers[1].end] = b"\xff" * page.buffers[1].size
    store.put("data/x.lance", bytes(data))
    with pytest.raises(CorruptFileError, match=f"column '{column}', page 0-"):
        open_file(store, "data/x.lance").take(schema, [5, int(page.priority) + 2, ROWS - 1])
