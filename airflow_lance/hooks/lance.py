"""The hook of a `lance` connection: where tables live, how to reach them, which Spark runs their jobs.

::

    hook = LanceHook("lake")                  # AIRFLOW_CONN_LAKE='{"conn_type": "lance", "host": "/data/lake"}'
    hook.get_uri("flights.lance")             # "/data/lake/flights.lance"
    hook.dataset("flights.lance")             # the table, to read; hook.write(rows, "flights.lance", mode="append")
    hook.sql("SELECT count(*) FROM f", {"f": "flights.lance"})    # over one table or several, with DuckDB
    hook.list_tables()                        # ["flights.lance", ...]; hook.table_exists("flights.lance")
    hook.get_uri("sales.orders")              # with a catalog: where the table of that name is
    hook.test_connection()                    # lists, and proves that two writers cannot both commit one version
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow_lance.compat import AirflowNotFoundException, BaseHook, mask_secret
from airflow_lance.connection import LanceConnection, is_full_uri, parse_connection, plain_uri
from lance_core.cached import cached_property
from lance_core.errors import AlreadyExistsError, InputError, LanceError, NotFoundError

if TYPE_CHECKING:
    from airflow_lance.named_tables import NamedTables
    from lance_core.jobs.api import Store
    from lance_core.namespace import TableLocation

DEFAULT_SPARK_CONNECTION = "spark_default"


class LanceHook(BaseHook):
    """Reads one connection of type `lance`. Secrets in it are masked in logs from the first look.

    Args:
        lance_conn_id: the connection; the default one need not exist when tables are named by full uris.
    """

    conn_name_attr = "lance_conn_id"
    default_conn_name = "lance_default"
    conn_type = "lance"
    hook_name = "Lance"

    def __init__(self, lance_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lance_conn_id = lance_conn_id

    @cached_property
    def settings(self) -> LanceConnection:
        """The parsed connection. AirflowNotFoundException when it does not exist."""
        settings = parse_connection(self.get_connection(self.lance_conn_id))
        if settings.cloud_conn_ids:
            from airflow_lance.cloud import cloud_options

            found = cloud_options(settings.cloud_conn_ids)
            settings = replace(settings, storage_options={**found, **settings.storage_options})
        for secret in settings.secrets:
            mask_secret(secret)
        return settings

    def get_uri(self, table: str | os.PathLike[str], *, declare: bool = False) -> str:
        """The uri of a table named in the catalog or below the base uri, or by its full uri (which needs no connection).

        `declare` reserves a name that is new to the catalog; without it NotFoundError.
        """
        name = str(plain_uri(table))
        settings = self._settings_for(name)
        return self._locate(name, declare=declare).uri if settings.is_named(name) else settings.table_uri(name)

    def identity_uri(self, table: str | os.PathLike[str]) -> str:
        """The uri that identities of writes are made of: a table in the catalog keeps it wherever it is moved to."""
        name = str(plain_uri(table))
        settings = self._settings_for(name)
        return self.named_tables.stable_uri(name) if settings.is_named(name) else settings.table_uri(name)

    def storage_options(self, table: str | os.PathLike[str] = "") -> dict[str, str]:
        """Options to open the store with, secrets included and masked in logs; of a named table, those of its catalog."""
        name = str(plain_uri(table))
        settings = self._settings_for(name)
        return dict(self._locate(name).storage_options if name and settings.is_named(name) else settings.storage_options)

    @cached_property
    def named_tables(self) -> NamedTables:
        """The connection's catalog. InputError when it has none."""
        from airflow_lance.named_tables import NamedTables

        settings = self.settings
        if settings.catalog is None:
            raise InputError(
                f"the connection {self.lance_conn_id!r} has no catalog",
                cure="Set catalog_uri: a folder, or a server's address.",
            )
        return NamedTables(settings.catalog, settings.storage_options, base_uri=settings.base_uri)

    def is_named(self, table: str | os.PathLike[str]) -> bool:
        """Whether a table is given by its name in the connection's catalog."""
        name = str(plain_uri(table))
        return self._settings_for(name).is_named(name)

    def list_namespaces(self, namespace: str = "") -> list[str]:
        """Names of the namespaces in one of the catalog, by default in its root."""
        return self.named_tables.namespaces(namespace)

    def describe(self, table: str) -> dict[str, Any]:
        """Where a table of the catalog is: its name, uri and properties, and whether it was only declared."""
        return self.named_tables.describe(table)

    def spark_conn_id(self, table: str | os.PathLike[str] = "") -> str:
        """The Spark connection that runs jobs unless an operator names another."""
        return self._settings_for(table).spark_conn_id or DEFAULT_SPARK_CONNECTION

    def dataset(self, table: str | os.PathLike[str], *, version: int | str | None = None, **options: Any) -> Any:
        """A table to read, `lance_core.dataset`: by name below the base uri or by full uri, at a version or a tag."""
        from lance_core.jobs import api

        return api.open_table(self.get_uri(table), version=version, options=self.storage_options(table), **options)

    def write(
        self,
        rows: Any,
        table: str | os.PathLike[str],
        *,
        mode: Literal["create", "append", "overwrite"] = "create",
        **options: Any,
    ) -> Any:
        """Write rows at once with `lance_core.write_dataset`; the table as it is now.

        A task that is retried writes again. `@task.lance` and the operators write exactly once. `schema_drift` is theirs
        too, for an append: "add_extra" or "fill_and_add" add columns that the table lacks.
        """
        from lance_core.jobs import api

        if "schema_drift" in options:
            if mode != "append":
                raise InputError(f'schema_drift needs mode="append", got {mode!r}', cure="Omit it.")
            _append_rows(rows, self.get_uri(table, declare=True), options=self.storage_options(table), **options)
            return self.dataset(table)
        uri = self.get_uri(table, declare=True)
        return api.write_table(rows, uri, mode=mode, options=self.storage_options(table), **options)

    def sql(self, query: str, tables: Mapping[str, Any]) -> Any:
        """The rows of a SELECT over tables as an Arrow table, by DuckDB; `to_pandas()` makes it a frame.

        `tables`: name in the query -> a table, as for `LanceSqlOperator`. The query sees nothing else.
        """
        from airflow_lance.sql_tables import read_tables
        from lance_core.jobs import api
        from lance_core.jobs.specs.sql import read_sources

        found, options = {}, {}
        for name, table in read_tables(tables).items():
            if table.uri:
                hook = LanceHook(table.lance_conn_id) if table.lance_conn_id else self
                table = table.at(hook.get_uri(table.uri), version=table.version)
                options[table.uri] = hook.storage_options(table.name)
            found[name] = table.source
        return api.query(query, read_sources(found), options_of=lambda uri: options.get(uri, {})).read_all()

    def list_tables(self, namespace: str = "") -> list[str]:
        """Names of the tables, as the other methods and the operators take them; no table is opened.

        Of a connection with a catalog those in a namespace and below it, else those below the base uri.
        """
        if namespace or self.settings.catalog is not None:
            return self.named_tables.tables(namespace)
        from lance_core.maintenance.find import find_tables

        base = self.settings.table_uri(self.settings.base_uri)
        found = find_tables(base, storage_options=self.storage_options())
        return [table.uri.removeprefix(f"{base.rstrip('/')}/") for table in found]

    def has_name(self, table: str | os.PathLike[str]) -> bool:
        """Whether the catalog has a table of this name, written or not."""
        try:
            self.get_uri(table)
        except NotFoundError:
            return False
        return True

    def table_exists(self, table: str | os.PathLike[str]) -> bool:
        """Whether a table has a version."""
        try:
            self.dataset(table)
        except NotFoundError:
            return False
        return True

    def get_conn(self) -> Store:
        """The store rooted at the base uri."""
        from lance_core.jobs.api import open_store

        return open_store(self.settings.table_uri(self.settings.base_uri), self.storage_options())

    def test_connection(self) -> tuple[bool, str]:
        """List the base uri, then write one probe object twice with put-if-absent: the second write must be refused, and a
        listing must show the object.

        A store that lets both writers through, or lists what was, loses commits silently, so the test fails there. The probe
        is removed.
        """
        try:
            if self.settings.catalog is not None:
                spaces = self.list_namespaces()
                if self.settings.catalog.kind == "rest":
                    return True, f"{self.settings.catalog.uri}: the catalog answers, and has {len(spaces)} namespaces."
            if not self.settings.base_uri:
                return False, "The connection has no base uri. Set base_uri, for example s3://bucket/tables or /data/lake."
            return _probe(self.get_conn())
        except (LanceError, OSError, ValueError, ImportError) as error:
            return False, f"{type(error).__name__}: {error}"

    def _locate(self, name: str, *, declare: bool = False) -> TableLocation:
        from lance_core.jobs.specs.plain_options import is_plain_option

        found = self.named_tables.locate(name, declare=declare)
        for option, value in found.storage_options.items():
            if value and not is_plain_option(option, value):
                mask_secret(value)
        return found

    def _settings_for(self, table: str | os.PathLike[str]) -> LanceConnection:
        try:
            return self.settings
        except AirflowNotFoundException:
            if self.lance_conn_id != self.default_conn_name or not is_full_uri(plain_uri(table)):
                raise
            return LanceConnection()


