"""Hypothesis strategies for the nouns of a manifest."""

from __future__ import annotations

from hypothesis import strategies as st

from lance_core.format.fragment import DataFile, DeletionFile, ExternalFile, Fragment
from lance_core.format.index import IndexDetails, IndexFile, IndexMetadata
from lance_core.format.manifest import BasePath, Manifest, WriterVersion
from lance_core.format.schema import Field, FieldEncoding, LegacyDictionary, Schema

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
I32 = st.integers(-2, 2**31 - 1)
TEXT = st.text(max_size=12)
TEXT_MAP = st.dictionaries(TEXT, TEXT, max_size=3)
BYTES_MAP = st.dictionaries(TEXT, st.binary(max_size=8), max_size=3)


def tuples(items: st.SearchStrategy, max_size: int = 3) -> st.SearchStrategy:
    return st.lists(items, max_size=max_size).map(tuple)


EXTERNAL = st.builds(ExternalFile, path=TEXT, offset=U64, size=U64)
SEQUENCE = st.none() | st.binary(max_size=20) | EXTERNAL
DATA_FILES = st.builds(
    DataFile,
    path=TEXT,
    fields=tuples(I32),
    column_indices=tuples(I32),
    file_major_version=U32,
    file_minor_version=U32,
    file_size_bytes=st.none() | st.integers(1, 2**64 - 1),
    base_id=st.none() | U32,
)
DELETIONS = st.builds(
    DeletionFile,
    file_type=st.sampled_from(["array", "bitmap"]),
    read_version=U64,
    id=U64,
    num_deleted_rows=st.integers(0, 1000),
    base_id=st.none() | U32,
)
FRAGMENTS = st.builds(
    Fragment,
    id=U32,
    files=tuples(DATA_FILES),
    physical_rows=st.integers(1000, 2**32 - 1),
    deletion_file=st.none() | DELETIONS,
    row_ids=SEQUENCE,
    last_updated_at_versions=SEQUENCE,
    created_at_versions=SEQUENCE,
    clustering_id=st.none() | U64,
    metadata=TEXT_MAP,
    # Field 6 once was an external sequence; today nobody knows it.
    unknown=st.sampled_from([b"", b"\x32\x01x"]),
)
FIELD_PARTS = st.fixed_dictionaries(
    {
        "name": TEXT,
        "logical_type": st.sampled_from(["int64", "string", "struct", "list", "timestamp:us:UTC"]),
        "nullable": st.booleans(),
        "encoding": st.sampled_from(FieldEncoding),
        "metadata": BYTES_MAP,
        "extension_name": TEXT,
        "dictionary": st.none() | st.builds(LegacyDictionary, offset=st.integers(0, 2**62), length=st.integers(0, 2**62)),
        "unenforced_primary_key": st.booleans(),
        "unenforced_primary_key_position": U32,
        "unenforced_clustering_key": st.booleans(),
        "unenforced_clustering_key_position": U32,
        "unknown": st.sampled_from([b"", b"\x80\x01\x07"]),
    }
)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    fields: list[Field] = []
    for position, parts in enumerate(draw(st.lists(FIELD_PARTS, max_size=5))):
        parent = draw(st.sampled_from([-1, *(item.id for item in fields if item.logical_type in ("struct", "list"))]))
        name = f"{parts['name']}{position}"  # the columns of a table differ by their names
        fields.append(Field(id=position * 3, parent_id=parent, **{**parts, "name": name}))
    return Schema(tuple(fields), draw(BYTES_MAP))


INDICES = st.builds(
    IndexMetadata,
    uuid=st.uuids().map(str),
    name=TEXT,
    fields=tuples(I32),
    dataset_version=U64,
    fragment_bitmap=st.none() | st.frozensets(U32, max_size=10),
    details=st.none() | st.builds(IndexDetails, type_url=TEXT, value=st.binary(max_size=8)),
    index_version=st.none() | I32,
    created_at=st.none() | U64,
    base_id=st.none() | U32,
    files=tuples(st.builds(IndexFile, path=TEXT, size_bytes=U64)),
    covering_fields=tuples(I32),
    clustering_id=st.none() | U64,
    metadata=TEXT_MAP,
    unknown=st.sampled_from([b"", b"\xa2\x01\x01x"]),
)
BASES = st.builds(BasePath, id=U32, path=TEXT, name=st.none() | TEXT, is_dataset_root=st.booleans())
MANIFESTS = st.builds(
    Manifest,
    schema=schemas(),
    fragments=st.lists(FRAGMENTS, max_size=4),
    version=U64,
    timestamp_ns=st.integers(0, 2**62),
    writer_version=st.none()
    | st.builds(WriterVersion, library=TEXT, version=TEXT, prerelease=st.none() | TEXT, build_metadata=st.none() | TEXT),
    indices=tuples(INDICES),
    reader_feature_flags=U64,
    writer_feature_flags=U64,
    max_fragment_id=st.none() | U32,
    transaction_file=TEXT,
    next_row_id=U64,
    data_storage_version=st.sampled_from(["0.1", "2.0", "2.2"]),
    file_format=st.sampled_from(["lance", "other"]),
    config=TEXT_MAP,
    table_metadata=TEXT_MAP,
    base_paths=tuples(BASES),
    branch=st.none() | TEXT,
    tag=TEXT,
    version_aux_data=U64,
    max_allocated_field_id=st.none() | st.integers(0, 2**31 - 1),
    # fragment_tree, max_clustering_id, and a field that does not exist.
    unknown=st.sampled_from([b"", b"\xb2\x01\x02\x08\x01", b"\xd0\x01\x05", b"\xa2\x06\x01x"]),
)
