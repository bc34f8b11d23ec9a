"""Specs survive JSON, refuse what they do not know, and never show a secret."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import MISSING, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import InputError
from lance_core.jobs.kinds import KINDS, load, spec_from_json, spec_from_plain
from lance_core.jobs.runtime.committed_work import NOT_THE_WORK
from lance_core.jobs.specs.branches import PublishBranchSpec
from lance_core.jobs.specs.columns import DeclareColumnSpec, RefreshColumnsSpec, UndeclareColumnsSpec
from lance_core.jobs.specs.definition import (
    AlterColumnsSpec,
    CheckSpec,
    CloneSpec,
    CreateTableSpec,
    DescribeSpec,
    DropColumnsSpec,
    DropIndexSpec,
    DropTableSpec,
    QuerySpec,
    SqlSpec,
    TableConfigSpec,
)
from lance_core.jobs.specs.edits import (
    AddColumnsSpec,
    CompactSpec,
    DeleteSpec,
    MergeColumnFilesSpec,
    ReplaceWhereSpec,
    UpdateSpec,
)
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.identity import make_identity
from lance_core.jobs.specs.indices import BuildIndexSpec, OptimizeIndicesSpec
from lance_core.jobs.specs.maintenance import BranchSpec, CleanupSpec, GarbageSpec, RestoreSpec, TagSpec, ValidateSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.secret import Secret
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, JobSpec, OverwriteSpec, SourceSpec
from lance_core.jobs.specs.switch import SwitchColumnSpec

CSV = SourceSpec(format="csv", paths=("a.csv",), options={"header": True, "samplingRatio": 0.5})

SPECS: list[JobSpec] = [
    AppendSpec(uri="/t", source=CSV),
    AppendSpec(uri="/t", source=SourceSpec(callable="m:f", kwargs={"month": 1, "days": [1, 2]}), create=False, identity="x"),
    OverwriteSpec(
        uri="s3://b/t",
        storage_options={"aws_secret_access_key": Secret(env="KEY"), "region": Secret(value="eu")},
        source=SourceSpec(sql="select * from flights", views={"flights": CSV}),
        if_moved="overwrite",
        max_rows_per_file=10,
        num_partitions=4,
        schema_drift="fill_missing",
    ),
    CommitSpec(uri="/t", identities=("a", "b")),
    CommitSpec(uri="/t", gates=(GateSpec(name="g", min_rows=1, max_null_rates={"x": 0.5}, unique=("a", "b")),)),
    RefreshColumnsSpec(uri="/t", canary=9, gates=(GateSpec(norms={"v": (0.9, 1.1)}, max_drift={"v": 0.5}),)),
    DeleteSpec(uri="/t", predicate="id = 3", rows_per_task=7),
    UpdateSpec(uri="/t", updates={"x": "x + 1"}, where="id = 3"),
    ReplaceWhereSpec(uri="/t", predicate="day = 1", source=CSV, create=False),
    CompactSpec(uri="/t", groups=((1, 2), (4,)), part_of="x", materialize_deletions_threshold=None),
    CleanupSpec(uri="/t", older_than_seconds=3.5, retain_versions=2),
    GarbageSpec(uri="/t", dry_run=True),
    TagSpec(uri="/t", name="v1", version=3, action="create"),
    BranchSpec(uri="/t", name="a/b", from_branch="c", version=3),
    PublishBranchSpec(uri="/t", branch="a/b", if_moved="publish"),
    MergeSpec(uri="/t", source=CSV, on=("id",), when_matched="delete"),
    AddColumnsSpec(uri="/t", function="a.b:c", reads=("id",), kwargs={"n": 3}),
    MergeColumnFilesSpec(uri="/t", max_files_per_fragment=8, enough_files=4, dry_run=True),
    BuildIndexSpec(uri="/t", column="id", index_type="BTREE", rows_per_segment=7),
    OptimizeIndicesSpec(uri="/t", index_names=("a",), num_indices_to_merge=0),
    RestoreSpec(uri="/t", tag="v1", expected_version=4),
    ValidateSpec(uri="/t", deep=False),
    DeclareColumnSpec(
        uri="/t", column="v", function="m:f", inputs=("text",), data_type="float", list_size=4, on_error={"429": "retry"}
    ),
    UndeclareColumnsSpec(uri="/t", columns=("v",)),
    SwitchColumnSpec(uri="/t", column="v", version="2", min_recall=0.9, search={"nprobes": 4}),
    RefreshColumnsSpec(uri="/t", columns=("v",), functions=("m:f",), max_spent={"usd": 2.5}, retry_failed=False),
    DropColumnsSpec(uri="/t", columns=("a", "b.c")),
    AlterColumnsSpec(uri="/t", alterations=({"path": "a", "name": "b", "nullable": True},)),
    DropIndexSpec(uri="/t", name="a_idx"),
    TableConfigSpec(uri="/t", values={"a": "1", "b": None}),
    DescribeSpec(uri="/t", description="orders", fresh_within="26h", columns={"id": {"owner": "us"}, "city": "where"}),
    CreateTableSpec(uri="/t", schema="id BIGINT", if_exists="fail"),
    DropTableSpec(uri="/t", if_missing="fail"),
    CloneSpec(uri="/t", target="/u", version="tag", depth="deep"),
    QuerySpec(
        uri="/t", columns=("a",), nearest={"column": "v", "q": [0.5, 1.0], "k": 3}, version=2, target="/x.csv", format="csv"
    ),
    SqlSpec(
        uri="/t", sql="SELECT 1", tables={"t": SourceSpec(format="lance", paths=("/t",))}, target="/x.csv", format="csv"
    ),
    CheckSpec(uri="/t", gates=(GateSpec(min_rows=1),), version=3),
]


def _sample(kind: str) -> JobSpec:
    """The smallest spec of a kind, for those that need no more than a value of each required type."""
    cls = load(KINDS[kind].spec)
    values = {"str": "a", "tuple[str, ...]": ("a",), "Mapping[str, str]": {"a": "b"}, "int": 1, "bool": True}
    needed = [item for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING]
    made: JobSpec = cls(**{item.name: values[str(item.type)] for item in needed})
    return made


SPECS += [_sample(kind) for kind in KINDS if kind not in {spec.kind for spec in SPECS}]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind)
def test_json_round_trip(spec: JobSpec) -> None:
    assert spec_from_json(spec.to_json()) == spec


@pytest.mark.parametrize("name", sorted(NOT_THE_WORK))
def test_what_is_no_part_of_the_work_is_so_in_every_spec(name: str) -> None:
    owners = {owner for spec in SPECS for owner in type(spec).__mro__ if name in vars(owner).get("__annotations__", {})}
    told = {vars(owner)["__annotations__"][name] for owner in owners}
    assert len(told) == 1, f"{name} means several things: {owners}"


def test_every_kind_has_a_spec_that_says_so() -> None:
    assert {kind: load(row.spec).kind for kind, row in KINDS.items()} == {kind: kind for kind in KINDS}
    assert {spec.kind for spec in SPECS} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_one_function_that_takes_its_spec(kind: str) -> None:
    row = KINDS[kind]
    (place,) = filter(None, (row.plan, row.act))
    spec = next(iter(inspect.signature(load(place)).parameters.values()))
    assert (spec.name, spec.annotation) == ("spec", load(row.spec).__name__)


def test_staged_work_that_may_be_tried_dry_has_a_report() -> None:
    dry = {kind for kind, row in KINDS.items() if row.is_staged and hasattr(load(row.spec), "dry_run")}
    assert dry == {kind for kind, row in KINDS.items() if row.report} == {"compact", "merge_column_files"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "append", "uri": "/t"}, "'source' is missing"),
        ({"kind": "append", "urii": "/t", "source": {}}, "did you mean 'uri'"),
        ({"kind": "appendd", "uri": "/t"}, "unknown job kind 'appendd.*append, .*commit, .*overwrite"),
        ({"kind": "commit", "uri": 3}, "spec.uri: expected a string, got 3"),
        ({"kind": "commit", "uri": "/t", "identities": "a"}, "spec.identities: expected a list"),
        ({"kind": "commit", "uri": "/t", "spec": 99}, "spec version 99 is unknown"),
        ({"kind": "commit", "uri": " "}, "uri is empty"),
        ({"kind": "append", "uri": "/t", "source": {"format": "csv", "sql": "x"}}, "exactly one of format, sql, callable"),
        ({"kind": "append", "uri": "/t", "source": {"format": "csv", "optoins": {}}}, "spec.source: unknown key 'optoins'"),
        ({"kind": "append", "uri": "/t", "source": {"callable": "no colon"}}, "module:function"),
        ({"kind": "append", "uri": "/t", "source": {"sql": "x", "paths": ["a"]}}, "source.paths cannot be combined with"),
        ({"kind": "append", "uri": "/t", "source": {"sql": "x"}, "max_rows_per_file": 0}, "at least 1"),
        ({"kind": "append", "uri": "/t", "source": {"sql": "x"}, "max_rows_per_file": "1"}, "expected an integer"),
        ({"kind": "append", "uri": "/t", "source": {"sql": "x"}, "schema_drift": "x"}, "expected one of 'fail'"),
        ({"kind": "overwrite", "uri": "/t", "source": {"sql": "x"}, "if_moved": 1}, "expected one of 'fail', 'overwrite'"),
        ([], "JSON object"),
    ],
)
def test_refusals(data: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        spec_from_plain(data)


def test_secrets_never_show() -> None:
    spec = AppendSpec(
        uri="/t",
        source=SourceSpec(format="jdbc", options={"password": "hunter2", "dbtable": "t"}),
        storage_options={"aws_secret_access_key": Secret(value="hunter2")},
    )
    assert "hunter2" not in repr(spec.storage_options) + str(spec.storage_options["aws_secret_access_key"])
    assert "hunter2" not in spec.to_json(redact=True)
    assert "dbtable" in spec.to_json(redact=True)
    assert spec.resolved_options() == {"aws_secret_access_key": "hunter2"}


def test_references(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    connection = {"conn_type": "lance", "password": "pw", "extra": json.dumps({"storage": {"key": "k"}})}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
    (tmp_path / "s").write_text("whole\n")
    assert Secret(env="AIRFLOW_CONN_LAKE", key="password").reveal() == "pw"
    assert Secret(env="AIRFLOW_CONN_LAKE", key="extra.storage.key").reveal() == "k"
    assert Secret(file=str(tmp_path / "s")).reveal() == "whole"
    for bad in (Secret(env="NOT_THERE"), Secret(env="AIRFLOW_CONN_LAKE", key="extra.nope"), Secret(file="/nope")):
        with pytest.raises(InputError) as caught:
            bad.reveal()
        assert "pw" not in str(caught.value)


def test_identity_is_stable_and_tells_work_apart() -> None:
    base = {"dag_id": "d", "run_id": "r", "task_id": "t"}
    first = make_identity("/data/t", **base)
    assert first == make_identity("file:///data/t/", **base)
    assert first == "61135962-3529-5a6e-84c8-9a5790a91f69"  # a change would make landed work look new
    others = {
        make_identity("/data/u", **base),
        make_identity("/data/t", **base, map_index=0),
        make_identity("/data/t", **base, key="k"),
        make_identity("/data/t", dag_id="d", run_id="r,t", task_id=""),
        make_identity("/data/t", dag_id="d", run_id="rt", task_id=""),
    }
    assert len(others | {first}) == 6


def test_specs_are_light_to_import() -> None:
    code = (
        "import sys, lance_core.jobs.kinds, lance_core.jobs.specs.identity as i;"
        "heavy = {'pyarrow', 'numpy', 'numba', 'pyspark', 'google.protobuf'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


TEXT = st.text(max_size=20)
SOURCES = st.recursive(
    st.builds(
        SourceSpec,
        format=st.sampled_from(["csv", "parquet"]),
        paths=st.lists(TEXT).map(tuple),
        options=st.dictionaries(TEXT, st.one_of(TEXT, st.booleans(), st.integers())),
    ),
    lambda inner: st.builds(SourceSpec, sql=TEXT.filter(bool), views=st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=4,
)


@given(
    spec=st.builds(
        AppendSpec,
        uri=TEXT.filter(str.strip),
        source=SOURCES,
        identity=TEXT,
        max_rows_per_file=st.none() | st.integers(1, 10**9),
        create=st.booleans(),
        schema_drift=st.sampled_from(["fail", "fill_missing", "drop_extra", "fill_and_drop"]),
        storage_options=st.dictionaries(TEXT, st.builds(Secret, value=TEXT) | st.builds(Secret, env=TEXT, key=TEXT)),
        properties=st.dictionaries(TEXT, TEXT),
    )
)
def test_any_spec_survives_json(spec: AppendSpec) -> None:
    assert spec_from_json(spec.to_json()) == spec
