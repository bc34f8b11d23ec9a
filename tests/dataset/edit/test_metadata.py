"""Configuration and metadata: what each library writes the other reads, and both say the same."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.errors import InputError


def tables(tmp_path: Path) -> tuple[LanceDataset, lance.LanceDataset]:
    inner = pa.struct([pa.field("x", pa.int64())])
    schema = pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"}), pa.field("s", inner)], metadata={"m": "n"})
    table = pa.table({"a": [1, 2], "s": [{"x": 1}, {"x": 2}]}, schema=schema)
    lance.write_dataset(table, tmp_path / "ours")
    theirs = lance.write_dataset(table, tmp_path / "theirs")
    return lance_core.dataset(tmp_path / "ours"), theirs


STEPS = [
    lambda ds: ds.update_config({"a": "1", "b": "2"}),
    lambda ds: ds.update_config({"a": None, "c": "3"}),
    lambda ds: ds.update_config({}),
    lambda ds: ds.delete_config_keys(["b", "nope"]),
    lambda ds: ds.update_config({"z": "1"}, replace=True),
    lambda ds: ds.update_metadata({"owner": "x", "note": "é"}),
    lambda ds: ds.update_metadata({"owner": None}),
    lambda ds: ds.update_schema_metadata({"q": "1"}),
    lambda ds: ds.replace_schema_metadata({"only": "1"}),
    lambda ds: ds.update_field_metadata({"a": {"x": "y", "k": None}, "s.x": {"u": "v"}}),
    lambda ds: ds.update_field_metadata({"a": {"w": "1"}}, replace=True),
    lambda ds: ds.replace_field_metadata("a", {"new": "1"}),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_step_leaves_both_tables_equal(tmp_path: Path) -> None:
    ours, theirs = tables(tmp_path)
    for step in STEPS:
        assert step(ours) == step(theirs)
        read_back = lance.dataset(tmp_path / "ours")
        assert read_back.version == ours.version == theirs.version
        assert ours.config() == theirs.config() == read_back.config()
        assert ours.metadata == theirs.metadata == read_back.metadata
        assert ours.schema_metadata == theirs.schema_metadata == read_back.schema_metadata
        assert ours.schema.equals(theirs.schema, check_metadata=True)
        assert read_back.schema.equals(theirs.schema, check_metadata=True)
        also = lance_core.dataset(tmp_path / "theirs")
        assert (also.config(), also.metadata, also.schema_metadata) == (ours.config(), ours.metadata, ours.schema_metadata)


def test_wrong_input_changes_nothing(tmp_path: Path) -> None:
    ours, _ = tables(tmp_path)
    with pytest.raises(InputError, match="nope"):
        ours.update_field_metadata({"nope": {"a": "b"}})
    with pytest.raises(InputError, match="strings"):
        ours.update_config({"a": 1})  # type: ignore[dict-item]
    assert ours.latest_version == 1


def test_two_handles_change_different_keys(tmp_path: Path) -> None:
    first, _ = tables(tmp_path)
    second = lance_core.dataset(tmp_path / "ours")
    first.update_config({"a": "1"})
    second.update_config({"b": "2"})
    assert second.config() == {"a": "1", "b": "2"}
