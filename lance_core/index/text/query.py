"""Full-text queries, with the official names.

::

    MatchQuery("quick fox", "text")                          any of the words, ranked
    PhraseQuery("quick fox", "text", slop=1)                 one after the other, at most one word between (needs positions)
    MatchQuery("a", "x") & MatchQuery("b", "y")              both; `|` for any
    BoostQuery(positive, negative, negative_boost=0.5)       less half the negative's score
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from lance_core.errors import InputError, UnsupportedFeatureError

MOST_BOOST = 1 << 20


class FullTextQueryType(Enum):
    """The kinds of queries."""

    MATCH = "match"
    MATCH_PHRASE = "match_phrase"
    BOOST = "boost"
    MULTI_MATCH = "multi_match"
    BOOLEAN = "boolean"
    COMBINED_FIELDS = "combined_fields"


class FullTextOperator(Enum):
    """Whether all words must be there, or any."""

    AND = "AND"
    OR = "OR"


class DocumentGranularity(str, Enum):
    """What one document is. List elements as documents are refused by name."""

    ROW = "row"
    LIST_ELEMENT = "list_element"


class Occur(Enum):
    """How a query takes part in a boolean one."""

    SHOULD = "SHOULD"
    MUST = "MUST"
    MUST_NOT = "MUST_NOT"


class FullTextQuery:
    """Any query; `&` and `|` put two together."""

    def query_type(self) -> FullTextQueryType:
        """What kind of query it is."""
        return _TYPES[type(self)]

    def __and__(self, other: FullTextQuery) -> FullTextQuery:
        return BooleanQuery([(Occur.MUST, self), (Occur.MUST, other)])

    def __or__(self, other: FullTextQuery) -> FullTextQuery:
        return BooleanQuery([(Occur.SHOULD, self), (Occur.SHOULD, other)])


@dataclass(frozen=True)
class MatchQuery(FullTextQuery):
    """Documents with the words of `query`. `column` None: the columns that have an index.

    `fuzziness`: edits a word may be away (None is 0, as the official library takes it); `max_expansions` bounds the tokens
    that all words together stand for; the first `prefix_length` letters must be the same. Rows that no index covers are
    matched without fuzziness, as there.
    """

    query: str
    column: str | None = None
    boost: float = field(default=1.0, kw_only=True)
    fuzziness: int | None = field(default=0, kw_only=True)
    max_expansions: int = field(default=50, kw_only=True)
    operator: FullTextOperator = field(default=FullTextOperator.OR, kw_only=True)
    prefix_length: int = field(default=0, kw_only=True)
    document_granularity: DocumentGranularity | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _require_rows(self.document_granularity)


@dataclass(frozen=True)
class PhraseQuery(FullTextQuery):
    """Documents with the words one after the other, at most `slop` others between two of them."""

    query: str
    column: str | None = None
    slop: int = field(default=0, kw_only=True)
    document_granularity: DocumentGranularity | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _require_rows(self.document_granularity)


@dataclass(frozen=True)
class BoostQuery(FullTextQuery):
    """Documents of `positive`; those of `negative` lose `negative_boost` times its score."""

    positive: FullTextQuery
    negative: FullTextQuery
    negative_boost: float = field(default=0.5, kw_only=True)


@dataclass(frozen=True)
class MultiMatchQuery(FullTextQuery):
    """The words in several columns; a document's score is that of its best column. `boosts`: one factor per column."""

    query: str
    columns: Sequence[str]
    boosts: Sequence[float] | None = field(default=None, kw_only=True)
    operator: FullTextOperator = field(default=FullTextOperator.OR, kw_only=True)

    def parts(self) -> list[MatchQuery]:
        """One query per column. Raises InputError: no column, or not as many boosts as columns."""
        boosts = [1.0] * len(self.columns) if self.boosts is None else list(self.boosts)
        if not self.columns or len(boosts) != len(self.columns):
            raise InputError(f"MultiMatchQuery has {len(self.columns)} columns but {len(boosts)} boosts")
        pairs = zip(self.columns, boosts, strict=True)
        return [MatchQuery(self.query, column, boost=boost, operator=self.operator) for column, boost in pairs]


