"""Types, nullability and values of columns computed by SQL, as the official library has them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import FilterError, InputError

ROWS = pa.table(
    {
        "i8": pa.array([1, None], pa.int8()),
        "i32": pa.array([1, None], pa.int32()),
        "i64": pa.array([1, 2], pa.int64()),
        "u8": pa.array([1, 2], pa.uint8()),
        "u64": pa.array([1, 2], pa.uint64()),
        "f": pa.array([1.0, None], pa.float32()),
        "d": pa.array([1.0, 2.0]),
        "s": pa.array(["a", None]),
        "ls": pa.array(["a", "b"], pa.large_string()),
        "b": pa.array([True, None]),
        "dt": pa.array([1, 2], pa.date32()),
        "dec": pa.array([1, None], pa.decimal128(10, 2)),
        "l": pa.array([[1], None], pa.list_(pa.int32())),
        "nn": pa.array([1, 2], pa.int32()),
        "ns": pa.array(["1", "2"]),
    }
)
ROWS = ROWS.cast(pa.schema([field.with_nullable(field.name not in ("nn", "ns")) for field in ROWS.schema]))
EXPRESSIONS = """
1; 1.5; 'x'; true; 1 + 1; 1 > 0; 'a' || 'b'; i32 IS NULL; i32 IS NOT NULL; i32 > 1; nn > 1; i32 = i64; nn = 1; nn + 1
nn * 2; i32 + 1; i32 * 2; i32 * i32; i8 * 2; i8 + i8; u8 + 1; u8 * i8; u64 + 1; i64 * 2; f * 2; f * 1.5; f + i32; d * 2
i32 / 2; i32 % 2; i64 / 2; length(s); length(ns); length('abc'); char_length(s); octet_length(s); upper(s); upper(ns)
lower(ls); s || 'x'; ns || 'x'; concat(s, 'x'); concat(ns, 'x'); b AND b; NOT b; nn > 1 AND nn < 3; i32 > 1 AND nn < 3
coalesce(i32, 0); coalesce(i32, i32); coalesce(nn, 0); CAST(i32 AS BIGINT); CAST(nn AS DOUBLE); CAST(nn AS STRING)
CAST('1' AS INT); abs(i32); abs(nn); i32 IN (1, 2); nn IN (1, 2); i32 BETWEEN 1 AND 2; nn BETWEEN 1 AND 2; s LIKE 'a%'
ns LIKE 'a%'; array_length(l); l[1]; array_has(l, 1); starts_with(s, 'a'); regexp_match(s, 'a'); regexp_like(s, 'a')
date_part('year', dt); dec * 2; dec + dec; dec + 1; -i32; -nn; nullif(nn, 1); nullif(i32, 1); b IS TRUE; b IS NOT TRUE
i64 - u64; i32 = 1 OR b; i32 IS DISTINCT FROM 1; f > 1; s = 'a'; nn + i32; nn = i32; ns = s; nn + nn
character_length(ls); left(s, 1); right(ns, -1); strpos(s, 'a'); instr(s, 'z'); replace(s, 'a', 'bc'); replace(s, '', '-')
repeat(s, 3); lpad(s, 4); lpad(s, 4, 'xy'); rpad(s, 3, 'x'); btrim(s, 'a'); ltrim(s, 'a'); rtrim(s, 'b')
split_part(s, 'x', 1); substr_index(s, 'a', -1); initcap(ns); translate(s, 'a', 'b'); levenshtein(s, 'abc'); ascii(s)
chr(i64); bit_length(s); md5(s); sha256(s); digest(s, 'sha512'); encode(s, 'hex'); encode(s, 'base64')
concat_ws('-', s, s); concat(s, s); greatest(i32, 3); greatest(i32, i64); least(i32, nn); least(d, f); nvl2(s, 'a', 'b')
nanvl(d, 1.0); exp(d); ln(d); log(d); log(2, d); log10(d); log2(f); sin(d); cos(d); tan(d); atan(d); atan2(d, d)
tanh(f); cbrt(d); degrees(d); radians(d); signum(d); trunc(d); iszero(d); factorial(i64)
gcd(i64, i64); lcm(i64, i64); to_hex(i64); i32 << 2; i32 << 40; i64 >> 1; i32 << i64; u8 << 1; i8 << 9
"""
ALL = [text.strip() for line in EXPRESSIONS.strip().splitlines() for text in line.split(";")]


def test_columns_computed_by_sql_have_the_official_types(tmp_path: Path) -> None:
    columns = {f"c{number}": text for number, text in enumerate(ALL)}
    for name in ("ours", "theirs"):
        lance.write_dataset(ROWS, tmp_path / name)
    lance_core.dataset(str(tmp_path / "ours")).add_columns(columns)
    lance.dataset(tmp_path / "theirs").add_columns(columns)
    ours, theirs = lance.dataset(tmp_path / "ours"), lance.dataset(tmp_path / "theirs")
    got, expected = ours.to_table(), theirs.to_table()
    wrong = [
        f"{text}: {ours.schema.field(name)} {got.column(name).to_pylist()}, "
        f"expected {theirs.schema.field(name)} {expected.column(name).to_pylist()}"
        for name, text in columns.items()
        if ours.schema.field(name) != theirs.schema.field(name)
        or got.column(name).to_pylist() != expected.column(name).to_pylist()
    ]
    assert not wrong, "\n".join(wrong)
    assert lance_core.dataset(str(tmp_path / "ours")).to_table().equals(got)


def test_a_value_that_its_type_cannot_hold_is_refused(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"i8": pa.array([100], pa.int8())}), tmp_path)
    with pytest.raises(InputError, match="does not fit int8"):
        lance_core.dataset(str(tmp_path)).add_columns({"twice": "i8 * 2"})
    lance_core.dataset(str(tmp_path)).add_columns({"twice": "CAST(i8 AS INT) * 2"})
    assert lance.dataset(tmp_path).to_table().column("twice").to_pylist() == [200]


def test_computed_columns_of_scans_have_the_official_types(tmp_path: Path) -> None:
    """The same without storing them; views, which nothing stores, count as what they are views of."""
    lance.write_dataset(ROWS, tmp_path)
    ours, theirs = lance_core.dataset(str(tmp_path)), lance.dataset(tmp_path)
    wrong = []
    for text in ALL:
        if not any(character.isalpha() for character in text.replace("NOT", "").replace("CAST", "")):
            continue  # the official library scans no rows for constants alone
        try:
            expected = theirs.to_table(columns={"x": text})
        except Exception:
            continue
        got = ours.to_table(columns={"x": text})
        kinds = [str(found.schema.field("x").type).replace("_view", "") for found in (got, expected)]
        if kinds[0] != kinds[1] or got.column("x").to_pylist() != expected.column("x").to_pylist():
            wrong.append(f"{text}: {kinds[0]} {got.column('x').to_pylist()}, {kinds[1]} {expected.column('x').to_pylist()}")
    assert not wrong, "\n".join(wrong)


def test_words_of_statements_name_columns(tmp_path: Path) -> None:
    words = ("inner", "left", "on", "where", "union", "update", "delete", "using", "set", "desc", "create", "for", "values")
    lance.write_dataset(pa.table({word: [1, 2, 3] for word in words}), tmp_path)
    for word in words:
        for text in (f"{word} = 2", f"{word} > 1 AND {word} < 3", f"`{word}` = 2"):
            assert lance.dataset(tmp_path).count_rows(text) == 1
            assert lance_core.dataset(str(tmp_path)).count_rows(text) == 1


@pytest.mark.parametrize("text", ["concat(s, s) = ''", "concat(s, s) = 'aa'", "concat(s, 'x') = 'x'", "s || s IS NULL"])
def test_rows_of_nulls_are_joined_too(tmp_path: Path, text: str) -> None:
    lance.write_dataset(pa.table({"s": ["a", None, "b", None]}), tmp_path)
    rows = lance.dataset(tmp_path).to_table(filter=text, with_row_id=True)
    assert lance_core.dataset(str(tmp_path)).to_table(filter=text, with_row_id=True).equals(rows)


@pytest.mark.parametrize(
    "text",
    ["lower(i32) = 'a'", "chr(-1) = 'a'", "digest(s, 'crc') = x'00'", "encode(s, 'rot13') = 'a'",
     "split_part(s, 'a', 0) = ''", "sin(s) > 0",
     "gcd(d, 1) = 1", "s << 1 = 1", "repeat(s, 100000000) = 'a'", "factorial(100 * i64) = 1"],
)  # fmt: skip
def test_arguments_without_meaning_are_refused(tmp_path: Path, text: str) -> None:
    lance.write_dataset(ROWS, tmp_path)
    with pytest.raises(FilterError):
        lance_core.dataset(str(tmp_path)).count_rows(text)
