"""The model of publication: a small configuration holds, and rules left out are missed. `make model` checks all."""

from __future__ import annotations

import re
import shutil

import pytest

from protocol import check

pytestmark = pytest.mark.skipif(shutil.which("spin") is None or shutil.which("gcc") is None, reason="needs spin and gcc")


def test_a_configuration_holds() -> None:
    violation, states = check.verify(check.CONFIGURATIONS["two tries of staging and a commit, 1 kill"])
    assert violation is None
    assert states > 100_000


@pytest.mark.parametrize("rule", ["ADOPTS_WHAT_OTHERS_ABORT", "ORDER_OF_ABSENCE", "INTENT_GOES_WITH_THE_FIRST"])
def test_a_rule_that_is_left_out_is_missed(rule: str) -> None:
    defines, _ = check.RULES[rule]
    violation, _ = check.verify((*defines, f"-DBUG_{rule}"))
    assert violation is not None


def test_each_rule_that_the_model_can_leave_out_is_checked() -> None:
    planted = set(re.findall(r"BUG_([A-Z_]+)", check.MODEL.read_text(encoding="utf-8")))
    assert planted == {*check.RULES, *check.SPARE}
