"""The methods for vector indices, with the official names.

::

    dataset.create_index("vector", "IVF_PQ", num_partitions=256, num_sub_vectors=96, metric="cosine")

    model = dataset.train_index("vector", "IVF_PQ", num_partitions=256, num_sub_vectors=96)      # in pieces, anywhere
    parts = [dataset.build_segment("vector", model, fragment_ids=group) for group in groups]
    dataset.commit_existing_index_segments("vector_idx", "vector", [dataset.merge_existing_index_segments(parts)])

The arguments of every method that builds vector indices, written out once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lance_core.dataset.arguments import check_options, written_out
from lance_core.dataset.handle.vector_options import MoreVectorOptions, VectorOptions
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.progress import IndexProgress, reporting
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lance_core.dataset.handle.protocol import TableHandle
    from lance_core.index.vector.model import VectorModel


_PARAMETERS = frozenset(
    {
        "num_partitions", "target_partition_size", "num_sub_vectors", "num_bits", "ivf_centroids", "pq_codebook",
        "sample_rate", "max_iters", "seed", "m", "ef_construction", "max_level",
    }
)  # fmt: skip


@verbs_tell_shortages
class VectorVerbs:
    """What `LanceDataset` can do about vector indices; the room is loaded when it is first used."""

    _snapshot: Snapshot

    @written_out(MoreVectorOptions)
    def create_index(
        self,
        column: str | list[str],
        index_type: str,
        name: str | None = None,
        metric: str = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: Any = None,
        pq_codebook: Any = None,
        num_sub_vectors: int | None = None,
        accelerator: None = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: None = None,
        precomputed_partition_dataset: None = None,
        storage_options: dict[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: Sequence[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: Literal[False] = False,
        progress_callback: Callable[[IndexProgress], None] | None = None,
        **kwargs: Unpack[MoreVectorOptions],
    ) -> TableHandle:
        """Build a vector index over all rows and move to the version that has it; the handle itself is returned.

        What only steers the official library's speed is accepted and changes nothing.

        Args:
            column: its name.
            index_type: IVF_FLAT, IVF_PQ, IVF_SQ, IVF_RQ, IVF_HNSW_FLAT, IVF_HNSW_PQ or IVF_HNSW_SQ.
            name: `{column}_idx` when left out.
            metric: "L2", "cosine" or "dot".
            replace: whether an index of that name may be replaced.
            num_partitions: lists of the inverted file; or `target_partition_size`.
            target_partition_size: vectors of a list to aim at.
            num_sub_vectors: parts of a vector, of the PQ kinds.
            num_bits: of a code, of the PQ kinds.
            ivf_centroids: use these instead of training, shape (partitions, dimension).
            pq_codebook: use this instead of training.
            m: neighbours of a node, of the HNSW kinds.
            ef_construction: candidates of a node while the graph is built.
            max_level: of the graph.
            sample_rate: vectors for each centroid that the training takes.
            max_iters: rounds of the training at most.
            filter_nan: accepted, and changes nothing.
            train: False is refused.
            fragment_ids: refused; `create_index_uncommitted` builds parts.
            accelerator: refused, as `ivf_centroids_file`, `precomputed_partition_dataset` and `skip_transpose` are.
            progress_callback: called when the build begins and when it is complete.

        Raises:
            InputError: no such column or kind, a type or metric the kind does not index, a name that is taken.
            CommitError: others changed the same index.
        """
        from lance_core.dataset.indexing.vector_build import create_vector_index

        if fragment_ids is not None or index_uuid is not None:
            raise InputError(
                "create_index cannot build a part of an index", cure="Use create_index_uncommitted to build parts."
            )
        if not train:
            raise InputError("a vector index cannot be created without training", cure="Append rows first.")
        # The hints among the parameters (cache sizes, shuffling, streaming) have nothing to steer here.
        options: dict[str, Any] = {
            "metric": metric, "num_partitions": num_partitions, "ivf_centroids": ivf_centroids, "pq_codebook": pq_codebook,
            "num_sub_vectors": num_sub_vectors, "target_partition_size": target_partition_size, "accelerator": accelerator,
            "ivf_centroids_file": ivf_centroids_file, "precomputed_partition_dataset": precomputed_partition_dataset,
            "skip_transpose": skip_transpose, **kwargs,
        }  # fmt: skip
        request = self._request(column, index_type, name, options)
        with reporting(progress_callback, "build"):
            self._snapshot = create_vector_index(self._snapshot, request, replaces=replace)
        return self  # type: ignore[return-value]

    @written_out(VectorOptions)
    def train_index(self, column: str, index_type: str, metric: str = "L2", **options: Unpack[VectorOptions]) -> VectorModel:
        """The model that the segments of an index share, trained on a sample of the whole column; nothing is written.

        It travels as bytes: `model.to_bytes()`, `lance_core.index.vector.model.model_from_bytes`.
        """
        from lance_core.dataset.indexing.vector_build import train_index

        return train_index(self._snapshot, self._request(column, index_type, None, {"metric": metric, **options}))

    def build_segment(
        self,
        column: str,
        model: VectorModel,
        *,
        fragment_ids: Sequence[int],
        name: str | None = None,
        attempt: str | None = None,
    ) -> IndexMetadata:
        """Write one segment over some fragments with a trained model; not published until it is committed.

        Args:
            column: its name.
            model: what `train_index` gave.
            fragment_ids: the fragments whose rows it covers.
            name: of the index; `{column}_idx` when left out.
            attempt: marks the segment's files, so that an aborted attempt's can be identified and removed.

        Raises:
            InputError: no such column or fragment.
        """
        from lance_core.dataset.indexing.vector_build import VectorRequest, build_vector_segment

        request = VectorRequest(column, name or f"{column}_idx", model.parameters, model.element)
        return build_vector_segment(self._snapshot, request, model, self._fragments(fragment_ids), attempt=attempt)

    @written_out(VectorOptions)
    def create_index_uncommitted(
        self,
        column: str | list[str],
        index_type: str,
        name: str | None = None,
        metric: str = "L2",
        *,
        fragment_ids: Sequence[int],
        replace: bool = False,
        **options: Unpack[VectorOptions],
    ) -> IndexMetadata:
        """Train (unless `ivf_centroids` and `pq_codebook` are given) and write one segment without publishing it.

        Arguments and errors are those of `create_index`; `fragment_ids` are the fragments whose rows it covers.
        """
        from lance_core.dataset.indexing.vector_build import build_vector_segment, train_index

        request = self._request(column, index_type, name, {"metric": metric, **options})
        model = train_index(self._snapshot, request)
        return build_vector_segment(self._snapshot, request, model, self._fragments(fragment_ids))

    def _request(self, column: str | list[str], index_type: str, name: str | None, options: dict[str, Any]) -> Any:
        from lance_core.dataset.indexing.vector_build import parse_vector_request

        only = column[0] if isinstance(column, list) and len(column) == 1 else column
        if not isinstance(only, str):
            raise InputError(f"a vector index needs exactly one column, got {column!r}")
        own = {key: value for key, value in options.items() if key in _PARAMETERS and value is not None}
        metric = options.pop("metric")
        others = {key: value for key, value in options.items() if key not in _PARAMETERS}
        check_options("create_index", others, VectorOptions)
        return parse_vector_request(self._snapshot, only, index_type, name, metric=metric, **own)

    def _fragments(self, fragment_ids: Sequence[int]) -> list[Fragment]:
        by_id = {fragment.id: fragment for fragment in self._snapshot.manifest.fragments}
        for number in fragment_ids:
            if number not in by_id:
                raise InputError(f"version {self._snapshot.version} of {self._snapshot.uri} has no fragment {number}")
        return [by_id[number] for number in sorted(set(fragment_ids))]
