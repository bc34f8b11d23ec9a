"""The SQL of lance-spark's documentation, page by page, against this catalog: each statement as a user types it.

What is listed cannot be said here in those words; the same is done by the statements beside it, which run in its place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyspark
import pytest

from lance_core.spark.bridge import EXTENSIONS, catalog_class
from tests.spark.conftest import needs_bridge, new_session

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,  # a hundred statements
    needs_bridge,
]
HAS_CALL = int(pyspark.__version__.split(".")[0]) >= 4

SETUP = """
CREATE NAMESPACE default;
CREATE NAMESPACE db;
CREATE NAMESPACE staging;
CREATE NAMESPACE ns2;
USE lake.default
"""
"""The tables that the pages take for granted; `lance` in their names is this catalog."""

STATEMENTS = """
CREATE NAMESPACE company;
CREATE NAMESPACE company.analytics;
CREATE NAMESPACE IF NOT EXISTS company;
DROP NAMESPACE company.analytics;
DROP NAMESPACE company;
CREATE NAMESPACE company WITH PROPERTIES ('description' = 'Company data namespace');
DESCRIBE NAMESPACE company;
DESCRIBE NAMESPACE EXTENDED company;
SHOW NAMESPACES;
SHOW NAMESPACES IN company;
SHOW NAMESPACES LIKE 'comp*';
DROP NAMESPACE IF EXISTS company;
SHOW TABLES;
SHOW TABLES IN ns2;

CREATE TABLE users (id BIGINT NOT NULL, name STRING, email STRING, created_at TIMESTAMP);
DESCRIBE TABLE users;
DESCRIBE EXTENDED users;
CREATE TABLE events (event_id BIGINT NOT NULL, user_id BIGINT, event_type STRING, tags ARRAY<STRING>,
  metadata STRUCT<source: STRING, version: INT, processed_at: TIMESTAMP>, occurred_at TIMESTAMP);
CREATE TABLE embeddings_table (id INT NOT NULL, text STRING, embeddings ARRAY<FLOAT> NOT NULL) USING lance
  TBLPROPERTIES ('embeddings.arrow.fixed-size-list.size' = '4');
CREATE TABLE embeddings_f16 (id INT NOT NULL, text STRING, embeddings ARRAY<FLOAT> NOT NULL) USING lance
  TBLPROPERTIES ('embeddings.arrow.fixed-size-list.size' = '4', 'embeddings.arrow.float16' = 'true');
CREATE TABLE documents (id INT NOT NULL, title STRING, content BINARY) USING lance;
CREATE TABLE articles (id INT NOT NULL, title STRING, content STRING) USING lance
  TBLPROPERTIES ('content.arrow.large_var_char' = 'true');
CREATE TABLE packed (id BIGINT, payload STRING, ts BIGINT) USING lance
  TBLPROPERTIES ('payload.lance.compression' = 'zstd', 'payload.lance.compression-level' = '3',
                 'ts.lance.compression' = 'none');
CREATE TABLE stable (id BIGINT, name STRING) TBLPROPERTIES ('enable_stable_row_ids' = 'true');

INSERT INTO users VALUES (4, 'David', 'david@example.com', timestamp'2024-01-15 10:30:00'),
  (5, 'Eva', 'eva@example.com', timestamp'2024-01-15 11:45:00');
INSERT INTO users (id, name, email) VALUES (6, 'Frank', 'frank@example.com'), (7, 'Grace', 'grace@example.com');
CREATE TABLE staging.user_signups AS SELECT 8L AS user_id, 'Henry' AS username, 'h@example.com' AS email_address,
  timestamp'2024-02-01 00:00:00' AS signup_date;
INSERT INTO users SELECT user_id as id, username as name, email_address as email, signup_date as created_at
  FROM staging.user_signups WHERE signup_date >= '2024-01-01';
INSERT INTO events VALUES (1001, 123, 'page_view', array('web', 'desktop'),
  struct('web_app', 1, timestamp'2024-01-15 12:00:00'), timestamp'2024-01-15 12:00:00');
