"""Index details and models on the wire: round trips, and the bytes of the official library decoded and encoded again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError, FormatError
from lance_core.format.fragment import ExternalFile
from lance_core.format.index import IndexDetails, IndexMetadata
from lance_core.format.index_details import (
    CodeTokenizer,
    Details,
    FragmentDigest,
    Hnsw,
    InvertedDetails,
    IvfPartitions,
    JsonDetails,
    MinHashDetails,
    PlainDetails,
    QuantizerDetails,
    ReuseDetails,
    ReuseGroup,
    ReuseVersion,
    Tensor,
    VectorDetails,
    ZoneMapDetails,
)
from lance_core.wire.index import (
    decode_details,
    decode_ivf,
    decode_tensor_bytes,
    encode_details,
    encode_ivf,
    encode_tensor_bytes,
)
from lance_core.wire.manifest_file import decode_manifest_file
from lance_core.wire.pb import index_pb2
from lance_core.wire.reuse import decode_reuse, encode_reuse, read_through

GROUP = ReuseGroup(b"moved", (FragmentDigest(0, 10, 1), FragmentDigest(1, 10)), (FragmentDigest(5, 19),))
REUSE = ReuseDetails((ReuseVersion(3, (GROUP,)),))
TOKENS = InvertedDetails(base_tokenizer="simple", language='"English"', stem=True, max_token_length=40, block_size=128)

EXAMPLES: list[Details] = [
    *[
        PlainDetails(f"{name}IndexDetails")
        for name in ["BTree", "Bitmap", "LabelList", "NGram", "BloomFilter", "RTree", "FM"]
    ],
    ZoneMapDetails(),
    ZoneMapDetails(8192, False, True),
    TOKENS,
    replace(TOKENS, code=CodeTokenizer(True, False, None, True), list_elements_are_documents=True, json_tokenizer_mode="x"),
    JsonDetails("$.a", IndexDetails("/lance.table.BTreeIndexDetails", b""), 3),
    MinHashDetails(128, 16, 3, TOKENS, 1),
    VectorDetails("dot"),
    VectorDetails("l2", QuantizerDetails("pq", 8, 16), Hnsw(20, 150, 7), 100, 4, {"a": "b"}),
    VectorDetails("cosine", QuantizerDetails("sq", 8)),
    VectorDetails("cosine", QuantizerDetails("rq", 5, rotation="matrix")),
    VectorDetails("hamming", QuantizerDetails("flat")),
    REUSE,
    ReuseDetails(external=ExternalFile("details.binpb", 0, 9)),
]


@pytest.mark.parametrize("details", EXAMPLES, ids=lambda details: type(details).__name__)
def test_round_trip(details: Details) -> None:
    assert decode_details(encode_details(details)) == details


def test_kind_is_the_last_part_of_the_url() -> None:
    value = encode_details(VectorDetails("l2")).value
    assert decode_details(IndexDetails("/lance.table.VectorIndexDetails", value)) == VectorDetails("l2")
    assert decode_details(IndexDetails("/lance.table.SomethingNew", b"x")) is None


def test_unknown_metric() -> None:
    value = index_pb2.VectorIndexDetails(metric_type=9).SerializeToString()  # type: ignore[arg-type]
    with pytest.raises(CorruptFileError, match="metric 9"):
        decode_details(IndexDetails("/x.VectorIndexDetails", value))


@given(st.sampled_from([encode_details(item).type_url for item in EXAMPLES]), st.binary(max_size=40))
def test_noise(url: str, noise: bytes) -> None:
    try:
        decode_details(IndexDetails(url, noise))
        decode_ivf(noise)
    except FormatError:
        return


def test_models() -> None:
    centroids = Tensor("float32", (2, 3), np.arange(6, dtype="<f4").tobytes())
    model = IvfPartitions(centroids, (0, 5), (5, 7), 0.5)
    assert decode_ivf(encode_ivf(model)) == model
    assert decode_ivf(encode_ivf(IvfPartitions())) == IvfPartitions()
    assert decode_tensor_bytes(encode_tensor_bytes(centroids)) == centroids
    with pytest.raises(CorruptFileError, match="shape"):
        decode_tensor_bytes(encode_tensor_bytes(replace(centroids, shape=(2, 4))))
    with pytest.raises(CorruptFileError, match="lengths"):
        decode_ivf(encode_ivf(replace(model, lengths=(5,))))
    for shape in ((6,), (1, 2, 3)):
        with pytest.raises(CorruptFileError, match="partitions, dimension"):
            decode_ivf(encode_ivf(replace(model, centroids=replace(centroids, shape=shape))))


def test_coverage_is_read_through_the_reuse_index() -> None:
    def index(name: str, bitmap: set[int] | None, details: IndexDetails | None = None) -> IndexMetadata:
        return IndexMetadata(name, name, (), 1, None if bitmap is None else frozenset(bitmap), details)

    reuse = index("__lance_frag_reuse", {5}, encode_details(REUSE))
    found = read_through((index("a", {0, 1, 2}), index("b", {0}), index("c", None), reuse))
    assert [item.fragment_bitmap for item in found] == [{2, 5}, {0}, None, {5}]
    external = index("__lance_frag_reuse", {5}, encode_details(ReuseDetails(external=ExternalFile("x", 0, 1))))
    assert read_through((index("a", {0, 1}), external))[0].fragment_bitmap == {0, 1}
    assert decode_reuse(encode_reuse(REUSE)) == REUSE


def indices_of(uri: Path) -> tuple[IndexMetadata, ...]:
    return decode_manifest_file(min((uri / "_versions").glob("*.manifest")).read_bytes()).manifest.indices


def build_all(table: Any) -> None:
    table.create_scalar_index("a", "BTREE")
    table.create_scalar_index("b", "ZONEMAP")
    table.create_scalar_index("c", "BLOOMFILTER")
    table.create_scalar_index("s", "INVERTED", with_position=True)
    table.create_scalar_index("t", "NGRAM")
    table.create_scalar_index("l", "LABEL_LIST")
    table.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)


def test_details_of_the_official_library(tmp_path: Path) -> None:
    count = 400
    vectors = pa.array([[float(i % 7), float(i), 1.0, 2.0] for i in range(count)], pa.list_(pa.float32(), 4))
    texts = [f"word{i}" for i in range(count)]
    table = pa.table(
        {"a": range(count), "b": range(count), "c": range(count), "s": texts, "t": texts, "v": vectors}
        | {"l": pa.array([[i] for i in range(count)])}
    )
    uri = tmp_path / "t"
    lance.write_dataset(table, str(uri), max_rows_per_file=100)
    build_all(lance.dataset(str(uri)))
    lance.dataset(str(uri)).optimize.compact_files(defer_index_remap=True)
    found = {}
    for index in indices_of(uri):
        assert index.details is not None
        details = decode_details(index.details)
        assert details is not None
        again = encode_details(details)
        assert (again.type_url, len(again.value)) == (index.details.type_url, len(index.details.value))
        assert decode_details(again) == details
        found[index.name] = details
    assert found["b_idx"] == ZoneMapDetails(8192, False, True)
    assert isinstance(found["v_idx"], VectorDetails)
    assert found["v_idx"].quantizer == QuantizerDetails("pq", 8, 2)
    assert isinstance(found["s_idx"], InvertedDetails)
    assert found["s_idx"].with_position
    assert isinstance(found["__lance_frag_reuse"], ReuseDetails)
    assert all(index.fragment_bitmap == {4} for index in indices_of(uri))
