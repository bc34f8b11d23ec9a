"""Index details and models on the wire (`index.proto`, `index_old.proto`, and the reuse index of `table.proto`).

Details travel as an Any: a type url and bytes. Packages moved over time, so readers go by the last part of the url:

    /lance.table.ZoneMapIndexDetails      08 80 40 10 01 18 01
    /lance.index.pb.VectorIndexDetails    pylance 12 wrote /lance.table.VectorIndexDetails
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from lance_core.errors import CorruptFileError
from lance_core.format.index import IndexDetails
from lance_core.format.index_details import (
    CodeTokenizer,
    Details,
    Hnsw,
    InvertedDetails,
    IvfPartitions,
    JsonDetails,
    Metric,
    MinHashDetails,
    OldVectorIndex,
    PlainDetails,
    QuantizerDetails,
    ReuseDetails,
    Tensor,
    TensorType,
    VectorDetails,
    ZoneMapDetails,
)
from lance_core.wire.pb import index_old_pb2, index_pb2
from lance_core.wire.reuse import decode_reuse, encode_reuse
from lance_core.wire.schema import parse_message

_METRICS: tuple[Metric, ...] = ("l2", "cosine", "dot", "hamming")
_TENSORS: tuple[TensorType, ...] = (
    "bfloat16", "float16", "float32", "float64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
_PLAIN = {
    "BTreeIndexDetails": "lance.table",
    "BitmapIndexDetails": "lance.table",
    "LabelListIndexDetails": "lance.table",
    "NGramIndexDetails": "lance.table",
    "BloomFilterIndexDetails": "lance.index.pb",
    "RTreeIndexDetails": "lance.index.pb",
    "FMIndexDetails": "lance.index.pb",
}
_INVERTED = (
    "language", "with_position", "lower_case", "stem", "remove_stop_words", "ascii_folding", "min_ngram_length",
    "max_ngram_length", "prefix_only", "disable_cross_array_unnest",
)  # fmt: skip
_INVERTED_OPTIONAL = ("base_tokenizer", "max_token_length", "block_size", "posting_format_version", "json_tokenizer_mode")


def decode_details(details: IndexDetails) -> Details | None:
    """The noun of a details message; None for a kind this release does not know. Raises CorruptFileError."""
    if details.kind in _PLAIN:
        return PlainDetails(details.kind)
    decode = _DECODERS.get(details.kind)
    return None if decode is None else decode(details.value)


def decode_old_vector_index(data: bytes) -> OldVectorIndex | None:
    """What the first layout of a vector index says of itself (`lance.index.pb.Index`); None where it is another kind."""
    message = parse_message(index_pb2.Index, data, what="description of the vector index").vector_index
    stages = {stage.WhichOneof("stage"): stage for stage in message.stages}
    if "ivf" not in stages or "diskann" in stages or "transform" in stages:
        return None
    metric = _choose(_METRICS, int(message.metric_type), "distance metric")
    ivf = stages["ivf"].ivf
    centroids = _tensor_of(ivf, "centroids", rows=len(ivf.lengths))
    model = IvfPartitions(centroids, tuple(ivf.offsets), tuple(ivf.lengths))
    if "pq" not in stages:
        return OldVectorIndex(VectorDetails(metric, QuantizerDetails("flat")), model, None)
    coded = stages["pq"].pq
    quantizer = QuantizerDetails("pq", coded.num_bits, coded.num_sub_vectors)
    book = _tensor_of(coded, "codebook", rows=1 << min(coded.num_bits, 8))
    return OldVectorIndex(VectorDetails(metric, quantizer), model, book)


def _tensor_of(message: Any, name: str, *, rows: int) -> Tensor:
    """The tensor of that name, or the numbers that releases before tensors listed one by one."""
    if message.HasField(f"{name}_tensor"):
        return decode_tensor(getattr(message, f"{name}_tensor"))
    return _floats(getattr(message, name), rows)


def _floats(values: Any, rows: int) -> Tensor:
    if rows == 0 or len(values) % rows:
        raise CorruptFileError(f"{len(values)} numbers do not make {rows} rows")
    return Tensor("float32", (rows, len(values) // rows), struct.pack(f"<{len(values)}f", *values))


def encode_details(details: Details) -> IndexDetails:
    """The Any that a manifest stores, under the type url the official library uses today."""
    if isinstance(details, PlainDetails):
        return IndexDetails(f"/{_PLAIN[details.kind]}.{details.kind}", b"")
    package, name, encode = _ENCODERS[type(details)]
    return IndexDetails(f"/{package}.{name}", encode(details))


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def _given(noun: object, *names: str) -> dict[str, Any]:
    """The named attributes that are not None: a field that is not given stays out of the message."""
    return {name: getattr(noun, name) for name in names if getattr(noun, name) is not None}


def _choose(table: tuple[Any, ...], number: int, what: str) -> Any:
    if not 0 <= number < len(table):
        raise CorruptFileError(f"{what} {number} is unknown; expected 0 to {len(table) - 1}")
    return table[number]


def _decode_zone_map(data: bytes) -> ZoneMapDetails:
    message = parse_message(index_old_pb2.ZoneMapIndexDetails, data, what="zone map details")
    return ZoneMapDetails(*(_optional(message, name) for name in ("rows_per_zone", "use_seeds", "has_null_bitmap")))


def _encode_zone_map(details: ZoneMapDetails) -> bytes:
    return _bytes(index_old_pb2.ZoneMapIndexDetails(**_given(details, "rows_per_zone", "use_seeds", "has_null_bitmap")))


def _decode_inverted(data: bytes) -> InvertedDetails:
    return _inverted_of(parse_message(index_old_pb2.InvertedIndexDetails, data, what="inverted index details"))


def _inverted_of(message: Any) -> InvertedDetails:
    code = None
    if message.HasField("code_config"):
        config = message.code_config
        code = CodeTokenizer(
            split_identifiers=config.split_identifiers,
            split_on_numerics=_optional(config, "split_on_numerics"),
            preserve_original=_optional(config, "preserve_original"),
            index_operators=config.index_operators,
        )
    return InvertedDetails(
        **{name: getattr(message, name) for name in _INVERTED},
        **{name: _optional(message, name) for name in _INVERTED_OPTIONAL},
        code=code,
        list_elements_are_documents=message.document_granularity == index_old_pb2.InvertedIndexDetails.LIST_ELEMENT,
    )


def _inverted_message(details: InvertedDetails) -> Any:
    kind = index_old_pb2.InvertedIndexDetails
    message = kind(**{name: getattr(details, name) for name in (*_INVERTED, *_INVERTED_OPTIONAL)})
    if details.list_elements_are_documents:
        message.document_granularity = kind.LIST_ELEMENT
    if details.code is not None:
        config = kind.CodeTokenizerConfig(
            split_identifiers=details.code.split_identifiers,
            index_operators=details.code.index_operators,
            **_given(details.code, "split_on_numerics", "preserve_original"),
        )
        message.code_config.CopyFrom(config)
    return message


def _encode_inverted(details: InvertedDetails) -> bytes:
    return _bytes(_inverted_message(details))


def _decode_json(data: bytes) -> JsonDetails:
    message = parse_message(index_pb2.JsonIndexDetails, data, what="JSON index details")
    target = None
    if message.HasField("target_details"):
        target = IndexDetails(message.target_details.type_url, message.target_details.value)
    return JsonDetails(path=message.path, target=target, target_data_type=message.target_data_type)


def _encode_json(details: JsonDetails) -> bytes:
    message = index_pb2.JsonIndexDetails(path=details.path, target_data_type=details.target_data_type)
    if details.target is not None:
        message.target_details.type_url = details.target.type_url
        message.target_details.value = details.target.value
    return _bytes(message)


def _decode_min_hash(data: bytes) -> MinHashDetails:
    message = parse_message(index_pb2.MinHashLshIndexDetails, data, what="MinHash details")
    return MinHashDetails(
        num_hashes=message.num_hashes,
        num_bands=message.num_bands,
        shingle_size=message.shingle_size,
        tokenizer=_inverted_of(message.tokenizer) if message.HasField("tokenizer") else None,
        signature_version=message.signature_version,
    )


def _encode_min_hash(details: MinHashDetails) -> bytes:
    return _bytes(
        index_pb2.MinHashLshIndexDetails(
            num_hashes=details.num_hashes,
            num_bands=details.num_bands,
            shingle_size=details.shingle_size,
            tokenizer=None if details.tokenizer is None else _inverted_message(details.tokenizer),
            signature_version=details.signature_version,
        )
    )


def _decode_vector(data: bytes) -> VectorDetails:
    message = parse_message(index_pb2.VectorIndexDetails, data, what="vector index details")
    hnsw = None
    if message.HasField("hnsw_index_config"):
        config = message.hnsw_index_config
        hnsw = Hnsw(config.max_connections, config.construction_ef, config.max_level)
    return VectorDetails(
        metric=_choose(_METRICS, int(message.metric_type), "distance metric"),
        quantizer=_quantizer_of(message),
        hnsw=hnsw,
        target_partition_size=message.target_partition_size,
        target_num_partitions=_optional(message, "target_num_partitions"),
        runtime_hints=dict(message.runtime_hints),
    )


def _quantizer_of(message: Any) -> QuantizerDetails | None:
    arm = message.WhichOneof("compression")
    if arm is None:
        return None
    body = getattr(message, arm)
    return QuantizerDetails(
        kind=arm,
        num_bits=getattr(body, "num_bits", 0),
        num_sub_vectors=getattr(body, "num_sub_vectors", 0),
        rotation="matrix" if getattr(body, "rotation_type", 0) == 1 else "fast",
    )


def _encode_vector(details: VectorDetails) -> bytes:
    message = index_pb2.VectorIndexDetails(
        metric_type=_METRICS.index(details.metric),  # type: ignore[arg-type]
        target_partition_size=details.target_partition_size,
        target_num_partitions=details.target_num_partitions,
        runtime_hints=details.runtime_hints,
    )
    if details.hnsw is not None:
        message.hnsw_index_config.max_connections = details.hnsw.max_connections
        message.hnsw_index_config.construction_ef = details.hnsw.construction_ef
        message.hnsw_index_config.max_level = details.hnsw.max_level
    if details.quantizer is not None:
        _put_quantizer(message, details.quantizer)
    return _bytes(message)


def _put_quantizer(message: Any, quantizer: QuantizerDetails) -> None:
    body = getattr(message, quantizer.kind)
    body.SetInParent()
    if quantizer.kind != "flat":
        body.num_bits = quantizer.num_bits
    if quantizer.kind == "pq":
        body.num_sub_vectors = quantizer.num_sub_vectors
    if quantizer.kind == "rq":
        body.rotation_type = int(quantizer.rotation == "matrix")


_DECODERS: dict[str, Callable[[bytes], Details]] = {
    "ZoneMapIndexDetails": _decode_zone_map,
    "InvertedIndexDetails": _decode_inverted,
    "JsonIndexDetails": _decode_json,
    "MinHashLshIndexDetails": _decode_min_hash,
    "VectorIndexDetails": _decode_vector,
    "FragmentReuseIndexDetails": decode_reuse,
}
_ENCODERS: dict[type[Any], tuple[str, str, Callable[[Any], bytes]]] = {
    ZoneMapDetails: ("lance.table", "ZoneMapIndexDetails", _encode_zone_map),
    InvertedDetails: ("lance.table", "InvertedIndexDetails", _encode_inverted),
    JsonDetails: ("lance.index.pb", "JsonIndexDetails", _encode_json),
    MinHashDetails: ("lance.index.pb", "MinHashLshIndexDetails", _encode_min_hash),
    VectorDetails: ("lance.index.pb", "VectorIndexDetails", _encode_vector),
    ReuseDetails: ("lance.table", "FragmentReuseIndexDetails", encode_reuse),
}


def decode_tensor(message: Any) -> Tensor:
    """A tensor; CorruptFileError when its data does not fill its shape."""
    kind: TensorType = _choose(_TENSORS, int(message.data_type), "tensor type")
    shape = tuple(message.shape)
    count = 1
    for size in shape:
        count *= size
    width = {"bfloat16": 2, "float16": 2, "uint16": 2, "float32": 4, "uint32": 4, "uint8": 1}.get(kind, 8)
    if count * width != len(message.data):
        raise CorruptFileError(f"a tensor of shape {shape} and type {kind} has {len(message.data)} bytes of data")
    return Tensor(kind, shape, message.data)


def _encode_tensor(tensor: Tensor) -> Any:
    return index_pb2.Tensor(
        data_type=_TENSORS.index(tensor.data_type),  # type: ignore[arg-type]
        shape=tensor.shape,
        data=tensor.data,
    )


def decode_ivf(data: bytes) -> IvfPartitions:
    """The partitions of a vector index (a global buffer of its files). Raises CorruptFileError."""
    message = parse_message(index_pb2.IVF, data, what="IVF model")
    # Releases 0.10 to 0.13 listed lengths alone: partitions follow each other.
    offsets = tuple(message.offsets) or tuple(accumulate(message.lengths, initial=0))[:-1]
    if len(offsets) != len(message.lengths):
        raise CorruptFileError(f"an IVF model has {len(offsets)} offsets and {len(message.lengths)} lengths")
    centroids = decode_tensor(message.centroids_tensor) if message.HasField("centroids_tensor") else None
    if centroids is not None and len(centroids.shape) != 2:
        raise CorruptFileError(f"an IVF model has centroids of shape {centroids.shape}, expected (partitions, dimension)")
    return IvfPartitions(
        centroids=centroids,
        offsets=offsets,
        lengths=tuple(message.lengths),
        loss=_optional(message, "loss"),
    )


def encode_ivf(model: IvfPartitions) -> bytes:
    """A serialized IVF message."""
    tensor = None if model.centroids is None else _encode_tensor(model.centroids)
    return _bytes(index_pb2.IVF(offsets=model.offsets, lengths=model.lengths, centroids_tensor=tensor, loss=model.loss))


def decode_tensor_bytes(data: bytes) -> Tensor:
    """A tensor in a buffer of its own (the codebook of product quantization)."""
    return decode_tensor(parse_message(index_pb2.Tensor, data, what="tensor"))


def encode_tensor_bytes(tensor: Tensor) -> bytes:
    """A serialized Tensor message."""
    return _bytes(_encode_tensor(tensor))
