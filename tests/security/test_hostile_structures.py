"""Hostile structures: a sample of every field by reflection, and that the children who try them tell what ended them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import children
from children import run_in_children
from reflection import NOT_TEXT, OTHER_WIRE, edited, places

from lance_core.wire.pb import table_pb2, transaction_pb2

TOOL = Path(__file__).with_name("hostile_structures.py")

CHILD = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int); parser.add_argument("--count", type=int)
given = parser.parse_args()
seen = set()
for case in range(given.seed, given.seed + given.count):
    print(f"start {case}", flush=True)
    seen.add(case)
    if case == 7 or (case == 40 and 23 in seen):
        os.abort()
    if case == 11:
        print("escape 11 said so", flush=True)
"""


def test_the_culprit_is_found_alone_or_with_the_cases_before_it(tmp_path: Path) -> None:
    script, state = tmp_path / "child.py", tmp_path / "state"
    script.write_text(CHILD)
    found = run_in_children([str(script)], range(60), state=state)
    assert [finding.case for finding in found] == [7, 11, 40]
    assert found[0].what.startswith("the process ended by SIGABRT")
    assert found[1].what == "said so"
    assert found[2].what.startswith("after the cases from 23: the process ended by SIGABRT")
    assert state.read_text() == "60"
    assert run_in_children([str(script)], range(60), state=state) == []


SLOW = """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int); parser.add_argument("--count", type=int)
given = parser.parse_args()
for case in range(given.seed, given.seed + given.count):
    print(f"start {case}", flush=True)
    if case == 3:
        BODY
"""
SPINS = "begun = time.process_time(); [None for _ in iter(lambda: time.process_time() < begun + 60, False)]"


@pytest.mark.parametrize("body", ["time.sleep(60)", SPINS])
def test_a_child_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    script = tmp_path / "child.py"
    script.write_text(SLOW.replace("BODY", body))
    monkeypatch.setattr(children, "SILENT_SECONDS", 0.5)
    (found,) = run_in_children([str(script)], range(5), state=None)
    assert (found.case, found.what.split(":")[0]) == (3, "silent for 0 s")


def test_a_child_that_waits_for_a_processor_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "child.py"
    script.write_text(SLOW.replace("BODY", "time.sleep(2)"))
    monkeypatch.setattr(children, "SILENT_SECONDS", 0.4)
    monkeypatch.setattr(children, "_processor", lambda pid: (0.1, True))
    assert run_in_children([str(script)], range(5), state=None) == []


def _message() -> Any:
    manifest = table_pb2.Manifest(version=3, transaction_file="x", config={"a": "b"})
    fragment = manifest.fragments.add(id=1, physical_rows=10, inline_row_ids=b"\x0a\x04\x0a\x02\x10\x0a")
    fragment.files.add(path="a.lance", fields=[0], column_indices=[0])
    return manifest


def test_every_field_of_a_message_is_reached() -> None:
    found = {str(place) for place in places(_message())}
    assert {
        "version", "transaction_file", "fragments", "fragments[0].physical_rows", "fragments[0].files[0].path", "config",
        "fragments[0].inline_row_ids.as.segments[0].range.end", "fragments[0].deletion_file.num_deleted_rows",
        "base_paths[0].path",
        "fragments[0].inline_row_ids.as.segments[0].range_with_bitmap.bitmap", "data_format.version", "timestamp.seconds",
    } <= found  # fmt: skip
    operations = {str(place).split(".")[0] for place in places(transaction_pb2.Transaction())}
    assert operations == {field.name for field in transaction_pb2.Transaction.DESCRIPTOR.fields}


def test_every_word_of_every_place_makes_another_message() -> None:
    same: list[str] = []
    plain = _message().SerializeToString(deterministic=True)
    for place in places(_message()):
        data = [edited(_message(), place, word) for word in place.words]
        assert len(set(data)) >= min(2, len(data) * 0.6), (str(place), len(set(data)), len(data))
        if all(item == plain for item in data):
            same.append(str(place))
    assert same == []


@pytest.mark.parametrize("name", ["transaction_file", "version", "next_row_id", "fragments[0].id"])
def test_another_wire_type_is_a_field_that_a_parser_does_not_know(name: str) -> None:
    (place,) = [place for place in places(_message()) if str(place) == name]
    data = edited(_message(), place, OTHER_WIRE)
    assert data != _message().SerializeToString()
    found = table_pb2.Manifest.FromString(data)
    holder = found.fragments[0] if name.startswith("fragments") else found
    assert not getattr(holder, name.rpartition(".")[2])


def test_text_that_is_no_text() -> None:
    (place,) = [place for place in places(_message()) if str(place) == "transaction_file"]
    assert b"\xff\xfe\xc0\x80" in edited(_message(), place, NOT_TEXT)


def _run(count: int, seed: int) -> None:
    command = [sys.executable, str(TOOL), "--count", str(count), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300 + 5 * count, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_share_of_hostile_structures() -> None:
    _run(25, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 20_000, 1000))
def test_hostile_structures_end_in_an_answer_or_a_typed_error(seed: int) -> None:
    _run(1000, seed)
