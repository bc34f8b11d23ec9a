"""A manifest store in any database that SQLAlchemy supports; the only file that imports it (extra `sql`).

::

    lance_manifests   base_uri      version  path                              committer   size
                      /data/t       2        /data/t/_versions/…613.manifest   lance_core  1234
    primary key (base_uri, version): adding a row that is there is what fails, in every database
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from lance_core.errors import AlreadyExistsError, InputError, NotFoundError, StoreError
from lance_core.io.waiting import answered

TABLE = "lance_manifests"
COMMITTER = "lance_core"
_BUSY_SECONDS = 30
"""How long SQLite waits for another writer's lock."""


class SqlRegister:
    """Rows in the table `lance_manifests` of a database, which is made when it is missing.

    `url` is SQLAlchemy's (`postgresql+psycopg://user:secret@host/db`, `sqlite:////data/manifests.db`); it is never shown.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: tuple[int, Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_url": self._url}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_url"])  # type: ignore[misc]

    def get(self, base: str, version: int) -> str | None:
        """One row's path."""
        found, _ = self._ask(lambda table: table.select().where(table.c.base_uri == base, table.c.version == version))
        return None if found is None else str(found.path)

    def latest(self, base: str) -> tuple[int, str] | None:
        """The row of the highest version."""
        found, _ = self._ask(
            lambda table: table.select().where(table.c.base_uri == base).order_by(table.c.version.desc()).limit(1)
        )
        return None if found is None else (int(found.version), str(found.path))

    def add(self, base: str, version: int, path: str, size: int) -> None:
        """Insert; the primary key refuses a second row."""
        row = {"base_uri": base, "version": version, "path": path, "committer": COMMITTER, "size": size}
        self._ask(lambda table: table.insert().values(**row))

    def change(self, base: str, version: int, path: str, size: int) -> None:
        """Update."""
        values = {"path": path, "committer": COMMITTER, "size": size}
        _, changed = self._ask(
            lambda table: table.update().where(table.c.base_uri == base, table.c.version == version).values(**values)
        )
        if changed == 0:
            raise NotFoundError(f"the manifest store has no row ({base}, {version})")

    def replace(self, base: str, version: int, old: str, path: str, size: int) -> None:
        """Update where the path is the old one."""
        values = {"path": path, "committer": COMMITTER, "size": size}
        _, changed = self._ask(
            lambda table: (
                table.update()
                .where(table.c.base_uri == base, table.c.version == version, table.c.path == old)
                .values(**values)
            )
        )
        if changed == 0:
            raise NotFoundError(f"the manifest store has no row ({base}, {version}) that names {old}")

    def remove(self, base: str, version: int) -> None:
        """Delete."""
        self._ask(lambda table: table.delete().where(table.c.base_uri == base, table.c.version == version))

    def remove_if(self, base: str, version: int, path: str) -> None:
        """Delete where the path is this one."""
        self._ask(
            lambda table: table.delete().where(table.c.base_uri == base, table.c.version == version, table.c.path == path)
        )

    def _ask(self, statement: Callable[[Any], Any]) -> tuple[Any, int]:
        """The first row of one statement about the table, and how many it changed, in a transaction of its own.

        Drivers have no limit for an answer, and wait where no signal is seen: `answered` mends both. SQLite has a file, a
        limit for its lock, and databases in memory that belong to one thread.
        """
        if self._url.startswith("sqlite"):
            return self._transact(statement)
        return answered(lambda: self._transact(statement), by="the manifest store's database")

    def _transact(self, statement: Callable[[Any], Any]) -> tuple[Any, int]:
        """Errors typed, without the url in them."""
        engine, table = self._open()
        import sqlalchemy

        failure: StoreError
        try:
            with engine.begin() as connection:
                done = connection.execute(statement(table))
                return (done.first() if done.returns_rows else None), int(done.rowcount)
        except sqlalchemy.exc.IntegrityError:
            failure = AlreadyExistsError("the manifest store already has this version")
        except sqlalchemy.exc.SQLAlchemyError as error:
            failure = StoreError(f"the manifest store failed: {type(error).__name__} ({type(error.__cause__).__name__})")
        raise failure from None

    def _open(self) -> tuple[Any, Any]:
        # Connections do not survive a fork: a child opens its own. Two that begin at once both connect, and one is kept:
        # nobody waits for another's database.
        opened = self._opened
        if opened is None or opened[0] != os.getpid():
            opened = self._opened = (os.getpid(), *_connect(self._url))
        return opened[1], opened[2]


def _connect(url: str) -> tuple[Any, Any]:
    try:
        import sqlalchemy as sa
    except ImportError as error:
        raise InputError(f"SQLAlchemy is not installed: {error}", cure="Install airflow-provider-lance[sql].") from error
    table = sa.Table(
        TABLE,
        sa.MetaData(),
        sa.Column("base_uri", sa.String(700), primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("committer", sa.String(100), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
    )
    try:
        is_sqlite = sa.engine.make_url(url).get_backend_name() == "sqlite"
        engine = sa.create_engine(url, **({"connect_args": {"timeout": _BUSY_SECONDS}} if is_sqlite else {}))
    except (sa.exc.SQLAlchemyError, ImportError):
        raise InputError(
            "manifest_store_url is not a database url, or its driver is not installed",
            cure="Write it as SQLAlchemy does, for example postgresql+psycopg://host/database.",
        ) from None
    _create(sa, engine, table)
    return engine, table


def _create(sa: Any, engine: Any, table: Any) -> None:
    try:
        table.create(engine, checkfirst=True)
    except sa.exc.SQLAlchemyError as error:
        # Two writers that begin at once both try; the one that lost finds the table there.
        with contextlib.suppress(sa.exc.SQLAlchemyError):
            if sa.inspect(engine).has_table(TABLE):
                return
        raise StoreError(f"the manifest store cannot be opened: {type(error).__name__}") from None
