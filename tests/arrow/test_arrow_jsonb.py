"""JSON texts to JSONB and back, judged by the bytes the official library stores."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.arrow.jsonb import decode_jsonb, decode_value, encode_jsonb, encode_value
from lance_core.errors import CorruptFileError, InputError
from lance_core.file.open import open_file
from lance_core.io.local.store import LocalStore

TEXTS = [
    "null", "true", "false", "0", "42", "-1", "300", "-300", "70000", "5000000000", "-5000000000", "1.5", "-0.25", "1e300",
    '""', '"text"', '"é\\n\\u0000"', "[]", "{}", '[1,[2,[3]],{"a":null}]', '{"b":1,"a":[true,false],"":{}}',
    '{"z":1,"é":2,"aa":3,"a":4}', "18446744073709551615", "-9223372036854775808",
]  # fmt: skip


def test_bytes_equal_the_official_ones(tmp_path: Path) -> None:
    array = pa.ExtensionArray.from_storage(pa.json_(), pa.array([*TEXTS, None]))
    lance.write_dataset(pa.table({"c": array}), tmp_path)
    (path,) = (tmp_path / "data").glob("*.lance")
    opened = open_file(LocalStore(tmp_path), f"data/{path.name}")
    stored = [bytes(data) for data in stored_values(opened)]
    ours = encode_jsonb(pa.array([*TEXTS, None])).to_pylist()
    assert ours[-1] is None
    assert ours[:-1] == stored[: len(TEXTS)]


def stored_values(opened: Any) -> list[bytes]:
    """The column as the file keeps it: read under a schema that says large_binary."""
    from dataclasses import replace

    schema = opened.schema
    plain = replace(schema.fields[0], logical_type="large_binary", metadata={}, extension_name="")
    return [value or b"" for value in opened.project(replace(schema, fields=(plain,))).table().column(0).to_pylist()]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda items: st.lists(items, max_size=5) | st.dictionaries(st.text(max_size=5), items, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_values_come_back(value: Any) -> None:
    assert decode_value(encode_value(value)) == value


@given(JSON)
def test_texts_come_back(value: Any) -> None:
    text = json.dumps(value)
    assert json.loads(decode_jsonb(encode_jsonb(pa.array([text])))[0].as_py()) == value


@given(st.binary(max_size=60))
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    with contextlib.suppress(CorruptFileError):
        decode_jsonb(pa.array([data], pa.large_binary()))


def test_rows_that_are_no_json_are_named() -> None:
    with pytest.raises(InputError, match="row 1"):
        encode_jsonb(pa.array(["1", "{"]))