INSERT INTO embeddings_table VALUES (10, 'new text', array(0.1, 0.2, 0.3, 0.4));
INSERT INTO embeddings_f16 VALUES (10, 'new text', array(0.5, 0.25, 1.0, 2.0));
INSERT INTO documents VALUES (3, 'Document 3', X'48656C6C6F576F726C64');
INSERT INTO articles VALUES (3, 'Article 3', 'Very long article content...');

SELECT * FROM users;
SELECT id, name, email FROM users;
SELECT * FROM users WHERE id > 5;
SELECT name, COUNT(*) as employee_count FROM users GROUP BY name;
SELECT u.name, p.event_type FROM users u JOIN events p ON u.id = p.user_id;
SELECT * FROM users VERSION AS OF 2;
SELECT id, name FROM users VERSION AS OF 3;

ALTER TABLE users SET TBLPROPERTIES ('team' = 'data-eng', 'env' = 'production');
ALTER TABLE users SET TBLPROPERTIES ('env' = 'staging');
ALTER TABLE users UNSET TBLPROPERTIES ('env');
ALTER TABLE users UNSET TBLPROPERTIES ('team', 'env');
ALTER TABLE users ADD COLUMN age INT;
ALTER TABLE users ADD COLUMNS (height INT, phone STRING);
ALTER TABLE users DROP COLUMN age;
ALTER TABLE users DROP COLUMN IF EXISTS age;
ALTER TABLE users RENAME COLUMN name TO full_name;
ALTER TABLE users RENAME COLUMN full_name TO name;
ALTER TABLE users SET UNENFORCED PRIMARY KEY (id);
ALTER TABLE users ALTER COLUMN id DROP NOT NULL;
ALTER TABLE users DROP COLUMNS (height, phone, created_at);

UPDATE users SET name = 'Updated Name' WHERE id = 4;
UPDATE events SET metadata = named_struct('source', 'ios', 'version', 1, 'processed_at', timestamp'2024-01-15 13:00:00')
  WHERE event_id = 1001;
UPDATE events SET metadata = named_struct('source', metadata.source, 'version', 2, 'processed_at',
  timestamp'2024-01-15 13:00:00') WHERE event_id = 1001;
UPDATE events SET tags = ARRAY('ios', 'mobile') WHERE event_id = 1001;
CREATE TEMPORARY VIEW update_source AS SELECT _rowaddr, _fragid, 'new_value' as name FROM users WHERE id = 5;
DELETE FROM users WHERE id = 4;

CREATE TABLE staging_users AS SELECT 1L AS id, 'Ann' AS name, 'A@x.org' AS email, true AS active;
INSERT OVERWRITE users VALUES (1, 'Alice', 'alice@newdomain.com'), (2, 'Bob', 'bob@newdomain.com');
INSERT OVERWRITE users SELECT id, name, email FROM staging_users;
INSERT OVERWRITE users SELECT id, UPPER(name) as name, LOWER(email) as email FROM staging_users WHERE active = true;
CREATE TABLE lance.db.events AS SELECT id, date'2026-08-01' AS dt, id * 2 AS value FROM range(10);
CREATE TABLE staging_events AS SELECT id, date'2026-08-01' AS dt, 0L AS value FROM range(3);
REPLACE lance.db.events WHERE dt = '2026-08-01'
  AS SELECT id, dt, value FROM staging_events WHERE dt = '2026-08-01';
REPLACE lance.db.events WHERE dt >= '2026-08-01' AND dt < '2026-08-08' AS SELECT id, dt, value FROM staging_events;

