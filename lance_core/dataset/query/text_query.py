"""A scan with `full_text_query=`: rows ranked by their score, the best first, with their `_score`.

::

    prefilter       rows that fail the filter are never found: `limit` rows come back when so many pass
    postfilter      (the default, as in the official library) the best `limit` rows are found first, then tested
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import numpy_of
from lance_core.dataset.indexing.serve import serve
from lance_core.dataset.indexing.verify import UNREADABLE
from lance_core.dataset.query.text_search import Hits, TextSearch
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import Projection, plan_projection
from lance_core.dataset.scan.scored_rows import Scored, SearchOptions, scored_table
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import CorruptFileError, InputError
from lance_core.expr import Expr
from lance_core.format.fragment import Fragment
from lance_core.index.text.query import FullTextQuery

SCORE = "_score"


@dataclass(frozen=True, eq=False)
class TextScan:
    """A planned full-text search. `fragments` None: all of the snapshot."""

    snapshot: Snapshot
    query: FullTextQuery
    projection: Projection
    fragments: tuple[Fragment, ...] | None
    filter: Expr | None
    filter_text: object
    limit: int | None
    offset: int
    options: SearchOptions

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        return self.projection.arrow_schema

    def table(self) -> pa.Table:
        """The rows that match, best first."""
        most = None if self.limit is None else self.limit + self.offset
        found = self._find(most if self.fragments is None else None)
        if self.fragments is not None:
            found = _among_fragments(found, self.fragments)
        best = found.best(most)
        return scored_table(
            self.snapshot,
            Scored(best.addresses, best.scores),
            self.projection,
            score=SCORE,
            filter=None if self.options.prefilter else self.filter,
            limit=self.limit,
            offset=self.offset,
        )

    def _find(self, most: int | None) -> Hits:
        """At least the best so many rows; when posting lists turn out to be damaged all rows are read instead."""
        search = self._search()
        try:
            return search.find_best(self.query, most)
        except InputError:
            raise
        except UNREADABLE as error:
            if self.options.trust.strict:
                raise CorruptFileError(
                    f"a full-text index of {self.snapshot.uri} cannot be searched: {error}",
                    uri=self.snapshot.uri,
                    cure="Rebuild or drop the index, or omit strict_index.",
                ) from error
            warnings.warn(f"full-text indices are not used: {error}", RuntimeWarning, stacklevel=2)
            return search.without_indices().find(self.query)

    def _search(self) -> TextSearch:
        allowed = self._passing(self.filter) if self.options.prefilter and self.filter is not None else None
        return TextSearch(self.snapshot, fast=self.options.fast_search, trust=self.options.trust, allowed=allowed)

    def _passing(self, filter: Expr) -> Any:
        """The addresses of the rows that pass, ascending."""
        schema = self.snapshot.manifest.schema
        fragments = self.snapshot.manifest.fragments if self.fragments is None else self.fragments
        plan = plan_scan(schema, fragments, plan_projection(schema, ["_rowaddr"]), filter=filter)
        served = serve(self.snapshot, plan, use_indices=self.options.use_scalar_index, trust=self.options.trust)
        batches = scan(self.snapshot, served.plan, batch_size=LARGE_BATCH_ROWS)
        parts = [numpy_of(batch.column(0)) for batch in batches]
        return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.uint64)

    def explain(self, *, verbose: bool = False) -> str:
        """What is searched, and which index answers."""
        search = self._search()
        search.find(self.query)
        most = "all rows" if self.limit is None else f"the best {self.limit} rows"
        lines = [f"full-text search of version {self.snapshot.version}: {most}, skip {self.offset}"]
        lines.append(f"  {_words(self.query)}")
        for name, column in sorted(search.columns.items()):
            if column.index is not None:
                lines.append(
                    f"  MatchQuery: {column.index} (Inverted) on {name} answers for {len(column.covered)} fragments"
                )
            if column.others is not None:
                rows = len(column.others.addresses)
                lines.append(f"  FlatMatchQuery: {rows} rows of {name} that no index covers are scanned")
        if self.filter is not None:
            when = "before" if self.options.prefilter else "after"
            lines.append(f"  test {self.filter_text} {when} the search")
        return "\n".join(lines)


def _words(query: FullTextQuery) -> str:
    return repr(query)


def _among_fragments(found: Hits, fragments: tuple[Fragment, ...]) -> Hits:
    wanted = np.array([fragment.id for fragment in fragments], np.uint64)
    kept = np.isin(found.addresses >> np.uint64(32), wanted)
    return Hits(found.addresses[kept], found.scores[kept])
