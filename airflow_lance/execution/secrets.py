"""Secrets and what Airflow shows or stores of a task: rendered fields, trigger rows, logs.

::

    storage_options={"region": "eu-west-1"}                            fine: known to be plain
    storage_options={"account_key": {"env": "LAKE_KEY"}}               fine: a reference, resolved where the job runs
    storage_options={"account_key": "..."}, {"...": "{{ var... }}"}    refused: rendered fields and trigger rows show it

Every value that may be a secret is passed to Airflow's masking, before Airflow stores what it rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_lance.compat import mask_secret
from lance_core.errors import InputError


def check_storage_options(options: Mapping[str, Any] | None, *, where: str) -> None:
    """InputError for a literal that may be a secret. The message names the option, never its value."""
    if not options:
        return  # a DAG file without such options loads nothing more
    from lance_core.jobs.specs.plain_options import is_plain_option

    for name, value in options.items():
        if isinstance(value, Mapping) or value in (None, "") or is_plain_option(name, value):
            continue
        raise InputError(
            f"{where}: storage_options[{name!r}] may be a secret, so its value must not be part of a DAG: Airflow "
            "shows rendered fields, and stores them with triggers",
            cure='Put it into the lance connection, or pass a reference: {"env": NAME} or {"file": PATH}.',
        )


def mask_all(options: Mapping[str, Any] | None = None, *, specs: Iterable[Any] = ()) -> None:
    """Tell Airflow's masking about every literal that is not known to be plain, in storage options and in other fields."""
    from lance_core.jobs.specs.plain_options import is_plain_option, secret_values

    for name, value in (options or {}).items():
        if isinstance(value, (str, int)) and str(value) and not is_plain_option(name, value):
            mask_secret(str(value))
    for value in secret_values([item for item in specs if item is not None]):
        mask_secret(value)