CREATE TABLE lance.db.users AS SELECT id, concat('n', id) AS name FROM range(0, 100, 1, 4);
ALTER TABLE lance.db.users CREATE INDEX user_id_idx USING btree (id);
ALTER TABLE lance.db.users CREATE INDEX idx_id_zoned USING btree (id) WITH (zone_size = 2048);
ALTER TABLE lance.db.events CREATE INDEX idx_ts_zm USING zonemap (dt);
ALTER TABLE lance.db.events CREATE INDEX idx_ts_zm USING zonemap (dt) WITH (rows_per_zone = 2048);
SHOW INDEXES FROM lance.db.users;
SHOW INDEX IN lance.db.users;
INSERT INTO lance.db.users VALUES (100, 'new row');
ALTER TABLE lance.db.users REFRESH INDEX user_id_idx;
ALTER TABLE lance.db.users REFRESH INDEX user_id_idx WITH (num_segments = 8);
ALTER TABLE lance.db.users OPTIMIZE INDEX user_id_idx;
ALTER TABLE lance.db.users OPTIMIZE INDEX user_id_idx WITH (num_indices_to_merge = 0, retrain = false);
ALTER TABLE lance.db.users DROP INDEX idx_id_zoned;
OPTIMIZE lance.db.users;
OPTIMIZE lance.db.users WITH (target_rows_per_fragment = 1000000);
OPTIMIZE lance.db.users WITH (target_rows_per_fragment = 1000000, max_rows_per_group = 10000,
  materialize_deletions = TRUE, num_threads = 4);

ALTER TABLE lance.db.users CREATE TAG release_candidate;
ALTER TABLE lance.db.users CREATE TAG IF NOT EXISTS release_candidate_v2 AS OF VERSION 2;
ALTER TABLE lance.db.users CREATE BRANCH experiment_a;
ALTER TABLE lance.db.users CREATE TAG experiment_snapshot AS OF BRANCH experiment_a;
ALTER TABLE lance.db.users CREATE TAG release_copy AS OF TAG release_candidate;
ALTER TABLE lance.db.users CREATE BRANCH IF NOT EXISTS snapshot_v2 AS OF VERSION 2;
ALTER TABLE lance.db.users CREATE BRANCH experiment_b AS OF BRANCH experiment_a;
ALTER TABLE lance.db.users CREATE BRANCH release_fix AS OF TAG release_candidate;
SHOW TAGS FROM lance.db.users;
SHOW BRANCHES FROM lance.db.users;
SHOW BRANCH IN lance.db.users;
ALTER TABLE lance.db.users DROP TAG IF EXISTS release_candidate_v2;
ALTER TABLE lance.db.users DROP BRANCH release_fix;
VACUUM lance.db.users;
VACUUM lance.db.users WITH (before_version = 2);
VACUUM lance.db.users WITH (before_timestamp_millis = 1704067200000);
VACUUM lance.db.users WITH (before_version = 2, delete_unverified = TRUE);

CREATE TABLE items (id INT, title STRING, embedding ARRAY<FLOAT>, vector ARRAY<FLOAT>)
  TBLPROPERTIES ('embedding.arrow.fixed-size-list.size' = '4', 'vector.arrow.fixed-size-list.size' = '3');
INSERT INTO items SELECT id, concat('title ', id), array(id, 1, 2, 3), array(id, 1, 2) FROM range(400);
CREATE TABLE lance.default.documents_of_words (id INT, body STRING, vector ARRAY<FLOAT>, embedding ARRAY<FLOAT>)
  TBLPROPERTIES ('embedding.arrow.fixed-size-list.size' = '4', 'vector.arrow.fixed-size-list.size' = '3');
INSERT INTO documents_of_words SELECT id, concat('a lance vector database ', id), array(id, 1, 2), array(id, 1, 2, 3)
  FROM range(20);
ALTER TABLE lance.default.items CREATE INDEX vec_idx USING ivf_flat (embedding) WITH (num_partitions = 4);
ALTER TABLE lance.default.documents_of_words CREATE INDEX body_fts USING fts (body) WITH (base_tokenizer = 'simple',
  language = 'English', max_token_length = 40, lower_case = true, stem = false, remove_stop_words = false,
  ascii_folding = false, with_position = true);
SELECT id, title, _distance FROM VECTOR_SEARCH(table => 'lance.default.items',
  query_vector => array(0.12, 0.34, 0.56, 0.78), vector_column => 'embedding', num_results => 10, distance_type => 'l2',
  columns => array('id', 'title')) ORDER BY _distance;
