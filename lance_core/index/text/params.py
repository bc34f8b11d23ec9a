"""How texts become tokens: the options of a full-text index, as users, its files and its manifest entry have them.

::

    parse_params({"stem": False})        TextParams(base_tokenizer="simple", language="English", stem=False, ...)
    params.to_json()                     {"lance_tokenizer":"text","base_tokenizer":"simple",...}   in metadata.lance
    params.details()                     InvertedDetails(...)                                        in the manifest
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lance_core.errors import CorruptFileError, InputError, UnsupportedFeatureError
from lance_core.format.index_details import InvertedDetails

TOKENIZERS = ("simple", "whitespace", "raw", "ngram")
LANGUAGES = (
    "Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek", "Hungarian", "Italian", "Norwegian",
    "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil", "Turkish",
)  # fmt: skip
BLOCK_SIZE = 128
OPTIONS = frozenset(
    {
        "with_position", "base_tokenizer", "language", "max_token_length", "lower_case", "stem", "remove_stop_words",
        "custom_stop_words", "ascii_folding", "min_ngram_length", "max_ngram_length", "prefix_only", "block_size",
        "memory_limit", "num_workers", "format_version", "document_granularity",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TextParams:
    """The options with the official defaults. `max_token_length` is in bytes: a token that long or longer is left out."""

    with_position: bool = False
    base_tokenizer: str = "simple"
    language: str = "English"
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    custom_stop_words: tuple[str, ...] | None = None
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False

    @classmethod
    def unindexed(cls) -> TextParams:
        """How a column without an index is cut: into runs of letters and digits, as the official library does it."""
        return cls(max_token_length=None, lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False)

    def to_json(self) -> bytes:
        """What `metadata.lance` stores under `params`."""
        words = None if self.custom_stop_words is None else list(self.custom_stop_words)
        value = {
            "lance_tokenizer": "text",
            "base_tokenizer": self.base_tokenizer,
            "language": self.language,
            "with_position": self.with_position,
            "max_token_length": self.max_token_length,
            "lower_case": self.lower_case,
            "stem": self.stem,
            "remove_stop_words": self.remove_stop_words,
            "custom_stop_words": words,
            "ascii_folding": self.ascii_folding,
            "min_ngram_length": self.min_ngram_length,
            "max_ngram_length": self.max_ngram_length,
            "prefix_only": self.prefix_only,
            "block_size": BLOCK_SIZE,
            "split_identifiers": False,
            "split_on_numerics": False,
            "preserve_original": False,
            "index_operators": False,
        }
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def details(self) -> InvertedDetails:
        """What the manifest says."""
        return InvertedDetails(
            base_tokenizer=self.base_tokenizer,
            language=json.dumps(self.language),
            with_position=self.with_position,
            max_token_length=self.max_token_length,
            lower_case=self.lower_case,
            stem=self.stem,
            remove_stop_words=self.remove_stop_words,
            ascii_folding=self.ascii_folding,
            min_ngram_length=self.min_ngram_length,
            max_ngram_length=self.max_ngram_length,
            prefix_only=self.prefix_only,
            block_size=BLOCK_SIZE,
            posting_format_version=2,
        )

    def options(self) -> dict[str, Any]:
        """The options that would build the same index again."""
        return {name: getattr(self, name) for name in sorted(_NAMES)}


_NAMES = frozenset(TextParams.__dataclass_fields__)


def parse_params(given: Mapping[str, Any]) -> TextParams:
    """Options as a user gives them. Raises InputError, UnsupportedFeatureError."""
    options = dict(given)
    _refuse(options, "block_size", (None, 128), "posting blocks of 128 documents")
    _refuse(options, "format_version", (None, 2, "2", "v2"), "format version 2")
    granularity = options.pop("document_granularity", None)
    if str(getattr(granularity, "value", granularity) or "row") != "row":
        raise UnsupportedFeatureError("document_granularity must be a row; list elements as documents are not implemented")
    for name in ("memory_limit", "num_workers"):
        options.pop(name, None)
    if options.get("custom_stop_words") is not None:
        options["custom_stop_words"] = tuple(options["custom_stop_words"])
    defaults = TextParams()
    if options.get("base_tokenizer") == "ngram":
        defaults = replace(defaults, stem=False, remove_stop_words=False)
    chosen = {key: value for key, value in options.items() if value is not None or key in ("max_token_length",)}
    return _checked(replace(defaults, **chosen))


def _refuse(options: dict[str, Any], name: str, allowed: tuple[Any, ...], what: str) -> None:
    value = options.pop(name, None)
    if value not in allowed:
        raise UnsupportedFeatureError(f"{name}={value!r} is not implemented; this release writes {what}")


def _checked(params: TextParams) -> TextParams:
    if params.base_tokenizer not in TOKENIZERS:
        raise UnsupportedFeatureError(
            f"the tokenizer {params.base_tokenizer!r} is not implemented; expected one of {', '.join(TOKENIZERS)}"
        )
    if params.language not in LANGUAGES:
        raise InputError(f"unknown language {params.language!r}; expected one of {', '.join(LANGUAGES)}")
    low, high = params.min_ngram_length, params.max_ngram_length
    if params.base_tokenizer == "ngram" and not 0 < low <= high:
        raise InputError(f"n-gram lengths {low} to {high}: expected 0 < min_ngram_length <= max_ngram_length")
    return params


def params_of_json(data: bytes, *, what: str) -> TextParams:
    """The options an index was built with. Raises CorruptFileError, UnsupportedFeatureError."""
    try:
        value = json.loads(data)
        kept = {name: value[name] for name in _NAMES if name in value}
    except (ValueError, TypeError) as error:
        raise CorruptFileError(f"{what}: its options are not a JSON object: {data[:80]!r}") from error
    if value.get("lance_tokenizer") not in (None, "text"):
        raise UnsupportedFeatureError(f"{what}: the tokenizer of {value['lance_tokenizer']} documents is not implemented")
    if kept.get("custom_stop_words") is not None:
        kept["custom_stop_words"] = tuple(kept["custom_stop_words"])
    for name, default in (("stem", bool), ("with_position", bool), ("min_ngram_length", int), ("max_ngram_length", int)):
        if name in kept and not isinstance(kept[name], default):
            raise CorruptFileError(f"{what}: the option {name} has the invalid value {kept[name]!r}")
    return _checked(TextParams(**kept))


def params_of_details(details: InvertedDetails) -> TextParams:
    """The options as far as the manifest tells: a user's own stop words are not among them."""
    try:
        language = json.loads(details.language) if details.language else "English"
    except ValueError:
        language = details.language
    names = ("with_position", "max_token_length", "lower_case", "stem", "remove_stop_words", "ascii_folding", "prefix_only")
    kept = {name: getattr(details, name) for name in names}
    return _checked(
        TextParams(
            base_tokenizer=details.base_tokenizer or "simple",
            language=language,
            min_ngram_length=details.min_ngram_length or 3,
            max_ngram_length=details.max_ngram_length or 3,
            **kept,
        )
    )
