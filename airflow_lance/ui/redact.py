"""Remove secrets from every response: known values, credentials inside uris, and values whose names suggest a secret.

::

    Redactor(["s3cr3t"]).clean({"error": "denied for s3cr3t", "uri": "https://me:pw@host/t?sig=ab"})
    -> {"error": "denied for ***", "uri": "https://***@host/t?sig=***"}
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

HIDDEN = "***"
MIN_SECRET = 4
_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(
    r"((?:sig|signature|token|password|passwd|secret|access_?key(?:_?id)?|account_?key|credential|x-amz-[a-z-]+|sas)"
    r"[\"']?\s*[=:]\s*[\"']?)[^\s&\"',;}]+",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"secret|password|passwd|token|credential|(?:access|account|private|api)[-_.]?key|connection[-_.]?string", re.I
)


class PageRedactor:
    """Cleans plain data. Longer secrets are looked for first, so that one inside another leaves nothing of it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({item for item in secrets if len(item) >= MIN_SECRET}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        if "://" in text:
            text = _USER.sub(f"{HIDDEN}@", text)
        return _QUERY.sub(rf"\1{HIDDEN}", text) if "=" in text or ":" in text else text

    def clean(self, value: object) -> object:
        """Return JSON-able data without secrets. Numbers that JSON does not know become null."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool | int) or value is None:
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {self.text(str(name)): self._named(str(name), item) for name, item in value.items()}
        if isinstance(value, Iterable):
            return [self.clean(item) for item in value]
        return self.text(str(value))

    def _named(self, name: str, value: object) -> object:
        return HIDDEN if isinstance(value, str) and value and _NAME.search(name) else self.clean(value)
