"""How scans use indices: fragments that are not covered, `fast_search`, plans that tell, the readers of Spark's tasks."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.dataset import LanceDataset as Official

from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.dataset.handle.open import dataset


def make(path: Path) -> str:
    uri = str(path)
    table = pa.table({"i": range(400), "k": [n % 7 for n in range(400)]})
    lance.write_dataset(table, uri, max_rows_per_file=100)
    dataset(uri).create_scalar_index("i", "BTREE")
    lance.write_dataset(table, uri, mode="append")
    return uri


def test_fast_search_is_of_what_indices_cover(tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    for where in ("i = 5", "i > 380 and k = 3", "i = 5 or i = 9", "k = 3"):
        for fast in (False, True):
            theirs = lance.dataset(uri).to_table(columns=["i"], filter=where, fast_search=fast)
            found = dataset(uri).to_table(["i"], filter=where, fast_search=fast)
            assert sorted(found["i"].to_pylist()) == sorted(theirs["i"].to_pylist()), (where, fast)


def test_plans_tell(tmp_path: Path) -> None:
    scanner = dataset(make(tmp_path / "t.lance")).scanner(["k"], filter="i = 5 and k = 5")
    plan, told = scanner.explain_plan(), scanner.analyze_plan()
    assert "ScalarIndexQuery: i_idx (BTree) on i, exact, answers for 4 fragments" in plan
    assert "2 rows" in told.splitlines()[-1] and "planned in" in told
    assert "i_idx" not in dataset(str(tmp_path / "t.lance")).scanner(filter="i = 5", use_scalar_index=False).explain_plan()


@pytest.mark.parametrize("verb", ["create_index", "create_scalar_index", "drop_index", "prewarm_index", "index_statistics"])
def test_official_parameters(verb: str) -> None:
    """The same names in the same order, with the same defaults."""
    ours, theirs = (inspect.signature(getattr(kind, verb)).parameters for kind in (LanceDataset, Official))
    for name, parameter in theirs.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        assert name in ours and ours[name].kind is parameter.kind, name
        if name != "document_granularity":  # an enumeration there; rows in both
            assert ours[name].default == parameter.default, name
    assert [name for name in ours if name in theirs] == [name for name in theirs if name in ours]


def test_spark_readers_use_indices(tmp_path: Path) -> None:
    """Fragments that an index rules out are not opened: their files may be gone."""
    pytest.importorskip("pyspark")
    from pyspark.sql.types import LongType, StructField, StructType

    from lance_core.spark.options import parse_options
    from lance_core.spark.python_source import LanceReader

    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"i": [n * 7 % 400 for n in range(400)]}), uri, max_rows_per_file=100)
    dataset(uri).create_scalar_index("i", "BTREE")
    where = 3 * 7  # the fourth row
    for fragment in dataset(uri).get_fragments()[1:]:
        for file in fragment.metadata.files:
            (tmp_path / "t.lance" / "data" / file.path).unlink()
    schema = StructType([StructField("i", LongType())])
    options: dict[str, Any] = {"path": uri, "filter": f"i = {where}", "rowsPerPartition": "100"}
    reader = LanceReader(parse_options(options), schema)
    (only,) = reader.partitions()
    assert [value for batch in reader.read(only) for value in batch["i"].to_pylist()] == [where]
    nothing = LanceReader(parse_options({**options, "filter": "i = 4000"}), schema)
    (kept,) = nothing.partitions()
    assert sum(batch.num_rows for batch in nothing.read(kept)) == 0
