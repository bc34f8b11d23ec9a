"""Full text indices of the official library are compared with their texts in parts: each part judges its own rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrow.to_arrow import value_type_of
from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing.folder import folder_of, training_batches
from lance_core.dataset.indexing.scalar_search import usable_segments
from lance_core.errors import CorruptFileError, LanceError
from lance_core.index.base import ID, VALUE
from lance_core.index.text.inverted import Inverted, require_options
from lance_core.index.text.params import params_of_json
from lance_core.index.text.tokenize import texts_of, tokenizer_of
from lance_core.io.cache import shared_cache
from tests.index.bit_flips import flipped
from tests.index.text_tables import texts

OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "places": {"with_position": True},
    "plain": {"with_position": True, "stem": False, "remove_stop_words": False, "lower_case": False, "ascii_folding": False},
    "ngram": {"base_tokenizer": "ngram", "with_position": True, "max_ngram_length": 4},
    "prefix": {"base_tokenizer": "ngram", "prefix_only": True, "min_ngram_length": 2},
    "raw": {"base_tokenizer": "raw", "max_token_length": None},
    "whitespace": {"base_tokenizer": "whitespace", "max_token_length": 5, "with_position": True},
    "custom": {"custom_stop_words": ["fox", "dog"], "language": "German"},
}
QUICK = ("places", "ngram", "custom")


def build(uri: str, options: dict[str, Any], *, stable: bool = False, seed: int = 0) -> str:
    """Three fragments and then one more, in two partitions; rows deleted, moved, null, empty, and some not covered."""
    rows = texts(400, seed=seed)
    lance.write_dataset(rows.slice(0, 300), uri, max_rows_per_file=100, enable_stable_row_ids=stable)
    lance.dataset(uri).create_scalar_index("s", "INVERTED", **options)
    lance.write_dataset(rows.slice(300, 60), uri, mode="append")
    lance.dataset(uri).optimize.optimize_indices()
    lance.dataset(uri).delete("id % 13 = 5")
    lance.dataset(uri).update({"s": "'otter fox'"}, where="id % 47 = 3")
    lance.write_dataset(rows.slice(360), uri, mode="append")
    return uri


def opened(uri: str) -> tuple[Inverted, list[pa.RecordBatch]]:
    """The segment, opened anew, and the living rows it covers."""
    shared_cache().clear()
    snapshot = dataset(uri).snapshot
    (segment,) = usable_segments(snapshot)["s"]
    manifest = snapshot.manifest
    index = segment.kind.open(
        folder_of(snapshot, segment.index), value_type_of(manifest.schema, manifest.schema.find("s")), ("s",)
    )
    fragments = [fragment for fragment in manifest.fragments if fragment.id in segment.coverage]
    by_id = "_rowid" if manifest.uses_stable_row_ids else "_rowaddr"
    assert isinstance(index, Inverted)
    return index, [*training_batches(snapshot, "s", fragments, by_id)]


def parts(batches: Sequence[pa.RecordBatch], count: int) -> Iterator[list[pa.RecordBatch]]:
    """The same rows in about so many parts of several batches each."""
    table = pa.Table.from_batches(batches)
    step = max(1, -(-table.num_rows // count))
    for first in range(0, table.num_rows, step):
        yield table.slice(first, step).to_batches(max_chunksize=max(1, step // 2))


def agrees(uri: str, count: int) -> bool:
    try:
        index, batches = opened(uri)
        for part in parts(batches, count):
            index.verify_rows(part)
    except (LanceError, pa.ArrowException, ValueError):
        return False
    return True


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in OPTIONS])
def test_whole_indices_agree_in_parts(tmp_path: Path, name: str, stable: bool) -> None:
    uri = build(str(tmp_path / "t.lance"), OPTIONS[name], stable=stable)
    index, batches = opened(uri)
    assert len(index.partitions) == 2
    for count in (1, 3, 40):
        shared_cache().clear()
        for part in parts(batches, count):
            index.verify_rows(part)
    index.verify_rows([])
    index.verify_rows([batches[0], batches[0]])  # a part may come twice


@pytest.mark.parametrize("name", ["places", "default"])
def test_parts_find_what_the_whole_does(tmp_path: Path, name: str) -> None:
    _compare_flips(tmp_path, name, 40)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_parts_find_what_the_whole_does_often(tmp_path: Path, name: str) -> None:
    _compare_flips(tmp_path, name, 300)


def _compare_flips(tmp_path: Path, name: str, count: int) -> None:
    uri = build(str(tmp_path / "t.lance"), OPTIONS[name])
    (segment,) = usable_segments(dataset(uri).snapshot)["s"]
    files = sorted(Path(uri, "_indices", segment.index.uuid).glob("*"))
    rng, found = random.Random(name), 0
    for number in range(count):
        path = files[number % len(files)]
        with flipped(path, rng):
            at_once, in_parts = agrees(uri, 1), agrees(uri, 7)
        assert at_once == in_parts, path.name
        found += not at_once
    assert agrees(uri, 7)
    assert found > count // 4


def _row_of(batches: Sequence[pa.RecordBatch], *, has_tokens: bool) -> tuple[int, str]:
    for batch in batches:
        for value, row in zip(batch.column(VALUE).to_pylist(), batch.column(ID).to_pylist(), strict=True):
            if bool((value or "").strip()) == has_tokens:
                return row, value
    raise AssertionError("no such row")


def _of_row(index: Inverted, row: int) -> tuple[Any, int]:
    part = next(part for part in index.partitions if row in part.ids)
    return part, int(np.flatnonzero(part.ids == row)[0])


def _other_length(index: Inverted, batches: Sequence[pa.RecordBatch]) -> None:
    part, place = _of_row(index, _row_of(batches, has_tokens=True)[0])
    part.lengths = part.lengths.copy()
    part.lengths[place] += 1


def _other_id(index: Inverted, batches: Sequence[pa.RecordBatch]) -> None:
    part, place = _of_row(index, _row_of(batches, has_tokens=True)[0])
    part.ids = part.ids.copy()
    part.ids[place] = 1 << 50


def _twice(index: Inverted, batches: Sequence[pa.RecordBatch]) -> None:
    """A document of a row that is gone takes the id of one that is not."""
    gone = _gone(index, batches)
    gone[0].ids[gone[1]] = _row_of(batches, has_tokens=True)[0]


def _no_tokens(index: Inverted, batches: Sequence[pa.RecordBatch]) -> None:
    """A document of a row that is gone takes the id of a row without tokens."""
    gone = _gone(index, batches)
    gone[0].ids[gone[1]] = _row_of(batches, has_tokens=False)[0]


def _gone(index: Inverted, batches: Sequence[pa.RecordBatch]) -> tuple[Any, int]:
    living = np.concatenate([batch.column(ID).to_numpy() for batch in batches])
    for part in index.partitions:
        gone = np.flatnonzero(~np.isin(part.ids, living))
        if len(gone):
            part.ids = part.ids.copy()
            return part, int(gone[0])
    raise AssertionError("no row is gone")


def _tokens_swapped(index: Inverted, batches: Sequence[pa.RecordBatch]) -> None:
    tokens = index.partitions[0].tokens
    keys = tokens.keys_of_lists()
    keys[[0, 1]] = keys[[1, 0]]
    tokens.keys_of_lists = lambda: keys  # type: ignore[method-assign]


def _never(index: Inverted, batches: Sequence[pa.RecordBatch]) -> None:
    """A list names a document that has the token no times."""
    part = index.partitions[0]
    windows = part.windows

    def changed(*, with_places: bool) -> Iterator[Any]:
        for window in windows(with_places=with_places):
            window.counts[0] = 0
            yield window

    part.windows = changed  # type: ignore[method-assign]


def _places_swapped(index: Inverted, batches: Sequence[pa.RecordBatch]) -> None:
    part = index.partitions[0]
    windows = part.windows

    def changed(*, with_places: bool) -> Iterator[Any]:
        for window in windows(with_places=with_places):
            assert window.places is not None
            first = int(np.flatnonzero(window.counts > 1)[0])
            at = int(window.counts[:first].sum())
            window.places[at : at + 2] = window.places[at : at + 2][::-1].copy()
            yield window

    part.windows = changed  # type: ignore[method-assign]


def _other_place(index: Inverted, batches: Sequence[pa.RecordBatch]) -> None:
    part = index.partitions[0]
    windows = part.windows

    def changed(*, with_places: bool) -> Iterator[Any]:
        for window in windows(with_places=with_places):
            assert window.places is not None
            window.places[-1] += 1
            yield window

    part.windows = changed  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("falsify", "what"),
    [
        (_other_length, "add up"),
        (_other_id, "is missing"),
        (_twice, "contained twice"),
        (_no_tokens, "length of a document"),
        (_tokens_swapped, "the tokens of row"),
        (_never, "no occurrence"),
        (_places_swapped, "out of order"),
        (_other_place, "the tokens of row"),
    ],
)
@pytest.mark.parametrize("count", [1, 5])
def test_what_is_false_is_named(
    tmp_path_factory: pytest.TempPathFactory, falsify: Callable[..., None], what: str, count: int
) -> None:
    index, batches = opened(_shared_table(tmp_path_factory))
    falsify(index, batches)
    with pytest.raises(CorruptFileError, match=what):
        for part in parts(batches, count):
            index.verify_rows(part)


def _shared_table(factory: pytest.TempPathFactory) -> str:
    folder = factory.getbasetemp() / "text_parts"
    uri = str(folder / "t.lance")
    return uri if folder.exists() else build(uri, {"with_position": True})


def test_a_part_is_judged_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A document that is false is found by the part that has its row, and by no other."""
    index, batches = opened(_shared_table(tmp_path_factory))
    _other_id(index, batches)
    told = []
    for part in parts(batches, 6):
        try:
            index.verify_rows(part)
            told.append(True)
        except CorruptFileError:
            told.append(False)
    assert told == [False, *[True] * (len(told) - 1)]


