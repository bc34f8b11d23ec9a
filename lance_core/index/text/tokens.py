"""Tokens of a text without an index, with the official library's names (`lance.tokenize`).

::

    tokenize("running dogs")      [FtsToken(text="run", position=0), FtsToken(text="dog", position=1)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_core.errors import UnsupportedFeatureError
from lance_core.index.text.params import parse_params
from lance_core.index.text.tokenize import tokenizer_of


@dataclass(frozen=True, slots=True)
class FtsToken:
    """A token, and which piece of the text it is, counted from 0."""

    text: str
    position: int


def tokenize(
    query: str,
    *,
    analyzer: str | None = None,
    base_tokenizer: str | None = None,
    language: str | None = None,
    max_token_length: int | None = 40,
    lower_case: bool | None = None,
    stem: bool | None = None,
    remove_stop_words: bool | None = None,
    custom_stop_words: list[str] | None = None,
    ascii_folding: bool | None = None,
    min_ngram_length: int | None = None,
    max_ngram_length: int | None = None,
    prefix_only: bool | None = None,
) -> list[FtsToken]:
    """The tokens that an index with these options makes of a text.

    Raises InputError for a value that is wrong, UnsupportedFeatureError for a tokenizer that is not implemented.
    """
    if analyzer not in (None, "text"):
        raise UnsupportedFeatureError(f"the analyzer {analyzer!r} is not implemented; expected text")
    given: dict[str, Any] = {
        "base_tokenizer": base_tokenizer, "language": language, "lower_case": lower_case, "stem": stem,
        "remove_stop_words": remove_stop_words, "custom_stop_words": custom_stop_words, "ascii_folding": ascii_folding,
        "min_ngram_length": min_ngram_length, "max_ngram_length": max_ngram_length, "prefix_only": prefix_only,
    }  # fmt: skip
    chosen = {name: value for name, value in given.items() if value is not None}
    tokenizer = tokenizer_of(parse_params({**chosen, "max_token_length": max_token_length}))
    return [FtsToken(text, position) for text, position in tokenizer.tokens_of(query)]
