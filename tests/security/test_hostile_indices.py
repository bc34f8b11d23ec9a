"""Forged indices: a share of what `make hostile` does with them, and graphs of many levels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.errors import CorruptFileError
from lance_core.index.base import IndexFolder, read_all
from lance_core.index.checksums import FileSums, decode_sums, encode_sums
from lance_core.index.scalar import bloom
from lance_core.index.vector import files, graph
from lance_core.index.vector.quantizers.rabit import LEVELS, SIGNS
from lance_core.io.resolve import resolve_store

ROOM = Path(__file__).with_name("hostile_indices.py")


def _run(count: int, seed: int, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOM), "--count", str(count), "--seed", str(seed)],
        capture_output=True, text=True, timeout=300 + 30 * count, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_share_of_forged_indices() -> None:
    _run(42, 0)


@pytest.mark.parametrize("text", [b"0.0005w", b"", b"nan", b"-1", b"0", b"1e9", b"inf"])
def test_the_probability_of_a_bloom_filter_is_a_number(text: bytes) -> None:
    metadata = {"bloomfilter_probability": text}
    opened: Any = SimpleNamespace(path="bloomfilter.lance", schema=SimpleNamespace(metadata=metadata))
    with pytest.raises(CorruptFileError, match="bloomfilter_probability"):
        bloom._probability(opened)
    metadata["bloomfilter_probability"] = b"0.00057"
    assert bloom._probability(opened) == 0.00057


def test_codes_without_a_column_are_a_typed_error() -> None:
    names = [SIGNS, LEVELS, "__add_factors_ex"]
    opened: Any = SimpleNamespace(path="auxiliary.idx", schema=SimpleNamespace(top_level=[SimpleNamespace(name=names[0])]))
    with pytest.raises(CorruptFileError, match=f"but not {LEVELS}, __add_factors_ex"):
        files._require_columns(opened, names)
    files._require_columns(opened, names[:1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 4000, 1000))
def test_forged_indices_end_in_an_answer_or_a_typed_error(seed: int) -> None:
    _run(1000, seed, LANCE_KERNELS_CHECKED="1")


@pytest.mark.parametrize("levels", [65, 10_000])
def test_a_graph_of_many_levels_is_refused_before_they_are_laid_out(levels: int) -> None:
    # Places of each row on each level: 10,000 levels over as many rows would be 400 MB out of a file of constants.
    rows = levels
    told = {"level_offsets": [0, *range(rows, rows + levels)], "entry_point": 0}
    schema = schema_from_arrow(graph.SCHEMA)
    opened: Any = SimpleNamespace(path="index.idx", schema=schema, read=lambda **_: pytest.fail("nothing was read"))
    with pytest.raises(CorruptFileError, match="levels have nodes"):
        graph.read(opened, 0, rows + levels - 1, told, num_rows=rows)


def test_a_graph_without_a_column_is_a_typed_error() -> None:
    for name in graph.SCHEMA.names:
        schema = schema_from_arrow(graph.SCHEMA.remove(graph.SCHEMA.get_field_index(name)))
        opened: Any = SimpleNamespace(path="index.idx", schema=schema)
        with pytest.raises(CorruptFileError, match=name):
            graph.read(opened, 0, 1, {"level_offsets": [0, 1], "entry_point": 0}, num_rows=1)


@pytest.mark.parametrize("what", ["numbers", "texts"])
def test_a_small_file_of_constants_does_not_become_large(tmp_path: Path, what: str) -> None:
    folder = IndexFolder(resolve_store(str(tmp_path)), "x")
    one, times = (pa.array(np.zeros(1 << 18, np.uint64)), 8) if what == "numbers" else (pa.array(["x" * 1000] * 16384), 8)
    batch = pa.record_batch([one], names=["value"])
    folder.write("a.lance", (batch for _ in range(times)), batch.schema)
    assert (tmp_path / "x" / "a.lance").stat().st_size < 100_000 < times * batch.nbytes / 40
    before = pa.total_allocated_bytes()
    peak = pa.default_memory_pool().max_memory()
    with pytest.raises(CorruptFileError, match="claims"):
        read_all(folder.open("a.lance"), ["value"])
    assert pa.default_memory_pool().max_memory() <= max(peak, before + (200 << 20))


def test_the_files_of_every_good_index_are_within_the_limits(tmp_path: Path) -> None:
    folder = IndexFolder(resolve_store(str(tmp_path)), "x")
    rows = 1 << 21  # ids that follow each other are what packs best
    batches = (
        pa.record_batch([pa.array(range(n, n + (1 << 18)), pa.uint64())], names=["id"]) for n in range(0, rows, 1 << 18)
    )
    folder.write("ids.lance", batches, pa.schema([("id", pa.uint64())]))
    assert read_all(folder.open("ids.lance"), ["id"]).num_rows == rows


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"chunk": 0, "files": {"a": [8, ""]}}', '{"chunk": "x", "files": {}}', '{"chunk": 8, "files": {"a": 7}}',
     '{"chunk": 8, "files": {"a": [-8, ""]}}', '{"chunk": 8, "files": {"a": [8, "nothexxx"]}}',
     '{"chunk": 8, "files": {"a": [8, ""]}}', '{"chunk": 1e999, "files": {"a": [8, ""]}}', '{"a":' * 5000],
)  # fmt: skip
def test_forged_checksums_are_a_typed_error(text: str) -> None:
    import zlib

    body = text.encode()
    with pytest.raises(CorruptFileError, match="checksums"):
        decode_sums(b"%08x\n" % zlib.crc32(body) + body, what="_indices/x/checksums")
    assert decode_sums(encode_sums({"a": FileSums(1, (7,))}), what="x").files["a"].sums == (7,)
