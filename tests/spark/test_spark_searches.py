"""Searches as tables, and statements of Lance's own as Spark's: what the bridge answers, without a JVM.

The official library searches the same table; `test_spark_documented` runs the statements in Spark.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InputError
from lance_core.spark.bridge.catalog import REQUESTS
from lance_core.spark.bridge.procedures import call
from lance_core.spark.bridge.statements import rewrite
from lance_core.spark.options import parse_options
from lance_core.spark.searches import SearchReader, TableSearch
from lance_core.spark.table_reader import FragmentGroup, TableReader
from lance_core.spark.table_writer import TableWriter
from lance_core.spark.types import readable_schema

WORDS = ["lance", "table", "vector", "search", "spark", "index"]


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 vectors with texts, and an index of the texts."""
    numbers = np.random.default_rng(7)
    vectors = numbers.random((300, 8), np.float32)
    texts = [" ".join(numbers.choice(WORDS, 3)) for _ in range(300)]
    table = pa.table(
        {
            "id": pa.array(range(300), pa.int64()),
            "body": texts,
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
        }
    )
    where = str(tmp_path_factory.mktemp("lake") / "items.lance")
    lance.write_dataset(table, where, max_rows_per_file=100)
    lance.dataset(where).create_scalar_index("body", "INVERTED", with_position=True)
    return where


QUERY = [0.5, 0.1, 0.9, 0.3, 0.2, 0.8, 0.4, 0.6]


def _loaded(uri: str, name: str) -> dict[str, Any]:
    catalog = {"uri": str(Path(uri).parent)}
    return dict(REQUESTS["catalog.load"]({"do": "catalog.load", "catalog": catalog, "id": ["items", name]}))


def _rows(uri: str, kind: str, **given: Any) -> pa.Table:
    """By the way that Spark takes: the catalog's answer, then the reader of a task."""
    loaded = _loaded(uri, f"{kind} {json.dumps(given)}")
    options, at = parse_options(loaded["options"]), json.loads(loaded["at"])
    assert options.search is not None
    search = TableSearch.parse(options.search)
    assert search is not None
    target = readable_schema(search.schema(lance.dataset(uri).schema))
    assert [field["name"] for field in json.loads(loaded["schema"])["fields"]] == target.names
    reader = SearchReader(options, search, target, at=(at["place"], at["version"]))
    return pa.Table.from_batches([*reader.read(FragmentGroup(0, 0))], target)


def test_a_vector_search(items: str) -> None:
    theirs = lance.dataset(items).to_table(
        columns=["id", "_distance"], nearest={"column": "vector", "q": QUERY, "k": 7}, filter="id > 50", prefilter=True
    )
    found = _rows(items, "vector_search", query_vector=QUERY, num_results=7, columns=["id"], filter="id > 50")
    assert found.column_names == ["id", "_distance"]
    assert found.column("id").to_pylist() == theirs.column("id").to_pylist()
    assert np.allclose(found.column("_distance").to_numpy(), theirs.column("_distance").to_numpy())
    rest = _rows(items, "vector_search", query_vector=QUERY, k=4, offset=3, filter="id > 50", with_row_id=True)
    assert rest.column("id").to_pylist() == theirs.column("id").to_pylist()[3:]
    assert rest.column_names == ["id", "body", "vector", "_distance", "_rowid"]
    both = _rows(items, "vector_search", query_vector=[QUERY, QUERY[::-1]], limit=3, columns=["id"])
    assert both.column("query_index").to_pylist() == [0, 0, 0, 1, 1, 1]
    near = _rows(items, "vector_search", query_vector=QUERY, upper_bound=0.2, distance_type="l2", columns=["id"])
    assert max(near.column("_distance").to_pylist(), default=0.0) < 0.2


def test_a_text_search(items: str) -> None:
    theirs = lance.dataset(items).to_table(columns=["id", "_score"], full_text_query="vector spark", limit=9)
    found = _rows(items, "text_search", query="vector spark", num_results=9, columns=["id"], search_columns=["body"])
    assert np.allclose(sorted(found.column("_score").to_numpy()), sorted(theirs.column("_score").to_numpy()), rtol=1e-4)
    assert found.column_names == ["id", "_score"]


def test_a_hybrid_search(items: str) -> None:
    near = _rows(items, "vector_search", query_vector=QUERY, num_results=20, columns=["id"]).column("id").to_pylist()
    words = _rows(items, "text_search", query="vector spark", num_results=20, columns=["id"]).column("id").to_pylist()
    found = _rows(
        items, "hybrid_search", query_vector=QUERY, query="vector spark", num_results=6, candidates=20, columns=["id"]
    )
    expected = {
        number: sum(1 / (side.index(number) + 60.0) for side in (near, words) if number in side)
        for number in {*near, *words}
    }
    best = sorted(expected.values(), reverse=True)[:6]
    assert np.allclose(found.column("_relevance_score").to_numpy(), best, rtol=1e-5)
    for row in found.to_pylist():
        assert row["_relevance_score"] == pytest.approx(expected[row["id"]], rel=1e-5)
        assert (row["_distance"] is None) == (row["id"] not in near)
        assert (row["_score"] is None) == (row["id"] not in words)


