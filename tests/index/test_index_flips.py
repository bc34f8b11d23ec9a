"""Index files of the official library have no checksums: bits are flipped in them, each answer is compared with a scan."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

from lance_core.dataset.handle.open import dataset
from lance_core.io.cache import shared_cache
from tests.index.bit_flips import ask_flipped
from tests.index.index_tables import CASES, rows

COUNT = 700
WORDS = ("alpha", "gamma ray", "delta42 epsilon", "Beta crème", '"gamma ray"', "nothing")


def ask_filters(questions: list[str]) -> Callable[..., list[list[int]]]:
    def ask(table: Any, **options: Any) -> list[list[int]]:
        return [table.to_table(["x"], filter=where, **options)["x"].to_pylist() for where in questions]

    return ask


def ask_words(table: Any, **options: Any) -> list[Any]:
    options.pop("use_scalar_index", None)
    found = []
    for words in WORDS:
        query = {"query": words, "columns": ["s"]}
        told = table.to_table(["x", "_score"], full_text_query=query, limit=40, **options)
        found.append(sorted(round(score, 4) for score in told["_score"].to_pylist()))
    return found


@dataclass(frozen=True)
class Case:
    """An index of the official library, and what it is asked."""

    column: str
    kind: Any
    ask: Callable[..., Any]
    options: dict[str, Any]


def cases() -> dict[str, Case]:
    found = {}
    for kind, columns in CASES.items():
        for column, questions in columns.items():
            wanted: Any = kind
            if kind == "ZONEMAP":
                wanted = IndexConfig(index_type="zonemap", parameters={"rows_per_zone": 64})
            found[f"{kind}-{column}"] = Case(column, wanted, ask_filters(questions), {})
    for target, questions in {
        "btree": ["json_get_int(j, 'a') = 7", "json_get_int(j, 'a') > 350", "json_get_int(j, 'a') < 0"],
        "bitmap": ["json_get_int(j, 'a') = 7", "json_get_int(j, 'a') > 350", "json_get_int(j, 'a') in (1, 2, 3)"],
    }.items():
        config = IndexConfig(index_type="json", parameters={"path": "a", "target_index_type": target})
        found[f"JSON-{target}"] = Case("j", config, ask_filters(questions), {})
    found["INVERTED-plain"] = Case("s", "INVERTED", ask_words, {"with_position": True, "stem": False})
    found["INVERTED-ngram"] = Case("s", "INVERTED", ask_words, {"with_position": True, "base_tokenizer": "ngram"})
    return found


TABLE = cases()
QUICK = ("BTREE-i", "BTREE-s", "BITMAP-i", "LABEL_LIST-tags", "NGRAM-s", "ZONEMAP-f", "BLOOMFILTER-s", "JSON-btree",
         "INVERTED-plain")  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The table with one index, built once for each case."""
    folder, made = tmp_path_factory.mktemp("flips"), dict[str, str]()
    base = rows(COUNT)
    texts = [None if n is None else json.dumps({"a": n}) for n in base["i"].to_pylist()]
    whole = base.append_column("j", pa.array(texts, pa.json_()))

    def build(name: str) -> str:
        if name not in made:
            case, uri = TABLE[name], str(folder / f"{name}.lance")
            lance.write_dataset(whole, uri, max_rows_per_file=COUNT // 2)
            lance.dataset(uri).create_scalar_index(case.column, case.kind, **case.options)
            lance.dataset(uri).delete("x % 13 = 5")
            made[name] = uri
        return made[name]

    return build


@dataclass
class Tally:
    """What flips did."""

    flips: int = 0
    noticed: int = 0
    wrong: int = 0
    missing: int = 0


def without_files(uri: str, case: Case) -> Any:
    """The answers of a scan."""
    folders = [*Path(uri, "_indices").glob("*")]
    for folder in folders:
        folder.rename(folder.with_suffix(".away"))
    shared_cache().clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = case.ask(dataset(uri))
    for folder in folders:
        folder.with_suffix(".away").rename(folder)
    shared_cache().clear()
    return found


def flip(uri: str, case: Case, count: int, seed: str, unsealed: str = "compare") -> Tally:
    """Flip one bit (or overwrite a byte) of one file at a time and ask everything; files are put back."""
    rng, tally = random.Random(seed), Tally()
    shared_cache().clear()
    intact = case.ask(dataset(uri), strict_index=True)
    plain = without_files(uri, case)
    # Documents that are gone still count in the scores of a full text index, not in those of a scan.
    assert intact == plain or case.kind == "INVERTED"
    files = sorted(Path(uri, "_indices").glob("*/*"))
    weights = [path.stat().st_size for path in files]
    for number in range(count):
        # Half of the flips anywhere, half in each file in turn: some files are much smaller than others.
        path = rng.choices(files, weights)[0] if number % 2 else files[number // 2 % len(files)]
        found, is_noticed = ask_flipped(
            path, rng, lambda: case.ask(dataset(uri), unsealed_indices=unsealed), bytes_in_five=1
        )
        tally.flips += 1
        tally.noticed += is_noticed
        for mine, theirs, scanned in zip(found, intact, plain, strict=True):
            if mine not in (theirs, scanned):
                tally.wrong += bool({*mine} - {*theirs})
                tally.missing += bool({*theirs} - {*mine}) or len(mine) < len(theirs)
    shared_cache().clear()
    return tally


@pytest.mark.parametrize("name", QUICK)
def test_flipped_bits_are_never_believed(built: Callable[[str], str], name: str) -> None:
    tally = flip(built(name), TABLE[name], 24, name)
    assert (tally.wrong, tally.missing) == (0, 0), tally


@pytest.mark.parametrize("name", [name for name in QUICK if TABLE[name].kind != "INVERTED"])
def test_used_as_they_are_flipped_bits_never_add_a_row(built: Callable[[str], str], name: str) -> None:
    tally = flip(built(name), TABLE[name], 12, f"use {name}", "use")
    assert tally.wrong == 0, tally


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_many_flipped_bits(built: Callable[[str], str], name: str) -> None:
    tally = flip(built(name), TABLE[name], 600, f"many {name}")
    print(name, tally)
    assert (tally.wrong, tally.missing) == (0, 0), tally
