"""Which files a source consists of, and a fingerprint that changes with each of them: of local files, folders, patterns and
objects, by the engine that opens them and by a listing alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from lance_core.errors import SourceMissingError
from lance_core.jobs.sources.open_source import open_local_source
from lance_core.jobs.sources.source_files import (
    SourceFile,
    canonical_path,
    differing,
    fingerprint,
    list_source_files,
    shown,
)
from lance_core.jobs.specs.spec import SourceSpec
from tests.io.moto_server import moto_server


def _csv(path: Path, text: str = "id\n1\n", *, at: float = 1_000_000.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def _spec(*paths: object, format_: str = "csv") -> SourceSpec:
    return SourceSpec(format=format_, paths=tuple(map(str, paths)), options={"header": "true"} if format_ == "csv" else {})


def _both(spec: SourceSpec) -> str:
    """The fingerprint by opening, which a listing alone must find as well."""
    listed = list_source_files(spec)
    assert listed is not None
    assert sorted(set(open_local_source(spec).files)) == sorted(set(listed))
    return fingerprint(listed)


def test_files_folders_and_patterns_are_the_same_by_opening_and_by_listing(tmp_path: Path) -> None:
    one, two = _csv(tmp_path / "in" / "a.csv"), _csv(tmp_path / "in" / "day=2" / "b.csv", "id\n2\n3\n")
    for hidden in ("_SUCCESS", ".crc", "_tmp/c.csv"):
        _csv(tmp_path / "in" / hidden, "")
    both = _both(_spec(one, two))
    assert both.startswith("2 files, 12 bytes, newest of 1970-01-12T13:46:40.000Z, sha256 ")
    assert _both(_spec(tmp_path / "in")) == both == _both(_spec(two, one)) == _both(_spec(f"file://{tmp_path}/in"))
    assert _both(_spec(tmp_path / "in" / "*.csv")) == _both(_spec(one)) != both


@pytest.mark.parametrize("change", ["size", "time", "name", "more", "fewer"])
def test_each_change_of_a_file_changes_the_fingerprint(tmp_path: Path, change: str) -> None:
    for name in "ab":
        _csv(tmp_path / f"{name}.csv")
    before = _both(_spec(tmp_path))
    changes = {
        "size": lambda: _csv(tmp_path / "a.csv", "id\n10\n"),
        "time": lambda: _csv(tmp_path / "a.csv", at=1_000_000.001),
        "name": lambda: (tmp_path / "a.csv").rename(tmp_path / "c.csv"),
        "more": lambda: _csv(tmp_path / "c.csv"),
        "fewer": lambda: (tmp_path / "a.csv").unlink(),
    }
    changes[change]()
    after = list_source_files(_spec(tmp_path))
    assert after is not None
    assert _both(_spec(tmp_path)) != before
    expected = {"size": ["a.csv"], "time": ["a.csv"], "name": ["c.csv"], "more": ["c.csv"], "fewer": []}[change]
    assert [Path(item.path).name for item in differing(before, after)] == expected


def test_of_many_files_the_record_stays_small_and_later_ones_are_named() -> None:
    files = [SourceFile(f"s3://b/{number:06}.csv", number, 1_000_000.0 + number) for number in range(100_000)]
    known = fingerprint(files)
    assert len(known) < 200
    assert shown(known) == "100,000 files, 4,999,950,000 bytes, newest of 1970-01-13T17:33:19Z"
    assert differing(known, files) == []
    later = SourceFile("s3://b/000007.csv", 7, 2_000_000.0)
    assert differing(known, [*files[:7], later, *files[8:]]) == [later]
    assert len(fingerprint(files[:16])) < 400
    assert fingerprint([]) == ""


def test_engines_spell_paths_in_their_own_ways() -> None:
    assert canonical_path("s3a://b/x/a.csv") == canonical_path("s3://b//x/a.csv") == "s3://b/x/a.csv"
    assert canonical_path("file:/raw/a.csv") == canonical_path("/raw/./a.csv") == "/raw/a.csv"
    assert canonical_path("hdfs://node:8020/raw/a") == canonical_path("hdfs:///raw/a")
    assert canonical_path("abfss://c@account.dfs.core.windows.net/a") == canonical_path("abfss://c/a")


def test_views_of_a_query_count_and_what_no_listing_shows_does_not(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "v.parquet")
    query = SourceSpec(sql="SELECT id FROM v", views={"v": _spec(tmp_path / "v.parquet", format_="parquet")})
    assert _both(query) == _both(_spec(tmp_path / "v.parquet", format_="parquet")) != ""
    assert list_source_files(SourceSpec(callable="m:f")) is None
    assert list_source_files(_spec(tmp_path / "gone.csv")) is None
    assert list_source_files(SourceSpec(format="csv", paths=("/raw",), options={"pathGlobFilter": "*.csv"})) is None
    assert list_source_files(_spec("s3://b/*.csv")) is None, "only Spark expands it"


@pytest.fixture(scope="module")
def objects() -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
    """A bucket of a loopback S3, as Arrow and its uris know it."""
    with moto_server() as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        address = endpoint.removeprefix("http://")
        filesystem = pyarrow.fs.S3FileSystem(
            scheme="http", region="us-east-1", endpoint_override=address, allow_bucket_creation=True
        )
        filesystem.create_dir("sources")
        yield filesystem, f"?region=us-east-1&scheme=http&endpoint_override={address.replace(':', '%3A')}"


def test_objects_are_told_apart(objects: tuple[pyarrow.fs.FileSystem, str]) -> None:
    filesystem, asked = objects
    for name in ("x/a.parquet", "x/_tmp/b.parquet", "x/y/c.parquet"):
        pq.write_table(pa.table({"id": [1, 2]}), f"sources/{name}", filesystem=filesystem)
    folder = _spec(f"s3://sources/x{asked}", format_="parquet")
    known = _both(folder)
    assert [item.path for item in list_source_files(folder) or ()] == [
        "s3://sources/x/a.parquet",
        "s3://sources/x/y/c.parquet",
    ]
    assert _both(_spec(f"s3://sources/x/a.parquet{asked}", format_="parquet")).startswith("1 file, ")
    pq.write_table(pa.table({"id": [1, 2, 3, 4]}), "sources/x/a.parquet", filesystem=filesystem)
    now = list_source_files(folder) or ()
    assert [item.path for item in differing(known, now)] == ["s3://sources/x/a.parquet"]
    assert pa.Table.from_batches(open_local_source(folder).batches()).num_rows == 6


@pytest.mark.parametrize("name", ["many", "many/a.parquet"])
def test_an_object_source_is_opened_with_no_more_requests_than_arrow_takes(
    objects: tuple[pyarrow.fs.FileSystem, str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    filesystem, asked = objects
    for file in "abc":
        pq.write_table(pa.table({"id": [1, 2]}), f"sources/many/{file}.parquet", filesystem=filesystem)
    uri, requests = f"s3://sources/{name}{asked}", list[str]()
    application = pytest.importorskip("moto.moto_server.werkzeug_app").DomainDispatcherApplication
    serve = application.__call__

    def counted(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
        requests.append(environ["REQUEST_METHOD"] + " " + environ["PATH_INFO"])
        return serve(self, environ, start_response)

    monkeypatch.setattr(application, "__call__", counted)
    assert ds.dataset(uri, format="parquet").count_rows() in (2, 6)
    plain, requests[:] = [*requests], []
    source = open_local_source(_spec(uri, format_="parquet"))
    assert source.num_rows in (2, 6)
    assert len(source.files) in (1, 3)
    assert len(requests) <= len(plain), (requests, plain)


@pytest.mark.parametrize("path", ["/nowhere/x.parquet", "/nowhere/*.parquet", "file:///nowhere/x.parquet"])
def test_a_file_that_is_not_there_yet_may_come(path: str) -> None:
    with pytest.raises(SourceMissingError, match="does not exist") as raised:
        open_local_source(_spec(path, format_="parquet"))
    assert raised.value.retryable
