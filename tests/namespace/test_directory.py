"""The directory catalog beside the official one, over one folder; names that would leave it; writers that race."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import lance_namespace as official
import pytest
from lance.namespace import DirectoryNamespace as OfficialDirectory

import lance_core
from lance_core import namespace as ns
from lance_core.catalog.errors import translated
from lance_core.errors import AlreadyExistsError, InputError, LanceError, NotFoundError, UnsupportedFeatureError
from tests.namespace.support import ROWS

HOSTILE = [
    "..",
    ".",
    "../out",
    "a/b",
    "/etc",
    "a\\b",
    "%2e%2e%2fout",
    "a$b",
    "",
    "__manifest",
    "a\nb",
    "a\0b",
    "~",
    "C:",
    "x.",
    "é",
]


def seen_by(catalog: Any, requests: Any) -> dict[str, Any]:
    """All that a catalog shows: namespaces with properties, tables with locations."""
    found: dict[str, Any] = {}

    def walk(parts: list[str]) -> None:
        for name in catalog.list_tables(requests.ListTablesRequest(id=parts)).tables:
            where = catalog.describe_table(requests.DescribeTableRequest(id=[*parts, name])).location
            found["/".join([*parts, name])] = where.removeprefix("file://")
        for name in catalog.list_namespaces(requests.ListNamespacesRequest(id=parts)).namespaces:
            about = catalog.describe_namespace(requests.DescribeNamespaceRequest(id=[*parts, name]))
            found["/".join([*parts, name, ""])] = about.properties or None
            walk([*parts, name])

    walk([])
    return found


def outcome(action: Callable[[], Any]) -> str:
    try:
        action()
    except LanceError as error:
        return type(error).__name__
    except official.errors.LanceNamespaceError as error:
        return type(translated(error)).__name__
    return "done"


def one_step(rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    space = rng.choice([["a"], ["b"], ["a", "c"]])
    table = [*rng.choice([[], ["a"], ["b"], ["a", "c"]]), rng.choice(["x", "y"])]
    return rng.choice(
        [
            ("create_namespace", "CreateNamespaceRequest", {"id": space, "properties": rng.choice([None, {"k": "v"}])}),
            ("drop_namespace", "DropNamespaceRequest", {"id": space}),
            ("declare_table", "DeclareTableRequest", {"id": table}),
            ("declare_table", "DeclareTableRequest", {"id": table}),
            ("drop_table", "DropTableRequest", {"id": table}),
            ("deregister_table", "DeregisterTableRequest", {"id": [*space, "x"]}),
            ("table_exists", "TableExistsRequest", {"id": table}),
        ]
    )


def walk_with_both(tmp_path: Path, seed: int, steps: int) -> int:
    """Each step is taken by one of both on the shared folder and by the other one on a folder of its own."""
    rng = random.Random(seed)
    shared, control = tmp_path / "shared", tmp_path / "control"
    for root in (shared, control):  # before there is an entry, the official library accepts tables in absent namespaces
        for space in (["a"], ["b"], ["a", "c"]):
            OfficialDirectory(root=str(root)).create_namespace(official.CreateNamespaceRequest(id=space))
    done = 0
    for _ in range(steps):
        name, request, fields = one_step(rng)
        space = "".join(f"{part}/" for part in fields["id"][:-1])
        if name == "declare_table" and space and space not in seen_by(ns.DirectoryNamespace(root=str(shared)), ns):
            continue  # here a table needs its namespace, in the specification too; the official library does not look
        ours = rng.random() < 0.6
        catalog: Any = (ns.DirectoryNamespace if ours else OfficialDirectory)(root=str(shared))
        model: Any = getattr(ns if ours else official, request)
        wanted = outcome(lambda: getattr(OfficialDirectory(root=str(control)), name)(getattr(official, request)(**fields)))
        got = outcome(lambda: getattr(catalog, name)(model(**fields)))
        assert got == wanted, (seed, name, fields, ours)
        done += got == "done"
        mine = seen_by(ns.DirectoryNamespace(root=str(shared)), ns)
        assert mine == seen_by(OfficialDirectory(root=str(shared)), official), (seed, name, fields, ours)
        assert {*mine} == {*seen_by(OfficialDirectory(root=str(control)), official)}, (seed, name, fields, ours)
    return done


@pytest.mark.parametrize("seed", range(2))
def test_both_libraries_work_on_one_catalog(tmp_path: Path, seed: int) -> None:
    assert walk_with_both(tmp_path, seed, 14) > 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 106))
def test_both_libraries_work_on_one_catalog_for_long(tmp_path: Path, seed: int) -> None:
    assert walk_with_both(tmp_path, seed, 60) > 10


def test_tables_of_either_library_are_opened_by_the_other(tmp_path: Path) -> None:
    ours, theirs = ns.DirectoryNamespace(root=str(tmp_path)), OfficialDirectory(root=str(tmp_path))
    ours.create_namespace(ns.CreateNamespaceRequest(id=["sales"]))
    for table_id in (["r1"], ["sales", "t1"]):
        lance_core.write_dataset(ROWS, namespace_client=ours, table_id=table_id)
        lance.write_dataset(ROWS, namespace_client=theirs, table_id=table_id, mode="append")
        assert lance.dataset(namespace_client=theirs, table_id=table_id).count_rows() == 4
    for table_id in (["r2"], ["sales", "t2"]):
        lance.write_dataset(ROWS, namespace_client=theirs, table_id=table_id, mode="create")
        lance_core.write_dataset(ROWS, namespace_client=ours, table_id=table_id, mode="append")
        assert lance_core.dataset(namespace_client=ours, table_id=table_id).count_rows() == 4


def test_the_official_client_opens_tables_where_the_caller_allows_it(tmp_path: Path) -> None:
    theirs = OfficialDirectory(root=str(tmp_path))
    allowed = {"allowed_bases": str(tmp_path)}
    lance_core.write_dataset(ROWS, namespace_client=theirs, table_id=["t"], storage_options=allowed)
    assert lance_core.dataset(namespace_client=theirs, table_id=["t"], storage_options=allowed).count_rows() == 2
    with pytest.raises(NotFoundError):
        lance_core.dataset(namespace_client=theirs, table_id=["no"], storage_options=allowed)
    with pytest.raises(InputError, match="allowed_bases"):
        lance_core.dataset(namespace_client=theirs, table_id=["t"])


def test_columns_and_properties_of_others_are_kept(tmp_path: Path) -> None:
    ns.DirectoryNamespace(root=str(tmp_path)).create_namespace(ns.CreateNamespaceRequest(id=["a"]))
    table = lance_core.dataset(tmp_path / "__manifest")
    table.add_columns({"owner": "'me'"})
    table.update_metadata({"catalog.note": "kept"})
    ours = ns.DirectoryNamespace(root=str(tmp_path))
    ours.create_namespace(ns.CreateNamespaceRequest(id=["b"]))
    ours.drop_namespace(ns.DropNamespaceRequest(id=["b"]))
    found = lance_core.dataset(tmp_path / "__manifest")
    assert found.to_table()["owner"].to_pylist() == ["me"]
    assert found.metadata["catalog.note"] == "kept"


@pytest.mark.parametrize(
    "key", ["lance.namespace.manifest.writer_feature_flags", "lance.namespace.manifest.reader_feature_flags"]
)
def test_a_catalog_with_unknown_features_is_not_touched(tmp_path: Path, key: str) -> None:
    catalog = ns.DirectoryNamespace(root=str(tmp_path))
    catalog.create_namespace(ns.CreateNamespaceRequest(id=["a"]))
    lance_core.dataset(tmp_path / "__manifest").update_metadata({key: "4"})
    with pytest.raises(UnsupportedFeatureError, match="unknown feature"):
        (catalog.list_tables if "reader" in key else catalog.create_namespace)(ns.CreateNamespaceRequest(id=["b"]))  # type: ignore[arg-type]


def test_managed_versions_are_refused(tmp_path: Path) -> None:
    catalog = ns.DirectoryNamespace(root=str(tmp_path))
    catalog.create_namespace(ns.CreateNamespaceRequest(id=["a"]))
    lance_core.dataset(tmp_path / "__manifest").update_metadata({"table_version_management": "true"})
    with pytest.raises(UnsupportedFeatureError, match="manages the versions"):
        catalog.list_tables(ns.ListTablesRequest(id=["a"]))


@pytest.mark.parametrize("part", HOSTILE, ids=[f"name{number}" for number in range(len(HOSTILE))])
def test_a_hostile_name_makes_nothing_anywhere(tmp_path: Path, part: str) -> None:
    root = tmp_path / "root"
    catalog = ns.DirectoryNamespace(root=str(root))
    catalog.create_namespace(ns.CreateNamespaceRequest(id=["a"]))
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    for parts in ([part], ["a", part], [part, "t"]):
        for action in (
            lambda parts=parts: catalog.declare_table(ns.DeclareTableRequest(id=parts)),
            lambda parts=parts: catalog.create_namespace(ns.CreateNamespaceRequest(id=parts)),
            lambda parts=parts: lance_core.write_dataset(ROWS, namespace_client=catalog, table_id=parts),
            lambda parts=parts: catalog.drop_table(ns.DropTableRequest(id=parts)),
            lambda parts=parts: catalog.describe_table(ns.DescribeTableRequest(id=parts)),
        ):
            with pytest.raises((InputError, NotFoundError)):
                action()
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("location", ["../out", "/etc", "s3://bucket/t", "a/../../out", "__manifest", "", "a//b", "file:/x"])
def test_an_entry_that_refers_to_another_place_is_not_opened(tmp_path: Path, location: str) -> None:
    """A writer of the folder can write any entry."""
    root = tmp_path / "root"
    lance_core.write_dataset(ROWS, tmp_path / "out")
    catalog = ns.DirectoryNamespace(root=str(root))
    catalog.declare_table(ns.DeclareTableRequest(id=["t"]))
    entries = lance_core.dataset(root / "__manifest")
    entries.update({"location": f"'{location}'"})
    for action in (
        lambda: lance_core.dataset(namespace_client=catalog, table_id=["t"]),
        lambda: lance_core.write_dataset(ROWS, namespace_client=catalog, table_id=["t"]),
        lambda: catalog.drop_table(ns.DropTableRequest(id=["t"])),
    ):
        with pytest.raises(InputError):
            action()
    assert lance_core.dataset(tmp_path / "out").count_rows() == 2


def test_every_one_of_many_writers_gets_its_own_name(tmp_path: Path) -> None:
    catalog = ns.DirectoryNamespace(root=str(tmp_path))

    def declare(number: int) -> bool:
        try:
            catalog.declare_table(ns.DeclareTableRequest(id=[f"t{number % 6}"]))
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        outcomes = [*pool.map(declare, range(12))]
    assert outcomes.count(True) == 6
    assert catalog.list_tables(ns.ListTablesRequest(id=[])).tables == [f"t{number}" for number in range(6)]
    rows = lance_core.dataset(tmp_path / "__manifest").to_table()["object_id"].to_pylist()
    assert sorted(rows) == [f"t{number}" for number in range(6)]


def test_writers_of_both_libraries_lose_nothing_of_each_other(tmp_path: Path) -> None:
    def declare(number: int) -> None:
        if number % 2:
            ns.DirectoryNamespace(root=str(tmp_path)).declare_table(ns.DeclareTableRequest(id=[f"ours{number}"]))
            return
        try:
            OfficialDirectory(root=str(tmp_path)).declare_table(official.DeclareTableRequest(id=[f"theirs{number}"]))
        except Exception as error:  # it gives up after a few lost races, which it says
            lost.append((number, str(error)))

    lost: list[tuple[int, str]] = []
    with ThreadPoolExecutor(6) as pool:
        [*pool.map(declare, range(16))]
    wanted = {f"{'ours' if number % 2 else 'theirs'}{number}" for number in range(16)} - {f"theirs{n}" for n, _ in lost}
    rows = lance_core.dataset(tmp_path / "__manifest").to_table()["object_id"].to_pylist()
    assert len(rows) == len({*rows}) and wanted <= {*rows}
    assert all("conflict" in said.lower() or "concurrent" in said.lower() for _, said in lost), lost


def test_a_catalog_without_its_own_table_is_the_folders_of_its_root(tmp_path: Path) -> None:
    catalog = ns.DirectoryNamespace(root=str(tmp_path), manifest_enabled="false")
    theirs = OfficialDirectory(root=str(tmp_path), manifest_enabled="false")
    lance_core.write_dataset(ROWS, namespace_client=catalog, table_id=["a"])
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["b"], mode="create")
    assert not (tmp_path / "__manifest").exists()
    assert catalog.list_tables(ns.ListTablesRequest(id=[])).tables == ["a", "b"]
    assert theirs.list_tables(official.ListTablesRequest(id=[])).tables == ["a", "b"]
    with pytest.raises(AlreadyExistsError):
        catalog.declare_table(ns.DeclareTableRequest(id=["b"]))
    catalog.deregister_table(ns.DeregisterTableRequest(id=["b"]))
    for found in (catalog, theirs):
        assert found.list_tables((ns if found is catalog else official).ListTablesRequest(id=[])).tables == ["a"]
    assert lance_core.dataset(tmp_path / "b.lance").count_rows() == 2
    with pytest.raises(UnsupportedFeatureError):
        catalog.create_namespace(ns.CreateNamespaceRequest(id=["n"]))


def test_a_root_in_memory_and_wrong_properties(tmp_path: Path) -> None:
    catalog = ns.connect("dir", {"root": f"memory://{tmp_path.name}"})
    catalog.create_namespace(ns.CreateNamespaceRequest(id=["a"]))
    made = lance_core.write_dataset(ROWS, namespace_client=catalog, table_id=["a", "t"])
    assert made.uri.startswith("memory://") and made.uri.endswith("_a$t")
    catalog.drop_table(ns.DropTableRequest(id=["a", "t"]))
    assert catalog.list_tables(ns.ListTablesRequest(id=["a"])).tables == []
    for properties in ({}, {"root": " "}, {"root": "/x", "roof": "/y"}, {"root": "/x", "manifest_enabled": "perhaps"}):
        with pytest.raises(InputError):
            ns.connect("dir", properties)
    with pytest.raises(InputError, match="not a kind"):
        ns.connect("glue", {})


def test_half_a_name_is_refused(tmp_path: Path) -> None:
    catalog = ns.DirectoryNamespace(root=str(tmp_path))
    for given in (
        {},
        {"table_id": ["t"]},
        {"namespace_client": catalog},
        {"uri": "/t", "namespace_client": catalog, "table_id": ["t"]},
    ):
        with pytest.raises(InputError):
            lance_core.dataset(**given)  # type: ignore[arg-type]
        with pytest.raises(InputError):
            lance_core.write_dataset(ROWS, **given)  # type: ignore[arg-type]
    for wrong in ("sales.orders", [], [""], [1]):
        with pytest.raises(InputError):
            lance_core.dataset(namespace_client=catalog, table_id=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", ("orders",)),
        ("sales.orders", ("sales", "orders")),
        ("v1.2$orders", ("v1.2", "orders")),
        (" a . b ", ("a", "b")),
    ],
)
def test_a_written_name(text: str, parts: tuple[str, ...]) -> None:
    assert ns.parse_name(text) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "$", "a$"])
def test_a_written_name_with_an_empty_part(text: str) -> None:
    with pytest.raises(InputError, match="empty"):
        ns.parse_name(text)
