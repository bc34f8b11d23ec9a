"""Batches of streams: what a version says of the batch that it brings, and all later ones of the last that came. Pure.

::

    properties["lance.streaming.queryId"] = "4e0c…", ["lance.streaming.epochId"] = "7"
    properties["lance_core.batch.5d2c…"]  = '{"number":7,"stream":"9a31…"}'       for each batch: a folded version has many
    config["lance_core.stream.9a31…"]     = "7"                                   of this version and of all that follow it

The first two are those of lance-spark's sink, which looks for them in the log. The log is pruned, by others without asking;
the configuration goes from version to version, whoever writes them, and back where a restore takes the rows back. So the
newest version alone shows whether a batch of a stream was committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lance_core.table.transaction import Transaction

QUERY_PROPERTY = "lance.streaming.queryId"
EPOCH_PROPERTY = "lance.streaming.epochId"
_BATCH_PREFIX = "lance_core.batch."
_STREAM_PREFIX = "lance_core.stream."


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """Batch `number` of a query. `stream` names the query and its table, in the table's configuration."""

    query: str
    stream: str
    number: int

    def properties(self, identity: str) -> dict[str, str]:
        """The properties of the transaction that brings it, as the work of this identity.

        >>> StreamBatch("q", "9a31", 7).properties("5d2c")["lance.streaming.epochId"]
        '7'
        """
        note = json.dumps({"number": self.number, "stream": self.stream}, separators=(",", ":"))
        return {QUERY_PROPERTY: self.query, EPOCH_PROPERTY: str(self.number), _BATCH_PREFIX + identity: note}

    def is_of(self, properties: Mapping[str, str]) -> bool:
        """Whether a transaction brings it, by the two properties of lance-spark."""
        return properties.get(QUERY_PROPERTY) == self.query and properties.get(EPOCH_PROPERTY) == str(self.number)

    def is_known(self, config: Mapping[str, str]) -> bool:
        """Whether a table has had a batch of this stream."""
        return _STREAM_PREFIX + self.stream in config


def advanced(config: Mapping[str, str], transaction: Transaction) -> dict[str, str]:
    """What a transaction changes in the configuration of the table: the last batch of each stream of which it brings one.

    >>> work = Transaction(1, "u", None, properties=StreamBatch("q", "9a31", 7).properties("u"))  # type: ignore[arg-type]
    >>> advanced({}, work), advanced({"lance_core.stream.9a31": "8"}, work)
    ({'lance_core.stream.9a31': '7'}, {})
    """
    changed: dict[str, str] = {}
    for stream, number in _batches(transaction):
        if number > _last({**config, **changed}, stream):
            changed[_STREAM_PREFIX + stream] = str(number)
    return changed


def has_come(config: Mapping[str, str], transaction: Transaction) -> bool | None:
    """Whether all batches that a transaction brings are in a table of this configuration; None where it brings none.

    Spark runs the batches of a query one after the other, so that a later one says it of those before.
    """
    found = [_last(config, stream) >= number for stream, number in _batches(transaction)]
    return all(found) if found else None


def _batches(transaction: Transaction) -> Iterator[tuple[str, int]]:
    for name, text in transaction.properties.items():
        if name.startswith(_BATCH_PREFIX):
            try:
                note = json.loads(text)
                yield str(note["stream"]), int(note["number"])
            except (ValueError, TypeError, KeyError, RecursionError):
                continue  # what somebody else wrote there says nothing


def _last(config: Mapping[str, str], stream: str) -> int:
    text = config.get(_STREAM_PREFIX + stream, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
