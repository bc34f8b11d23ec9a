"""Whether the keys that a store signs with are renewed when they expire, so that another try may succeed. Pure.

::

    aws_session_token=...                                  no: who keeps them has to change them
    aws_session_token=..., expires_at_millis=...           yes: a catalog returned them, and returns others
    nothing, aws_role_arn, a profile, google_identity      yes, or not known
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_core.io.aws_role import role_of
from lance_core.io.options import EXPIRES_AT
from lance_core.io.scope import family_of
from lance_core.io.spellings import AWS, AZURE, GOOGLE, Spellings, picker

_LITERAL: Mapping[str, tuple[Spellings, tuple[str, ...]]] = {
    "s3": (AWS, ("session_token", "access_key_id")),
    "gs": (GOOGLE, ("token",)),
    "az": (AZURE, ("sas_token", "token")),
}
"""What is given as itself, and ends."""


def renews_keys(uri: str, options: Mapping[str, str]) -> bool:
    """False where the options hold keys as they are, which only their owner can renew."""
    found = _LITERAL.get(family_of(uri) or "")
    if found is None or options.get(EXPIRES_AT) or (found[0] is AWS and role_of(options) is not None):
        return True
    pick = picker(options, found[0])
    return not any(pick(name) for name in found[1])
