"""The generated protobuf code: up to date with its sources, and with the names and numbers of the format."""

from __future__ import annotations

import importlib
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

import lance_core.wire.pb as pb

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "protos").rglob("*.proto"))
GENERATED = Path(pb.__file__).parent


def test_generated_code_is_up_to_date() -> None:
    digest = runpy.run_path(str(ROOT / "protos" / "generate.py"))["digest_sources"]()
    recorded = (GENERATED / "SOURCES.sha256").read_text().strip()
    assert recorded == digest, "the .proto files changed: run `make protos` and commit what it generates"


def test_each_source_has_its_module() -> None:
    modules = {path.name for path in GENERATED.glob("*_pb2.py")}
    assert modules == {f"{path.stem}_pb2.py" for path in SOURCES}


def test_sources_lie_where_they_cannot_clash_with_others() -> None:
    for path in SOURCES:
        assert path.relative_to(ROOT / "protos").as_posix().startswith("lance_core/wire/pb/")


def test_names_and_numbers_are_those_of_the_format() -> None:
    found = sorted(line for path in SOURCES for line in describe(path.stem))
    expected = (Path(__file__).parent / "fields.txt").read_text().splitlines()
    assert found == expected


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_one_field_a_line(path: Path) -> None:
    for line in path.read_text().splitlines():
        code = line.split("//")[0]
        assert code.count("=") <= 1 or "map<" in code, line
        assert code.count(";") <= 1, line


def describe(stem: str) -> Iterator[str]:
    """One line for each message, field and enum value of a generated module."""
    file = FileDescriptorProto()
    importlib.import_module(f"lance_core.wire.pb.{stem}_pb2").DESCRIPTOR.CopyToProto(file)
    for message in file.message_type:
        yield from describe_message(message, f"{file.package}.{message.name}")
    for enum in file.enum_type:
        yield from describe_enum(enum, f"{file.package}.{enum.name}")


def describe_message(message: Any, path: str) -> Iterator[str]:
    yield f"message {path}"
    for field in message.field:
        yield f"{path}.{field.name} {field.number} {describe_type(message, field)}"
    for enum in message.enum_type:
        yield from describe_enum(enum, f"{path}.{enum.name}")
    for nested in message.nested_type:
        yield from describe_message(nested, f"{path}.{nested.name}")


def describe_type(message: Any, field: Any) -> str:
    kind = field.type_name.lstrip(".") or FieldDescriptorProto.Type.Name(field.type)[5:].lower()
    if field.proto3_optional:
        return f"optional {kind}"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {kind}"
    return f"{kind} in {message.oneof_decl[field.oneof_index].name}" if field.HasField("oneof_index") else kind


def describe_enum(enum: Any, path: str) -> Iterator[str]:
    for value in enum.value:
        yield f"enum {path}.{value.name} {value.number}"
