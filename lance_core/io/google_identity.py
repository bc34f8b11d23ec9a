"""Google identities whose tokens the library requests itself, and again before they expire: for jobs that outlast a token.

::

    google_identity=default                      -> the machine: its metadata server, or GOOGLE_APPLICATION_CREDENTIALS
    google_impersonate=a@p.example,b@p.example   -> account b, impersonated by a, by the key file or else by the machine
    google_service_account=/federated.json       -> a configuration of workload identity federation

Each process requests its own tokens, Spark's executors too, so nothing that expires travels with a job. google-auth, which
is installed with gcsfs, sends the requests.
"""

from __future__ import annotations

import datetime as dt
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from lance_core.errors import InputError, StoreError, StoreRefusedError
from lance_core.io.spellings import GOOGLE, picker
from lance_core.io.waiting import answered

SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_LONGEST_USE = dt.timedelta(minutes=3)
"""google-auth renews a token that has less than 3 minutes 45 seconds to go."""
_OWN_TYPES = ("service_account", "authorized_user")
"""Key files that the engines read and renew without help."""


class _Token:
    """What the first request makes, and the next ones use. Two that come at once both request: neither waits for the other,
    and a forked child inherits no lock."""

    def __init__(self) -> None:
        self.credentials: Any = None

    def __reduce__(self) -> tuple[type[_Token], tuple[()]]:
        return _Token, ()  # another process requests tokens of its own


@dataclass(frozen=True)
class GoogleIdentity:
    """Who asks Google, and on whose behalf. Calling it gives a token as obstore wants it; equal ones are interchangeable."""

    key_file: str | None = None
    key: str | None = field(default=None, repr=False)
    """The content of a key file; without either the machine's own identity."""
    impersonated: tuple[str, ...] = ()
    """Accounts: each but the last one may act for the next; the last one's token is used."""
    _held: _Token = field(default_factory=_Token, repr=False, compare=False)

    def __call__(self) -> Mapping[str, Any]:
        """Return a token that is good for three minutes at least.

        Raises StoreRefusedError when Google refuses the identity, StoreError when nobody answers.
        """
        credentials = self.credentials()
        if not credentials.valid:
            self._renew(credentials)
        return {"token": credentials.token, "expires_at": dt.datetime.now(dt.timezone.utc) + _LONGEST_USE}

    def credentials(self) -> Any:
        """Return google-auth's credentials, which can be renewed; nothing is requested yet."""
        if self._held.credentials is None:
            self._held.credentials = self._make()
        return self._held.credentials

    def _renew(self, credentials: Any) -> None:
        errors = import_module("google.auth.exceptions")
        try:
            request = import_module("google.auth.transport.requests").Request()
            answered(lambda: credentials.refresh(request), by=f"Google, from which a token for {self!r} was requested,")
        except errors.TransportError as error:
            raise StoreError(f"no token for {self!r}: {type(error).__name__}") from None
        except errors.GoogleAuthError as error:  # its message may repeat the request
            if error.retryable:
                raise StoreError(f"no token for {self!r}: {type(error).__name__}") from None
            raise StoreRefusedError(
                f"Google refused {self!r}: {type(error).__name__}",
                cure="Check the key, and who may impersonate the account; a retry cannot help.",
            ) from None

    def _make(self) -> Any:
        try:
            auth, errors = import_module("google.auth"), import_module("google.auth.exceptions")
        except ImportError:
            raise InputError(
                "the storage options need google-auth, which is not installed", cure="Install airflow-provider-lance[gcs]."
            ) from None
        try:
            source = self._source(auth)
        except (errors.GoogleAuthError, OSError, ValueError) as error:  # its message may repeat the key
            raise InputError(
                f"{self!r} has no credentials: {type(error).__name__}",
                cure="Pass google_service_account, or run where the machine has an identity.",
            ) from None
        if not self.impersonated:
            return source
        *delegates, target = self.impersonated
        impersonating = import_module("google.auth.impersonated_credentials")
        return impersonating.Credentials(
            source, target_principal=target, target_scopes=[SCOPE], delegates=delegates or None, lifetime=3600
        )

    def _source(self, auth: Any) -> Any:
        # Who impersonates needs more than the storage.
        scopes = ["https://www.googleapis.com/auth/cloud-platform"] if self.impersonated else [SCOPE]
        if self.key is None and self.key_file is None:
            return auth.default(scopes=scopes)[0]
        text = self.key if self.key is not None else Path(self.key_file or "").expanduser().read_text()
        with warnings.catch_warnings():
            # It asks to check keys of strangers; these are the user's own.
            warnings.simplefilter("ignore", DeprecationWarning)
            return auth.load_credentials_from_dict(json.loads(text), scopes=scopes)[0]


def identity_of(options: Mapping[str, str]) -> GoogleIdentity | None:
    """Return the identity that storage options name, None when the engine's own ways to sign in are enough."""
    pick = picker(options, GOOGLE)
    wanted, chain, file, key = pick("identity"), pick("impersonate") or "", pick("key_file"), pick("key")
    if wanted and wanted != "default":
        raise InputError(f"google_identity={wanted!r} is not known", cure='Write google_identity="default" or omit it.')
    if wanted and (file or key):
        raise InputError("google_identity and a key are not given together", cure="Omit one of them.")
    accounts = tuple(name.strip() for name in chain.split(",") if name.strip())
    if pick("token") and (wanted or accounts):
        raise InputError("google_storage_token is a token already", cure="Omit it, or omit the other identities.")
    if not (wanted or accounts or (file and not _is_read_by_engines(file)) or (key and not _has_own_type(key))):
        return None
    return GoogleIdentity(None if key else file, key, accounts)


def _is_read_by_engines(path: str) -> bool:
    try:
        return _has_own_type(Path(path).expanduser().read_text())
    except (OSError, ValueError):
        return True  # the error of whoever reads it says more


def _has_own_type(text: str) -> bool:
    try:
        kind = json.loads(text).get("type")
    except (ValueError, AttributeError):
        return True
    return kind is None or kind in _OWN_TYPES
