"""Pages of 2.0 that we write: read back by us, and inside a file by the official library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

from lance_core.codecs.options import EncodingOptions
from lance_core.errors import InputError
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import ConstantValues, EncodedPage
from lance_core.pages.v20.encode20 import encode_lists, encode_values
from tests.pages.page_columns import COLUMNS
from tests.pages.page_files import to_arrow, write_official
from tests.pages.page_writing import assemble, block_of
from tests.pages.test_page_array20 import VALUES, _read


def _page(array: pa.Array, metadata: dict[str, str]) -> EncodedPage:
    valid = np.asarray(array.is_valid()) if array.null_count else None
    values = ConstantValues(len(array)) if pa.types.is_null(array.type) else block_of(array)
    options = EncodingOptions.parse(metadata, FileVersion.V2_0)
    return encode_values(values, valid, options, is_text=pa.types.is_string(array.type))


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, tmp_path: Path) -> None:
    case = COLUMNS[name]
    array = case.build()
    schema = pa.schema([pa.field("c", array.type, metadata=case.metadata)])
    template = write_official(pa.table([array], schema), tmp_path, "2.0")
    file = assemble(template, [[_page(array, case.metadata)]])
    (column,) = file.columns()
    assert to_arrow(_read(file, column, np.arange(len(array)), array.type), array.type, []).to_pylist() == array.to_pylist()
    if pa.types.is_dictionary(array.type) and array.null_count:
        # The official reader loses nulls of dictionaries in 2.0.
        return
    target = tmp_path / "ours.lance"
    target.write_bytes(file.data)
    assert LanceFileReader(str(target)).read_all().to_table().column(0).to_pylist() == array.to_pylist()


@pytest.mark.parametrize("name", ["list", "list_plain", "list_three", "list_all_empty"])
def test_lists(name: str, tmp_path: Path) -> None:
    array = COLUMNS[name].build()
    valid = np.asarray(array.is_valid()) if array.null_count else None
    template = write_official(pa.table([array], pa.schema([pa.field("c", array.type)])), tmp_path, "2.0")
    options = EncodingOptions(version=FileVersion.V2_0)
    lists = encode_lists(array.offsets.to_numpy(), valid, options)
    items = [_page(array.values, {})] if len(array.values) else []
    file = assemble(template, [[lists], items])
    target = tmp_path / "ours.lance"
    target.write_bytes(file.data)
    assert LanceFileReader(str(target)).read_all().to_table().column(0).to_pylist() == array.to_pylist()


def test_null_lists_must_be_empty() -> None:
    with pytest.raises(InputError):
        encode_lists(np.array([0, 2]), np.array([False]), EncodingOptions(version=FileVersion.V2_0))
