"""The options of a column's writer: the storage version's limits and the field's `lance-encoding:*` metadata.

::

    {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "3"}
        -> EncodingOptions(version=V2_2, compression="zstd", compression_level=3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lance_core.errors import InputError
from lance_core.format.version import DEFAULT_VERSION, FileVersion

PREFIX = "lance-encoding:"

Compression = Literal["lz4", "zstd", "none", "fsst"]
ByteSplit = Literal["off", "on", "auto"]
Structural = Literal["miniblock", "fullzip"]


@dataclass(frozen=True, slots=True)
class EncodingOptions:
    """A writer's limits and a user's wishes for one column.

    `compression` None means "choose"; "none" forbids general compression and FSST. `rle_threshold` is the share of runs
    below which run lengths pay. `dict_divisor` d allows dictionaries of at most 1/d distinct values;
    `dict_size_ratio` is the share of the plain size that a dictionary must stay below. `dimensions`, one for each nesting
    layer from the innermost, are those of fixed-size lists of structs (0 elsewhere): only 2.3 pages without values say them.
    """

    version: FileVersion = DEFAULT_VERSION
    compression: Compression | None = None
    compression_level: int | None = None
    structural: Structural | None = None
    packed: bool = False
    rle_threshold: float = 0.5
    bss: ByteSplit = "auto"
    dict_divisor: int = 2
    dict_size_ratio: float = 0.8
    dict_max_size: int = 100_000
    dict_compression: Compression | None = None
    dict_compression_level: int | None = None
    max_chunk_values: int = 4096
    chunk_bytes: int | None = None
    dimensions: tuple[int, ...] = ()

    @property
    def has_large_chunk(self) -> bool:
        """Whether mini-block chunks use 32-bit size words (2.2 and newer)."""
        return self.version >= FileVersion.V2_2

    @property
    def max_chunk_bytes(self) -> int:
        """Hard limit of a whole mini-block chunk in bytes: 12 bits of 8-byte words in 2.1, ours beyond."""
        return 1 << 20 if self.has_large_chunk else 32_768

    @classmethod
    def parse(cls, metadata: Mapping[str, bytes | str], version: FileVersion = DEFAULT_VERSION) -> EncodingOptions:
        """Options from a field's metadata; keys outside `lance-encoding:` are ignored.

        Raises InputError for a value that makes no sense.
        """
        found: dict[str, Any] = {}
        for key, value in metadata.items():
            rule = _RULES.get(key.removeprefix(PREFIX)) if key.startswith(PREFIX) else None
            if rule is not None:
                text = value.decode() if isinstance(value, bytes) else value
                found[rule[0]] = _convert(key, text, rule[1])
        return cls(version=version, **found)


def _one_of(*names: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return text.lower()

    return convert


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise ValueError("expected a number above zero")
    return number


def _chunk_bytes(text: str) -> int:
    return max(64, min(_positive(text), 16_384))


def _truth(text: str) -> bool:
    return text.lower() in ("true", "1", "yes")


_COMPRESSION = _one_of("lz4", "zstd", "none", "fsst")
_RULES: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "compression": ("compression", _COMPRESSION),
    "compression-level": ("compression_level", int),
    "structural-encoding": ("structural", _one_of("miniblock", "fullzip")),
    "packed": ("packed", _truth),
    "rle-threshold": ("rle_threshold", float),
    "bss": ("bss", _one_of("off", "on", "auto")),
    "dict-divisor": ("dict_divisor", _positive),
    "dict-size-ratio": ("dict_size_ratio", float),
    "dict-max-size": ("dict_max_size", _positive),
    "dict-values-compression": ("dict_compression", _COMPRESSION),
    "dict-values-compression-level": ("dict_compression_level", int),
    "minichunk-size": ("chunk_bytes", _chunk_bytes),
}


def _convert(key: str, text: str, convert: Callable[[str], object]) -> object:
    try:
        return convert(text)
    except ValueError as error:
        raise InputError(
            f"field metadata {key!r} has the value {text!r}: {error}", cure="Correct the metadata or remove the key."
        ) from error
