"""The page about indices: its examples run, and no kind is left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lance_core.index.registry import KINDS
from lance_core.index.vector.parameters import KINDS as VECTOR_KINDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "indices.md").read_text(encoding="utf-8")


def test_examples_run(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, Any] = {}
    for number, example in enumerate(examples):
        exec(compile(example.replace("/tmp/", f"{tmp_path}/"), f"indices.md, example {number}", "exec"), names)
    assert len(examples) > 6


def test_every_kind_is_told_of() -> None:
    for name in (*(kind.name for kind in KINDS), *VECTOR_KINDS):
        assert re.search(rf"\b{name}\b", PAGE), name
