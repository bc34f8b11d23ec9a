"""An AWS role that the library assumes itself, and again before its keys expire: for jobs that outlast one set of keys.

::

    aws_role_arn=arn:aws:iam::1:role/writer, keys of a user     -> AssumeRole with these keys
    aws_role_arn=arn:aws:iam::1:role/writer                     -> AssumeRole as the machine (instance, container, …)

Each process assumes the role on its own, Spark's executors too, so nothing that expires travels with a job. botocore sends
the requests and knows when to send them again.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from lance_core.errors import InputError, StoreError, StoreRefusedError
from lance_core.io.spellings import AWS, picker
from lance_core.io.waiting import answered

ROLE_OPTIONS = frozenset(
    {"aws_role_arn", "aws_role_session_name", "aws_external_id", "aws_role_seconds", "aws_sts_endpoint"}
)
_SESSION_NAME = "lance_core"
_LONGEST_USE = dt.timedelta(minutes=5)
"""After this a client asks again; botocore answers with the keys it has until they come close to their end."""
_SAID_TO_LAST = dt.timedelta(minutes=16)
"""What sessions learn: they ask again when less than 15 minutes are left, and keys are good for 10 minutes at least."""


def as_provided(keys: Any) -> Mapping[str, Any]:
    """Return botocore's frozen keys as obstore wants them from a provider, which it calls again when they run out."""
    return {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "token": keys.token,
        "expires_at": dt.datetime.now(dt.timezone.utc) + _LONGEST_USE,
    }


class _Held:
    """What the first request makes, and the next ones use. Two that come at once both request: neither waits for the other,
    and a forked child inherits no lock."""

    def __init__(self) -> None:
        self.credentials: Any = None
        self.session: Any = None

    def __reduce__(self) -> tuple[type[_Held], tuple[()]]:
        return _Held, ()  # another process assumes the role itself


@dataclass(frozen=True)
class AssumedRole:
    """A role, and who assumes it. Calling it gives keys as obstore wants them; equal ones are interchangeable."""

    role_arn: str
    session_name: str = _SESSION_NAME
    external_id: str | None = field(default=None, repr=False)
    seconds: int | None = None
    keys: tuple[str, str, str | None] | None = field(default=None, repr=False)
    """Access key id, secret, session token of who assumes it; None is the machine's own identity, or the profile's."""
    profile: str | None = None
    region: str | None = None
    endpoint: str | None = None
    _held: _Held = field(default_factory=_Held, repr=False, compare=False)

    def __call__(self) -> Mapping[str, Any]:
        """Return keys that are good for five minutes at least.

        Raises StoreRefusedError when AWS refuses the role, StoreError when nobody answers.
        """
        renewed = self.credentials()
        try:
            keys = answered(renewed.get_frozen_credentials, by=f"STS, from which the role {self.role_arn} was requested,")
        except import_module("botocore.exceptions").ClientError as error:  # its message names the requester
            code = error.response["Error"]["Code"]
            raise StoreRefusedError(
                f"AWS refused the role {self.role_arn}: {code}", cure="Check who may assume the role; a retry cannot help."
            ) from None
        except StoreError:
            raise
        except Exception as error:  # a tree of its own, and what is below it
            raise StoreError(f"the role {self.role_arn} could not be assumed: {type(error).__name__}") from None
        return as_provided(keys)

    def credentials(self) -> Any:
        """Return botocore's credentials of the role, which renew themselves; nothing is requested yet."""
        if self._held.credentials is None:
            self._held.credentials = self._assume()
        return self._held.credentials

    def session(self) -> Any:
        """Return a session of aiobotocore, as s3fs takes it, that asks for keys again before they expire."""
        if self._held.session is None:
            credentials = import_module("aiobotocore.credentials")
            session = import_module("aiobotocore.session").AioSession()
            session._credentials = credentials.AioDeferredRefreshableCredentials(self._renew, method="assume-role")
            self._held.session = session
        return self._held.session

    async def _renew(self) -> dict[str, Any]:
        keys = await asyncio.to_thread(self)
        expires = dt.datetime.now(dt.timezone.utc) + _SAID_TO_LAST
        found = {"access_key": keys["access_key_id"], "secret_key": keys["secret_access_key"], "token": keys["token"]}
        return found | {"expiry_time": expires.isoformat()}

    def _assume(self) -> Any:
        try:
            sessions, credentials = import_module("botocore.session"), import_module("botocore.credentials")
        except ImportError:
            raise InputError(
                "aws_role_arn needs botocore, which is not installed", cure="Install airflow-provider-lance[dynamodb]."
            ) from None
        session = sessions.Session(profile=self.profile)
        if self.keys is not None:
            session.set_credentials(*self.keys)
        source = session.get_credentials()
        if source is None:
            raise InputError(
                f"no keys to assume the role {self.role_arn} with: none among the storage options, and none of the machine",
                cure="Pass aws_access_key_id and aws_secret_access_key, or run where the machine has an identity.",
            )
        extra = {"RoleSessionName": self.session_name, "ExternalId": self.external_id, "DurationSeconds": self.seconds}
        creator: Callable[..., Any] = partial(
            session.create_client, region_name=self.region or "us-east-1", endpoint_url=self.endpoint
        )
        fetcher = credentials.AssumeRoleCredentialFetcher(
            client_creator=creator,
            source_credentials=source,
            role_arn=self.role_arn,
            extra_args={name: value for name, value in extra.items() if value is not None},
        )
        return credentials.DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method="assume-role")


def role_of(options: Mapping[str, str]) -> AssumedRole | None:
    """Return the role that storage options name, None without one. InputError for a part that makes no sense."""
    pick = picker(options, AWS)
    arn = options.get("aws_role_arn")
    if not arn:
        others = sorted(name for name in ROLE_OPTIONS if options.get(name))
        if others:
            raise InputError(f"the storage options {', '.join(others)} need aws_role_arn")
        return None
    seconds = options.get("aws_role_seconds")
    if seconds is not None and not (seconds.isdecimal() and 900 <= int(seconds) <= 43_200):
        raise InputError(f"aws_role_seconds must be between 900 and 43200, got {seconds!r}")
    key, secret = pick("access_key_id"), pick("secret_access_key")
    if (key is None) != (secret is None):
        raise InputError("aws_access_key_id and aws_secret_access_key are given together or not at all")
    token = pick("session_token")
    return AssumedRole(
        arn,
        session_name=options.get("aws_role_session_name") or _SESSION_NAME,
        external_id=options.get("aws_external_id"),
        seconds=None if seconds is None else int(seconds),
        keys=None if key is None or secret is None else (key, secret, token),
        profile=pick("profile"),
        region=pick("region"),
        endpoint=options.get("aws_sts_endpoint"),
    )
