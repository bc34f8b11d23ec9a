"""The arguments of every method that scans, written out once.

::

    ds.scanner(columns=["id"], filter="id > 3", order_by=["id"])
    ScanArguments(columns=["id"], filter="id > 3", order_by=["id"])  ->  ScanRequest(...)
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypedDict

from lance_core.dataset.arguments import NOT_IMPLEMENTED, check_options
from lance_core.dataset.scan.index_policy import IndexPolicy, Unsealed, parse_unsealed
from lance_core.dataset.scan.order_by import ColumnOrdering, parse_order
from lance_core.dataset.scan.projection import Columns
from lance_core.dataset.scan.request import ScanRequest
from lance_core.dataset.scan.statistics import StatsCallback
from lance_core.format.fragment import Fragment
from lance_core.index.text.query import FullTextQuery

if TYPE_CHECKING:
    from typing_extensions import Unpack

FullText = str | Mapping[str, Any] | FullTextQuery
"""Words, {"query": words, "columns": [...]}, or a query of `lance_core.query`."""


class HasMetadata(Protocol):
    """A handle of a fragment: `LanceFragment`."""

    @property
    def metadata(self) -> Fragment:
        """The manifest's entry."""
        ...


class FragmentOptions(TypedDict, total=False):
    """Arguments of a scan besides which columns and rows. Those of the first group steer the official scanner's speed; they
    are accepted and change nothing here."""

    batch_readahead: int | None
    fragment_readahead: int | None
    scan_in_order: bool | None
    use_stats: bool | None
    io_buffer_size: int | None
    late_materialization: bool | list[str] | None

    prefilter: bool | None
    fragments: Iterable[HasMetadata] | None
    use_scalar_index: bool | None
    strict_index: bool | None
    unsealed_indices: Unsealed | None
    full_text_query: FullText | None
    full_text_search: FullText | None
    fast_search: bool | None
    disable_scoring_autoprojection: bool | None
    order_by: Sequence[str | ColumnOrdering] | None
    include_deleted_rows: bool | None
    blob_handling: Literal["all_binary", "blobs_descriptions", "all_descriptions"] | None
    strict_batch_size: bool | None
    batch_size_bytes: int | None
    scan_stats_callback: StatsCallback | None

    index_segments: Annotated[None, NOT_IMPLEMENTED]
    row_addr_allowlist: Annotated[None, NOT_IMPLEMENTED]
    row_addr_blocklist: Annotated[None, NOT_IMPLEMENTED]


class ScanOptions(FragmentOptions, total=False):
    """Those with the system columns."""

    with_row_id: bool | None
    with_row_address: bool | None


class ScanRows(ScanOptions, total=False):
    """Those with the columns and bounds of a scan."""

    columns: Columns
    limit: int | None
    offset: int | None
    nearest: Mapping[str, Any] | None
    batch_size: int | None


class ScanArguments(ScanRows, total=False):
    """All arguments of a scan; `filter` is SQL text or a pyarrow expression."""

    filter: Any


def plan_request(**arguments: "Unpack[ScanArguments]") -> ScanRequest:
    """The request of the arguments. InputError for one that is not implemented, TypeError for an unknown one."""
    check_options("scanner", arguments, ScanArguments)
    fragments, words = arguments.get("fragments"), arguments.get("full_text_search")
    return ScanRequest(
        columns=arguments.get("columns"),
        filter=arguments.get("filter"),
        limit=arguments.get("limit"),
        offset=arguments.get("offset"),
        batch_size=arguments.get("batch_size"),
        with_row_id=bool(arguments.get("with_row_id")),
        with_row_address=bool(arguments.get("with_row_address")),
        fragments=None if fragments is None else [fragment.metadata for fragment in fragments],
        use_scalar_index=arguments.get("use_scalar_index") is not False,
        trust=IndexPolicy(bool(arguments.get("strict_index")), parse_unsealed(arguments.get("unsealed_indices"))),
        nearest=arguments.get("nearest"),
        full_text_query=arguments.get("full_text_query") if words is None else words,
        prefilter=bool(arguments.get("prefilter")),
        fast_search=bool(arguments.get("fast_search")),
        scoring_autoprojection=not arguments.get("disable_scoring_autoprojection"),
        order_by=parse_order(arguments.get("order_by")),
        include_deleted_rows=bool(arguments.get("include_deleted_rows")),
        blob_handling=arguments.get("blob_handling"),
        strict_batch_size=bool(arguments.get("strict_batch_size")),
        batch_size_bytes=arguments.get("batch_size_bytes"),
        scan_stats_callback=arguments.get("scan_stats_callback"),
    )
