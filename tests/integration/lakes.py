"""Places of tables for tests under a scheduler: a folder, or a bucket that the connection `lance_s3` reaches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pytest
from airflow_stack import AirflowStack

from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.publish.attempts import list_staged
from tests.stores.emulators import new_bucket, s3_options

CONNECTION = "lance_s3"


@dataclass(frozen=True)
class Lake:
    """A base of tables, the suffix of the DAGs whose connection reaches it, and the store's options."""

    base: str
    suffix: str = ""
    options: dict[str, str] = field(default_factory=dict)

    def uri(self, name: str) -> str:
        """Of a table."""
        return f"{self.base}/{name}.lance"

    def store(self, name: str) -> Store:
        """Of a table's folder."""
        return resolve_store(self.uri(name), self.options)

    def rows(self, name: str) -> Any:
        """A table's rows, as the official library reads them."""
        options = {key: value for key, value in self.options.items() if key != "dynamodb_endpoint"}
        table = lance.dataset(self.uri(name), storage_options={**options, "allow_http": "true"} if options else None)
        table.validate()
        return table.to_table()

    def ids(self, name: str) -> list[int]:
        """Sorted."""
        found: list[int] = sorted(self.rows(name)["id"].to_pylist())
        return found

    def staged(self, name: str) -> list[Any]:
        """What waits for a commit."""
        return list(list_staged(self.store(name)))


def disk_lake(folder: Path) -> Lake:
    """Tables below a folder."""
    return Lake(str(folder))


@contextmanager
def s3_lake(stack: AirflowStack, endpoint: str) -> Iterator[Lake]:
    """Tables in a new bucket; Airflow has the connection meanwhile."""
    options = s3_options(endpoint)
    extra = json.dumps({"storage_options": options})
    stack.call("POST", "connections", {"connection_id": CONNECTION, "conn_type": "lance", "extra": extra})
    try:
        yield Lake(f"s3://{new_bucket(endpoint)}", "_s3", options)
    finally:
        stack.call("DELETE", f"connections/{CONNECTION}")


@contextmanager
def lake_of(request: pytest.FixtureRequest, stack: AirflowStack, folder: Path) -> Iterator[Lake]:
    """That of a fixture with the parameter "disk" or "s3"."""
    if request.param == "disk":
        yield disk_lake(folder)
        return
    with s3_lake(stack, request.getfixturevalue("moto_endpoint")) as found:
        yield found