def _append_rows(rows: Any, uri: str, *, options: Mapping[str, Any], schema_drift: str, **more: Any) -> dict[str, Any]:
    """Append whatever holds rows; the outcome of the commit. `more` are further fields of an append.

    InputError for what holds no rows; SchemaMismatchError for columns that the policy does not allow.
    """
    import pyarrow as pa

    from lance_core.jobs import api
    from lance_core.jobs.specs.spec import AppendSpec, read_spec

    with tempfile.TemporaryDirectory(prefix="lance-") as folder:
        path = Path(folder) / "rows.arrow"
        with _reader(rows) as reader, pa.ipc.new_file(str(path), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        source = {"format": "arrow", "paths": [str(path)]}
        fields = {"uri": uri, "identity": str(uuid.uuid4()), "source": source, "schema_drift": schema_drift, **more}
        staged = api.run(read_spec(AppendSpec, fields), options=options)
        return api.commit(uri, [staged], options=options, max_attempts=None)


def _reader(rows: Any) -> Any:
    import pyarrow as pa

    if isinstance(rows, Mapping):
        return pa.table(dict(rows)).to_reader()
    if isinstance(rows, list):
        return pa.Table.from_pylist(rows).to_reader()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows)
    raise InputError(
        f"cannot append {type(rows).__name__} with a schema_drift",
        cure="Pass an Arrow table or reader, a pandas or Polars frame, a mapping of columns, or a list of rows.",
    )


