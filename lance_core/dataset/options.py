"""Options of the official library: what we do, what is a hint without effect on the result, what is refused by name.

::

    to_table(batch_readahead=4)         a hint: accepted
    to_table(index_segments=[...])      refused: it would change the result and is not implemented
    to_table(index_segments=None)       fine: the same as leaving it out
    to_table(colums=["a"])              TypeError, as for any function
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lance_core.errors import InputError

SCAN_HINTS = frozenset(
    {
        "batch_readahead", "fragment_readahead", "scan_in_order", "use_stats", "io_buffer_size", "late_materialization",
        "disable_scoring_autoprojection", "prefilter", "fast_search",
        "order_by", "include_deleted_rows", "blob_handling", "strict_batch_size", "batch_size_bytes", "scan_stats_callback",
    }
)  # fmt: skip
"""They steer speed and memory of the official scanner, results are the same; but for the last two lines, which are done."""

SCAN_REFUSED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "full_text_query": (), "index_segments": (), "row_addr_allowlist": (), "row_addr_blocklist": (),
    }
)  # fmt: skip
"""Not implemented; the values are those that ask for nothing, besides None."""

OPEN_HINTS = frozenset(
    {
        "block_size", "index_cache_size", "metadata_cache_size_bytes", "index_cache_size_bytes", "session",
        "base_store_params",
    }
)  # fmt: skip
"""Sizes of caches and the like; `base_store_params` is done."""

OPEN_REFUSED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "commit_lock": (), "default_scan_options": ({},), "read_params": ({},), "namespace_client": (), "table_id": (),
    }
)  # fmt: skip

WRITE_HINTS = frozenset({"data_cache_bytes", "max_rows_per_group", "session", "base_store_params"})
WRITE_REFUSED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "commit_lock": (), "use_legacy_format": (False,),
        "external_blob_mode": ("reference",),
        "blob_pack_file_size_threshold": (), "namespace_client": (),
        "table_id": (), "max_page_bytes": (),
    }
)  # fmt: skip

COMMIT_HINTS = frozenset({"commit_timeout", "base_store_params"})
COMMIT_REFUSED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "commit_lock": (), "namespace_client": (), "table_id": (), "namespace_client_managed_versioning": (False,),
    }
)  # fmt: skip


def check_options(
    verb: str, given: Mapping[str, object], *, hints: frozenset[str], refused: Mapping[str, tuple[object, ...]]
) -> None:
    """Raise InputError for options we do not implement, TypeError for those nobody knows."""
    for name, value in given.items():
        if name in refused:
            if value is not None and value not in refused[name]:
                raise InputError(f"{verb}: the option {name}={value!r} is not implemented", cure="Leave it out.")
        elif name not in hints:
            raise TypeError(f"{verb}() got an unexpected keyword argument {name!r}")
