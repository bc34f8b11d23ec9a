"""The manifest's details of an index: one dataclass for each kind of details message.

    ZoneMapDetails(rows_per_zone=8192, use_seeds=True, has_null_bitmap=True)
    PlainDetails("BTreeIndexDetails")                     kinds whose details are empty

(Spec: index format; FORMAT E.1, C.1.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lance_core.format.fragment import ExternalFile
from lance_core.format.index import IndexDetails

Metric = Literal["l2", "cosine", "dot", "hamming"]
TensorType = Literal["bfloat16", "float16", "float32", "float64", "uint8", "uint16", "uint32", "uint64"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """Numbers with a shape, little-endian, row-major unless the owner says otherwise."""

    data_type: TensorType
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class IvfPartitions:
    """Partitions of a vector index: centroids [partitions, dimension], and the rows of each in the file beside."""

    centroids: Tensor | None = None
    offsets: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class PlainDetails:
    """A kind that has nothing to say: B-tree, bitmap, label list, n-gram, bloom filter, r-tree, fm."""

    kind: str


@dataclass(frozen=True, slots=True)
class ZoneMapDetails:
    """Rows in a zone; whether data files carry seeds; whether the file has a bitmap of nulls. None: not written down."""

    rows_per_zone: int | None = None
    use_seeds: bool | None = None
    has_null_bitmap: bool | None = None


@dataclass(frozen=True, slots=True)
class CodeTokenizer:
    """How source code becomes tokens."""

    split_identifiers: bool = False
    split_on_numerics: bool | None = None
    preserve_original: bool | None = None
    index_operators: bool = False


@dataclass(frozen=True, slots=True)
class InvertedDetails:
    """How texts become tokens, and the format of posting lists. `language` is a JSON string, quotes included."""

    base_tokenizer: str | None = None
    language: str = ""
    with_position: bool = False
    max_token_length: int | None = None
    lower_case: bool = False
    stem: bool = False
    remove_stop_words: bool = False
    ascii_folding: bool = False
    min_ngram_length: int = 0
    max_ngram_length: int = 0
    prefix_only: bool = False
    block_size: int | None = None
    code: CodeTokenizer | None = None
    list_elements_are_documents: bool = False
    posting_format_version: int | None = None
    json_tokenizer_mode: str | None = None
    disable_cross_array_unnest: bool = False


@dataclass(frozen=True, slots=True)
class JsonDetails:
    """An index over the values at a path inside JSON documents; `target` is what the index proper says about itself."""

    path: str
    target: IndexDetails | None = None
    target_data_type: int = 0


@dataclass(frozen=True, slots=True)
class MinHashDetails:
    """Signatures of texts, cut into bands."""

    num_hashes: int
    num_bands: int
    shingle_size: int
    tokenizer: InvertedDetails | None = None
    signature_version: int = 0


@dataclass(frozen=True, slots=True)
class Hnsw:
    """Parameters of the graph inside each partition."""

    max_connections: int
    construction_ef: int
    max_level: int


@dataclass(frozen=True, slots=True)
class QuantizerDetails:
    """How vectors are stored. `num_sub_vectors` for product quantization, `rotation` for the one-bit kind."""

    kind: Literal["flat", "pq", "sq", "rq"]
    num_bits: int = 0
    num_sub_vectors: int = 0
    rotation: Literal["fast", "matrix"] = "fast"


@dataclass(frozen=True, slots=True)
class VectorDetails:
    """A vector index: how distance is measured, how vectors are stored, hints on how it was built."""

    metric: Metric
    quantizer: QuantizerDetails | None = None
    hnsw: Hnsw | None = None
    target_partition_size: int = 0
    target_num_partitions: int | None = None
    runtime_hints: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OldVectorIndex:
    """A vector index of the first layout, by the message at the end of its file. Offsets are bytes of that file."""

    details: VectorDetails
    ivf: IvfPartitions
    codebook: Tensor | None


@dataclass(frozen=True, slots=True)
class FragmentDigest:
    """A fragment as a compaction saw it."""

    id: int
    physical_rows: int
    num_deleted_rows: int = 0


@dataclass(frozen=True, slots=True)
class ReuseGroup:
    """Old fragments, what took their place, and the addresses that moved (64-bit roaring treemap, serialized)."""

    changed_row_addresses: bytes
    old_fragments: tuple[FragmentDigest, ...]
    new_fragments: tuple[FragmentDigest, ...]


@dataclass(frozen=True, slots=True)
class ReuseVersion:
    """The groups one deferred compaction rewrote."""

    dataset_version: int
    groups: tuple[ReuseGroup, ...]


@dataclass(frozen=True, slots=True)
class ReuseDetails:
    """Content of the index `__lance_frag_reuse`: inline, or in a file. `transitions` are the tagged form, kept as bytes."""

    versions: tuple[ReuseVersion, ...] = ()
    transitions: tuple[bytes, ...] = ()
    external: ExternalFile | None = None


Details = PlainDetails | ZoneMapDetails | InvertedDetails | JsonDetails | MinHashDetails | VectorDetails | ReuseDetails
