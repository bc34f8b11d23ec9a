"""The user's policy for indices without checksums.

::

    IndexPolicy()                        use every index whose structure is right, and test again the rows that it finds
    IndexPolicy(strict=True)             the same, and a damaged index is an error instead of a scan
    IndexPolicy(unsealed="skip")         what selects rows for a delete: scan instead of using an index without checksums
    IndexPolicy(unsealed="compare")      compare an index without checksums with all its rows before it is used
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lance_core.errors import InputError

Unsealed = Literal["compare", "skip", "use"]


@dataclass(frozen=True)
class IndexPolicy:
    """The policy for indices.

    `strict`: one that cannot be searched is an error, not a scan. `unsealed` says what is done with segments without
    checksums: "use" them after checks of their structure and test again what they find, "skip" large ones that were not
    compared yet, or "compare" them with their rows when they are first asked.
    """

    strict: bool = False
    unsealed: Unsealed = "use"


def parse_unsealed(value: str | None) -> Unsealed:
    """The option `unsealed_indices`; None means "use". Raises InputError."""
    if value is None:
        return "use"
    for known in get_args(Unsealed):
        if value == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"unsealed_indices is {value!r}, expected one of {', '.join(map(repr, get_args(Unsealed)))}")


DEFAULT_POLICY = IndexPolicy()
VERIFIED = IndexPolicy(unsealed="compare")
"""For what is made of an index: prewarmed, merged, built again from its codes."""
