"""The commit pool of a table: an Airflow pool with one slot, so that commits of the table do not race.

::

    pool_of("s3://lake/flights.lance")  ->  "lance_flights_3f9a1c"      a readable name, and a hash that keeps it apart
    python -m airflow_lance.pools s3://lake/flights.lance                          creates it, or checks it
    python -m airflow_lance.pools --dags [--create]                             the pools that DAGs name; which are missing
    airflow lance pools [--create]                                                 the same, from Airflow 3.2 on
    airflow pools set lance_flights_3f9a1c 1 "commits of s3://lake/flights.lance"     the same with Airflow's own command

Tasks may not touch the metadata database, so a pool is made by an operator of the deployment: by the commands above, or
by calling `ensure_pool` from a script that can reach the database. A missing pool leaves its tasks in state `scheduled`;
the commit's correctness never depends on the pool, only its speed does.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from typing import Any

DEFAULT_POOL = "default_pool"
"""Airflow's own, where tasks run that name none."""


def pool_of(uri: str) -> str:
    """The conventional pool name of a table: the same for the same table, also with a trailing slash or `file://`."""
    from lance_core.jobs.specs.identity import canonical_uri

    bare = canonical_uri(uri)
    name = re.sub(r"[^A-Za-z0-9]+", "_", bare.rsplit("/", 1)[-1].removesuffix(".lance")).strip("_")[:40] or "table"
    return f"lance_{name}_{hashlib.sha256(bare.encode()).hexdigest()[:6]}"


def explain_pool(pool: str, uri: str = "") -> str:
    """What to do when a task waits for a pool that does not exist."""
    what = f" of {uri}" if uri else ""
    return (
        f"This task runs in the Airflow pool {pool!r}. If it stays in state 'scheduled', the pool does not exist; "
        f"create it with:\n    airflow pools set {pool} 1 'commits{what}'\n"
        f"`python -m airflow_lance.pools --dags` lists every pool that a DAG names and that does not exist."
    )


def suggest_pool(uri: str) -> str:
    """The hint of a commit without a pool: nothing is wrong, but a pool may make commits faster."""
    return (
        f"Commits of {uri} may run at the same time: a commit that conflicts with another one is rebased or re-executed. "
        f"If that happens often, a pool with one slot is faster: pool={pool_of(uri)!r}, created with "
        f"`python -m airflow_lance.pools {uri}`"
    )


def named_pools(dags: Iterable[Any]) -> dict[str, list[str]]:
    """The pools that tasks of this provider name, each with those tasks as `dag.task`; the default pool is none of them."""
    found: dict[str, list[str]] = {}
    for dag in dags:
        for task in dag.tasks:
            module = str(getattr(task, "_task_module", "") or type(task).__module__)
            if module.startswith("airflow_lance.") and task.pool != DEFAULT_POOL:
                found.setdefault(task.pool, []).append(f"{dag.dag_id}.{task.task_id}")
    return found


def check_pools(*, create: bool = False) -> tuple[list[str], int]:
    """One line for each pool that a stored DAG names, and how many of them are missing. With `create` none is afterwards.

    Needs the metadata database, as `ensure_pool` does.
    """
    from airflow.models.pool import Pool
    from airflow.models.serialized_dag import SerializedDagModel

    lines, missing = [], 0
    for pool, tasks in sorted(named_pools(SerializedDagModel.read_all_dags().values()).items()):
        users = ", ".join(tasks[:3]) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")
        if Pool.get_pool(pool) is not None:
            lines.append(f"pool {pool!r} is there, for {users}")
        elif create:
            lines.append(f"{ensure_pool(pool)}, for {users}")
        else:
            missing += 1
            lines.append(f"pool {pool!r} does not exist, and {users} would wait for ever: airflow pools set {pool} 1 lane")
    return lines or ["no DAG names a pool for a task of this provider"], missing


def main() -> int:
    """Create or check a table's commit pool, or look at those of all DAGs; 1 when one is missing."""
    import argparse  # DAG files import this module, and none of them parses a command line

    parser = argparse.ArgumentParser(prog="python -m airflow_lance.pools", description="The one-slot pool of a table.")
    parser.add_argument("uri", nargs="?", help="the table's uri: its pool is created, or checked")
    parser.add_argument("--pool", help="the pool's name; by default the conventional one")
    parser.add_argument("--dags", action="store_true", help="check the pools that tasks of all DAGs name")
    parser.add_argument("--create", action="store_true", help="with --dags: create the missing ones, with one slot each")
    given = parser.parse_args()
    if given.dags:
        return print_pools(given)
    if given.uri is None:
        parser.error("name a table's uri, or say --dags")
    print(ensure_pool(given.pool or pool_of(given.uri), uri=given.uri))
    return 0


def print_pools(given: Any) -> int:
    """Print what `check_pools` finds; 1 when a pool is missing."""
    lines, missing = check_pools(create=given.create)
    print("\n".join(lines))
    return 1 if missing else 0


def ensure_pool(pool: str, *, uri: str = "") -> str:
    """Create the one-slot pool, or check that it has one slot; returns what was found or done.

    Needs the metadata database: for set-up scripts and tests, never for a task. ValueError when the pool has another
    number of slots.
    """
    from airflow.models.pool import Pool

    found = Pool.get_pool(pool)
    if found is None:
        Pool.create_or_update_pool(pool, slots=1, description=f"commits of {uri or 'a Lance table'}", include_deferred=False)
        return f"pool {pool!r} created with one slot"
    if found.slots != 1:
        raise ValueError(
            f"pool {pool!r} has {found.slots} slots, so commits of one table would race. "
            f"Set it to one: airflow pools set {pool} 1 commits"
        )
    return f"pool {pool!r} exists with one slot"


if __name__ == "__main__":
    sys.exit(main())
