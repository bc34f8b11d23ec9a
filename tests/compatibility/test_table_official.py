"""Apply against the official library: for each of its transactions, our manifest is the one it wrote."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from lance_core.format.manifest import Manifest
from lance_core.table.build import build
from lance_core.table.draft import TableOptions
from lance_core.wire.manifest_file import ManifestFile, encode_manifest_file
from lance_core.wire.transaction import encode_transaction
from tests.table.table_histories import HISTORIES, create, read_history, reopen, source_of, transaction_of


def rebuild(history: list[ManifestFile], *, stable: bool) -> list[Manifest]:
    """Each version as we make it from the one before and the transaction."""
    built: list[Manifest] = []
    for position, file in enumerate(history):
        transaction, real = transaction_of(file), file.manifest
        assert real.writer_version is not None
        manifest = build(
            history[position - 1].manifest if position else None,
            transaction,
            timestamp_ns=real.timestamp_ns,
            writer_version=real.writer_version,
            options=TableOptions(data_storage_version=real.data_storage_version, stable_row_ids=stable),
            source=source_of(history, transaction),
        )
        built.append(manifest)
    return built


def by_fragment(manifest: Manifest) -> dict[int, object]:
    return {item.id: item for item in manifest.fragments}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", HISTORIES)
def test_manifests_are_those_of_the_official_library(tmp_path: Path, name: str, stable: bool) -> None:
    create(tmp_path / "t", stable=stable)
    HISTORIES[name](tmp_path / "t")
    history = read_history(tmp_path / "t")
    assert len(history) >= 5
    for file, ours in zip(history, rebuild(history, stable=stable), strict=True):
        where = f"version {ours.version}, {transaction_of(file).operation.name}"
        assert by_fragment(ours) == by_fragment(file.manifest), where
        for field in dataclasses.fields(Manifest):
            assert getattr(ours, field.name) == getattr(file.manifest, field.name), f"{where}: {field.name}"


@pytest.mark.parametrize("stable", [False, True])
def test_official_library_opens_what_we_rebuilt(tmp_path: Path, stable: bool) -> None:
    """Each manifest is replaced by ours, made from nothing but transactions, and the table still reads and validates."""
    uri = tmp_path / "t"
    create(uri, stable=stable)
    HISTORIES["evolve"](uri)
    expected = reopen(uri).to_table().sort_by("a")
    history = read_history(uri)
    previous: Manifest | None = None
    paths = sorted((uri / "_versions").glob("*.manifest"), reverse=True)
    for file, path in zip(history, paths, strict=True):
        transaction, real = transaction_of(file), file.manifest
        assert real.writer_version is not None
        previous = build(
            previous,
            transaction,
            timestamp_ns=real.timestamp_ns,
            writer_version=real.writer_version,
            options=TableOptions(stable_row_ids=stable),
        )
        path.write_bytes(encode_manifest_file(previous, transaction=encode_transaction(transaction)))
    table = reopen(uri)
    table.validate()
    assert table.to_table().sort_by("a") == expected
    assert len(table.versions()) == len(history)
