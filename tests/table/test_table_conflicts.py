"""The grid of conflict rules: total, and equal to what was measured on the official library."""

from __future__ import annotations

import pytest

from lance_core.format.fragment import DataFile, DataOverlayFile, DeletionFile, Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.manifest import BasePath
from lance_core.format.schema import Field, Schema
from lance_core.table.conflicts import RULES, VerdictKind, judge, judge_all
from lance_core.table.operations import (
    OPERATIONS,
    Append,
    Clone,
    CompactedSsTable,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    KeyBloomFilter,
    KeyFilter,
    MapUpdate,
    Merge,
    Operation,
    OverlayGroup,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from lance_core.table.transaction import Transaction

ID, X, Y = 0, 1, 2
SCHEMA = Schema(tuple(Field(id=i, name=name, parent_id=-1, logical_type="int64") for i, name in enumerate("ixy")))
WITHOUT_Y = SCHEMA.project([ID, X])


def data_file(name: str, *fields: int) -> DataFile:
    return DataFile(name, fields, tuple(range(len(fields))), 2, 2)


def fragment(fragment_id: int, *, deleted: int = 0, files: tuple[DataFile, ...] | None = None) -> Fragment:
    deletion = DeletionFile("array", 1, 7, deleted) if deleted else None
    own = (data_file(f"{fragment_id}-i", ID), data_file(f"{fragment_id}-x", X), data_file(f"{fragment_id}-y", Y))
    return Fragment(id=fragment_id, files=files or own, physical_rows=10, deletion_file=deletion)


def index(name: str, fragments: set[int], field: int = Y, uuid: str = "") -> IndexMetadata:
    return IndexMetadata(uuid or name, name, (field,), 1, frozenset(fragments))


def replacement(field: int, fragment_id: int) -> DataReplacement:
    return DataReplacement((Replacement(fragment_id, data_file("new", field)),))


def rewrite(*old: int) -> Rewrite:
    return Rewrite((RewriteGroup(tuple(fragment(i) for i in old), (fragment(0),)),))


SCENARIOS: dict[str, Operation] = {
    "append": Append((fragment(0),)),
    "delete_f0": Delete((fragment(0, deleted=1),)),
    "delete_f2": Delete((fragment(2, deleted=1),)),
    "delete_whole_f0": Delete((), (0,)),
    "update_rows_f0": Update(updated_fragments=(fragment(0, deleted=1),), new_fragments=(fragment(0),)),
    "update_cols_x_f0": Update(
        updated_fragments=(fragment(0, files=(data_file("a", ID), data_file("b", X), data_file("c", Y))),),
        fields_modified=(X,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
    ),
    "overwrite": Overwrite((fragment(0),), SCHEMA),
    "create_index_y_all": CreateIndex((index("y_idx", {0, 1, 2, 3}),)),
    "create_index_y_f2": CreateIndex((index("y_idx", {2}),)),
    "create_index_other_name": CreateIndex((index("other", {0, 1, 2, 3}),)),
    "rewrite_f0f1": rewrite(0, 1),
    "rewrite_f2f3": rewrite(2, 3),
    "merge": Merge(tuple(map(fragment, range(4))), SCHEMA),
    "merge_pn": Merge(tuple(map(fragment, range(4))), SCHEMA, preserves_nullability=True),
    "project_drop_y": Project(WITHOUT_Y),
    "project_drop_y_pn": Project(WITHOUT_Y, preserves_nullability=True),
    "restore": Restore(1),
    "datarep_x_f0": replacement(X, 0),
    "datarep_y_f0": replacement(Y, 0),
    "datarep_x_f2": replacement(X, 2),
    "config_a": UpdateConfig(config_updates=MapUpdate({"a": "1"})),
    "config_b": UpdateConfig(config_updates=MapUpdate({"b": "1"})),
    "field_md": UpdateConfig(field_metadata_updates={X: MapUpdate({"k": "1"})}),
    "table_md": UpdateConfig(table_metadata_updates=MapUpdate({"k": "1"})),
    "schema_md": UpdateConfig(schema_metadata_updates=MapUpdate({"k": "1"})),
}

# Executed pair by pair on pylance 14.0.2. Rows: what has landed; columns, in the same order: mine. . ok, R retry, X never.
MATRIX = """
............RRR.......... append
.R.RRR....R.RR........... delete_f0
..R........RRR........... delete_f2
.R.RRR....R.RR...XX...... delete_whole_f0
.R.RRR....R.RRR..RR...... update_rows_f0
.R.RRR....R.RRR..R....... update_cols_x_f0
XXXXXXRXXXXXXXXX.XXX..X.X overwrite
.......RR.RR......R...... create_index_y_all
.......RR..R......R...... create_index_y_f2
.........RRR......R...... create_index_other_name
.R.RRR.R.RR.RR...RR...... rewrite_f0f1
..R....RRR.RRR.....R..... rewrite_f2f3
RRRRRR....RRRRRR.RRR..R.R merge
.RRRRR....RRRRRR.RRR..R.R merge_pn
R...RR......XXRR.RRR..... project_drop_y
............XXRR..X...... project_drop_y_pn
XXXXXX.XXXXXXXXX.XXX..X.X restore
.R.RRR....R.RRR..R....... datarep_x_f0
.R.RRR.RRRR.RRR...R...... datarep_y_f0
..R........RRRR....R..... datarep_x_f2
....................X.... config_a
.....................X... config_b
............RR..X.....X.. field_md
.......................X. table_md
............RR..X.......X schema_md
"""
ROWS = {line.split()[1]: line.split()[0] for line in MATRIX.strip().splitlines()}
OUTCOMES = {".": VerdictKind.OK, "R": VerdictKind.RETRY, "X": VerdictKind.NEVER}


def transaction(operation: Operation) -> Transaction:
    return Transaction(read_version=1, uuid="u", operation=operation)


def outcome(mine: Operation, theirs: Operation, **known: object) -> VerdictKind:
    return judge(transaction(mine), transaction(theirs), **known).kind  # type: ignore[arg-type]


def test_grid_is_total() -> None:
    assert set(RULES) == {(mine, theirs) for mine in OPERATIONS for theirs in OPERATIONS}


def test_every_operation_occurs_once() -> None:
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS) == 16


@pytest.mark.parametrize("theirs", SCENARIOS)
def test_matrix_of_the_official_library(theirs: str) -> None:
    assert list(ROWS) == list(SCENARIOS)
    expected = {mine: OUTCOMES[cell] for mine, cell in zip(SCENARIOS, ROWS[theirs], strict=True)}
    found = {mine: judge(transaction(SCENARIOS[mine]), transaction(SCENARIOS[theirs])) for mine in SCENARIOS}
    assert {mine: verdict.kind for mine, verdict in found.items()} == expected
    assert all(verdict.reason for verdict in found.values() if verdict.kind is not VerdictKind.OK)


OTHERS: dict[str, Operation] = {
    "reserve": ReserveFragments(3),
    "clone": Clone(is_shallow=True, ref_version=1, ref_path="/a"),
    "bases": UpdateBases((BasePath(id=0, path="/b", name="b"),)),
    "mem_wal": UpdateMemWalState((CompactedSsTable("s", 4),)),
    "overlay": DataOverlay((OverlayGroup(0, (DataOverlayFile(b""),)),)),
}


@pytest.mark.parametrize("mine", {**SCENARIOS, **OTHERS})
@pytest.mark.parametrize("theirs", {**SCENARIOS, **OTHERS})
def test_every_pair_gets_a_verdict(mine: str, theirs: str) -> None:
    everything = {**SCENARIOS, **OTHERS}
    verdict = judge(transaction(everything[mine]), transaction(everything[theirs]))
    assert bool(verdict.reason) == (verdict.kind is not VerdictKind.OK)


def test_deletion_vectors_are_merged_when_rows_are_known() -> None:
    mine, theirs = SCENARIOS["delete_f0"], SCENARIOS["update_rows_f0"]
    assert outcome(mine, theirs, affected_rows=True) is VerdictKind.REBASE
    assert outcome(theirs, mine, affected_rows=True) is VerdictKind.REBASE


def test_deletion_vectors_are_not_merged_when_files_changed_or_fragment_went() -> None:
    mine = SCENARIOS["delete_f0"]
    assert outcome(mine, SCENARIOS["update_cols_x_f0"], affected_rows=True) is VerdictKind.RETRY
    assert outcome(mine, SCENARIOS["delete_whole_f0"], affected_rows=True) is VerdictKind.RETRY
    assert outcome(SCENARIOS["delete_whole_f0"], mine, affected_rows=True) is VerdictKind.RETRY


def test_fragment_i_remove_is_compared_with_what_i_read() -> None:
    mine = Delete((fragment(1, deleted=1),), (0,))
    theirs = Delete((fragment(0, deleted=1),))
    changed = Delete((fragment(0, deleted=1, files=(data_file("z", X),)),))
    assert outcome(mine, theirs, affected_rows=True, originals={0: fragment(0)}) is VerdictKind.REBASE
    assert outcome(mine, changed, affected_rows=True, originals={0: fragment(0)}) is VerdictKind.RETRY


def with_keys(*hashes: int, fields: tuple[int, ...] = (ID,)) -> Update:
    return Update(new_fragments=(fragment(0),), inserted_rows=KeyFilter(fields, key_hashes=hashes))


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (with_keys(1, 2), with_keys(3), VerdictKind.OK),
        (with_keys(1, 2), with_keys(2, 3), VerdictKind.RETRY),
        (with_keys(1), with_keys(3, fields=(X,)), VerdictKind.RETRY),
        (with_keys(1), Update(), VerdictKind.RETRY),
        (Update(), with_keys(1), VerdictKind.OK),
        (with_keys(1), Append(()), VerdictKind.RETRY),
        (Update(), Append(()), VerdictKind.OK),
    ],
)
def test_inserted_keys(mine: Operation, theirs: Operation, expected: VerdictKind) -> None:
    assert outcome(mine, theirs) is expected