SELECT * FROM VECTOR_SEARCH('lance.default.items', array(0.12, 0.34, 0.56), 5);
SELECT query_index, id, _distance FROM VECTOR_SEARCH(table => 'lance.default.items', query_vector => array(
  array(0.12, 0.34, 0.56, 0.78), array(0.90, 0.10, 0.20, 0.30)), vector_column => 'embedding', num_results => 10)
  ORDER BY query_index, _distance;
SELECT id, body, _score FROM SEARCH(table => 'lance.default.documents_of_words', query => 'vector database',
  search_columns => array('body'), columns => array('id', 'body'), limit => 10) ORDER BY _score DESC;
SELECT * FROM SEARCH('lance.default.documents_of_words', 'lance', 5);
SELECT id, body, _distance, _score, _relevance_score FROM HYBRID_SEARCH(table => 'lance.default.documents_of_words',
  query_vector => array(0.12, 0.34, 0.56, 0.78), query => 'vector database', vector_column => 'embedding',
  search_columns => array('body'), columns => array('id', 'body'), num_results => 10, candidates => 50, rrf_k => 60.0)
  ORDER BY _relevance_score DESC;
SELECT * FROM HYBRID_SEARCH('lance.default.documents_of_words', array(0.12, 0.34, 0.56), 'lance', 5);

