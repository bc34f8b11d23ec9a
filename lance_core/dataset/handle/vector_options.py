"""The arguments of every method that builds vector indices, written out once."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from lance_core.dataset.arguments import NOT_IMPLEMENTED, NotImplementedHere
from lance_core.progress import IndexProgress


class MoreVectorOptions(TypedDict, total=False):
    """Those that `create_index` takes by name only."""

    num_bits: int | None
    sample_rate: int | None
    max_iters: int | None
    seed: int | None
    m: int | None
    ef_construction: int | None
    max_level: int | None
    index_file_version: Annotated[Literal["V3"] | None, NotImplementedHere(("V3",))]
    rabitq_model: Annotated[None, NOT_IMPLEMENTED]


class VectorOptions(MoreVectorOptions, total=False):
    """All of them. Those of the second group steer the official builder's speed; they are accepted and change nothing."""

    num_partitions: int | None
    target_partition_size: int | None
    num_sub_vectors: int | None
    ivf_centroids: Any
    pq_codebook: Any
    progress_callback: Callable[[IndexProgress], None] | None

    index_cache_size: int | None
    shuffle_partition_batches: int | None
    shuffle_partition_concurrency: int | None
    storage_options: dict[str, str] | None
    filter_nan: bool | None
    streaming_sample_rate: int | None
    streaming_coreset_rate: int | None
    streaming_refine_passes: int | None

    accelerator: Annotated[None, NOT_IMPLEMENTED]
    ivf_centroids_file: Annotated[None, NOT_IMPLEMENTED]
    precomputed_partition_dataset: Annotated[None, NOT_IMPLEMENTED]
    skip_transpose: Annotated[Literal[False] | None, NotImplementedHere((False,))]