@pytest.mark.parametrize(
    ("left", "right", "num_bits", "expected"),
    [
        (b"\x01", b"\x02", 8, VerdictKind.OK),
        (b"\x03", b"\x02", 8, VerdictKind.RETRY),
        (b"\x01", b"\x02", 4, VerdictKind.RETRY),
    ],
)
def test_bloom_filters(left: bytes, right: bytes, num_bits: int, expected: VerdictKind) -> None:
    def update(bitmap: bytes, bits: int) -> Update:
        return Update(inserted_rows=KeyFilter((ID,), bloom=KeyBloomFilter(bitmap, bits, 1, 0.1)))

    assert outcome(update(left, 8), update(right, num_bits)) is expected


@pytest.mark.parametrize(("committed", "expected"), [(3, VerdictKind.RETRY), (4, VerdictKind.NEVER), (9, VerdictKind.NEVER)])
def test_generations_of_a_shard(committed: int, expected: VerdictKind) -> None:
    mine, theirs = (UpdateMemWalState((CompactedSsTable("s", n),)) for n in (4, committed))
    assert outcome(mine, theirs) is expected
    assert outcome(mine, UpdateMemWalState((CompactedSsTable("t", committed),))) is VerdictKind.OK


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (CreateIndex((), (index("a", {0}),)), CreateIndex((index("a", {1}, uuid="n"),)), VerdictKind.RETRY),
        (CreateIndex((index("a", {1}, uuid="n"),)), CreateIndex((), (index("a", {0}),)), VerdictKind.RETRY),
        (CreateIndex((), (index("a", {0}),)), CreateIndex((), (index("a", {0}),)), VerdictKind.OK),
        (CreateIndex((index("b", {0}),)), CreateIndex((index("c", {0}),)), VerdictKind.OK),
    ],
)
def test_index_names(mine: Operation, theirs: Operation, expected: VerdictKind) -> None:
    assert outcome(mine, theirs) is expected


