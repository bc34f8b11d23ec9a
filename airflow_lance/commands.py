"""`airflow lance ...`: commands that need the metadata database. Airflow knows them from 3.2 on.

::

    airflow lance pools --create        -> pool 'lance_flights' created with one slot, for load.month.commit
"""

from __future__ import annotations

import sys
from typing import Any


def get_lance_commands() -> list[Any]:
    """The group of commands in the shape that Airflow's command line expects."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

    create = Arg(("--create",), action="store_true", help="create the missing ones")  # type: ignore[no-untyped-call]
    pools = ActionCommand(
        name="pools",
        help="the pools that tasks on Lance tables name, and which of them do not exist",
        func=_pools,
        args=(create,),
    )
    return [GroupCommand(name="lance", help="Lance tables", subcommands=(pools,))]


def _pools(given: Any) -> None:
    from airflow_lance.pools import print_pools

    status = print_pools(given)
    if status:
        sys.exit(status)
