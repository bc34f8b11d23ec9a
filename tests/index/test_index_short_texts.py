"""A short text is cut without a kernel, into the tokens that the kernel finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.index.text import tokenize
from lance_core.index.text.params import TextParams
from lance_core.index.text.tokenize import Tokenizer

PARAMS = [
    {"base_tokenizer": "simple"},
    {"base_tokenizer": "whitespace"},
    {"base_tokenizer": "raw"},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 4},
    {"base_tokenizer": "ngram", "min_ngram_length": 1, "max_ngram_length": 3, "prefix_only": True},
]
TEXTS = st.text(
    st.one_of(st.sampled_from("ab zZ9_-.\n\t\r\x0b\x85\u2028é́ßñ字🦀İ\u00a0"), st.characters(exclude_categories=["Cs"])),
    max_size=40,
)


@pytest.mark.parametrize("params", PARAMS, ids=lambda item: "-".join(map(str, item.values())))
@given(text=TEXTS)
def test_short_texts_have_the_tokens_of_long_ones(params: dict[str, object], text: str) -> None:
    tokenizer = Tokenizer(TextParams(stem=False, remove_stop_words=False, **params))  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenize, "_SHORT", -1)
        expected = tokenizer.tokens_of(text)
    assert tokenizer.tokens_of(text) == expected