def test_index_of_unknown_coverage_meets_every_rewrite() -> None:
    unknown = CreateIndex((IndexMetadata("u", "n", (Y,), 1, None),))
    assert outcome(unknown, rewrite(0)) is VerdictKind.RETRY
    assert outcome(rewrite(0), unknown) is VerdictKind.RETRY


def test_reuse_index_lets_whole_groups_pass() -> None:
    reuse = IndexMetadata("f", "__lance_frag_reuse", (), 1, frozenset())
    deferred = Rewrite(rewrite(0, 1).groups, frag_reuse_index=reuse)
    assert outcome(deferred, CreateIndex((index("y", {0, 1, 2}),))) is VerdictKind.OK
    assert outcome(deferred, CreateIndex((index("y", {1, 2}),))) is VerdictKind.RETRY
    assert outcome(CreateIndex((index("y", {1, 2}),)), deferred) is VerdictKind.OK


def test_two_deferred_rewrites_would_lose_a_reuse_index() -> None:
    reuse = IndexMetadata("f", "__lance_frag_reuse", (), 1, frozenset())
    deferred = Rewrite(rewrite(0).groups, frag_reuse_index=reuse)
    assert outcome(deferred, rewrite(2)) is VerdictKind.RETRY
    assert outcome(deferred, Rewrite(rewrite(2).groups, (RewrittenIndex("a", "b"),))) is VerdictKind.OK
    assert outcome(rewrite(2), deferred) is VerdictKind.OK


