"""Keep the file systems of fsspec with the host that their options name: no credential goes where an answer points to.

::

    s3fs      a session of aiobotocore that does not follow; botocore would look for the region without end
    gcsfs     aiohttp says what it is about to do, and is refused
    adlfs     azure-core's policy does not allow it

aiohttp takes the session token along in a header, and all three take the address with what signs it. Only behind an
endpoint of the user's: a cloud that is asked at its own address may send to another of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import Any

from lance_core.errors import InputError, StoreRefusedError
from lance_core.io.answers import MOVED_CURE, REDIRECTS


def with_fence(protocol: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a file system with which it does not follow redirects, where arguments can say so.

    Raises InputError where the library in use cannot be told, ImportError where it is not installed.
    """
    if protocol == "s3":
        session = _s3_session(refuses=bool(arguments.get("endpoint_url")))
        return {**arguments, "config_kwargs": {**arguments.get("config_kwargs", {}), "http_session_cls": session}}
    if protocol == "gcs" and "endpoint_url" in arguments:
        return {**arguments, "session_kwargs": {"trace_configs": [_refusing_trace()]}}
    return dict(arguments)


def fence_in(protocol: str, arguments: Mapping[str, Any], system: Any) -> None:
    """The same for a file system that no argument can tell it."""
    if protocol != "abfs" or not {"account_host", "connection_string"} & arguments.keys():
        return
    kinds = import_module("azure.core.pipeline.policies")
    for policy in system.service_client._pipeline._impl_policies:
        if isinstance(policy, (kinds.RedirectPolicy, kinds.AsyncRedirectPolicy)):
            policy.allow = False


def _s3_session(*, refuses: bool) -> type:
    kinds: Any = import_module("aiobotocore.httpsession")
    config: Any = import_module("aiobotocore.config")
    if "http_session_cls" not in signature(config.AioConfig.__init__).parameters:
        raise InputError("this aiobotocore follows redirects with credentials", cure="Install a newer aiobotocore.")

    class Session(kinds.AIOHTTPSession):  # type: ignore[misc]
        async def _get_session(self, proxy_url: Any) -> Any:
            return _Still(await super()._get_session(proxy_url), refuses=refuses)

    return Session


class _Still:
    """A session of aiohttp whose requests go where they are sent. Without `refuses`, botocore sees where else to go."""

    def __init__(self, session: Any, *, refuses: bool) -> None:
        self._session = session
        self._refuses = refuses

    async def request(self, *given: Any, headers: Any, **named: Any) -> Any:
        """As aiohttp's. Raises StoreRefusedError for an answer that is a redirect."""
        # For "100 Continue" aiohttp waits without end; the header is not among those that are signed.
        headers.pop("Expect", None)
        answer = await self._session.request(*given, headers=headers, **{**named, "allow_redirects": False})
        if self._refuses and answer.status in REDIRECTS:
            answer.release()
            raise _refused()
        return answer


def _refused() -> StoreRefusedError:
    return StoreRefusedError("the store redirects to another address", cure=MOVED_CURE)


def _refusing_trace() -> Any:
    trace = import_module("aiohttp").TraceConfig()

    async def refuse(session: object, context: object, seen: Any) -> None:
        # Google answers the parts of an upload with 308 and no address: go on.
        if {"Location", "URI"} & {*seen.response.headers}:
            raise _refused()

    trace.on_request_redirect.append(refuse)
    return trace
