"""Late files and empty ones: a file without an end is awaited, an append of nothing is no version, a replacement by nothing
must be meant."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lance_core.errors import InputError, SourceMissingError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import ReplaceWhereSpec
from lance_core.jobs.specs.spec import AppendSpec, OverwriteSpec, SourceSpec
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_table(str(tmp_path / "t.lance"), rows(0, 10))


def _whole(format: str, path: Path) -> bytes:
    table = rows(10, 500)
    if format == "parquet":
        pq.write_table(table, path)
    elif format == "orc":
        orc.write_table(table, path)
    elif format == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    return path.read_bytes()


def _append(uri: str, *paths: Path, key: str = "1", format: str = "parquet", **fields: object) -> AppendSpec:
    options = {"header": "true", "inferSchema": "true"} if format == "csv" else {}
    source = SourceSpec(format=format, paths=tuple(map(str, paths)), options=options)
    return AppendSpec(uri=uri, identity=identity(uri, key), source=source, **fields)


@pytest.mark.parametrize("beside", ["alone", "beside a whole file"])
@pytest.mark.parametrize(
    ("format", "size"),
    [("parquet", 0), ("parquet", 3), ("parquet", 700), ("arrow", 0), ("arrow", 700), ("orc", 0), ("csv", 0), ("json", 0)],
)
def test_a_file_without_an_end_is_late(uri: str, tmp_path: Path, format: str, size: int, beside: str) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    if beside != "alone" and format in ("parquet", "arrow", "orc"):
        _whole(format, folder / "a")
    late = folder / "b"
    late.write_bytes(_whole(format, tmp_path / "whole")[:size] if size else b"")
    with pytest.raises(SourceMissingError, match="is empty or not finished") as caught:
        run_job(_append(uri, folder, format=format))
    assert str(late) in str(caught.value)
    assert ids(uri) == [*range(10)]
    assert leftovers(uri) == set()


def test_a_file_of_another_kind_is_no_late_file(uri: str, tmp_path: Path) -> None:
    wrong = tmp_path / "b.json"
    wrong.write_text("no json at all\n")
    with pytest.raises(InputError, match="cannot be read"):
        run_job(_append(uri, wrong, format="json"))


@pytest.mark.parametrize("kind", ["header only", "no rows"])
def test_an_append_of_nothing_is_no_version(uri: str, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "empty"
    if kind == "no rows":
        pq.write_table(rows(0, 0), file)
    else:
        file.write_text("id,day,x\n")
    # An empty CSV shows no types; the table's are the schema.
    schema = "id BIGINT, day INT, x DOUBLE" if kind == "header only" else ""
    source = SourceSpec(
        format="parquet" if kind == "no rows" else "csv",
        paths=(str(file),),
        options={} if kind == "no rows" else {"header": "true"},
        **({"schema": schema} if schema else {}),
    )
    spec = AppendSpec(uri=uri, identity=identity(uri, "1"), source=source)
    with caplog.at_level("INFO"):
        staged = run_job(spec)
    assert "the source has no rows, so there is no new version" in caplog.text
    assert commit(uri, staged)["num_versions"] == 0
    assert commit(uri, run_job(spec))["num_versions"] == 0
    assert lance.dataset(uri).version == 1
    assert leftovers(uri) == set()


def test_a_first_append_of_nothing_creates_the_table(tmp_path: Path) -> None:
    file, uri = tmp_path / "empty.parquet", str(tmp_path / "new.lance")
    pq.write_table(rows(0, 0), file)
    commit(uri, run_job(_append(uri, file)))
    assert lance.dataset(uri).count_rows() == 0


@pytest.mark.parametrize("kind", ["overwrite", "replace_where"])
def test_a_replacement_by_nothing_must_be_meant(uri: str, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "empty.parquet"
    pq.write_table(rows(0, 0), file)
    source = SourceSpec(format="parquet", paths=(str(file),))

    def spec(**fields: object) -> OverwriteSpec | ReplaceWhereSpec:
        own = {"uri": uri, "identity": identity(uri, "1"), "source": source, **fields}
        return OverwriteSpec(**own) if kind == "overwrite" else ReplaceWhereSpec(predicate="id < 5", **own)

    with pytest.raises(InputError, match="allow_empty=True") as caught:
        run_job(spec())
    assert "the source has no rows" in str(caught.value)
    assert ids(uri) == [*range(10)]
    assert leftovers(uri) == set()
    commit(uri, run_job(spec(allow_empty=True)))
    assert ids(uri) == ([] if kind == "overwrite" else [*range(5, 10)])
