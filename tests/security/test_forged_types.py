"""Schemas by strangers: what a manifest names as a type ends in a type, or in a typed error, and never in Arrow's C++."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.arrow import schema_to_arrow
from lance_core.arrow.logical import logical_of, parse_logical
from lance_core.errors import CorruptFileError, InputError, LanceError, UnsupportedFeatureError
from lance_core.format.schema import Field, Schema

TOOL = Path(__file__).with_name("forged_types.py")


def _run(count: int, seed: int) -> None:
    command = [sys.executable, str(TOOL), "--count", str(count), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300 + 2 * count, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_share_of_forged_schemas() -> None:
    """The first cases are those that ended the process, or ended untyped, before types had a grammar."""
    _run(80, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 20_000, 2000))
def test_forged_schemas_end_typed(seed: int) -> None:
    _run(2000, seed)


@pytest.mark.parametrize(
    "text",
    ["int64", "timestamp:us:-", "timestamp:ns:Europe/Berlin", "timestamp:ms:+05:30", "decimal:128:20:-2", "decimal:256:76:5",
     "fixed_size_binary:0", "fixed_size_binary:16", "fixed_size_list:float:768", "fixed_size_list:fixed_size_list:float:2:3",
     "fixed_size_list:lance.bfloat16:3", "fixed_size_list:decimal:128:10:2:2", "fixed_size_list:timestamp:us:UTC:2",
     "dict:string:int8:false", "dict:large_binary:uint64:false"],
)  # fmt: skip
def test_the_string_of_a_type_comes_back(text: str) -> None:
    assert logical_of(parse_logical(text), path="c") == text


@pytest.mark.parametrize(
    ("text", "plain"),
    [("timestamp:us", "timestamp:us:-"), ("timestamp:us:", "timestamp:us:-"), ("timestamp:us:+0530", "timestamp:us:+05:30"),
     ("timestamp:us:-08", "timestamp:us:-08:00"), ("dict:string:int8:true", "dict:string:int8:false"),
     ("dict:string:int8:", "dict:string:int8:false")],
)  # fmt: skip
def test_other_spellings_that_the_official_library_opens(text: str, plain: str) -> None:
    assert logical_of(parse_logical(text), path="c") == plain


@pytest.mark.parametrize(
    "text",
    ["interval", "decimal:32:5:1", "tensor:2:3", "timestamp:us:Nowhere/At_All", "dict:struct:int8:false",
     "fixed_size_list:float:2147483647", "fixed_size_binary:2147483647", "fixed_size_list:" * 17 + "float" + ":1" * 17,
     "fixed_size_list:fixed_size_list:float:65536:65536", "fixed_size_list:json:2"],
)  # fmt: skip
def test_well_formed_types_that_this_release_does_not_have(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="column 'c'"):
        parse_logical(text, path="c")


@pytest.mark.parametrize(
    "text",
    ["", " int64", "dict:string:int8:maybe", "dict:string:float:false", "dict:dict:string:int8:false:int8:false",
     "dict:dict:string:int8:false", "fixed_size_list:float:+3", "fixed_size_list:float:03",
     "fixed_size_list:float:\u0663", "decimal:128:03:1", "fixed_size_list:float:" + "9" * 5000,
     "decimal:128:39:0", "decimal:128:38:128", "timestamp:us:a\x00b", "timestamp:day:-", "x" * 70_000],
)  # fmt: skip
def test_damaged_types(text: str) -> None:
    with pytest.raises(CorruptFileError, match="malformed logical type") as caught:
        parse_logical(text, path="c")
    assert len(str(caught.value)) < 500


def test_a_zone_that_does_not_exist_is_not_written() -> None:
    with pytest.raises(InputError, match="no such time zone"):
        logical_of(pa.timestamp("us", "Nowhere/At_All"), path="c")


@pytest.mark.parametrize("size", ["\u00b2", "0", "2147483647"])
def test_lists_of_structs(size: str) -> None:
    text = f"fixed_size_list:struct:{size}"
    with pytest.raises(LanceError):
        schema_to_arrow(Schema((Field(0, "c", -1, text), Field(1, "item", 0, "struct"), Field(2, "x", 1, "int8"))))
