"""Ways to sign in to Azure that its file system has no option for, as credentials of `azure.identity` (extra `azure`).

::

    bearer_token=ey…                                      a token somebody else fetched
    use_azure_cli=true                                    whoever `az login` signed in
    federated_token_file=/var/run/…  client_id  tenant_id workload identity of a pod
    msi_resource_id=…  or  object_id=…                    one of a machine's managed identities

Without any of them, and without a key, the file system asks Azure's default chain, which ends at the managed identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from lance_core.errors import InputError
from lance_core.io.options import is_true
from lance_core.io.spellings import AZURE, picker

_FOR_LONG = 1 << 33
"""Seconds since the epoch at which a token that was passed over is said to expire: nobody here can renew it."""


@dataclass(frozen=True)
class BearerToken:
    """A token as a credential; asynchronous, as the file system asks."""

    token: str = field(repr=False)

    async def get_token(self, *scopes: str, **_: Any) -> Any:
        """The token, whatever its scope."""
        return import_module("azure.core.credentials").AccessToken(self.token, _FOR_LONG)

    async def close(self) -> None:
        """Nothing to close."""

    async def __aenter__(self) -> BearerToken:
        return self

    async def __aexit__(self, *_: object) -> None:
        return


def azure_credential(options: Mapping[str, str]) -> Any:
    """What the options ask for, None when they ask for nothing of this."""
    pick = picker(options, AZURE)
    token = pick("token")
    if token is not None:
        return BearerToken(token)
    if is_true(pick("use_azure_cli")):
        return _identity("AzureCliCredential")
    federated = pick("federated_token_file")
    if federated is not None:
        client = pick("client_id")
        tenant = pick("tenant_id")
        return _identity("WorkloadIdentityCredential", client_id=client, tenant_id=tenant, token_file_path=federated)
    if pick("msi_endpoint"):
        raise InputError(
            "the endpoint of a managed identity cannot be set by a storage option",
            cure="Set IDENTITY_ENDPOINT in the environment.",
        )
    chosen = {
        "object_id": pick("object_id"),
        "resource_id": pick("msi_resource_id"),
    }
    wanted = {name: value for name, value in chosen.items() if value is not None}
    return _identity("ManagedIdentityCredential", identity_config=wanted) if wanted else None


def _identity(name: str, **arguments: Any) -> Any:
    try:
        module = import_module("azure.identity.aio")
    except ImportError as error:
        raise InputError(
            f"the package for signing in to Azure is not installed: {error}", cure="Install airflow-provider-lance[azure]."
        ) from error
    try:
        return getattr(module, name)(**arguments)
    except ValueError as error:
        raise InputError(f"Azure's {name} rejected the storage options: {error}") from None
