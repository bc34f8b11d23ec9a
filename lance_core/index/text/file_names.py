"""Names of the files of a full-text index: `part_0_invert.lance`."""

from __future__ import annotations

METADATA = "metadata.lance"
TOKENS, DOCS, LISTS = "tokens", "docs", "invert"


def part_file(number: int, what: str) -> str:
    """The name of a partition's file."""
    return f"part_{number}_{what}.lance"
