"""Transactions on the wire: each operation, old forms, new ones that nobody knows yet, and the official library as judge."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError, FormatError, UnsupportedFeatureError
from lance_core.format.fragment import DataOverlayFile
from lance_core.format.index import IndexDetails, IndexFile
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
from lance_core.wire.manifest_file import decode_manifest_file
from lance_core.wire.pb import table_pb2, transaction_pb2
from lance_core.wire.transaction import decode_transaction, encode_transaction
from tests.wire.wire_strategies import BASES, DATA_FILES, FRAGMENTS, I32, INDICES, TEXT, TEXT_MAP, U32, U64, schemas, tuples

UUIDS = st.uuids().map(str)
SSTABLES = tuples(st.builds(CompactedSsTable, shard_id=UUIDS, generation=U64))
BLOOM = st.builds(
    KeyBloomFilter, bitmap=st.binary(max_size=4), num_bits=U32, number_of_items=U64, probability=st.floats(0, 1)
)
FILTERS = st.one_of(
    st.builds(KeyFilter, field_ids=tuples(I32)),
    st.builds(KeyFilter, field_ids=tuples(I32), key_hashes=tuples(U64)),
    st.builds(KeyFilter, field_ids=tuples(I32), bloom=BLOOM),
)
MAPS = st.builds(MapUpdate, entries=st.dictionaries(TEXT, st.none() | TEXT, max_size=3), replace=st.booleans())
REWRITTEN = st.builds(
    RewrittenIndex,
    old_id=UUIDS,
    new_id=UUIDS,
    new_index_details=st.none() | st.builds(IndexDetails, type_url=TEXT, value=st.binary(max_size=5)),
    new_index_version=U32,
    new_index_files=tuples(st.builds(IndexFile, path=TEXT, size_bytes=U64)),
)
OVERLAY = DataOverlayFile(table_pb2.DataOverlayFile(shared_offset_bitmap=b"x", committed_version=2).SerializeToString())
PROJECTED = schemas().map(lambda schema: type(schema)(schema.fields))
SOME = tuples(FRAGMENTS, 2)

EACH = {
    Append: st.builds(Append, fragments=SOME),
    Delete: st.builds(Delete, updated_fragments=SOME, deleted_fragment_ids=tuples(U64), predicate=TEXT),
    Overwrite: st.builds(
        Overwrite, fragments=SOME, schema=schemas(), config_upsert_values=TEXT_MAP, initial_bases=tuples(BASES)
    ),
    CreateIndex: st.builds(CreateIndex, new_indices=tuples(INDICES), removed_indices=tuples(INDICES)),
    Rewrite: st.builds(
        Rewrite,
        groups=tuples(st.builds(RewriteGroup, old_fragments=SOME, new_fragments=SOME), 2),
        rewritten_indices=tuples(REWRITTEN),
    ),
    Merge: st.builds(Merge, fragments=SOME, schema=schemas(), preserves_nullability=st.booleans()),
    Restore: st.builds(Restore, version=U64),
    ReserveFragments: st.builds(ReserveFragments, num_fragments=U32),
    Update: st.builds(
        Update,
        removed_fragment_ids=tuples(U64),
        updated_fragments=SOME,
        new_fragments=SOME,
        fields_modified=tuples(U32),
        compacted_sstables=SSTABLES,
        fields_for_preserving_frag_bitmap=tuples(U32),
        update_mode=st.sampled_from(UpdateMode),
        inserted_rows=st.none() | FILTERS,
        updated_fragment_offsets=st.dictionaries(U64, tuples(U32), max_size=2),
        updated_fragment_offset_bitmaps=st.dictionaries(U64, st.binary(max_size=4), max_size=2),
    ),
    Project: st.builds(Project, schema=PROJECTED, preserves_nullability=st.booleans()),
    UpdateConfig: st.builds(
        UpdateConfig,
        config_updates=st.none() | MAPS,
        table_metadata_updates=st.none() | MAPS,
        schema_metadata_updates=st.none() | MAPS,
        field_metadata_updates=st.dictionaries(I32, MAPS, max_size=2),
    ),
    DataReplacement: st.builds(
        DataReplacement, replacements=tuples(st.builds(Replacement, fragment_id=U64, new_file=DATA_FILES))
    ),
    UpdateMemWalState: st.builds(UpdateMemWalState, compacted_sstables=SSTABLES),
    Clone: st.builds(
        Clone,
        is_shallow=st.booleans(),
        ref_version=U64,
        ref_path=TEXT,
        ref_name=st.none() | TEXT,
        branch_name=st.none() | TEXT,
    ),
    UpdateBases: st.builds(UpdateBases, new_bases=tuples(BASES)),
    DataOverlay: st.builds(
        DataOverlay, groups=tuples(st.builds(OverlayGroup, fragment_id=U64, overlays=st.just((OVERLAY,))))
    ),
}


def test_each_operation_has_a_strategy() -> None:
    assert set(EACH) == set(OPERATIONS)


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.name)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(data=st.data(), read_version=U64, tag=TEXT, properties=TEXT_MAP)
def test_round_trip(kind: type, data: st.DataObject, read_version: int, tag: str, properties: dict[str, str]) -> None:
    transaction = Transaction(read_version, "u", data.draw(EACH[kind]), tag=tag, properties=properties)
    raw = encode_transaction(transaction)
    assert decode_transaction(raw) == transaction
    assert encode_transaction(decode_transaction(raw)) == raw


def test_file_name() -> None:
    assert Transaction(4, "3f0c", Restore(1)).file_name == "4-3f0c.txn"


def message(**arm: object) -> bytes:
    return transaction_pb2.Transaction(read_version=1, uuid="u", **arm).SerializeToString()  # type: ignore[arg-type]


ARMS = transaction_pb2.Transaction


def test_old_form_of_configuration() -> None:
    old = ARMS.UpdateConfig(upsert_values={"a": "1"}, delete_keys=["b"], schema_metadata={"s": "2"})
    old.field_metadata[3].metadata["k"] = "v"
    found = decode_transaction(message(update_config=old)).operation
    assert found == UpdateConfig(
        config_updates=MapUpdate({"a": "1", "b": None}),
        schema_metadata_updates=MapUpdate({"s": "2"}, replace=True),
        field_metadata_updates={3: MapUpdate({"k": "v"}, replace=True)},
    )


def test_old_form_of_rewrite() -> None:
    fragment = table_pb2.DataFragment(id=3, physical_rows=1)
    found = decode_transaction(message(rewrite=ARMS.Rewrite(old_fragments=[fragment], new_fragments=[fragment]))).operation
    assert isinstance(found, Rewrite)
    assert [item.id for item in found.groups[0].old_fragments] == [3]


def test_unknown_fields_survive() -> None:
    raw = message(restore=ARMS.Restore(version=3)) + b"\xb2\x01\x01x"
    assert encode_transaction(decode_transaction(raw)) == raw


def test_operation_of_a_newer_release() -> None:
    with pytest.raises(UnsupportedFeatureError):
        decode_transaction(message() + b"\xc2\x3e\x01x")
    with pytest.raises(CorruptFileError):
        decode_transaction(message())


@given(st.binary(max_size=80))
def test_noise(noise: bytes) -> None:
    try:
        decode_transaction(noise)
    except FormatError:
        return


def test_transactions_of_the_official_library(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    table = pa.table({"a": range(20), "b": [str(i) for i in range(20)]})
    lance.write_dataset(table, uri, max_rows_per_file=5)
    lance.dataset(uri).delete("a = 2")
    lance.dataset(uri).update({"b": "'z'"}, where="a = 7")
    lance.dataset(uri).update_config({"k": "v"})
    lance.dataset(uri).create_scalar_index("a", "BTREE")
    lance.dataset(uri).optimize.compact_files()
    seen = set()
    for path in (tmp_path / "t" / "_versions").glob("*.manifest"):
        raw = decode_manifest_file(path.read_bytes()).transaction
        assert raw is not None
        transaction = decode_transaction(raw)
        seen.add(transaction.operation.name)
        again = transaction_pb2.Transaction.FromString(encode_transaction(transaction))
        assert again == transaction_pb2.Transaction.FromString(raw)
    assert seen == {"Overwrite", "Delete", "Update", "UpdateConfig", "CreateIndex", "ReserveFragments", "Rewrite"}
