"""Full text indices that are missing or damaged: the same ranking from the rows themselves, or an error when strict."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import lance
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.errors import CorruptFileError, InputError, UnsupportedFeatureError
from lance_core.io.cache import shared_cache
from lance_core.query import DocumentGranularity, MatchQuery, PhraseQuery
from tests.index.text_tables import difference, texts


@pytest.fixture(autouse=True)
def _cold() -> None:
    shared_cache().clear()


@pytest.mark.parametrize("name", ["metadata.lance", "part_0_tokens.lance", "part_0_docs.lance", "part_0_invert.lance"])
def test_missing_files(tmp_path: Path, name: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(300), uri)
    dataset(uri).create_scalar_index("s", "INVERTED", stem=False)
    expected = dataset(uri).to_table(["id"], full_text_query="foxes dog", limit=20)
    for path in (tmp_path / "t.lance" / "_indices").glob(f"*/{name}"):
        path.unlink()
    shared_cache().clear()
    with pytest.warns(RuntimeWarning, match="not used"):
        found = dataset(uri).to_table(["id"], full_text_query={"query": "foxes dog", "columns": ["s"]}, limit=20)
    assert difference(expected, found) is None
    with pytest.raises(CorruptFileError, match="cannot be searched"):
        dataset(uri).to_table(["id"], full_text_query="foxes dog", strict_index=True)


def test_damaged_files_never_crash(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(300), uri)
    dataset(uri).create_scalar_index("s", "INVERTED", with_position=True)
    rng = random.Random(5)
    files = sorted((tmp_path / "t.lance" / "_indices").glob("*/*"))
    whole = {path: path.read_bytes() for path in files}
    for _ in range(60):
        path = rng.choice(files)
        data = bytearray(whole[path])
        if rng.random() < 0.3:
            data = data[: rng.randrange(len(data))]
        else:
            for _ in range(rng.randint(1, 20)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(data))
        shared_cache().clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for words in ("fox dog", '"fox dog"'):
                found = dataset(uri).to_table(["id"], full_text_query={"query": words, "columns": ["s"]})
                assert len(set(found["id"].to_pylist())) == found.num_rows
        path.write_bytes(whole[path])


def test_refusals(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(50), uri)
    table = dataset(uri)
    for query in ("fox", {"query": "fox", "columns": ["id"]}, {"query": "fox", "columns": ["no"]}, 7, {"text": "fox"}):
        with pytest.raises(InputError):
            table.to_table(full_text_query=query)
    table.create_scalar_index("s", "INVERTED")
    with pytest.raises(InputError, match="with_position"):
        table.to_table(full_text_query='"fox dog"')
    with pytest.raises(InputError):
        table.create_scalar_index("s", "INVERTED", language="Klingon")
    with pytest.raises(InputError):
        table.to_table(full_text_query="fox", nearest={"column": "s", "q": [1.0]})


def test_segments_of_executors(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(400), uri, max_rows_per_file=100)
    table = dataset(uri)
    for column, kind in (("s", "INVERTED"), ("id", "BTREE")):
        parts = [table.create_scalar_index(column, kind, fragment_ids=ids) for ids in ([0, 1], [2], [3])]
        assert table.version == lance.dataset(uri).version
        merged = table.merge_existing_index_segments(parts[1:])
        table.commit_existing_index_segments(f"{column}_parts", column, [parts[0], merged])
        with pytest.raises(InputError, match="two segments"):
            table.commit_existing_index_segments("x", column, [parts[0], parts[0]])
    assert table.index_statistics("s_parts")["num_segments"] == 2
    theirs = lance.dataset(uri)
    expected = theirs.to_table(columns=["id", "_score"], full_text_query="fox dog", limit=20)
    assert difference(expected, table.to_table(["id", "_score"], full_text_query="fox dog", limit=20)) is None
    assert "id_parts" in theirs.scanner(filter="id = 7").explain_plan()
    assert table.to_table(["id"], filter="id = 377", strict_index=True)["id"].to_pylist() == [377]


def test_only_rows_are_documents(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(50), uri)
    table = dataset(uri)
    table.create_scalar_index("s", "INVERTED", document_granularity=DocumentGranularity.ROW)
    rows = MatchQuery("fox", "s", document_granularity=DocumentGranularity.ROW)
    assert table.to_table(full_text_query=rows).num_rows == table.to_table(full_text_query=MatchQuery("fox", "s")).num_rows
    for make in (MatchQuery, PhraseQuery):
        with pytest.raises(UnsupportedFeatureError, match="list elements"):
            make("fox", "s", document_granularity=DocumentGranularity.LIST_ELEMENT)
    with pytest.raises(UnsupportedFeatureError, match="list elements"):
        table.create_scalar_index("s", "INVERTED", document_granularity=DocumentGranularity.LIST_ELEMENT)
