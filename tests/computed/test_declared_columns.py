"""Columns that are declared: what a refresh computes, what it leaves alone, what is refused, what others do to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import lance_core
from lance_core.computed.unseen import unseen_rows
from lance_core.errors import InputError, LanceError, RetryableConflictError
from lance_core.format.declared import evidence_of
from lance_core.io.local.store import LocalStore
from lance_core.jobs.kinds import spec_from_json
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import CommitSpec

UPPER = "texts.functions:upper"


class Upper:
    """Counts the rows it is given; fails where it is told to."""

    def __init__(self, *, suffix: str = "", fails_for: str = "", ends_after: int = 1 << 30) -> None:
        self.suffix, self.fails_for, self.ends_after = suffix, fails_for, ends_after
        self.given: list[Any] = []

    def __call__(self, batch: pa.RecordBatch, **arguments: Any) -> list[Any]:
        texts = batch.column("s").to_pylist()
        if len(self.given) + len(texts) > self.ends_after:
            raise KeyboardInterrupt
        self.given += texts
        if self.fails_for and self.fails_for in texts:
            raise ValueError("a text that it does not like")
        return [None if text is None else text.upper() + self.suffix for text in texts]

    def taken(self) -> list[Any]:
        given, self.given = self.given, []
        return given


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"x": [1, 2, 3], "s": ["a", None, "c"]}), place)
    return place


def declare_upper(uri: str, **options: Any) -> None:
    lance_core.declare_column(uri, "u", function=UPPER, inputs=["s"], type=pa.string(), **options)


def refresh(uri: str, upper: Upper, **options: Any) -> Any:
    return lance_core.refresh_columns(uri, functions={UPPER: upper}, **options)


def values(uri: str, name: str = "u") -> list[Any]:
    return lance_core.dataset(uri).to_table(columns=[name]).column(0).to_pylist()  # type: ignore[no-any-return]


def append(uri: str, texts: list[Any], first: int = 100) -> None:
    rows = pa.table({"x": pa.array(range(first, first + len(texts)), pa.int64()), "s": pa.array(texts, pa.string())})
    lance_core.write_dataset(rows, uri, mode="append")


def test_sql_is_computed_once_and_a_null_of_it_is_a_value(uri: str) -> None:
    lance_core.declare_column(uri, "u", sql="upper(s)")
    assert values(uri) == [None, None, None]
    first = lance_core.refresh_columns(uri)
    assert values(uri) == ["A", None, "C"]
    assert (first.columns["u"].new, first.num_versions) == (3, 1)
    again = lance_core.refresh_columns(uri)
    assert (again.stale, again.num_versions, again.version) == (0, 0, first.version)


def test_only_what_is_new_or_changed_is_given_to_the_function(uri: str) -> None:
    declare_upper(uri)
    upper = Upper()
    refresh(uri, upper)
    assert upper.taken() == ["a", None, "c"]
    append(uri, ["d", "e"])
    lance_core.dataset(uri).update({"s": "'z'"}, where="x = 1")
    lance_core.dataset(uri).update({"x": "x + 50"}, where="x = 3")
    report = refresh(uri, upper)
    assert sorted(upper.taken()) == ["d", "e", "z"]
    assert (report.columns["u"].new, report.columns["u"].changed) == (2, 1)
    assert sorted(values(uri), key=str) == ["C", "D", "E", None, "Z"]


def test_a_definition_is_what_its_author_says(uri: str) -> None:
    declare_upper(uri, version="1", arguments={"a": 1})
    upper = Upper()
    refresh(uri, upper)
    upper.taken()
    for same in ({}, {"batch_size": 2}, {"on_error": "skip"}):
        declare_upper(uri, version="1", arguments={"a": 1}, **same)
        assert refresh(uri, upper).stale == 0
    for options in ({"version": "2"}, {"version": "2", "model": "m"}, {"version": "2", "model": "m", "arguments": {"a": 2}}):
        declare_upper(uri, **options)
        assert refresh(uri, upper, dry_run=True).stale == 3
        assert upper.taken() == []
        refresh(uri, upper)
        assert upper.taken() == ["a", None, "c"]
    declare_upper(uri, version="1", arguments={"a": 1})
    assert refresh(uri, upper).columns["u"].changed == 3


def test_failed_rows_are_null_remembered_and_tried_again(uri: str) -> None:
    declare_upper(uri, on_error="skip")
    report = refresh(uri, Upper(fails_for="a"))
    assert (report.columns["u"].failed_now, values(uri)) == (1, [None, None, "C"])
    upper = Upper()
    report = refresh(uri, upper)
    assert (upper.given, report.columns["u"].failed, values(uri)) == (["a"], 1, ["A", None, "C"])
    assert refresh(uri, upper).stale == 0


def test_a_failure_ends_the_refresh_unless_the_declaration_says_otherwise(uri: str) -> None:
    declare_upper(uri)
    before = lance_core.dataset(uri).version
    with pytest.raises(ValueError, match="does not like"):
        refresh(uri, Upper(fails_for="c"))
    assert lance_core.dataset(uri).version == before


def test_rows_that_are_not_wanted_are_null_and_fresh(uri: str) -> None:
    declare_upper(uri, where="x > 1")
    upper = Upper()
    report = refresh(uri, upper)
    assert (upper.taken(), report.columns["u"].not_wanted, values(uri)) == ([None, "c"], 1, [None, None, "C"])
    assert refresh(uri, upper).stale == 0
    lance_core.dataset(uri).update({"x": "x + 1"}, where="x = 1")
    refresh(uri, upper)
    assert upper.taken() == ["a"]


def test_a_class_is_made_once_set_up_and_closed(uri: str) -> None:
    told: list[str] = []

    class Model:
        def __init__(self, size: int) -> None:
            told.append(f"made {size}")

        def setup(self) -> None:
            told.append("set up")

        def __call__(self, batch: pa.RecordBatch) -> Any:
            told.append(f"called {batch.num_rows}")
            return pa.array(
                [[float(len(text or ""))] * 2 for text in batch.column("s").to_pylist()], pa.list_(pa.float32(), 2)
            )

        def close(self) -> None:
            told.append("closed")

    append(uri, ["dd"])
    lance_core.declare_column(
        uri, "v", function="m:Model", inputs=["s"], type=pa.list_(pa.float32(), 2), arguments={"size": 7}, batch_size=2
    )
    lance_core.refresh_columns(uri, functions={"m:Model": Model})
    assert told == ["made 7", "set up", "called 2", "called 1", "called 1", "closed"]
    assert values(uri, "v") == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_a_table_does_not_make_functions_run(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lance_core.declare_column(uri, "u", function="os.path:basename", inputs=["s"], type=pa.string())
    with pytest.raises(InputError, match="did not name"):
        lance_core.refresh_columns(uri)
    monkeypatch.setenv("LANCE_ALLOWED_CALLABLES", "our.models:*")
    for functions in (None, ["os.path:basename"]):
        with pytest.raises(InputError, match="not allowed"):
            lance_core.refresh_columns(uri, functions=functions)
    assert lance_core.refresh_columns(uri, dry_run=True).stale == 3


def test_an_expression_gives_the_kind_of_the_column_that_is_there(uri: str) -> None:
    """A text column is not filled with numbers as texts, nor a narrow one with what may not fit it unseen."""
    for column, sql, kind in (("s", "x + 1", None), ("u", "x + 1", pa.string()), ("x", "length(s) * 0.5", None)):
        with pytest.raises(InputError, match="gives") as caught:
            lance_core.declare_column(uri, column, sql=sql, type=kind)
        assert all(
            word in str(caught.value) for word in (sql, "CAST", str(kind or lance.dataset(uri).schema.field(column).type))
        )
    assert lance_core.dataset(uri).version == 1, "a refusal leaves the table as it was"
    lance_core.declare_column(uri, "s", sql="CAST(x + 1 AS STRING)")
    lance_core.declare_column(uri, "n", sql="x + 1", type=pa.int16())
    lance_core.refresh_columns(uri)
    assert (values(uri, "s"), values(uri, "n")) == (["2", "3", "4"], [2, 3, 4])


def test_columns_are_refreshed_after_those_that_they_read(uri: str) -> None:
    lance_core.declare_column(uri, "a", sql="x + 1")
    lance_core.declare_column(uri, "b", sql="a + 1")
    lance_core.refresh_columns(uri)
    assert values(uri, "b") == [3, 4, 5]
    lance_core.dataset(uri).update({"x": "x + 10"}, where="x = 1")
    report = lance_core.refresh_columns(uri)
    assert (report.columns["a"].changed, report.columns["b"].changed) == (1, 1)
    assert sorted(values(uri, "b")) == [4, 5, 13]
    with pytest.raises(InputError, match="read each other"):
        lance_core.declare_column(uri, "a", sql="b + 1")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sql": "nothing + 1"}, "nothing"),
        ({"sql": "random()"}, "another value each time"),
        ({"sql": "now()"}, "another value each time"),
        ({"sql": "x", "function": "a:b"}, "either"),
        ({}, "either"),
        ({"function": "a:b", "inputs": ["x"]}, "type must be given"),
        ({"function": "a:b", "inputs": ["n"], "type": pa.int64()}, "no column 'n'"),
        ({"function": "ab", "inputs": ["x"], "type": pa.int64()}, "module:function"),
        ({"function": "a:b", "type": pa.int64()}, "needs inputs"),
        ({"function": "a:b", "inputs": ["x"], "type": pa.int64(), "arguments": {"a": {1}}}, "JSON"),
        ({"sql": "x", "batch_size": 0}, "at least 1"),
        ({"sql": "x", "where": "nothing > 1"}, "nothing"),
    ],
)
def test_what_cannot_be_declared_leaves_the_table_as_it_was(uri: str, options: dict[str, Any], match: str) -> None:
    with pytest.raises(LanceError, match=match):
        lance_core.declare_column(uri, "u", **options)
    assert lance_core.dataset(uri).version == 1


def test_values_of_declared_columns_are_refused_and_their_inputs_stay(uri: str) -> None:
    lance_core.declare_column(uri, "u", sql="upper(s)")
    table = lance_core.dataset(uri)
    rows = pa.table({"x": [9], "s": ["i"], "u": ["I"]})
    evidence = next(name for name in table.snapshot.arrow_schema.names if name.startswith("_evidence"))
    for refused in (
        lambda: lance_core.write_dataset(rows, uri, mode="append"),
        lambda: table.merge_insert("x").when_matched_update_all().when_not_matched_insert_all().execute(rows),
        lambda: table.update({"u": "'I'"}),
        lambda: table.update({evidence: "x'00'"}),
        lambda: table.drop_columns(["s"]),
        lambda: table.alter_columns({"path": "s", "name": "t"}),
        lambda: table.alter_columns({"path": "s", "data_type": pa.large_string()}),
        lambda: table.alter_columns({"path": "u", "data_type": pa.large_string()}),
    ):
        with pytest.raises(InputError, match="declared"):
            refused()
    assert lance_core.dataset(uri).version == table.version
    table.alter_columns({"path": "u", "name": "v"})
    lance_core.refresh_columns(uri)
    assert values(uri, "v") == ["A", None, "C"]
    lance_core.dataset(uri).drop_columns(["v"])
    assert lance_core.dataset(uri).snapshot.arrow_schema.names == ["x", "s"]
    lance_core.dataset(uri).drop_columns(["s"])


def test_a_declaration_is_taken_back(uri: str) -> None:
    lance_core.declare_column(uri, "u", sql="upper(s)")
    lance_core.refresh_columns(uri)
    lance_core.undeclare_column(uri, "u")
    table = lance_core.dataset(uri)
    assert table.snapshot.arrow_schema.names == ["x", "s", "u"]
    assert table.schema.field("u").metadata in (None, {})
    assert values(uri) == ["A", None, "C"]
    with pytest.raises(InputError, match="not declared"):
        lance_core.undeclare_column(uri, "u")
    with pytest.raises(InputError, match="not declared"):
        lance_core.refresh_columns(uri, ["u"])


def test_an_existing_column_is_taken_over_or_computed_anew(uri: str) -> None:
    lance_core.dataset(uri).add_columns({"u": "upper(s)"})
    upper = Upper()
    declare_upper(uri, trust_existing=True)
    assert refresh(uri, upper).stale == 0
    append(uri, ["d"])
    refresh(uri, upper)
    assert (upper.taken(), values(uri)) == (["d"], ["A", None, "C", "D"])
    lance_core.undeclare_column(uri, "u")
    declare_upper(uri)
    assert refresh(uri, upper).columns["u"].new == 4


def test_a_definition_that_means_the_same_is_taken_over_where_rows_are_fresh(uri: str) -> None:
    """No call; what was stale by the former definition, and what has no value, is stale by the new one."""
    upper = Upper()
    declare_upper(uri)
    refresh(uri, upper)
    append(uri, ["d", "e"])
    refresh(uri, upper)
    lance_core.dataset(uri).update({"s": "'z'"}, where="x = 1")
    upper.taken()
    before = lance_core.dataset(uri).version
    declare_upper(uri, version="2", trust_existing=True)
    assert upper.taken() == []
    assert lance_core.dataset(uri).version > before
    assert refresh(uri, upper, dry_run=True).columns["u"].changed == 1
    refresh(uri, upper)
    assert (upper.taken(), sorted(map(str, values(uri)))) == (["z"], ["C", "D", "E", "None", "Z"])
    declare_upper(uri, version="3", where="x > 1", trust_existing=True)
    assert refresh(uri, upper, dry_run=True).stale == 5, "other inputs: where reads one more"


def test_an_existing_column_is_read_once_and_its_function_is_not_loaded(uri: str, data_reads: list[str]) -> None:
    """Inputs and values are read for the evidence that is written; a wrong value counts as right until an input changes."""
    lance_core.dataset(uri).add_columns({"u": "CASE WHEN x > 0 THEN 'wrong' END"})
    del data_reads[:]
    declare_upper(uri, trust_existing=True)
    assert data_reads, "inputs and values are read"
    report = lance_core.refresh_columns(uri)
    assert (report.stale, values(uri)) == (0, ["wrong"] * 3)
    lance_core.dataset(uri).update({"s": "'b'"}, where="x = 1")
    upper = Upper()
    refresh(uri, upper)
    assert (upper.taken(), values(uri)) == (["b"], ["wrong", "wrong", "B"])


def test_reads_of_all_columns_leave_evidence_out_and_rewrites_carry_it(uri: str) -> None:
    lance_core.declare_column(uri, "u", sql="upper(s)")
    lance_core.refresh_columns(uri)
    table = lance_core.dataset(uri)
    hidden = [name for name in table.snapshot.arrow_schema.names if name not in ("x", "s", "u")]
    assert len(hidden) == 1
    fragment = table.get_fragments()[0]
    for names in (
        table.schema.names,
        table.to_table().column_names,
        table.take([0]).column_names,
        table.head(1).column_names,
        table.scanner().projected_schema.names,
        fragment.to_table().column_names,
        fragment.schema.names,
        table.sql("SELECT * FROM dataset").build().to_batch_records()[0].schema.names,
    ):
        assert names == ["x", "s", "u"]
    assert table.to_table(columns=hidden).column(0).null_count == 0
    assert lance.dataset(uri).schema.names == ["x", "s", "u", *hidden]


def test_a_write_by_the_official_library_never_makes_a_row_seem_fresh(uri: str) -> None:
    upper = Upper()
    declare_upper(uri)
    refresh(uri, upper)
    upper.taken()
    # Rows that are copied with all they have, the text another one.
    copied = lance.dataset(uri).to_table().set_column(1, "s", pa.array(["n", "o", "p"]))
    lance.write_dataset(copied, uri, mode="append")
    # Values that are written over.
    lance.dataset(uri).update({"u": "'wrong'"}, where="s = 'a'")
    lance.dataset(uri).optimize.compact_files()
    report = refresh(uri, upper)
    assert sorted(upper.taken()) == ["a", "n", "o", "p"]
    assert (report.columns["u"].changed, report.columns["u"].overwritten) == (3, 1)
    assert sorted(values(uri), key=str) == ["A", "C", "N", None, "O", "P"]


def test_a_table_that_is_written_anew_keeps_the_declaration_and_loses_the_evidence(uri: str) -> None:
    upper = Upper()
    declare_upper(uri)
    refresh(uri, upper)
    everything = lance_core.dataset(uri).to_table()
    lance.write_dataset(everything.select(["u", "s", "x"]), uri, mode="overwrite")
    upper.taken()
    assert refresh(uri, upper).columns["u"].new == 3
    assert (values(uri), lance_core.dataset(uri).schema.names) == (["A", None, "C"], ["u", "s", "x"])
    assert refresh(uri, upper).stale == 0


def test_an_input_that_others_renamed_is_an_error_that_names_it(uri: str) -> None:
    lance_core.declare_column(uri, "u", sql="upper(s)")
    lance_core.refresh_columns(uri)
    lance.dataset(uri).alter_columns({"path": "s", "name": "t"})
    with pytest.raises(InputError, match="reads 's'"):
        lance_core.refresh_columns(uri)
    lance.dataset(uri).alter_columns({"path": "t", "name": "s"})
    assert lance_core.refresh_columns(uri).stale == 0


def test_a_column_that_others_cast_is_not_declared_any_more(uri: str) -> None:
    """The official library gives it a new field without metadata; the old evidence is nobody's."""
    lance_core.declare_column(uri, "d", sql="x * 2")
    lance_core.refresh_columns(uri)
    lance.dataset(uri).alter_columns({"path": "d", "data_type": pa.int32()})
    with pytest.raises(InputError, match="not declared"):
        lance_core.refresh_columns(uri, ["d"])
    lance_core.declare_column(uri, "d", sql="x * 2")
    report = lance_core.refresh_columns(uri)
    assert (report.columns["d"].new, values(uri, "d")) == (3, [2, 4, 6])
    assert lance_core.dataset(uri).schema.field("d").type == pa.int32()
    assert len(lance_core.dataset(uri).snapshot.arrow_schema.names) == 4


