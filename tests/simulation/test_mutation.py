"""Mutants by rule: each changes one place of one function, and a child process that has one in it does not survive it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import mutants
from tests.simulation.equivalent import EQUIVALENT
from tests.simulation.mutation import DROPPED, NEGATED, REACHED, SWAPPED, UNGUARDED, chosen, mutants_of, mutated

_SOURCE = '''"""A module."""

from __future__ import annotations


class Log:
    def publish(self, store, items):
        """Its documentation."""
        if not items:
            return None
        store.put("decision", b"1")
        store.put("manifest", b"2")
        log.info("published")
        return [item for item in items if item.is_there]


def plain():
    return 1
'''
_RULES = {NEGATED: 2, DROPPED: 2, SWAPPED: 1, UNGUARDED: 1}


def _all(folder: Path) -> dict[tuple[str, int], mutants.Mutant]:
    (folder / "module.py").write_text(_SOURCE)
    return {(item.rule, item.number): item for item in mutants_of(folder, ["module.py"])}


def test_every_rule_finds_its_places_and_nothing_else(tmp_path: Path) -> None:
    found = _all(tmp_path)
    assert {rule: sum(key[0] == rule for key in found) for rule in _RULES} == _RULES
    assert {item.function for item in found.values()} == {"Log.publish"}


@pytest.mark.parametrize(
    ("rule", "number", "there", "gone"),
    [
        (NEGATED, 0, "if not not items:", ""),
        (NEGATED, 1, "if not item.is_there]", ""),
        (UNGUARDED, 0, "pass", "return None"),
        (DROPPED, 0, "pass", "store.put('decision', b'1')"),
        (DROPPED, 1, "pass", "store.put('manifest', b'2')"),
    ],
)
def test_a_mutant_differs_in_one_place(tmp_path: Path, rule: str, number: int, there: str, gone: str) -> None:
    text = mutated(_SOURCE, _all(tmp_path)[rule, number])
    compile(text, "module.py", "exec")
    assert there in text
    assert not gone or gone not in text
    assert text.count(f"{REACHED}.append(1)") == 1


def test_swapped_calls_stand_in_the_other_order(tmp_path: Path) -> None:
    text = mutated(_SOURCE, _all(tmp_path)[SWAPPED, 0])
    assert text.index("manifest") < text.index("decision")


def test_a_mutant_of_other_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"Log\.publish"):
        mutated("def plain(): pass", _all(tmp_path)[NEGATED, 0])


def test_a_seed_chooses_the_same_and_more_go_on_from_there() -> None:
    every = mutants.all_mutants()
    few, more = chosen(every, count=20, seed=3), chosen(every, count=40, seed=3)
    assert more[:20] == few
    assert few != chosen(every, count=20, seed=4)
    assert len({item.name for item in every}) == len(every) > 500


def test_a_child_with_a_mutant_names_its_killer() -> None:
    wanted = next(item for item in mutants.all_mutants() if item.function == "CommitLoop.run" and item.rule == NEGATED)
    assert mutants.in_a_child(wanted.name, "more", seconds=5).startswith("abort-meets-commit: ")


def test_what_is_proved_to_be_the_same_is_there() -> None:
    there = {(mutant.name, mutant.digest) for mutant in mutants.all_mutants()}
    assert sorted(set(EQUIVALENT) - there) == [], "its function has changed: try it again, and prove it anew"
