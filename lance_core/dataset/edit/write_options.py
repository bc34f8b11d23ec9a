"""The arguments of every method that writes rows, written out once: `write_dataset`, `insert`, `write_fragments`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from lance_core.catalog.interface import TableFinder
from lance_core.dataset.arguments import NOT_IMPLEMENTED, NotImplementedHere
from lance_core.dataset.results import AutoCleanupConfig
from lance_core.dataset.write.write_progress import Progress
from lance_core.format.manifest import BasePath


class WriteOptions(TypedDict, total=False):
    """Arguments of a write besides the rows, the place and the mode.

    Those of the second group steer the official writer's speed; they are accepted and change nothing here.
    """

    storage_options: Mapping[str, str] | None
    max_rows_per_file: int | None
    max_bytes_per_file: int | None
    data_storage_version: str | None
    enable_stable_row_ids: bool | None
    enable_v2_manifest_paths: bool | None
    auto_cleanup_options: AutoCleanupConfig | None
    commit_message: str | None
    transaction_properties: Mapping[str, str] | None
    progress: Progress | None
    initial_bases: Iterable[BasePath] | None
    target_bases: Sequence[str] | None
    target_all_bases: bool | None
    allow_external_blob_outside_bases: bool | None
    base_store_params: Mapping[str, Mapping[str, str]] | None

    data_cache_bytes: int | None
    max_rows_per_group: int | None
    session: Any

    max_page_bytes: Annotated[None, NOT_IMPLEMENTED]
    commit_lock: Annotated[None, NOT_IMPLEMENTED]
    use_legacy_format: Annotated[Literal[False] | None, NotImplementedHere((False,))]
    external_blob_mode: Annotated[Literal["reference"] | None, NotImplementedHere(("reference",))]
    blob_pack_file_size_threshold: Annotated[None, NOT_IMPLEMENTED]
    namespace_client: TableFinder | None
    table_id: Sequence[str] | None