def test_rows_that_a_restore_brings_back_are_computed(uri: str) -> None:
    """They were deleted when the fragment was found to be fresh, so they have no evidence."""
    whole = lance_core.dataset(uri).version
    declare_upper(uri)
    declared = lance_core.dataset(uri).version
    lance_core.dataset(uri).delete("x = 3")
    upper = Upper()
    refresh(uri, upper)
    assert upper.taken() == ["a", None]
    refreshed = lance_core.dataset(uri)
    fragment = refreshed.get_fragments()[0].metadata
    # The files of now without the deletions, as a restore of a later version by others would have them.
    from dataclasses import replace

    operation = lance_core.LanceOperation.Update(updated_fragments=[replace(fragment, deletion_file=None)])
    lance_core.LanceDataset.commit(uri, operation, read_version=refreshed.version)
    assert refresh(uri, upper).columns["u"].new == 1
    assert (upper.taken(), values(uri)) == (["c"], ["A", None, "C"])
    lance_core.dataset(uri).checkout_version(declared).restore()
    assert refresh(uri, upper).columns["u"].new == 3
    lance_core.dataset(uri).checkout_version(whole).restore()
    with pytest.raises(InputError, match="not declared"):
        refresh(uri, upper, columns=["u"])


@pytest.fixture
def data_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The data files that are read, a name for each request."""
    found: list[str] = []
    plain = LocalStore.get_ranges

    def counted(self: LocalStore, path: str, ranges: Any) -> Any:
        if path.startswith("data/"):
            found.append(path)
        return plain(self, path, ranges)

    monkeypatch.setattr(LocalStore, "get_ranges", counted)
    return found


def test_an_unchanged_table_is_not_read_and_of_a_changed_one_what_changed(uri: str, data_reads: list[str]) -> None:
    for number in range(5):
        append(uri, [f"t{number}"])
    lance_core.declare_column(uri, "u", sql="upper(s)")
    lance_core.refresh_columns(uri)
    data_reads.clear()
    assert lance_core.refresh_columns(uri).fragments_skipped == 6
    lance_core.dataset(uri).delete("x = 2")
    data_reads.clear()
    assert lance_core.refresh_columns(uri).fragments_skipped == 6  # what is left of it was fresh
    assert data_reads == []
    append(uri, ["new"])
    files = {file.path for file in lance_core.dataset(uri).get_fragments()[-1].metadata.files}
    report = lance_core.refresh_columns(uri)
    assert (report.fragments_skipped, report.columns["u"].new) == (6, 1)
    assert {path.removeprefix("data/") for path in data_reads} == files
    note = next(Path(uri).glob("_lance_core/columns/*/fresh"))
    note.write_bytes(note.read_bytes()[:-1] + b"?")
    assert lance_core.refresh_columns(uri).fragments_skipped == 0
    assert lance_core.refresh_columns(uri).fragments_skipped == 7


def test_a_refresh_that_is_killed_repeats_at_most_one_batch(uri: str) -> None:
    append(uri, [f"text {number}" for number in range(40)])
    declare_upper(uri, batch_size=4)
    ended = Upper(ends_after=21)
    with pytest.raises(KeyboardInterrupt):
        refresh(uri, ended, commit_every=16)
    assert len(ended.given) == 19
    assert values(uri) == [None] * 43
    upper = Upper()
    report = refresh(uri, upper)
    assert (len(upper.given), report.columns["u"].reused) == (24, 19)
    assert values(uri)[3:] == [f"TEXT {number}" for number in range(40)]
    assert not [*Path(uri).glob("_lance_core/columns/*/results/*")]


def test_values_put_aside_that_cannot_be_read_are_computed_again(uri: str) -> None:
    declare_upper(uri, batch_size=1)
    with pytest.raises(KeyboardInterrupt):
        refresh(uri, Upper(ends_after=2))
    found = sorted(Path(uri).glob("_lance_core/columns/*/results/*"))
    assert len(found) == 2
    found[0].write_bytes(b"ARROW1\0\0" + found[0].read_bytes()[8:-40])
    upper = Upper()
    refresh(uri, upper)
    assert (len(upper.given), values(uri)) == (2, ["A", None, "C"])


def test_others_write_while_a_batch_is_computed(uri: str) -> None:
    append(uri, ["d"])
    declare_upper(uri)

    class Meddled(Upper):
        def __call__(self, batch: pa.RecordBatch, **arguments: Any) -> list[Any]:
            if not self.given:
                lance.dataset(uri).optimize.compact_files()
                append(uri, ["late"], first=500)
                lance.dataset(uri).update({"s": "'changed'"}, where="x = 1")
            return super().__call__(batch, **arguments)

    upper = Meddled()
    refresh(uri, upper)
    refresh(uri, upper)
    # Every text once: what was computed for fragments that are gone is not computed again.
    assert sorted(upper.given, key=str) == sorted(["a", None, "c", "d", "late", "changed"], key=str)
    assert sorted(values(uri), key=str) == sorted(["CHANGED", None, "C", "D", "LATE"], key=str)


def test_two_refreshes_at_once_end_right(uri: str) -> None:
    append(uri, ["d"])
    declare_upper(uri)

    class First(Upper):
        def __call__(self, batch: pa.RecordBatch, **arguments: Any) -> list[Any]:
            if not self.given:
                refresh(uri, Upper())
            return super().__call__(batch, **arguments)

    refresh(uri, First())
    assert values(uri) == ["A", None, "C", "D"]
    assert refresh(uri, Upper()).stale == 0


def test_a_refresh_that_others_overtake_each_time_gives_up(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import lance_core.computed.refresh as refreshing

    lance_core.declare_column(uri, "u", sql="upper(s)")

    def overtaken(*arguments: Any, **options: Any) -> Any:
        raise RetryableConflictError("others were faster")

    monkeypatch.setattr(refreshing, "commit_transaction", overtaken)
    monkeypatch.setattr(refreshing, "_ROUNDS", 3)
    with pytest.raises(RetryableConflictError, match="others changed"):
        lance_core.refresh_columns(uri)
    assert len([*Path(uri).glob("data/*")]) == 1


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_evidence_is_small_and_read_by_the_official_library(tmp_path: Path, version: str, stable: bool) -> None:
    uri, count = str(tmp_path / "t.lance"), 100_000
    rows = pa.table({"x": pa.array(np.arange(count))})
    lance_core.write_dataset(rows, uri, data_storage_version=version, enable_stable_row_ids=stable)
    lance_core.declare_column(uri, "d", sql="x * 2")
    lance_core.refresh_columns(uri)
    field = evidence_of(lance_core.dataset(uri).lance_schema, lance_core.dataset(uri).lance_schema.find("d"))
    assert field is not None
    sizes = {item.id: item.bytes_on_disk for item in lance_core.dataset(uri).stats.data_stats().fields}
    assert sizes[field.id] <= 13 * count
    official = lance.dataset(uri)
    official.validate()
    assert official.to_table(columns=["d"]).column(0).to_pylist() == [2 * number for number in range(count)]
    official.optimize.compact_files()
    assert lance_core.refresh_columns(uri, deep=True).stale == 0


def test_fields_of_structs_lists_and_vectors_are_inputs_and_values(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table(
        {
            "p": pa.array([{"x": 1, "y": "a"}, None, {"x": 3, "y": None}]),
            "l": pa.array([[1, 2], [], None], pa.list_(pa.int32())),
            "v": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        }
    )
    lance_core.write_dataset(rows, uri)
    lance_core.declare_column(uri, "px", sql="p.x + 1")
    given: list[pa.Schema] = []

    def total(batch: pa.RecordBatch) -> Any:
        given.append(batch.schema)
        return [[{"n": len(item["l"] or [])}] for item in batch.to_pylist()]

    kind = pa.list_(pa.struct({"n": pa.int64()}))
    lance_core.declare_column(uri, "t", function="m:total", inputs=["l", "v", "p.x"], type=kind)
    lance_core.refresh_columns(uri, functions={"m:total": total})
    table = lance_core.dataset(uri).to_table()
    assert table.column("px").to_pylist() == [2, None, 4]
    assert table.column("t").to_pylist() == [[{"n": 2}], [{"n": 0}], [{"n": 0}]]
    assert given[0].names == ["l", "v", "p"]
    lance.dataset(uri).update({"p": "NULL"}, where="p.x = 1")
    report = lance_core.refresh_columns(uri, functions={"m:total": total})
    assert (report.columns["px"].changed, report.columns["t"].changed) == (1, 1)


def test_wrong_answers_name_the_function(uri: str) -> None:
    for answer, match in (([1], "1 values for 3 rows"), (["a", "b", "c"], "no column of type int64")):
        lance_core.declare_column(uri, "n", function="m:f", inputs=["x"], type=pa.int64(), on_error="skip")
        with pytest.raises(InputError, match=match):
            lance_core.refresh_columns(uri, functions={"m:f": lambda batch, answer=answer: answer})


def test_rows_that_were_refreshed_are_in_the_change_feed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"x": [1, 2, 3]}), uri, enable_stable_row_ids=True)
    lance_core.declare_column(uri, "d", sql="x * 2")
    lance_core.refresh_columns(uri)
    lance_core.dataset(uri).update({"x": "20"}, where="x = 2")
    before = lance_core.dataset(uri).version
    report = lance_core.refresh_columns(uri)
    changed = lance_core.dataset(uri).to_table(columns=["x"], filter=f"_row_last_updated_at_version > {before}")
    assert (changed.column(0).to_pylist(), report.version) == ([20], before + 1)


def test_rows_that_no_refresh_has_seen_are_counted_without_reading(uri: str, data_reads: list[str]) -> None:
    lance_core.declare_column(uri, "u", sql="upper(s)")
    lance_core.declare_column(uri, "d", sql="x * 2")
    assert unseen_rows(lance_core.dataset(uri).snapshot) == {"u": 3, "d": 3}
    lance_core.refresh_columns(uri, ["u"])
    append(uri, ["e", "f"])
    data_reads.clear()
    assert unseen_rows(lance_core.dataset(uri).snapshot) == {"u": 2, "d": 5}
    assert data_reads == []
    lance.dataset(uri).alter_columns({"path": "s", "name": "t"})
    assert unseen_rows(lance_core.dataset(uri).snapshot)["u"] == 5


def test_a_job_appends_rows_without_the_declared_columns(uri: str) -> None:
    lance_core.declare_column(uri, "u", sql="upper(s)")
    lance_core.refresh_columns(uri)
    place = Path(uri).parent / "more.parquet"
    parquet.write_table(pa.table({"x": [7], "s": ["g"]}), place)
    spec = {"kind": "append", "uri": uri, "source": {"format": "parquet", "paths": [str(place)]}}
    run_job(spec_from_json(json.dumps(spec)))
    run_job(CommitSpec(uri=uri))
    assert lance_core.refresh_columns(uri).columns["u"].new == 1
    assert values(uri) == ["A", None, "C", "G"]