def test_a_search_that_cannot_be(items: str) -> None:
    with pytest.raises(InputError, match="no argument 'query_vektor'"):
        _rows(items, "vector_search", query_vektor=QUERY)
    with pytest.raises(InputError, match="no column 'nome'"):
        _rows(items, "vector_search", query_vector=QUERY, columns=["nome"])
    with pytest.raises(InputError, match="num_results must be an integer"):
        _rows(items, "vector_search", query_vector=QUERY, num_results="many")
    with pytest.raises(InputError, match="query_vector"):
        _rows(items, "vector_search", num_results=3)
    with pytest.raises(InputError, match="words"):
        _rows(items, "text_search", num_results=3)
    assert _loaded(items, "no_search {}") == {"exists": False}
    options = parse_options({"path": items, "search": 'vector_search {"query_vector": [1]}'})
    with pytest.raises(InputError, match="a search is no table"):
        TableReader(options, ["id"], pa.schema([("id", pa.int64())]))
    with pytest.raises(InputError, match="a search is no table"):
        TableWriter(options, pa.schema([("id", pa.int64())]), overwrite=False)


SAID = {
    "OPTIMIZE lake.db.users;": "CALL <c0>.system.compact(table => <t0>)",
    "OPTIMIZE users WITH (target_rows_per_fragment = 1000, materialize_deletions = FALSE, num_threads = 4)": (
        "CALL <c0>.system.compact(table => <t0>, target_rows_per_fragment => 1000, materialize_deletions_threshold => 1.0D)"
    ),
    "VACUUM users WITH (before_version = 10, delete_unverified = TRUE)": (
        "CALL <c0>.system.cleanup(table => <t0>, before_version => 10, delete_unverified => TRUE)"
    ),
    "ALTER TABLE users CREATE INDEX i USING btree (id)": (
        "CALL <c0>.system.build_index(table => <t0>, column => 'id', index_type => 'BTREE', name => 'i', replace => TRUE)"
    ),
    "ALTER TABLE users CREATE INDEX f USING fts (`a``b`) WITH (language = 'English', stem = false)": (
        "CALL <c0>.system.build_index(table => <t0>, column => 'a`b', index_type => 'INVERTED', name => 'f', "
        "replace => TRUE, parameters => '{\"language\": \"English\", \"stem\": false}')"
    ),
    "ALTER TABLE users DROP INDEX i": "CALL <c0>.system.drop_index(table => <t0>, name => 'i')",
    "ALTER TABLE users OPTIMIZE INDEX i WITH (num_indices_to_merge = 0, retrain = false)": (
        "CALL <c0>.system.optimize_indices(table => <t0>, index_names => array('i'), num_indices_to_merge => 0, "
        "retrain => FALSE)"
    ),
    "alter table users create tag if not exists good as of branch trial version 3": (
        "CALL <c0>.system.tag(table => <t0>, name => 'good', action => 'create', if_absent => TRUE, "
        "from_branch => 'trial', version => 3)"
    ),
    "ALTER TABLE users CREATE BRANCH b AS OF VERSION 5": (
        "CALL <c0>.system.branch(table => <t0>, name => 'b', action => 'create', version => 5)"
    ),
    "SHOW TAG IN lake.db.users": "SELECT DISTINCT name, branch, version, created_at FROM <q0>.tags",
    "REPLACE t WHERE day = 1 AND (a AS b) AS SELECT 1": "INSERT INTO t REPLACE WHERE day = 1 AND (a AS b)  SELECT 1",
    "SELECT * FROM vector_search('lake.t', array(1, -2.5), 5) v, SEARCH(query => 'it''s', table => 'u')": (
        'SELECT * FROM <q0>.`vector_search {"query_vector": [1, -2.5], "num_results": 5}` v, '
        '<q1>.`text_search {"query": "it\'s"}`'
    ),
}  # fmt: skip
OWN = (
    "SELECT search(x) FROM t",
    "SELECT 'OPTIMIZE t' AS x",
    "ALTER TABLE users ADD COLUMNS (age INT, email STRING)",
    "ALTER TABLE users SET TBLPROPERTIES ('a' = 'b')",
    "REPLACE TABLE t AS SELECT 1",
    "SHOW TABLES IN lake",
    "SELECT replace(x, 'a', 'b') FROM t -- FROM SEARCH(x)",
)


@pytest.mark.parametrize("statement", SAID)
def test_what_is_said_instead(statement: str) -> None:
    found = rewrite(statement)
    assert found is not None
    shown = found.sql
    for number in range(len(found.tables)):
        for letter in "cqt":
            shown = shown.replace(f"\0{letter}{number}\0", f"<{letter}{number}>")
    assert shown == SAID[statement]


