"""INVERTED: the words of texts, each with the documents that have it, for search ranked by BM25.

::

    create_scalar_index("text", "INVERTED", with_position=True)        to_table(full_text_query="quick fox")

A filter is answered by it only for `contains_tokens(column, 'words')`; ranking is the business of the search above it.
(Spec: FORMAT E.4; index version 2. Those of older releases are searched, and rebuilt by `optimize_indices`.)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

from lance_core.errors import CorruptFileError, NotFoundError, UnsupportedFeatureError
from lance_core.expr.ast import Expr
from lance_core.file.open_file import OpenFile
from lance_core.format.index_details import Details, InvertedDetails
from lance_core.index.base import Answer, IndexFolder, IndexKind, metadata_of
from lance_core.index.text.build import train
from lance_core.index.text.file_names import METADATA
from lance_core.index.text.fingerprints import TextMarks, Told, told
from lance_core.index.text.old_lists import TOKENS, FirstPartition
from lance_core.index.text.params import OPTIONS, TextParams, params_of_details, params_of_json, parse_params
from lance_core.index.text.partition import TextPartition
from lance_core.index.text.tokenize import Tokenizer, tokenizer_of
from lance_core.index.text.verify import require_documents, require_options
from lance_core.index.text.wide_blocks import WIDE_BLOCK
from lance_core.io.cache import shared_cache
from lance_core.kernels.postings import BLOCK

_MOST_PARTITIONS = 1 << 20
_TAILS: Mapping[tuple[bytes, bytes], bool] = {
    (b"1", b"fixed32_v1"): True,
    (b"2", b"varint_delta_v1"): False,
    (b"3", b"varint_delta_v1"): False,
}
"""What is written of the format, and whether last blocks are of numbers of fixed width."""

_BLOCK_SIZES: Mapping[bytes, int] = {b"128": BLOCK, b"256": WIDE_BLOCK}


def _open_metadata(folder: IndexFolder) -> OpenFile | None:
    """None: the layout of releases up to 0.27."""
    try:
        return folder.open(METADATA)
    except NotFoundError:
        with suppress(NotFoundError):
            folder.store.size(f"{folder.path}/{TOKENS}")
            return None
        raise


def _first_params(folder: IndexFolder) -> bytes:
    """The options of an index of a release up to 0.27, as JSON."""
    opened = folder.open(TOKENS)
    # Releases before 0.19 do not state them; the official library asks with the defaults.
    return opened.schema.metadata.get("tokenizer") or TextParams().to_json()


class Inverted:
    """An open full-text index (one segment)."""

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        opened = _open_metadata(folder)
        self._folder = folder
        self.partitions: tuple[TextPartition, ...]
        if opened is None:
            self._is_old = True
            part = FirstPartition(folder)
            self._stored_params, self.partitions = _first_params(folder), (part,)
            params = params_of_json(self._stored_params, what=folder.path)
            self.params = replace(params, with_position=part.has_places)
            return
        version, codec = (
            metadata_of(opened, "format_version", b"1"),
            metadata_of(opened, "posting_tail_codec", b"fixed32_v1"),
        )
        has_fixed_tails = _TAILS.get((version, codec))
        block_size = _BLOCK_SIZES.get(metadata_of(opened, "posting_block_size", b"128"))
        if has_fixed_tails is None or block_size is None:
            raise UnsupportedFeatureError(
                f"{opened.path}: format version {version!r}, expected 1 to 3 with blocks of 128 or 256"
            )
        self._is_old, self._block_size = has_fixed_tails, block_size
        self._stored_params = metadata_of(opened, "params")
        self.params = params_of_json(self._stored_params, what=opened.path)
        numbers = _numbers(metadata_of(opened, "partitions"), opened.path)
        kind = metadata_of(opened, "token_set_format", b"arrow").decode("ascii", "replace")
        self.partitions = tuple(
            TextPartition(folder, number, kind, has_fixed_tails=has_fixed_tails, block_size=block_size) for number in numbers
        )
        if self.params.with_position and not self.has_places:
            raise CorruptFileError(f"{opened.path} declares positions, but a partition has none", cure="Rebuild the index.")

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts queries and texts that are not indexed."""
        return tokenizer_of(self.params)

    @property
    def has_places(self) -> bool:
        """Whether phrases can be searched."""
        return all(part.has_places for part in self.partitions)

    @property
    def num_documents(self) -> int:
        """Documents with at least one token, deleted ones included."""
        return sum(len(part.ids) for part in self.partitions)

    @property
    def total_tokens(self) -> int:
        """Tokens of all documents."""
        return sum(part.total_tokens for part in self.partitions)

    def count_of(self, token: str) -> int:
        """How many documents have a token."""
        return sum(part.count_of(token) for part in self.partitions)

    def search(self, part: Expr) -> Answer | None:
        """Filters are not answered."""
        return None

    streams: ClassVar[bool] = True

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """The lists are those of the texts, cut again; what the lists say is worked out in the first of several calls.

        Raises UnsupportedFeatureError for old releases, which counted and cut some texts in another way.
        """
        if self._is_old:
            raise UnsupportedFeatureError(
                f"index {self._folder.path}: a full-text index of an old Lance release cannot be compared",
                cure="Rebuild the index.",
            )
        cache, key = shared_cache(), (*self._folder.key, "told")
        known: tuple[Inverted, Told, TextMarks] | None = cache.get(key)
        if known is None or known[0] is not self:
            require_options(self.params, self._stored_params, self._folder.details)
            with_places = self.has_places
            known = self, told(self.partitions, with_places=with_places), TextMarks(self.tokenizer, with_places=with_places)
        _, documents, texts = known
        require_documents(documents, texts, batches)
        cache.put(key, known, documents.num_bytes + texts.num_bytes)

    def statistics(self) -> dict[str, Any]:
        """Counts and options."""
        if self._is_old:
            stored = params_of_json(self._stored_params, what=self._folder.path)
            options = {**json.loads(stored.to_json()), "lance_tokenizer": None}
            sizes = [len(part.sizes) for part in self.partitions]
            return {"params": options, "num_docs": self.num_documents, "num_tokens": sum(sizes)}
        return {
            "params": {**json.loads(self.params.to_json()), "block_size": self._block_size},
            "num_docs": self.num_documents,
            "num_tokens": sum(len(part.sizes) for part in self.partitions),
            "num_partitions": len(self.partitions),
        }