def test_index_on_an_updated_column_is_rebased() -> None:
    assert outcome(CreateIndex((index("x", {0, 1}, X),)), SCENARIOS["update_cols_x_f0"]) is VerdictKind.REBASE
    assert outcome(CreateIndex((index("x", {1}, X),)), SCENARIOS["update_cols_x_f0"]) is VerdictKind.OK


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (BasePath(0, "/b"), BasePath(0, "/b"), VerdictKind.NEVER),
        (BasePath(0, "/c", "b"), BasePath(0, "/b", "b"), VerdictKind.NEVER),
        (BasePath(2, "/c"), BasePath(2, "/b"), VerdictKind.NEVER),
        (BasePath(0, "/c"), BasePath(0, "/b"), VerdictKind.OK),
    ],
)
def test_bases(mine: BasePath, theirs: BasePath, expected: VerdictKind) -> None:
    assert outcome(UpdateBases((mine,)), UpdateBases((theirs,))) is expected


def test_overwrite_of_the_same_configuration_key() -> None:
    mine, theirs = (Overwrite((), SCHEMA, {"k": value}) for value in "ab")
    assert outcome(mine, theirs) is VerdictKind.NEVER
    assert outcome(mine, UpdateConfig(config_updates=MapUpdate({"k": "c"}))) is VerdictKind.NEVER
    assert outcome(mine, UpdateConfig(config_updates=MapUpdate({}, replace=True))) is VerdictKind.NEVER


def test_overlays() -> None:
    overlay = OTHERS["overlay"]
    assert outcome(overlay, SCENARIOS["delete_f0"]) is VerdictKind.OK
    assert outcome(overlay, SCENARIOS["delete_whole_f0"]) is VerdictKind.RETRY
    assert outcome(overlay, SCENARIOS["update_cols_x_f0"]) is VerdictKind.OK
    assert outcome(overlay, SCENARIOS["update_rows_f0"]) is VerdictKind.RETRY
    assert outcome(SCENARIOS["update_cols_x_f0"], overlay) is VerdictKind.RETRY


def test_gravest_of_several_wins() -> None:
    mine = transaction(SCENARIOS["delete_f0"])
    landed = [transaction(SCENARIOS[name]) for name in ("append", "rewrite_f0f1", "delete_f0")]
    verdict = judge_all(mine, landed, affected_rows=True)
    assert verdict.kind is VerdictKind.RETRY
    assert "Rewrite" in verdict.reason
    assert judge_all(mine, landed[:1]).kind is VerdictKind.OK
