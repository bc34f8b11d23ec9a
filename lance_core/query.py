"""Full text queries, under the names the official library has in `lance.query`.

::

    from lance_core.query import MatchQuery, PhraseQuery
    dataset.to_table(full_text_query=MatchQuery("quick fox", "text"), limit=10)
"""

from __future__ import annotations

from lance_core.index.text.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    FullTextQueryType,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

__all__ = [
    "BooleanQuery",
    "BoostQuery",
    "CombinedFieldsQuery",
    "DocumentGranularity",
    "FullTextOperator",
    "FullTextQuery",
    "FullTextQueryType",
    "MatchQuery",
    "MultiMatchQuery",
    "Occur",
    "PhraseQuery",
]