def _numbers(data: bytes, what: str) -> list[int]:
    try:
        numbers = json.loads(data)
    except ValueError:
        numbers = None
    is_list = isinstance(numbers, list) and len(numbers) <= _MOST_PARTITIONS
    if not is_list or not all(isinstance(number, int) and 0 <= number < 1 << 64 for number in numbers):
        raise CorruptFileError(f"{what}: partitions are {data[:80]!r}, expected a list of numbers")
    if len({*numbers}) != len(numbers):
        raise CorruptFileError(f"{what}: partitions are {data[:80]!r}, expected distinct numbers")
    return list(numbers)


def accepts(value_type: pa.DataType) -> bool:
    """Texts, and lists of texts (one document each)."""
    t = pa.types
    if t.is_list(value_type) or t.is_large_list(value_type):
        value_type = value_type.value_type
    return bool(t.is_string(value_type)) or t.is_large_string(value_type)


def describe(_type: pa.DataType, parameters: Mapping[str, Any]) -> Details:
    """The options, for the manifest."""
    return parse_params(parameters).details()


def options_of(folder: IndexFolder, details: Details | None) -> Mapping[str, Any]:
    """The options of a segment: its file tells all, the manifest all but a user's own stop words."""
    try:
        opened = _open_metadata(folder)
        if opened is None:
            return params_of_json(_first_params(folder), what=folder.path).options()
        return params_of_json(metadata_of(opened, "params"), what=opened.path).options()
    except (NotFoundError, CorruptFileError):
        if not isinstance(details, InvertedDetails):
            raise
        return params_of_details(details).options()


KIND = IndexKind(
    name="INVERTED",
    title="Inverted",
    details="InvertedIndexDetails",
    version=3,
    written_version=2,
    accepts=accepts,
    can_answer=lambda _part: False,
    train=train,
    open=Inverted,
    describe=describe,
    parameters=OPTIONS,
    options_of=options_of,
)
