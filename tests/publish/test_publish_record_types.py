"""Records are data from strangers: one reader bounds size, depth and types, and names what is wrong."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from lance_core.commit.identities import Asked
from lance_core.errors import CorruptFileError
from lance_core.io.memory import MemoryStore
from lance_core.publish.decisions import CommittedWork
from lance_core.publish.intent import Intent
from lance_core.publish.records import (
    MAX_RECORD_SIZE,
    TableIdRecord,
    decode_record,
    is_same_work,
    parse_record,
    read_record,
    work_digest,
)


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"3",
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b"[" * 100_000,
        b'{"a":' * 40 + b"1" + b"}" * 40,
        b'{"a": ' + b"1" * 5000 + b"}",
        b'{"a": "' + b"x" * MAX_RECORD_SIZE + b'"}',
    ],
    ids=lambda data: repr(data[:12]),
)
def test_what_is_no_small_object_is_a_corrupt_file(data: bytes) -> None:
    store = MemoryStore(uuid.uuid4().hex)
    store.put("r.json", data)
    with pytest.raises(CorruptFileError, match=r"r\.json"):
        read_record(store, "r.json")


def test_brackets_inside_text_are_no_depth() -> None:
    text = '{"\\"[' * 50
    assert decode_record(json.dumps({"spec": {"sql": text}}).encode(), where="x") == {"spec": {"sql": text}}


@pytest.mark.parametrize(
    ("cls", "plain", "named"),
    [
        (Intent, {}, "'commit' is missing"),
        (Intent, {"commit": 3}, "commit: expected text"),
        (Intent, {"commit": "c", "since": True}, "since: expected a number"),
        (Intent, {"commit": "c", "uuids": "u"}, "uuids: expected a list"),
        (CommittedWork, {"identity": "x", "version": -1}, "version: expected an integer"),
        (CommittedWork, {"identity": "x", "version": 1 << 70}, "version: expected an integer"),
        (CommittedWork, {"identity": "x", "version": 1, "asked": []}, "asked: expected an object"),
        (TableIdRecord, {"table_id": ["a"]}, "table_id: expected text"),
    ],
)
def test_a_key_of_another_type_is_named(cls: type[Any], plain: dict[str, Any], named: str) -> None:
    with pytest.raises(CorruptFileError, match=named):
        parse_record(cls, plain, where="x")


def test_unknown_keys_are_for_later_releases() -> None:
    assert parse_record(Intent, {"commit": "c", "outcome": "aborts", "more": 1}, where="x").aborts


def test_who_asked_is_read_leniently_for_it_is_only_shown() -> None:
    plain = {"dag_id": "d", "task_id": ["t"], "map_index": 2, "try_number": "1", "host": "h" * 5000, "evil": 1}
    found = Asked.from_dict(plain)
    assert (found.dag_id, found.task_id, found.map_index, found.try_number) == ("d", "", 2, 0)
    assert len(found.host) == 1024
    assert Asked.from_dict(found.to_dict()) == found
    assert Asked.from_dict("x") == Asked()


def test_only_whole_digests_match() -> None:
    digest = work_digest({"kind": "append", "n": 1})
    assert len(digest) == 64
    assert is_same_work(digest, digest)
    assert is_same_work("", digest)
    assert not is_same_work(work_digest({"kind": "append", "n": 2}), digest)
    assert not is_same_work(digest, digest[:16])
