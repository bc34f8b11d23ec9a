"""Full-text queries, under the names the official library has in `lance.query`.

::

    from lance_core.query import MatchQuery, PhraseQuery
    dataset.to_table(full_text_query=MatchQuery("quick fox", "text"), limit=10)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.index.text.query import BooleanQuery as BooleanQuery
    from lance_core.index.text.query import BoostQuery as BoostQuery
    from lance_core.index.text.query import CombinedFieldsQuery as CombinedFieldsQuery
    from lance_core.index.text.query import DocumentGranularity as DocumentGranularity
    from lance_core.index.text.query import FullTextOperator as FullTextOperator
    from lance_core.index.text.query import FullTextQuery as FullTextQuery
    from lance_core.index.text.query import FullTextQueryType as FullTextQueryType
    from lance_core.index.text.query import MatchQuery as MatchQuery
    from lance_core.index.text.query import MultiMatchQuery as MultiMatchQuery
    from lance_core.index.text.query import Occur as Occur
    from lance_core.index.text.query import PhraseQuery as PhraseQuery
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "BooleanQuery": "lance_core.index.text.query",
            "BoostQuery": "lance_core.index.text.query",
            "CombinedFieldsQuery": "lance_core.index.text.query",
            "DocumentGranularity": "lance_core.index.text.query",
            "FullTextOperator": "lance_core.index.text.query",
            "FullTextQuery": "lance_core.index.text.query",
            "FullTextQueryType": "lance_core.index.text.query",
            "MatchQuery": "lance_core.index.text.query",
            "MultiMatchQuery": "lance_core.index.text.query",
            "Occur": "lance_core.index.text.query",
            "PhraseQuery": "lance_core.index.text.query",
        },
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