@dataclass(frozen=True)
class CombinedFieldsQuery(FullTextQuery):
    """The words in several columns taken as one text (BM25F). `boosts`: from 1 up, one per column; AND: each word in any.

    All columns are cut in the same way, and one at least has an index. Raises InputError for other boosts, or no column.
    """

    query: str
    columns: Sequence[str]
    boosts: Sequence[float] | None = field(default=None, kw_only=True)
    operator: FullTextOperator = field(default=FullTextOperator.OR, kw_only=True)

    def __post_init__(self) -> None:
        boosts = self.weights
        if not self.columns or len(boosts) != len(self.columns):
            raise InputError(f"CombinedFieldsQuery has {len(self.columns)} columns but {len(boosts)} boosts")
        if len({*self.columns}) != len(self.columns):
            raise InputError(f"the columns of a CombinedFieldsQuery are {list(self.columns)}; expected distinct names")
        wrong = [boost for boost in boosts if not 1 <= boost <= MOST_BOOST]
        if wrong:
            raise InputError(f"a boost of a CombinedFieldsQuery must be a number from 1 to {MOST_BOOST}, got {wrong[0]}")

    @property
    def weights(self) -> list[float]:
        """One factor per column."""
        return [1.0] * len(self.columns) if self.boosts is None else [float(boost) for boost in self.boosts]


@dataclass(frozen=True)
class BooleanQuery(FullTextQuery):
    """Pairs of (Occur, query): every MUST matches, no MUST_NOT, one SHOULD when there is no MUST; scores add up."""

    queries: Sequence[tuple[Occur, FullTextQuery]]

    def of(self, occur: Occur) -> list[FullTextQuery]:
        """The queries that take part in this way."""
        return [query for how, query in self.queries if how is occur]


_TYPES = {
    MatchQuery: FullTextQueryType.MATCH,
    PhraseQuery: FullTextQueryType.MATCH_PHRASE,
    BoostQuery: FullTextQueryType.BOOST,
    MultiMatchQuery: FullTextQueryType.MULTI_MATCH,
    CombinedFieldsQuery: FullTextQueryType.COMBINED_FIELDS,
    BooleanQuery: FullTextQueryType.BOOLEAN,
}


def as_query(value: object) -> FullTextQuery:
    """A query from what users pass: words, `"a phrase"` in quotes, {"query": ..., "columns": [...]}. Raises InputError."""
    if isinstance(value, FullTextQuery):
        return value
    columns: object = None
    if isinstance(value, dict):
        unknown = value.keys() - {"query", "columns"}
        if unknown:
            raise InputError(f"a full-text query has no key {sorted(unknown)[0]!r}; expected query, columns")
        given: dict[str, object] = value
        value, columns = given.get("query"), given.get("columns")
    if isinstance(value, FullTextQuery):
        return value
    if not isinstance(value, str):
        raise InputError(f"a full-text query must be a string, a dict or a query object, got {type(value).__name__}")
    if columns is not None and (isinstance(columns, str) or not isinstance(columns, (list, tuple)) or not columns):
        raise InputError(f"the columns of a full-text query must be a list of names, got {columns!r}")
    return _of_words(value, columns)


def _of_words(text: str, columns: Sequence[str] | None) -> FullTextQuery:
    stripped = text.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] == '"':
        if columns is not None and len(columns) > 1:
            raise InputError("a phrase query searches one column", cure="Combine PhraseQuery objects with |.")
        return PhraseQuery(stripped[1:-1], columns[0] if columns else None)
    if columns is not None and len(columns) > 1:
        return MultiMatchQuery(text, tuple(columns))
    return MatchQuery(text, columns[0] if columns else None)


def _require_rows(granularity: DocumentGranularity | None) -> None:
    if granularity is not None and DocumentGranularity(granularity) is not DocumentGranularity.ROW:
        raise UnsupportedFeatureError("list elements as documents are not implemented", cure="Search rows.")
