"""The lane of a table: an Airflow pool of one slot, so that commits of one table never race each other.

::

    pool_of("s3://lake/flights.lance")  ->  "lance_flights_3f9a1c"      a readable name, and a hash that keeps it apart
    python -m airflow_lance.pools s3://lake/flights.lance                          creates it, or checks it
    airflow pools set lance_flights_3f9a1c 1 "lane of s3://lake/flights.lance"     the same with Airflow's own command

Tasks may not touch the metadata database, so a pool is made by an operator of the deployment: by the commands above, or
by calling `ensure_pool` from a script that can reach the database. A missing pool leaves its tasks in state `scheduled`;
the commit's correctness never depends on the pool, only its speed does.
"""

from __future__ import annotations

import argparse
import hashlib
import re


def pool_of(uri: str) -> str:
    """The conventional pool name of a table: the same for the same table, also with a trailing slash or `file://`."""
    from lance_core.jobs.specs.identity import canonical_uri

    bare = canonical_uri(uri)
    name = re.sub(r"[^A-Za-z0-9]+", "_", bare.rsplit("/", 1)[-1].removesuffix(".lance")).strip("_")[:40] or "table"
    return f"lance_{name}_{hashlib.sha256(bare.encode()).hexdigest()[:6]}"


def explain_pool(pool: str, uri: str = "") -> str:
    """What to do when a commit task waits for a pool that does not exist."""
    what = f" of {uri}" if uri else ""
    return (
        f"Commits{what} are meant to run one at a time in the Airflow pool {pool!r} with one slot. "
        f"If the commit task stays in state 'scheduled', the pool is missing; create it with:\n"
        f"    airflow pools set {pool} 1 'lane{what}'"
    )


def main() -> None:
    """`python -m airflow_lance.pools s3://lake/flights.lance [--pool NAME]`: create or check a table's commit pool."""
    parser = argparse.ArgumentParser(prog="python -m airflow_lance.pools", description="The one-slot pool of a table.")
    parser.add_argument("uri", help="the table's uri")
    parser.add_argument("--pool", help="the pool's name; by default the conventional one")
    given = parser.parse_args()
    print(ensure_pool(given.pool or pool_of(given.uri), uri=given.uri))


def ensure_pool(pool: str, *, uri: str = "") -> str:
    """Create the one-slot pool, or check that it has one slot; returns what was found or done.

    Needs the metadata database: for set-up scripts and tests, never for a task. ValueError when the pool has another
    number of slots.
    """
    from airflow.models.pool import Pool

    found = Pool.get_pool(pool)
    if found is None:
        Pool.create_or_update_pool(pool, slots=1, description=f"lane of {uri or 'a Lance table'}", include_deferred=False)
        return f"pool {pool!r} created with one slot"
    if found.slots != 1:
        raise ValueError(
            f"pool {pool!r} has {found.slots} slots, so commits of one table would race. "
            f"Set it to one: airflow pools set {pool} 1 lane"
        )
    return f"pool {pool!r} is there, with one slot"


if __name__ == "__main__":
    main()