def test_partitions_in_any_order(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Several writers make partitions whose rows do not ascend."""
    index, batches = opened(_shared_table(tmp_path_factory))
    index.partitions = index.partitions[::-1]
    for part in parts(batches, 3):
        index.verify_rows(part)
    _twice(index, batches)
    shared_cache().clear()
    with pytest.raises(CorruptFileError, match="contained twice"):
        index.verify_rows(batches)


def test_options_are_those_of_the_manifest(tmp_path: Path) -> None:
    """An option that no text tells apart would still cut the words of queries otherwise."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"s": ["plain words", "few of them"] * 5}), uri)
    lance.dataset(uri).create_scalar_index("s", "INVERTED")
    index, batches = opened(uri)
    index.verify_rows(batches)
    stored, details = index._stored_params, index._folder.details
    for before, after in {
        b'"ascii_folding":true': b'"ascii_folding":false',
        b'"max_token_length":40': b'"max_token_length":41',
        b'"prefix_only":false': b'"prefix_only":true',
        b'"custom_stop_words"': b'"custom_stop_wordz"',
    }.items():
        changed = stored.replace(before, after)
        assert changed != stored
        with pytest.raises(CorruptFileError):
            require_options(params_of_json(changed, what="t"), changed, details)
        require_options(params_of_json(changed, what="t"), changed, None)


@pytest.mark.parametrize("options", [{"stem": False}, {"base_tokenizer": "whitespace", "stem": False}])
def test_letters_of_all_scripts(tmp_path: Path, options: dict[str, Any]) -> None:
    """Capitals, marks and what makes a word, of Unicode newer than Python's too: one letter apart would refuse an index."""
    points = [*range(0x20, 0xD800), *range(0xF900, 0x11000), *range(0x16E00, 0x17000), *range(0x1D400, 0x1E000)]
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"s": [f"a{chr(point)}b {chr(point)}" for point in points]}), uri)
    lance.dataset(uri).create_scalar_index("s", "INVERTED", **options)
    index, batches = opened(uri)
    index.verify_rows(batches)


def test_texts_of_lists() -> None:
    rows = [["a", "b"], None, [], ["c"], ["", "d"]]
    for kind in (pa.list_(pa.string()), pa.large_list(pa.large_string())):
        assert texts_of(pa.array(rows, kind)).to_pylist() == ["a b", None, "", "c", " d"]
        assert texts_of(pa.array(rows, kind).slice(2, 2)).to_pylist() == ["", "c"]
        assert texts_of(pa.array([["a", None, "b"], None], kind)).to_pylist() == ["a b", None]
    cut = tokenizer_of(params_of_json(b"{}", what="t")).cut_texts(texts_of(pa.array(rows, pa.list_(pa.string()))))
    assert cut.ends.tolist() == [2, 2, 2, 3, 4]
