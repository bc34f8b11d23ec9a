"""Policies as YAML: what is read, and that every complaint names its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.errors import InputError
from lance_core.maintenance.policy import ManagedTable
from lance_core.maintenance.policy_file import load_policy, parse_policy
from lance_core.maintenance.quantities import is_within, parse_duration, parse_hours, parse_size

TEXT = """
base_uri: s3://lake/lance
levels: {max_deleted_share: 0.2, keep_seconds: 14d}
budget:
  bytes_per_day: 500 GB
  quiet_hours: "22:00-06:00"
  max_concurrent: 3
tables:
  - match: "*"
  - match: "finance/*"
    levels: {max_deleted_share: 0.02}
    steps: [compact, cleanup]
  - {match: "scratch/*", paused: true}
"""


def test_a_whole_policy(tmp_path: Path) -> None:
    path = tmp_path / "lance_policy.yaml"
    path.write_text(TEXT)
    policy = load_policy(path)
    assert (policy.levels.max_deleted_share, policy.levels.keep_seconds) == (0.2, 14 * 86400.0)
    assert (policy.budget.bytes_per_day, policy.budget.quiet_hours) == (500 * 10**9, (79200, 21600))
    finance = policy.for_table(ManagedTable(uri="s3://lake/lance/finance/orders.lance"))
    assert finance is not None and finance.steps == ("compact", "cleanup") and finance.levels.max_deleted_share == 0.02
    assert policy.evidence_uri == "s3://lake/lance/_maintenance"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base_uri: /t\nlevels:\n  max_deleted_shar: 1", r"p:3: .*unknown key 'max_deleted_shar'"),
        ("base_uri: /t\nlevels:\n  max_deleted_share: 2", r"p:3: .*between 0 and 1"),
        ("base_uri: /t\nbudget: {bytes_per_day: lots}", r"p:2: .*'lots' is not a size"),
        ("base_uri: /t\nbudget:\n  quiet_hours: 25-26", r"p:3: .*not a time range within a day"),
        ("base_uri: /t\ntables:\n  - match: x\n    steps: [sweep]", r"p:3: .*unknown step 'sweep'"),
        ("base_uri: /t\ntables:\n  - {levels: {}}", r"p:3: .*selects no tables"),
        ("base_uri: /t\ntables:\n  match: x", r"p:3: expected a list"),
        ("base_uri: /t\ntabels: []", r"p:2: unknown key 'tabels'"),
        ("tables: []", r"needs a base_uri"),
        ("base_uri: [", r"p:\d"),
        ("- 1", r"p:1: expected keys and values"),
        ("", r"p: expected keys and values"),
        ("base_uri: /t\nlevels: {max_versions: many}", r"p:2: .*max_versions must be of type int, got 'many'"),
        ("base_uri: !!python/object/apply:os.system [x]", r"p"),
    ],
)
def test_complaints_name_the_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_policy(text, name="p")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no_such"):
        load_policy(tmp_path / "no_such.yaml")


@pytest.mark.parametrize(("text", "size"), [("64 MiB", 64 << 20), ("1.5 GB", 1_500_000_000), (7, 7), ("0", 0)])
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("wrong", ["-1", "five", "3 XB", None, True, -4])
def test_nonsense_sizes_and_durations(wrong: object) -> None:
    with pytest.raises(InputError):
        parse_size(wrong)
    with pytest.raises(InputError):
        parse_duration(wrong)


def test_hours_wrap_around_midnight() -> None:
    hours = parse_hours("22:00-06:00")
    assert [is_within(hours, hour * 3600) for hour in (21, 22, 3, 6)] == [False, True, True, False]
    assert is_within(parse_hours("08:30-24:00"), 9 * 3600) is False or parse_hours("08:30-24:00") == (30600, 0)