def _probe(store: Store) -> tuple[bool, str]:
    num_seen = sum(1 for _ in islice(store.list(""), 1))
    if not store.has_put_if_absent:
        return False, (
            f"{store.uri}: listing works, but this store has no conditional put, so two writers could "
            "commit the same version and one would be lost. Use a store with conditional put, or an external manifest store."
        )
    folder, first, second = f".lance-probe-{uuid.uuid4().hex}", b"first writer", b"second writer"
    path = f"{folder}/object"
    store.list_names(f"{folder}/")  # what keeps listings would go on to say that there is nothing
    try:
        store.put_if_absent(path, first)
        try:
            store.put_if_absent(path, second)
        except AlreadyExistsError:
            pass
        else:
            return False, (
                f"{store.uri}: a conditional put replaced an existing object, so commits could be lost. "
                "Do not commit to tables here without an external manifest store."
            )
        if bytes(store.get(path)) != first:
            return False, f"{store.uri}: the refused conditional put changed the object. Do not commit to tables here."
        if "object" not in store.list_names(f"{folder}/"):
            return False, (
                f"{store.uri}: a listing does not show what was put before it began, so a commit could miss another. "
                "Do not commit to tables here; where a folder is mounted, turn the caching of its listings off."
            )
    finally:
        store.delete(path)
    state = "tables or files exist" if num_seen else "nothing is stored yet"
    return True, f"{store.uri}: listing works ({state}), and conditional put is conditional, and is listed at once."
