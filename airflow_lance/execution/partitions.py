"""Partition keys: the keys of an asset event, and the keys of a range.

::

    keys_of_range("2013-01-01", "2013-01-03", step="day")    -> ["2013-01-01", "2013-01-02", "2013-01-03"]
    keys_of_range("2013-01", "2013-03", step="month")        -> ["2013-01", "2013-02", "2013-03"]

Airflow 3.3 takes keys that a task names. DAGs that wait for partitions (`PartitionedAssetTimetable`) hear such events, and
DAGs that wait for the plain asset do not, so keys are only emitted where a DAG asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from lance_core.errors import InputError

if TYPE_CHECKING:
    from lance_core.conditions import PartitionsPresent

Step = Literal["hour", "day", "month"]
FORMATS: Mapping[str, str] = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m"}
MAX_KEYS = 100_000


class PartitionsTask:
    """What a sensor and an operator share that look for partitions: which ones, and the condition that they are there."""

    column: str
    keys: Sequence[str] | str | None
    start: str | None
    end: str | None
    step: Step
    key_format: str | None
    min_rows: int | str

    def look_for(
        self,
        *,
        column: str,
        keys: Sequence[str] | str | None,
        start: str | None,
        end: str | None,
        step: Step,
        key_format: str | None,
        min_rows: int | str,
        where: str,
    ) -> None:
        """Keep the arguments. InputError unless there are either keys or both ends of a range; `where` is for errors."""
        if (keys is None) == (start is None) or (start is None) != (end is None):
            raise InputError(f"{where}: either keys, or start and end are required")
        if step not in FORMATS:
            raise InputError(f"{where}: step must be one of {', '.join(FORMATS)}, got {step!r}")
        self.column = column
        self.keys = keys
        self.start = start
        self.end = end
        self.step = step
        self.key_format = key_format
        self.min_rows = min_rows

    def partitions_present(self, *, min_rows: int) -> PartitionsPresent:
        """The condition that all of them have rows. InputError for what is no time, or no range."""
        from lance_core.conditions import PartitionsPresent

        if self.keys is not None:
            keys, shown = plain_keys(self.keys), self.key_format
        else:
            if self.start is None or self.end is None:
                raise InputError("partitions: start and end are both required", cure="Pass both, or keys.")
            keys = keys_of_range(self.start, self.end, step=self.step, key_format=self.key_format)
            shown = self.key_format or FORMATS[self.step]
        return PartitionsPresent(column=self.column, keys=tuple(keys), key_format=shown, rows=min_rows)


def plain_keys(keys: Sequence[Any] | str | None) -> list[str]:
    """Keys as texts: one, a list, or text with commas between, as a template renders it."""
    given = keys.split(",") if isinstance(keys, str) else (keys or ())
    return list(dict.fromkeys(text for text in (str(key).strip() for key in given) if text))


def keys_of_range(start: str, end: str, *, step: Step = "day", key_format: str | None = None) -> list[str]:
    """The keys from `start` to `end`, both included. InputError for what is no time, or no range."""
    first, last = _moment(start, "start"), _moment(end, "end")
    if last < first:
        raise InputError(f"partitions: the range ends at {end}, before it starts at {start}")
    shown = key_format or FORMATS[step]
    return list(dict.fromkeys(moment.strftime(shown) for moment in _moments(first, last, step)))


def add_partitions(accessor: Any, keys: Sequence[str], *, log: Any) -> None:
    """Give an outlet's event its keys; where this Airflow has none, say so: they are in the event's extra in any case."""
    if not keys:
        return
    add = getattr(accessor, "add_partitions", None)
    if add is None:
        log.warning(
            "This Airflow cannot emit partition keys from a task (3.3 can): %s are only in the event's extra",
            ", ".join(keys),
        )
        return
    add(list(keys))


def _moments(first: datetime, last: datetime, step: Step) -> Iterator[datetime]:
    moment = first
    for _ in range(MAX_KEYS):
        if moment > last:
            return
        yield moment
        if step == "month":
            later = moment.replace(day=28) + timedelta(days=4)
            moment = later.replace(day=1)
        else:
            moment += timedelta(days=1) if step == "day" else timedelta(hours=1)
    raise InputError(f"partitions: more than {MAX_KEYS:,} keys", cure="Choose a shorter range or a longer step.")


def _moment(text: str, name: str) -> datetime:
    for shown in ("%Y-%m", "%Y-%m-%dT%H"):
        try:
            return datetime.strptime(text.strip(), shown)
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        raise InputError(f"partitions: {name} must be a date or a time, got {text!r}") from None
