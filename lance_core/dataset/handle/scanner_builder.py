"""A builder for scans, with the official names; `LanceDataset.scanner` takes all arguments at once.

::

    ScannerBuilder(ds).columns(["id"]).filter("id > 3").limit(10).to_scanner().to_table()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lance_core.dataset.handle.protocol import TableHandle
from lance_core.dataset.query.scan_options import FullText, HasMetadata, ScanArguments, plan_request
from lance_core.dataset.query.scanner import LanceScanner
from lance_core.dataset.scan.order_by import ColumnOrdering
from lance_core.dataset.scan.projection import Columns
from lance_core.dataset.scan.statistics import StatsCallback

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ScannerBuilder:
    """Each verb sets one argument of `LanceDataset.scanner` and returns the builder; `to_scanner` plans the scan."""

    def __init__(self, ds: TableHandle) -> None:
        self._dataset = ds
        self._arguments: ScanArguments = {}

    def columns(self, cols: Columns = None) -> ScannerBuilder:
        """Names of columns, or {name: SQL}."""
        return self._with(columns=cols)

    def filter(self, filter: Any) -> ScannerBuilder:
        """SQL text or a pyarrow expression."""
        return self._with(filter=filter)

    def limit(self, n: int | None = None) -> ScannerBuilder:
        """At most so many rows."""
        return self._with(limit=n)

    def offset(self, n: int | None = None) -> ScannerBuilder:
        """Leave out the first rows."""
        return self._with(offset=n)

    def batch_size(self, batch_size: int) -> ScannerBuilder:
        """Rows of a batch."""
        return self._with(batch_size=batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> ScannerBuilder:
        """Bytes of a batch."""
        return self._with(batch_size_bytes=batch_size_bytes)

    def strict_batch_size(self, strict_batch_size: bool = False) -> ScannerBuilder:
        """All batches but the last of exactly the batch size."""
        return self._with(strict_batch_size=strict_batch_size)

    def with_row_id(self, with_row_id: bool = True) -> ScannerBuilder:
        """Add the column `_rowid`: uint64, the stable id of a row where the table has those, else its address."""
        return self._with(with_row_id=with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> ScannerBuilder:
        """Add the column `_rowaddr`: uint64, fragment id in the upper 32 bits, row offset in the lower."""
        return self._with(with_row_address=with_row_address)

    def with_fragments(self, fragments: Iterable[HasMetadata] | None) -> ScannerBuilder:
        """Of these fragments only."""
        return self._with(fragments=fragments)

    def nearest(
        self,
        column: str,
        q: Any,
        k: int | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        *,
        distance_range: tuple[float | None, float | None] | None = None,
    ) -> ScannerBuilder:
        """The rows whose vectors are nearest to `q`."""
        query = {
            "column": column, "q": q, "k": k, "metric": metric, "nprobes": nprobes, "minimum_nprobes": minimum_nprobes,
            "maximum_nprobes": maximum_nprobes, "refine_factor": refine_factor, "use_index": use_index, "ef": ef,
            "distance_range": distance_range,
        }  # fmt: skip
        given: Mapping[str, Any] = {name: value for name, value in query.items() if value is not None}
        return self._with(nearest=given)

    def full_text_search(self, query: FullText, columns: list[str] | None = None) -> ScannerBuilder:
        """Rows whose texts fit the words, best first."""
        return self._with(full_text_query={"query": query, "columns": columns} if columns else query)

    def prefilter(self, prefilter: bool) -> ScannerBuilder:
        """Test the filter before the search."""
        return self._with(prefilter=prefilter)

    def fast_search(self, flag: bool) -> ScannerBuilder:
        """Search only what indices cover."""
        return self._with(fast_search=flag)

    def use_scalar_index(self, use_scalar_index: bool = True) -> ScannerBuilder:
        """Whether indices may answer the filter."""
        return self._with(use_scalar_index=use_scalar_index)

    def include_deleted_rows(self, flag: bool) -> ScannerBuilder:
        """With deleted rows, whose `_rowid` is null."""
        return self._with(include_deleted_rows=flag)

    def blob_handling(
        self, blob_handling: Literal["all_binary", "blobs_descriptions", "all_descriptions"] | None
    ) -> ScannerBuilder:
        """How blob columns are shown."""
        return self._with(blob_handling=blob_handling)

    def order_by(self, orderings: Sequence[str | ColumnOrdering] | None) -> ScannerBuilder:
        """Sort the result by these columns; the first one counts most."""
        return self._with(order_by=orderings)

    def disable_scoring_autoprojection(self, disable: bool = True) -> ScannerBuilder:
        """Without the score unless it is requested."""
        return self._with(disable_scoring_autoprojection=disable)

    def scan_stats_callback(self, callback: StatsCallback) -> ScannerBuilder:
        """Called with the `ScanStatistics` when the scan is over."""
        return self._with(scan_stats_callback=callback)

    def batch_readahead(self, nbatches: int | None = None) -> ScannerBuilder:
        """Accepted; changes nothing here, as the next five."""
        return self._with(batch_readahead=nbatches)

    def fragment_readahead(self, nfragments: int | None = None) -> ScannerBuilder:
        """Accepted, because it tunes the official library's speed; changes nothing here."""
        return self._with(fragment_readahead=nfragments)

    def scan_in_order(self, scan_in_order: bool = True) -> ScannerBuilder:
        """Accepted, because it tunes the official library's speed; rows are always in order here."""
        return self._with(scan_in_order=scan_in_order)

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        """Accepted, because it tunes the official library's speed; changes nothing here."""
        return self._with(use_stats=use_stats)

    def io_buffer_size(self, io_buffer_size: int) -> ScannerBuilder:
        """Accepted, because it tunes the official library's memory; changes nothing here."""
        return self._with(io_buffer_size=io_buffer_size)

    def late_materialization(self, late_materialization: bool | list[str]) -> ScannerBuilder:
        """Accepted, because it tunes the official library's speed; changes nothing here."""
        return self._with(late_materialization=late_materialization)

    def to_scanner(self) -> LanceScanner:
        """The planned scan. Raises InputError, FilterError."""
        return LanceScanner(self._dataset.snapshot, plan_request(**self._arguments))

    def _with(self, **arguments: Unpack[ScanArguments]) -> ScannerBuilder:
        self._arguments.update(arguments)
        return self
