"""What the triggers of a table share: their arguments, and how Airflow stores them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_lance.connection import plain_uri
from airflow_lance.execution.secrets import check_storage_options


class TableTrigger:
    """A trigger that looks at one table, beside Airflow's own base class."""

    uri: str
    lance_conn_id: str
    storage_options: dict[str, Any]
    poke_interval: float

    def watch_table(
        self, uri: str, *, lance_conn_id: str, storage_options: Mapping[str, Any] | None, poke_interval: float
    ) -> None:
        """Set what all of them have."""
        self.uri = plain_uri(uri)
        self.lance_conn_id = lance_conn_id
        self.storage_options = dict(storage_options or {})
        self.poke_interval = poke_interval

    def own_arguments(self) -> dict[str, Any]:
        """The arguments of this kind of trigger alone."""
        raise NotImplementedError

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; Airflow stores them, so they hold no secret. InputError when they do."""
        check_storage_options(self.storage_options, where=type(self).__name__)
        kwargs = {
            "uri": self.uri,
            **self.own_arguments(),
            "lance_conn_id": self.lance_conn_id,
            "storage_options": self.storage_options,
            "poke_interval": self.poke_interval,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", kwargs
