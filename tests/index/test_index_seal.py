"""Sealing: indices of the official library get checksums once they were compared with their rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from lance_core.cli.main import cli
from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing import verify as trust
from lance_core.errors import CorruptFileError, InputError
from lance_core.io.cache import shared_cache
from tests.index.bit_flips import ask_flipped
from tests.index.index_tables import rows

Q = np.linspace(-1, 1, 8).astype(np.float32)
QUESTIONS = ("i = 7", "i > 350", "s = 'alpha 0'", "x in (3, 290)")


def make(path: Path) -> str:
    """A table with five indices of the official library."""
    uri = str(path / "t.lance")
    values = np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    table = rows(300).append_column("v", pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 8))
    theirs = lance.write_dataset(table, uri, max_rows_per_file=100)
    for column, kind in (("i", "BTREE"), ("s", "BITMAP"), ("x", "ZONEMAP"), ("f", "BTREE")):
        theirs.create_scalar_index(column, kind)
    theirs.create_scalar_index("s", "INVERTED", name="words", replace=False)
    theirs.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    return uri


def answers(uri: str, **options: Any) -> list[Any]:
    table = dataset(uri)
    found: list[Any] = [table.to_table(["x"], filter=where, **options)["x"].to_pylist() for where in QUESTIONS]
    nearest = {"column": "v", "q": Q, "k": 5, "nprobes": 2, "refine_factor": 40}
    found.append(table.to_table(["x"], nearest=nearest, **options)["x"].to_pylist())
    words = table.to_table(["x", "_score"], full_text_query={"query": "alpha gamma", "columns": ["s"]}, limit=9, **options)
    return [*found, [round(score, 4) for score in words["_score"].to_pylist()]]


def files_of(uri: str) -> set[str]:
    return {str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()}


def test_sealed_indices_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = make(tmp_path)
    shared_cache().clear()
    expected, before = answers(uri, strict_index=True), files_of(uri)
    assert files_of(uri) == before
    table = dataset(uri)
    assert table.check_indices() == 6
    assert len(table.seal_indices(["i_idx", "words"])) == 2 and len(table.seal_indices()) == 4
    assert table.seal_indices() == [] and table.version == lance.dataset(uri).version
    assert len(files_of(uri) - before) == 6
    # The official library drops what the manifest says beside its own words; the files stay.
    lance.dataset(uri).delete("x = 299")
    lance.write_dataset(lance.dataset(uri).to_table().slice(0, 1), uri, mode="append")
    lance.dataset(uri).delete("x = 0")
    monkeypatch.setattr(trust, "MOST_BYTES", 0)
    shared_cache().clear()
    expected = answers(uri, strict_index=True)
    rng, noticed = random.Random(3), 0
    files = sorted(path for path in Path(uri, "_indices").glob("*/*") if path.name != "checksums")
    for number in range(4 * len(files)):
        path = files[number % len(files)]
        found, is_noticed = ask_flipped(path, rng, lambda: answers(uri))
        # Rows that are gone count in the scores of an index, not in those of a scan.
        assert found[:-1] == expected[:-1], path.name
        noticed += is_noticed
    assert noticed > 3 * len(files), (noticed, len(files))
    shared_cache().clear()
    assert answers(uri, strict_index=True) == expected


def test_what_does_not_agree_is_not_sealed(tmp_path: Path) -> None:
    uri = make(tmp_path)
    table = dataset(uri)
    (index,) = (index for index in table.snapshot.manifest.indices if index.name == "i_idx")
    # The rows of an index on another column: every file is whole, and wrong.
    other = next(index for index in table.snapshot.manifest.indices if index.name == "f_idx")
    for name in ("page_data.lance", "page_lookup.lance"):
        source = Path(uri, "_indices", other.uuid, name)
        Path(uri, "_indices", index.uuid, name).write_bytes(source.read_bytes())
    with pytest.raises(CorruptFileError, match="i_idx"):
        table.check_indices()
    with pytest.raises(CorruptFileError, match="i_idx"):
        table.seal_indices(["i_idx"])
    assert not Path(uri, "_indices", index.uuid, "checksums").exists()
    with pytest.raises(InputError):
        table.check_indices(["nothing"])
    result = CliRunner().invoke(cli, ["validate", uri, "--indices"])
    assert result.exit_code == 1 and "i_idx" in f"{result.output} {result.exception}"
    result = CliRunner().invoke(cli, ["seal-indices", uri, "--name", "x_idx", "--name", "words"])
    assert result.exit_code == 0 and "2 index segments sealed" in result.output


def test_strict_compares_at_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = make(tmp_path)
    monkeypatch.setattr(trust, "MOST_ROWS", 0)
    shared_cache().clear()
    assert answers(uri, strict_index=True)[:-2] == answers(uri, use_scalar_index=False)[:-2]
    folder = next(index.uuid for index in dataset(uri).snapshot.manifest.indices if index.name == "i_idx")
    path = Path(uri, "_indices", folder, "page_data.lance")
    values = pa.table(lance.file.LanceFileReader(str(path)).read_all().to_table())
    value = values["values"][150].as_py()
    where = values["values"].to_pylist().index(value)
    ids = values["ids"].to_pylist()
    ids[where], ids[-1] = ids[-1], ids[where]
    swapped = values.set_column(1, "ids", pa.array(ids, pa.uint64()))
    path.unlink()
    with lance.file.LanceFileWriter(str(path), schema=swapped.schema) as writer:
        writer.write_batch(swapped)
    shared_cache().clear()
    with pytest.raises(CorruptFileError, match="cannot be searched"):
        dataset(uri).to_table(["x"], filter=f"i = {value}", strict_index=True)
    with pytest.warns(RuntimeWarning, match="not used"):
        found = dataset(uri).to_table(["x"], filter=f"i = {value}")
    assert found.equals(dataset(uri).to_table(["x"], filter=f"i = {value}", use_scalar_index=False))
