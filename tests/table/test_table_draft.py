"""Drafts: ids, marks, flags, identity, and refusals; the histories of the official library are in another file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError, InputError, UnsupportedFeatureError
from lance_core.format.fragment import DataFile, DataOverlayFile, DeletionFile, ExternalFile, Fragment
from lance_core.format.index import IndexDetails, IndexMetadata
from lance_core.format.manifest import (
    FLAG_BASE_PATHS,
    FLAG_COVERING_INDEX,
    FLAG_DATA_OVERLAYS,
    FLAG_DELETION_FILES,
    FLAG_MANAGED_BLOBS,
    FLAG_MIXED_FILE_VERSIONS,
    FLAG_NON_REUSABLE_FIELD_IDS,
    FLAG_STABLE_ROW_IDS,
    FLAG_TABLE_CONFIG,
    FLAG_ZONE_SEED_DRAFT,
    BasePath,
    Manifest,
    WriterVersion,
)
from lance_core.format.schema import TOMBSTONE, Field, Schema
from lance_core.rowids.message import encode_row_ids
from lance_core.rowids.sequence import sequence_of
from lance_core.table.build import build
from lance_core.table.draft import TableOptions
from lance_core.table.features import check_readable, check_writable
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations import (
    Append,
    Clone,
    CompactedSsTable,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
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
from tests.rowids.row_id_support import row_ids_of, versions_of
from tests.table.table_histories import read_history, transaction_of

SCHEMA = Schema(tuple(Field(i, name, -1, "int64") for i, name in enumerate("abc")), {"k": b"v"})
WRITER = WriterVersion("test", "1")


def data_file(path: str, *fields: int, version: tuple[int, int] = (2, 2)) -> DataFile:
    return DataFile(path, fields, tuple(range(len(fields))), *version)


def fragment(fragment_id: int = 0, *, rows: int = 10, files: tuple[DataFile, ...] | None = None) -> Fragment:
    return Fragment(fragment_id, files or (data_file(f"f{fragment_id}", 0, 1, 2),), rows)


def apply(previous: Manifest | None, operation: Operation, **options: object) -> Manifest:
    version = 0 if previous is None else previous.version
    transaction = Transaction(version, "u", operation)
    return build(previous, transaction, timestamp_ns=5, writer_version=WRITER, **options)  # type: ignore[arg-type]


def table(count: int = 3, *, stable: bool = False) -> Manifest:
    files = tuple(fragment() for _ in range(count))
    return apply(None, Overwrite(files, SCHEMA), options=TableOptions(stable_row_ids=stable))


def index(
    name: str, field: int, fragments: set[int] | None, kind: str = "BTreeIndexDetails", version: int = 0
) -> IndexMetadata:
    bitmap = None if fragments is None else frozenset(fragments)
    details = IndexDetails(f"/lance.table.{kind}", b"")
    return IndexMetadata(f"uuid-{name}", name, (field,), 1, bitmap, details, index_version=version)


def ids(manifest: Manifest) -> list[int]:
    return [item.id for item in manifest.fragments]


def coverage(manifest: Manifest) -> dict[str, set[int] | None]:
    return {item.uuid: None if item.fragment_bitmap is None else set(item.fragment_bitmap) for item in manifest.indices}


# -- fragment ids and marks


def test_ids_go_on_through_overwrite_restore_and_reserve() -> None:
    first = table(2)
    assert (ids(first), first.max_fragment_id, first.version) == ([0, 1], 1, 1)
    reserved = apply(first, ReserveFragments(5))
    assert reserved.max_fragment_id == 6
    overwritten = apply(reserved, Overwrite((fragment(),), SCHEMA))
    assert ids(overwritten) == [7]
    restored = apply(overwritten, Restore(1), source=first)
    assert (ids(restored), restored.max_fragment_id, restored.version) == ([0, 1], 7, 4)
    assert ids(apply(restored, Append((fragment(), fragment())))) == [0, 1, 8, 9]


def test_an_empty_table_has_no_mark() -> None:
    empty = apply(None, Overwrite((), SCHEMA))
    assert empty.max_fragment_id is None
    assert ids(apply(empty, Append((fragment(),)))) == [0]
    assert apply(empty, ReserveFragments(2)).max_fragment_id == 2


def test_a_mark_that_nobody_wrote_down() -> None:
    old = replace(table(3), max_fragment_id=None)
    made = apply(old, Append((fragment(),)))
    assert (ids(made), made.max_fragment_id) == ([0, 1, 2, 3], 3)


def test_nothing_of_the_previous_version_is_changed() -> None:
    before = table(3)
    expected = list(before.fragments)
    apply(before, Delete((replace(fragment(1), deletion_file=DeletionFile("array", 1, 1, 1)),), (0,)))
    assert list(before.fragments) == expected
    assert before.version == 1


def test_transaction_file_and_tag() -> None:
    transaction = Transaction(3, "uu", Append(()), tag="t")
    made = build(table(), transaction, timestamp_ns=7, writer_version=WRITER)
    assert (made.transaction_file, made.tag, made.timestamp_ns, made.writer_version) == ("3-uu.txn", "t", 7, WRITER)


@pytest.mark.parametrize(
    "operation",
    [
        Append((fragment(5), fragment(5))),
        Append((fragment(1),)),
        Delete((fragment(9),)),
        Rewrite((RewriteGroup((fragment(9),), (fragment(),)),)),
        DataReplacement((Replacement(9, data_file("n", 0, 1, 2)),)),
        DataReplacement((Replacement(1, data_file("n", 0)),)),
        Merge((fragment(0), fragment(0), fragment(1)), SCHEMA),
        Append((fragment(files=(data_file("x", 0), data_file("y", 0))),)),
        Append((fragment(files=(DataFile("x", (0, 1), (0,), 2, 2),)),)),
        Restore(1),
        UpdateConfig(field_metadata_updates={77: MapUpdate({"a": "b"})}),
        Rewrite((), (RewrittenIndex("no", "where"),)),
        Overwrite((), SCHEMA, initial_bases=(BasePath(1, "/a"),)),
    ],
    ids=lambda operation: operation.name,
)
def test_what_the_table_does_not_have(operation: Operation) -> None:
    with pytest.raises(InputError):
        apply(table(), operation)


@pytest.mark.parametrize(
    "operation",
    [UpdateMemWalState((CompactedSsTable("s", 1),)), DataOverlay((OverlayGroup(0, (DataOverlayFile(b""),)),))],
    ids=lambda operation: operation.name,
)
def test_operations_that_are_recognised_only(operation: Operation) -> None:
    with pytest.raises(UnsupportedFeatureError):
        apply(table(), operation)


# -- files and schema


def test_files_without_live_columns_go() -> None:
    dead = replace(fragment(0), files=(data_file("x", 0, 1), data_file("y", TOMBSTONE), data_file("z", 2, TOMBSTONE)))
    made = apply(table(), Update(updated_fragments=(dead,)))
    assert [file.path for file in made.fragments[0].files] == ["x", "z"]
    assert [file.path for file in apply(made, Project(SCHEMA.project([0, 1]))).fragments[0].files] == ["x"]


def test_data_replacement_swaps_or_adds() -> None:
    start = apply(None, Overwrite((fragment(files=(data_file("x", 0), data_file("y", 1))),), SCHEMA))
    swapped = apply(start, DataReplacement((Replacement(0, data_file("n", 1)),)))
    assert [file.path for file in swapped.fragments[0].files] == ["x", "n"]
    added = apply(start, DataReplacement((Replacement(0, data_file("n", 2)),)))
    assert [file.path for file in added.fragments[0].files] == ["x", "y", "n"]


def test_schema_without_metadata_keeps_the_tables() -> None:
    assert apply(table(), Project(Schema(SCHEMA.fields))).schema.metadata == {"k": b"v"}
    assert apply(table(), Overwrite((), Schema(SCHEMA.fields))).schema.metadata == {}


def test_configuration_maps() -> None:
    first = apply(
        table(),
        UpdateConfig(
            config_updates=MapUpdate({"a": "1", "b": "2"}),
            table_metadata_updates=MapUpdate({"t": "x"}),
            schema_metadata_updates=MapUpdate({"k": None, "n": "é"}),
            field_metadata_updates={1: MapUpdate({"u": "m"})},
        ),
    )
    assert (first.config, first.table_metadata) == ({"a": "1", "b": "2"}, {"t": "x"})
    assert first.schema.metadata == {"n": "é".encode()}
    assert first.schema.by_id[1].metadata == {"u": b"m"}
    second = apply(first, UpdateConfig(config_updates=MapUpdate({"a": None}), table_metadata_updates=MapUpdate({}, True)))
    assert (second.config, second.table_metadata) == ({"b": "2"}, {})


def test_field_ids() -> None:
    made = apply(table(), Project(SCHEMA.project([0])))
    assert next_field_id(made) == 3
    marked = replace(made, max_allocated_field_id=9, writer_feature_flags=FLAG_NON_REUSABLE_FIELD_IDS)
    assert next_field_id(marked) == 10
    grown = apply(marked, Project(Schema((Field(12, "z", -1, "int64"),))))
    assert grown.max_allocated_field_id == 12
    assert grown.writer_feature_flags & FLAG_NON_REUSABLE_FIELD_IDS


def test_bases() -> None:
    made = apply(table(), UpdateBases((BasePath(0, "/a", "a"), BasePath(7, "/b"), BasePath(0, "/c"))))
    assert [item.id for item in made.base_paths] == [1, 7, 8]
    assert made.reader_feature_flags & made.writer_feature_flags & FLAG_BASE_PATHS
    with pytest.raises(InputError):
        apply(made, UpdateBases((BasePath(0, "/a"),)))


# -- flags


def test_flags_follow_the_manifest() -> None:
    made = table()
    assert (made.reader_feature_flags, made.writer_feature_flags) == (0, 0)
    deleted = replace(fragment(1), deletion_file=DeletionFile("array", 1, 1, 1))
    made = apply(made, Delete((deleted,)))
    assert made.reader_feature_flags == made.writer_feature_flags == FLAG_DELETION_FILES
    configured = apply(made, UpdateConfig(config_updates=MapUpdate({"a": "1"})))
    assert configured.writer_feature_flags == FLAG_DELETION_FILES | FLAG_TABLE_CONFIG
    assert apply(configured, Delete((), (1,))).reader_feature_flags == 0
    covering = replace(index("i", 0, {0}), covering_fields=(1,))
    assert apply(table(), CreateIndex((covering,))).reader_feature_flags == FLAG_COVERING_INDEX


def test_mixed_versions_stay_mixed() -> None:
    older = fragment(files=(data_file("o", 0, 1, 2, version=(2, 1)),))
    mixed = apply(table(), Append((older,)))
    assert mixed.reader_feature_flags == mixed.writer_feature_flags == FLAG_MIXED_FILE_VERSIONS
    assert mixed.data_storage_version == "2.2"
    assert apply(mixed, Delete((), (3,))).reader_feature_flags == FLAG_MIXED_FILE_VERSIONS


@pytest.mark.parametrize(
    ("asked", "numbers", "expected"), [(None, (2, 1), "2.1"), ("2.2", (2, 2), "2.2"), (None, (0, 2), "0.1")]
)
def test_storage_version_of_a_new_table(asked: str | None, numbers: tuple[int, int], expected: str) -> None:
    first = fragment(files=(data_file("o", 0, 1, 2, version=numbers),))
    made = apply(None, Overwrite((first,), SCHEMA), options=TableOptions(data_storage_version=asked))
    assert (made.data_storage_version, made.reader_feature_flags) == (expected, 0)
    assert apply(None, Overwrite((), SCHEMA)).data_storage_version == "2.2"


@pytest.mark.parametrize(("flag", "sticky"), [(FLAG_MANAGED_BLOBS, True), (FLAG_ZONE_SEED_DRAFT, False)])
def test_flags_that_stay(flag: int, sticky: bool) -> None:
    made = replace(table(), reader_feature_flags=flag, writer_feature_flags=flag)
    assert bool(apply(made, Append(())).reader_feature_flags & flag) is sticky


def test_unknown_flags_are_refused() -> None:
    strange = replace(table(), writer_feature_flags=1 << 20)
    check_readable(strange)
    with pytest.raises(UnsupportedFeatureError, match="1048576"):
        check_writable(strange)
    for unknown in (FLAG_DATA_OVERLAYS, 512, 4096, 1 << 40):
        with pytest.raises(UnsupportedFeatureError):
            check_readable(replace(table(), reader_feature_flags=unknown))
    with pytest.raises(CorruptFileError):
        check_readable(replace(table(), reader_feature_flags=FLAG_MIXED_FILE_VERSIONS))


# -- stable row ids


def ids_of(item: Fragment) -> list[int]:
    sequence = row_ids_of(item.row_ids)
    assert sequence is not None
    return sequence.to_array().tolist()


def created(item: Fragment) -> list[int]:
    return versions_of(item.created_at_versions).to_array().tolist()  # type: ignore[union-attr]


def updated(item: Fragment) -> list[int]:
    return versions_of(item.last_updated_at_versions).to_array().tolist()  # type: ignore[union-attr]


def test_new_rows_get_ids_and_versions() -> None:
    made = apply(table(1, stable=True), Append((fragment(rows=3),)))
    assert made.uses_stable_row_ids
    assert (ids_of(made.fragments[1]), made.next_row_id) == ([10, 11, 12], 13)
    assert created(made.fragments[1]) == updated(made.fragments[1]) == [2, 2, 2]
    assert apply(made, Overwrite((fragment(rows=2),), SCHEMA)).next_row_id == 15


def test_moved_rows_keep_ids_and_creation() -> None:
    base = apply(table(1, stable=True), Append((fragment(rows=5),)))
    moved = replace(fragment(rows=4), row_ids=encode_row_ids(sequence_of([12, 3])))
    made = apply(base, Update(updated_fragments=(base.fragments[0], base.fragments[1]), new_fragments=(moved,)))
    assert ids_of(made.fragments[2]) == [12, 3, 15, 16]
    assert created(made.fragments[2]) == [2, 1, 3, 3]
    assert updated(made.fragments[2]) == [3, 3, 3, 3]
    assert made.next_row_id == 17


def test_creation_that_the_writer_gives_is_kept() -> None:
    base = table(1, stable=True)
    given = replace(base.fragments[0], id=0, physical_rows=10)
    made = apply(base, Update(removed_fragment_ids=(0,), new_fragments=(given,)))
    assert created(made.fragments[0]) == [1] * 10
    assert updated(made.fragments[0]) == [2] * 10


def test_more_ids_than_rows() -> None:
    many = replace(fragment(rows=1), row_ids=encode_row_ids(sequence_of([1, 2])))
    with pytest.raises(InputError):
        apply(table(1, stable=True), Append((many,)))


def test_ids_in_a_file_of_their_own_are_left_alone() -> None:
    external = replace(fragment(rows=3), row_ids=ExternalFile("r", 0, 9))
    made = apply(table(1, stable=True), Append((external,)))
    assert made.fragments[1].row_ids == ExternalFile("r", 0, 9)
    assert made.next_row_id == 10


def test_rewrite_must_bring_the_ids() -> None:
    base = table(2, stable=True)
    with pytest.raises(InputError, match="row ids"):
        apply(base, Rewrite((RewriteGroup(tuple(base.fragments), (fragment(rows=20),)),)))


def test_merge_may_bring_new_fragments() -> None:
    base = table(1, stable=True)
    made = apply(base, Merge((base.fragments[0], fragment(4, rows=2)), SCHEMA))
    assert ids_of(made.fragments[1]) == [10, 11]
    assert made.max_fragment_id == 4


def test_rewritten_offsets_count_as_updated() -> None:
    base = table(1, stable=True)
    changed = replace(base.fragments[0], files=(data_file("x", 0, TOMBSTONE, 2), data_file("y", 1)))
    update = Update(updated_fragments=(changed,), fields_modified=(1,), updated_fragment_offsets={0: (2, 3)})
    made = apply(base, replace(update, update_mode=UpdateMode.REWRITE_COLUMNS))
    assert updated(made.fragments[0]) == [1, 1, 2, 2, 1, 1, 1, 1, 1, 1]
    wild = replace(update, update_mode=UpdateMode.REWRITE_COLUMNS, updated_fragment_offsets={0: (10,)})
    with pytest.raises(InputError):
        apply(base, wild)


# -- indices


def indexed(*indices: IndexMetadata, stable: bool = False) -> Manifest:
    return apply(table(4, stable=stable), CreateIndex(indices))


def test_create_index_exchanges_segments() -> None:
    made = indexed(index("a", 0, {0}), index("b", 1, {0}))
    made = apply(made, CreateIndex((index("c", 2, None),), (index("a", 0, {0}),)))
    assert [item.name for item in made.indices] == ["b", "c"]


def test_values_that_change_leave_the_coverage() -> None:
    covering = replace(index("c", 2, {0, 1}), covering_fields=(1,))
    made = indexed(index("a", 0, {0, 1}), index("b", 1, {0, 1}), covering, index("n", 1, None))
    update = Update(updated_fragments=(fragment(0),), fields_modified=(1,))
    assert coverage(apply(made, update)) == {"uuid-a": {0, 1}, "uuid-b": {1}, "uuid-c": {1}, "uuid-n": None}


def test_merge_prunes_what_lies_in_other_files_now() -> None:
    made = indexed(index("a", 0, {0, 1}))
    other = replace(made.fragments[0], files=(data_file("new", 0, 1, 2),))
    assert coverage(apply(made, Merge((other, *made.fragments[1:]), SCHEMA))) == {"uuid-a": {1}}


def test_indices_on_vanished_fields_go() -> None:
    made = indexed(index("a", 0, {0}), index("b", 1, {0}), index("__lance_frag_reuse", 9, set()))
    kept = apply(made, Project(SCHEMA.project([0])))
    assert [item.name for item in kept.indices] == ["a", "__lance_frag_reuse"]


def test_empty_segments() -> None:
    first, second = index("a", 0, {0}), replace(index("a", 0, {1}), uuid="second", dataset_version=0)
    vector = index("v", 1, {0}, "VectorIndexDetails")
    made = indexed(first, second, vector)
    assert set(coverage(apply(made, Delete((), (0,))))) == {"second", "uuid-v"}
    assert set(coverage(apply(made, Delete((), (0, 1))))) == {"second", "uuid-v"}
    assert set(coverage(apply(made, Delete((), (2,))))) == {"uuid-a", "second", "uuid-v"}


def test_rewrite_without_stable_ids() -> None:
    made = indexed(index("a", 0, {0, 1, 2}), index("b", 1, {0, 1, 2}))
    groups = (RewriteGroup((fragment(0), fragment(1)), (fragment(),)),)
    moved = apply(made, Rewrite(groups, (RewrittenIndex("uuid-a", "next", new_index_version=3),)))
    assert coverage(moved) == {"next": {2, 4}, "uuid-b": {0, 1, 2}}
    assert moved.indices[0].index_version == 3
    with pytest.raises(InputError, match="mixes"):
        apply(indexed(index("a", 0, {0})), Rewrite(groups, (RewrittenIndex("uuid-a", "next"),)))
    with pytest.raises(InputError, match="no fragment bitmap"):
        apply(indexed(index("a", 0, None)), Rewrite(groups, (RewrittenIndex("uuid-a", "next"),)))


def test_rewrite_with_stable_ids() -> None:
    made = indexed(
        index("a", 0, {0, 1, 2}, "BitmapIndexDetails"),
        index("b", 1, {0, 1, 2}, "ZoneMapIndexDetails"),
        index("t", 1, {0, 1, 2}, version=1),
        index("n", 1, None, "BitmapIndexDetails"),
        stable=True,
    )
    old = tuple(made.fragments[:2])
    new = replace(fragment(rows=20), row_ids=encode_row_ids(sequence_of(range(20))))
    moved = apply(made, Rewrite((RewriteGroup(old, (new,)),)))
    assert coverage(moved) == {"uuid-a": {2, 4}, "uuid-b": {2}, "uuid-t": {2}, "uuid-n": None}


def test_deferred_rewrite() -> None:
    """Without translation, what covers a whole group is read through the reuse index from then on."""
    reuse = index("__lance_frag_reuse", 0, {4})
    groups = (RewriteGroup((fragment(0), fragment(1)), (fragment(),)),)
    made = apply(indexed(index("a", 0, {0, 1, 2}), index("b", 1, {0})), Rewrite(groups, frag_reuse_index=reuse))
    assert coverage(made) == {"uuid-a": {2, 4}, "uuid-b": {0}, reuse.uuid: {4}}


def test_reuse_index_is_replaced() -> None:
    reuse = index("__lance_frag_reuse", 0, {1})
    groups = (RewriteGroup((fragment(0),), (fragment(),)),)
    made = apply(indexed(reuse), Rewrite(groups, frag_reuse_index=replace(reuse, uuid="new")))
    assert coverage(made) == {"new": {1}}


@pytest.mark.parametrize("kind", ["BitmapIndexDetails", "BloomFilterIndexDetails"])
def test_moved_rows_stay_covered(kind: str) -> None:
    made = indexed(index("a", 0, {0, 1}, kind), index("c", 1, {0, 1}, kind), index("d", 0, {1}, kind), stable=True)
    new = replace(fragment(rows=2), row_ids=encode_row_ids(sequence_of([0, 1])))
    update = Update(updated_fragments=(made.fragments[0],), new_fragments=(new,), fields_for_preserving_frag_bitmap=(1,))
    followed = {0, 1, 4} if kind == "BitmapIndexDetails" else {0, 1}
    assert coverage(apply(made, update)) == {"uuid-a": followed, "uuid-c": {0, 1}, "uuid-d": {1}}


def test_overwrite_drops_indices_and_restore_brings_them_back() -> None:
    made = indexed(index("a", 0, {0}))
    gone = apply(made, Overwrite((fragment(),), SCHEMA))
    assert gone.indices == ()
    assert apply(gone, Restore(2), source=made).indices == made.indices


def test_stable_flag_survives_restore() -> None:
    base = table(1, stable=True)
    assert apply(apply(base, Append((fragment(),))), Restore(1), source=base).reader_feature_flags == FLAG_STABLE_ROW_IDS


# -- clones


def test_clones_of_the_official_library(tmp_path: Path) -> None:
    root = tmp_path / "t"
    lance.write_dataset(pa.table({"a": range(100)}), str(root), max_rows_per_file=50)
    lance.dataset(str(root)).delete("a = 3")
    lance.dataset(str(root)).create_scalar_index("a", "BTREE")
    lance.dataset(str(root)).update_config({"k": "v"})
    opened = lance.dataset(str(root))
    opened.tags.create("t1", 3)
    opened.create_branch("br")
    opened.shallow_clone(str(tmp_path / "c"), "t1")
    sources = {item.manifest.version: item.manifest for item in read_history(root)}
    for clone in (root / "tree" / "br", tmp_path / "c"):
        (file,) = read_history(clone)
        transaction, real = transaction_of(file), file.manifest
        made = build(
            None,
            transaction,
            timestamp_ns=real.timestamp_ns,
            writer_version=real.writer_version,  # type: ignore[arg-type]
            source=sources[transaction.operation.ref_version],  # type: ignore[attr-defined]
        )
        assert made == real


def test_a_clone_needs_its_source() -> None:
    with pytest.raises(InputError):
        apply(None, Clone(is_shallow=True, ref_version=1, ref_path="/x"))
    deep = apply(None, Clone(is_shallow=False, ref_version=1, ref_path="/x"), source=table())
    assert (deep.base_paths, deep.fragments[0].files[0].base_id) == ((), None)
