"""Ages on the command line: 30m, 12h, 14d, 2w."""

from __future__ import annotations

import datetime as dt
import re

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def age(_: click.Context, __: click.Parameter, value: str | None) -> dt.timedelta | None:
    """The callback of an option that takes an age."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d+)([smhdw])", value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not an age; write 30m, 12h, 14d or 2w")
    return dt.timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})
