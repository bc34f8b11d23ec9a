"""How far a user lets indices be believed.

::

    IndexTrust()                           compare what has no checksums with its rows, scan where an index is damaged
    IndexTrust(strict=True)                the same, a damaged index is an error
    IndexTrust(unsealed="skip")            what a single scan wants: comparing would cost more than it spares
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lance_core.errors import InputError

Unsealed = Literal["compare", "skip", "use"]


@dataclass(frozen=True)
class IndexPolicy:
    """How far indices are believed.

    `strict`: one that cannot be searched is an error, not a scan. `unsealed`: what becomes of large segments without
    checksums (small ones are always compared): "compare" them with their rows when they are first asked, "skip" those that
    were not compared yet, or "use" them after checks of their structure, testing again what they find.
    """

    strict: bool = False
    unsealed: Unsealed = "compare"


def parse_unsealed(value: str | None) -> Unsealed:
    """The option `unsealed_indices`; None means "compare". Raises InputError."""
    for known in get_args(Unsealed):
        if value in (None, known):
            return known  # type: ignore[no-any-return]
    raise InputError(f"unsealed_indices is {value!r}, expected one of {', '.join(map(repr, get_args(Unsealed)))}")


DEFAULT_POLICY = IndexPolicy()
NO_VERIFICATION = IndexPolicy(unsealed="use")
"""For what is told of an index without asking it."""
