"""Public faces: what a type checker reads is what Python finds, every name resolves, and nothing is imported before."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FACES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("lance_core", "airflow_lance")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "lazy_face(" in path.read_text() and path.name != "lazy.py"
}


def _imported(tree: ast.Module) -> dict[str, str]:
    """Name -> `module:name` of the imports for type checkers."""
    (branch,) = [node for node in tree.body if isinstance(node, ast.If)]
    found = {}
    for node in branch.body:
        assert isinstance(node, ast.ImportFrom)
        if node.names[0].name == "*":
            found |= _imported(ast.parse(FACES[node.module or ""].read_text()))
        else:
            found |= {alias.asname or alias.name: f"{node.module}:{alias.name}" for alias in node.names}
    return found


def _table(tree: ast.Module) -> dict[str, str]:
    (branch,) = [node for node in tree.body if isinstance(node, ast.If)]
    (call,) = [node for node in ast.walk(branch) if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_face"]
    homes = _literal(call.args[1], tree)
    return {name: home if ":" in home else f"{home}:{name}" for name, home in homes.items()}


def _literal(value: ast.expr, tree: ast.Module) -> dict[str, str]:
    """A table that is written out, by a name or with the tables of other faces in it."""
    if isinstance(value, ast.Name):
        named = [node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value]
        for node in named:
            if value.id in map(ast.unparse, node.targets if isinstance(node, ast.Assign) else [node.target]):
                return _literal(node.value, tree)  # type: ignore[arg-type]
        (source,) = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.names[0].name == value.id]
        return _literal(value, ast.parse(FACES[source.module or ""].read_text()))
    assert isinstance(value, ast.Dict)
    found: dict[str, str] = {}
    for name, item in zip(value.keys, value.values, strict=True):
        found |= _literal(item, tree) if name is None else {ast.literal_eval(name): ast.literal_eval(item)}
    return found


@pytest.mark.parametrize("face", FACES)
def test_a_type_checker_and_python_see_the_same_names(face: str) -> None:
    tree = ast.parse(FACES[face].read_text())
    imported, table = _imported(tree), _table(tree)
    modules = {name for name, home in table.items() if home.endswith(":")}
    # `lance_core.dataset` is a function to a type checker and a module that can be called to Python.
    callable_modules = {"dataset"} if face == "lance_core" else set()
    assert {name: home for name, home in imported.items() if name not in callable_modules} == {
        name: home for name, home in table.items() if name not in modules
    }


@pytest.mark.parametrize("face", FACES)
def test_every_name_of_a_face_resolves(face: str) -> None:
    module = import_module(face)
    names = {*module.__all__, *_table(ast.parse(FACES[face].read_text()))}
    assert names <= {*dir(module)}
    assert [name for name in sorted(names) if getattr(module, name, None) is None] == []
    with pytest.raises(AttributeError, match="has no attribute 'absent_name'"):
        _ = module.absent_name


def test_importing_all_faces_imports_nothing_that_they_hand_on() -> None:
    heavy = ("pyarrow", "numpy", "numba", "google.protobuf", "pyspark", "fsspec", "airflow.models")
    code = f"import sys, {', '.join(FACES)}; print([name for name in {heavy!r} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert printed.strip() == "[]"


def test_the_official_import_lines_work() -> None:
    from lance_core.dataset import LanceDataset, LanceOperation, LanceScanner, MergeInsertBuilder, write_dataset
    from lance_core.dataset.handle import dataset, merge_builder, open, operation_aliases

    assert (LanceDataset, MergeInsertBuilder) == (dataset.LanceDataset, merge_builder.MergeInsertBuilder)
    assert (LanceOperation, write_dataset) == (operation_aliases.LanceOperation, open.write_dataset)
    assert LanceScanner.__name__ == "LanceScanner"