TEXTS = {
    r"'a\nb'": "a\nb",
    r"r'a\db'": r"a\db",
    r'"it\'s"': "it's",
    "'it''s'": "it's",
    "'-- no comment; nor an end'": "-- no comment; nor an end",
    "1e-5": 1e-5,
    ".5": 0.5,
    "-2.5e+3D": -2500.0,
    "7L": 7,
}


@pytest.mark.parametrize("said", TEXTS)
def test_a_literal_says_what_it_says_to_spark(said: str) -> None:
    found = rewrite(f"SELECT * FROM SEARCH('t', {said}, 5) s -- with a comment")
    assert found is not None
    assert json.loads(found.sql[found.sql.index("{") : found.sql.index("}") + 1])["query"] == TEXTS[said]


def test_names_as_spark_takes_them() -> None:
    found = rewrite("OPTIMIZE lake.2024_q1.`a ``b`;")
    assert found is not None
    assert found.tables == [["lake", "2024_q1", "a `b"]]


@pytest.mark.parametrize("statement", OWN)
def test_what_is_sparks_own(statement: str) -> None:
    assert rewrite(statement) is None


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("OPTIMIZE t WITH (target_rows = 5)", "no option 'target_rows'"),
        ("VACUUM t WITH before_version = 5", r"expected \("),
        ("ALTER TABLE t CREATE INDEX i USING btree (a, b)", "has one column"),
        ("ALTER TABLE t ADD COLUMNS a FROM v", "MERGE INTO"),
        ("ALTER TABLE t UPDATE COLUMNS a FROM v", "MERGE INTO"),
        ("SELECT * FROM VECTOR_SEARCH(table => t)", "expected a literal value"),
        ("SELECT * FROM SEARCH('t', 'words', 5, 6)", "by its name"),
        ("SELECT * FROM SEARCH('t', querry => 'x')", "no argument 'querry'"),
    ],
)
def test_a_statement_that_cannot_be_read(statement: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        rewrite(statement)


def test_tags_branches_and_versions_by_procedures(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    for number in range(4):
        lance.write_dataset(pa.table({"id": [number]}), uri, mode="append" if number else "create")
    call("branch", uri, {}, {"name": "trial", "version": 2, "if_absent": True})
    assert call("branch", uri, {}, {"name": "trial", "if_absent": True}) == [["name", "trial"]]
    lance.write_dataset(pa.table({"id": [9]}), lance.dataset(uri).checkout_version(("trial", None)), mode="append")
    call("tag", uri, {}, {"name": "head", "action": "create", "from_branch": "trial"})
    call("tag", uri, {}, {"name": "copy", "action": "create", "tag": "head"})
    call("tag", uri, {}, {"name": "copy", "action": "create", "if_absent": True})
    for name in ("head", "copy"):
        found: list[Any] = lance.dataset(uri, version=name).to_table()["id"].to_pylist()
        assert sorted(found) == [0, 1, 9]
    call("branch", uri, {}, {"name": "none", "action": "delete", "if_exists": True})
    call("tag", uri, {}, {"name": "head", "action": "delete"})
    call("tag", uri, {}, {"name": "copy", "action": "delete"})
    call("branch", uri, {}, {"name": "trial", "action": "delete"})
    call("cleanup", uri, {}, {"before_version": 3})
    assert [entry["version"] for entry in lance.dataset(uri).versions()] == [3, 4]


PROPERTIES = {
    "v.arrow.fixed-size-list.size": "4",
    "v.arrow.float16": "true",
    "body.arrow.large_var_char": "true",
    "id.lance.compression": "zstd",
    "id.lance.compression-level": "3",
    "team": "shop",
}


def _create(folder: Path, properties: dict[str, str]) -> dict[str, Any]:
    kinds = {"id": "long", "body": "string", "content": "binary"}
    fields: list[dict[str, Any]] = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()
    ]
    vector = {"type": "array", "elementType": "float", "containsNull": True}
    fields.append({"name": "v", "type": vector, "nullable": True, "metadata": {}})
    schema = json.dumps({"type": "struct", "fields": fields})
    request = {"catalog": {"uri": str(folder)}, "id": ["made"], "schema": schema, "properties": properties}
    return dict(REQUESTS["catalog.create"](request))


def test_properties_of_columns(tmp_path: Path) -> None:
    assert _create(tmp_path, PROPERTIES) == {"namespace": True, "exists": False}
    theirs = lance.dataset(str(tmp_path / "made.lance"))
    assert theirs.schema.field("v").type == pa.list_(pa.float16(), 4)
    assert theirs.schema.field("body").type == pa.large_string()
    assert theirs.schema.field("id").metadata[b"lance-encoding:compression"] == b"zstd"
    assert theirs.config() == {"team": "shop"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("id.arrow.fixed-size-list.size", "4"), ("v.arrow.float16", "true"), ("id.lance.compression", "brotli"),
     ("content.lance.encoding", "blob"), ("none.lance.bss", "on"), ("id.lance.rle-threshold", "much")],
)  # fmt: skip
def test_a_property_that_does_not_fit(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(InputError, match=f"property '{name}'"):
        _create(tmp_path, {name: value})
    assert not (tmp_path / "made.lance" / "_versions").exists()
