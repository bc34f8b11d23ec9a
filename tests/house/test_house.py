"""The rules of the house that no other tool holds: pins, file lengths, generated code that is fresh."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for package in ("lance_core", "airflow_lance", "airflow_provider_lance", "dags_examples", "demo", "bench")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "wire/pb" not in path.as_posix()
]


def test_pyspark_and_its_client_are_of_one_version() -> None:
    assert importlib.metadata.version("pyspark") == importlib.metadata.version("pyspark-client")


def test_constraints_pin_pyspark_and_its_client_alike() -> None:
    pins = dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^;\s]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert pins["pyspark"] == pins["pyspark-client"]


def test_constraints_are_plain_pins() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(r"[A-Za-z0-9_.\[\]-]+==[A-Za-z0-9.+!-]+(; python_version >= \"3\.\d+\")?", line), line


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_source_file_is_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600, "split it, or say why in an ADR"


def test_no_source_file_has_a_name_that_says_nothing() -> None:
    banned = {"utils", "helpers", "common", "misc", "util", "helper"}
    public_faces = {ROOT / "lance_core" / "util.py"}  # as the official library calls the module
    assert [path for path in SOURCES if path.stem in banned and path not in public_faces] == []


def test_generated_protobuf_code_is_fresh() -> None:
    digest = hashlib.sha256()
    protos = ROOT / "protos"
    for source in sorted(protos.rglob("*.proto")):
        digest.update(source.relative_to(protos).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    recorded = (ROOT / "lance_core/wire/pb/SOURCES.sha256").read_text().strip()
    assert digest.hexdigest() == recorded, "the .proto files changed: run `make protos`"


def test_the_product_never_imports_the_official_library() -> None:
    pattern = re.compile(r"^\s*(import lance\b|from lance[. ])", re.MULTILINE)
    product = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("lance_core", "airflow_lance")]
    assert [path for path in product if pattern.search(path.read_text())] == []


def test_the_product_asks_arrow_for_no_types_of_pandas() -> None:
    """`to_pandas_dtype` imports pandas up to Arrow 25, where it may not be installed: `number_type` does not."""
    assert [path for path in SOURCES if ".to_pandas_dtype(" in path.read_text()] == []


def test_the_product_has_no_module_for_tests_and_imports_none() -> None:
    pattern = re.compile(r"^\s*(import|from) ((\w+\.)*testing|tests|protocol|bench)\b", re.MULTILINE)
    product = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("lance_core", "airflow_lance")]
    assert [path for path in product if path.stem == "testing" or pattern.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("lance_core", ("pyarrow", "numpy", "numba", "google.protobuf", "pyspark", "fsspec")),
        ("lance_core.jobs.specs.spec", ("pyarrow", "numpy", "numba", "google.protobuf", "pyspark", "fsspec")),
        ("lance_core.jobs.specs.identity", ("pyarrow", "numpy", "numba", "google.protobuf", "pyspark", "fsspec")),
        ("lance_core.conditions", ("pyarrow", "numpy", "numba", "google.protobuf", "pyspark", "fsspec")),
        ("lance_core.dataset.handle.dataset", ("numba", "pyspark")),
    ],
)
def test_importing_stays_light(module: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert printed.strip() == "[]"


def test_nobody_catches_a_shortage_as_something_else() -> None:
    """`pa.ArrowException` is the class of a shortage of memory as well: `ARROW_ERRORS` are those about values and bytes."""
    found = [
        str(path)
        for folder in ("lance_core", "airflow_lance")
        for path in sorted(Path(folder).rglob("*.py"))
        if re.search(r"except[^\n]*\b(ArrowException|ArrowMemoryError)\b", path.read_text())
    ]
    assert not found


@pytest.mark.parametrize("package", ["commit", "publish"])
def test_no_function_of_the_protocol_has_many_parameters(package: str) -> None:
    """What takes more is a frozen request."""
    found = []
    for path in sorted((ROOT / "lance_core" / package).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                names = [item.arg for item in taken if item.arg not in ("self", "cls")]
                found += [f"{path.name}: {node.name}"] * (len(names) > 7)
    assert found == []
