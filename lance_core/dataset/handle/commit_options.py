"""The arguments of `commit` and `commit_batch` beside the plain ones, written out once."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, TypedDict

from lance_core.dataset.arguments import NOT_IMPLEMENTED, NotImplementedHere, check_options
from lance_core.dataset.handle.protocol import TableHandle
from lance_core.errors import InputError
from lance_core.io.options import with_base_params


class CommitOptions(TypedDict, total=False):
    """Further arguments of a commit; the timeout is accepted and changes nothing here."""

    base_store_params: Mapping[str, Mapping[str, str]] | None
    commit_timeout: timedelta | None
    namespace_client: Annotated[None, NOT_IMPLEMENTED]
    table_id: Annotated[None, NOT_IMPLEMENTED]
    namespace_client_managed_versioning: Annotated[Literal[False] | None, NotImplementedHere((False,))]


def refuse_commit_lock(verb: str, commit_lock: object) -> None:
    """InputError for a lock: stores without conditional put take an external manifest store."""
    if commit_lock is not None:
        raise InputError(f"{verb}: the option commit_lock={commit_lock!r} is not implemented", cure="Leave it out.")


def access_of(
    verb: str,
    target: object,
    storage_options: Mapping[str, str] | None,
    options: CommitOptions,
) -> Mapping[str, str] | None:
    """Storage options with those of single base paths; None leaves a handle its own. InputError, TypeError as ever."""
    check_options(verb, options, CommitOptions)
    params = options.get("base_store_params")
    has_own = isinstance(target, TableHandle) and storage_options is None and params
    own = target.snapshot.storage_options if isinstance(target, TableHandle) and has_own else None
    return with_base_params(own if storage_options is None else storage_options, params)