DELETE FROM users;
DROP TABLE users;
DROP TABLE IF EXISTS users;
DROP NAMESPACE ns2
"""

LISTED = {
    "CREATE NAMESPACE mine WITH PROPERTIES ('owner' = 'data-team')": (
        "Spark itself keeps the word for the user",
        "owner is a reserved",
        ["CREATE NAMESPACE mine WITH PROPERTIES ('team' = 'data-team')"],
    ),
    "DROP NAMESPACE db CASCADE": (
        "nothing that holds tables is dropped by one word",
        "CASCADE",
        ["DROP NAMESPACE IF EXISTS none"],
    ),
    "ALTER TABLE users RENAME TO new_users": (
        "lance-spark renames in a REST catalog only; here a table's name is where it is",
        "renamed",
        ["CREATE TABLE new_users AS SELECT * FROM users"],
    ),
    "ALTER TABLE users ADD COLUMNS name_hash FROM tmp_view": (
        "a column without a type, filled in the same statement: two statements here",
        "two statements",
        [
            "ALTER TABLE users ADD COLUMNS (name_hash INT)",
            "MERGE INTO users t USING (SELECT id, hash(name) AS h FROM users) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name_hash = s.h",
        ],
    ),
    "ALTER TABLE users UPDATE COLUMNS name FROM update_source": (
        "Spark's MERGE cannot match a table by its row addresses",
        "by row addresses",
        ["MERGE INTO users t USING (SELECT 5L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'new_value'"],
    ),
    "CREATE TABLE blobs (id INT, content BINARY) USING lance TBLPROPERTIES ('content.lance.encoding' = 'blob')": (
        "SQL reads a blob as where it is, and has no way to write one",
        "cannot write blobs",
        ["CREATE TABLE blobs (id INT, content BINARY) USING lance"],
    ),
    "ALTER TABLE lance.db.logs CREATE INDEX idx_ts_level USING btree (id, name)": (
        "an index has one column",
        "one column",
        ["ALTER TABLE users CREATE INDEX i_id USING btree (id)", "ALTER TABLE users CREATE INDEX i_n USING btree (name)"],
    ),
    "SELECT id, content__blob_pos, content__blob_size FROM documents": (
        "a blob is read as bytes",
        "content__blob_pos",
        ["SELECT id, octet_length(content) FROM documents"],
    ),
    "SELECT * FROM lance.default.documents_of_words WHERE lance_match(body, 'vector')": (
        "a condition of words is a search",
        "(?i)functions|lance_match",
        ["SELECT * FROM SEARCH('documents_of_words', 'vector', 100)"],
    ),
    "SELECT * FROM users TIMESTAMP AS OF 1705314600000000": (
        "Spark takes a number for seconds, of a year that there is not",
        "(?i)timestamp as of",
        ["SELECT * FROM users TIMESTAMP AS OF timestamp_micros(unix_micros(now()))"],
    ),
}
"""Statement -> why not, what its error says, what does the same."""


@pytest.fixture(scope="module")
def session(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """With the catalog under both names: `lake`, and `lance` as the pages have it; and the statements of our own."""
    made = new_session(spark)
    for name in ("lake", "lance"):
        made.conf.set(f"spark.sql.catalog.{name}", catalog_class())
        made.conf.set(f"spark.sql.catalog.{name}.uri", str(tmp_path_factory.getbasetemp() / "documented"))
    assert EXTENSIONS in made.conf.get("spark.sql.extensions"), "set by `configure`"
    for statement in _split(SETUP):
        made.sql(statement.replace("CREATE NAMESPACE ", "CREATE NAMESPACE lake."))
    return made


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(";\n") if part.strip()]


@pytest.mark.skipif(not HAS_CALL, reason="Spark's SQL has CALL from 4.0 on")
def test_every_statement_of_the_pages(session: Any) -> None:
    ran: dict[str, list[Any]] = {}
    failed: list[str] = []
    for statement in _split(STATEMENTS):
        if statement == "DELETE FROM users":
            failed += _listed(session)
        try:
            ran[statement] = session.sql(statement).collect()
        except Exception as error:
            failed.append(f"{statement}\n{error}")
    assert not failed, "\n\n".join(failed)
    assert len(LISTED) <= (len(ran) + len(LISTED)) / 10
    _check_rows(ran)


def _listed(session: Any) -> list[str]:
    """What is not as it is listed."""
    failed = []
    for statement, (reason, expected, others) in LISTED.items():
        assert reason
        try:
            session.sql(statement).collect()
            failed.append(f"{statement}\nis listed, and works")
        except Exception as error:
            if not re.search(expected, str(error)):
                failed.append(f"{statement}\nexpected {expected!r} in: {error}")
        for other in others:
            try:
                session.sql(other).collect()
            except Exception as error:
                failed.append(f"{other}\n{error}")
    return failed


def _check_rows(ran: dict[str, list[Any]]) -> None:
    """What some of them must answer."""
    found = {statement: rows for statement, rows in ran.items() if statement.startswith(("SELECT", "SHOW"))}
    assert len(found["SELECT * FROM users"]) == 5
    assert [row["id"] for row in found["SELECT * FROM users WHERE id > 5"]] == [6, 7, 8]
    assert len(found["SELECT * FROM users VERSION AS OF 2"]) == 2
    near = next(rows for text, rows in found.items() if "columns => array('id', 'title')" in text)
    assert [row["id"] for row in near][:3] == [0, 1, 2]
    assert [row["_distance"] for row in near] == sorted(row["_distance"] for row in near)
    batch = next(rows for text, rows in found.items() if "query_index" in text)
    assert [row["query_index"] for row in batch] == [0] * 10 + [1] * 10
    words = next(rows for text, rows in found.items() if "_score DESC" in text and "FROM SEARCH" in text)
    assert len(words) == 10
    hybrid = next(rows for text, rows in found.items() if "_relevance_score DESC" in text)
    assert len(hybrid) == 10
    assert {row["name"] for row in found["SHOW TAGS FROM lance.db.users"]} == {
        "release_candidate", "release_candidate_v2", "experiment_snapshot", "release_copy",
    }  # fmt: skip
    (index, _) = sorted(found["SHOW INDEXES FROM lance.db.users"])
    assert (index["index_type"], index["num_unindexed_rows"]) == ("btree", 0)


def test_statements_of_others_are_theirs(session: Any, tmp_path: Path) -> None:
    """Of a catalog that is not ours Spark's parser decides."""
    with pytest.raises(Exception, match=r"(?i)PARSE_SYNTAX_ERROR"):
        session.sql("OPTIMIZE spark_catalog.default.t")
    with pytest.raises(Exception, match=r"(?i)OPTIMIZE has no option"):
        session.sql("OPTIMIZE lake.db.users WITH (speed = 5)")
