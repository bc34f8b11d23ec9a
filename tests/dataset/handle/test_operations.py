"""Commits of one's own: the same lines, run with either library, leave the same table."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import lance
import lance.fragment
import pyarrow as pa
import pytest

import lance_core
import lance_core.fragment
from lance_core.errors import InputError
from tests.dataset.dataset_tables import same

BOTH = (lance, lance_core)


def begin(library: Any, folder: Path) -> Any:
    uri = str(folder / f"{library.__name__}.lance")
    rows = pa.table({"a": range(12), "b": [str(n) for n in range(12)]})
    fragments = library.fragment.write_fragments(rows, uri, mode="create", max_rows_per_file=4)
    return library.LanceDataset.commit(uri, library.LanceOperation.Overwrite(rows.schema, fragments), read_version=0)


def append(library: Any, ds: Any) -> Any:
    made = [library.LanceFragment.create(ds.uri, pa.table({"a": [20 + n], "b": ["x"]})) for n in range(2)]
    return library.LanceOperation.Append(made)


def delete(library: Any, ds: Any) -> Any:
    first, second, _ = ds.get_fragments()
    return library.LanceOperation.Delete([first.delete("a = 1")], [second.fragment_id], "a = 1")


def merge(library: Any, ds: Any) -> Any:
    made = [fragment.merge_columns({"c": "a * 3"}) for fragment in ds.get_fragments()]
    return library.LanceOperation.Merge([fragment for fragment, _ in made], made[0][1])


def overwrite(library: Any, ds: Any) -> Any:
    rows = pa.table({"z": [1.5, 2.5]})
    return library.LanceOperation.Overwrite(rows.schema, [library.LanceFragment.create(ds.uri, rows, mode="overwrite")])


def update(library: Any, ds: Any) -> Any:
    values = pa.table({"a": [2, 3], "b": ["two", "three"]})
    fragment, fields = ds.get_fragments()[0].update_columns(values, "a")
    return library.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields, update_mode="rewrite_columns")


def rewrite(library: Any, ds: Any) -> Any:
    rows = ds.scanner(fragments=ds.get_fragments()[:2]).to_table()
    new = library.LanceFragment.create(ds.uri, rows)
    group = library.LanceOperation.RewriteGroup([item.metadata for item in ds.get_fragments()[:2]], [new])
    return library.LanceOperation.Rewrite([group], [])


def restore(library: Any, ds: Any) -> Any:
    ds.delete("a > 3")
    return library.LanceOperation.Restore(1)


def replacement(library: Any, ds: Any) -> Any:
    groups = []
    for fragment in ds.get_fragments():
        new, _ = fragment.update_columns(pa.table({"a": [0, 5, 9], "b": ["n", "n", "n"]}), "a")
        groups.append((fragment.fragment_id, new.files[-1]))
    # The fragments hold `b` beside `a`, so first give it a file of its own.
    changed = [f.update_columns(pa.table({"a": [-1], "b": ["-"]}), "a") for f in ds.get_fragments()]
    split = library.LanceOperation.Update(updated_fragments=[f for f, _ in changed], fields_modified=changed[0][1])
    ds = library.LanceDataset.commit(ds, split, read_version=ds.version)
    return library.LanceOperation.DataReplacement([library.LanceOperation.DataReplacementGroup(*group) for group in groups])


def config(library: Any, ds: Any) -> Any:
    kind = library.LanceOperation
    return kind.UpdateConfig(kind.UpdateMap({"k": "v"}), kind.UpdateMap({"t": "w"}), kind.UpdateMap({"s": "x"}))


@pytest.mark.parametrize(
    "make", [append, delete, merge, overwrite, update, rewrite, restore, replacement, config], ids=lambda make: make.__name__
)
def test_the_same_lines_leave_the_same_table(tmp_path: Path, make: Any) -> None:
    ends = []
    for library in BOTH:
        ds = begin(library, tmp_path)
        operation = make(library, ds)
        newest = ds.latest_version
        done = library.LanceDataset.commit(ds.uri, operation, read_version=newest)
        assert done.version == newest + 1
        landed = library.dataset(ds.uri).read_transaction(done.version)
        assert isinstance(landed, library.Transaction)
        assert isinstance(landed.operation, type(operation))
        kind = getattr(library.LanceOperation, type(operation).__name__)
        assert isinstance(landed.operation, kind) and isinstance(operation, kind)
        assert not isinstance(landed.operation, library.LanceOperation.Clone)
        ends.append(lance_core.dataset(ds.uri))
        ends[-1].validate()
    theirs, ours = ends
    order = [(name, "ascending") for name in ours.schema.names]
    same(lance.dataset(ours.uri).to_table(), ours.to_table())
    same(ours.to_table().sort_by(order), theirs.to_table().sort_by(order))
    assert (ours.config().get("k"), ours.metadata.get("t"), ours.schema_metadata.get("s")) == (
        theirs.config().get("k"),
        theirs.metadata.get("t"),
        theirs.schema_metadata.get("s"),
    )


def test_transactions(tmp_path: Path) -> None:
    for library in BOTH:
        ds = begin(library, tmp_path)
        operation = append(library, ds)
        made = library.Transaction(1, operation, transaction_properties={"who": "me"})
        assert len(made.uuid) == 36 and made.uuid != library.Transaction(1, operation).uuid
        assert isinstance(made, library.Transaction) and not isinstance(operation, library.Transaction)
        library.LanceDataset.commit(ds.uri, made)
        landed = library.dataset(ds.uri).read_transaction(2)
        assert (landed.uuid, landed.transaction_properties) == (made.uuid, {"who": "me"})
        batch = [library.Transaction(2, append(library, ds)) for _ in range(3)]
        assert library.LanceDataset.commit_batch(ds.uri, batch)["dataset"].count_rows() == 20
    with pytest.raises(InputError, match="update_mode"):
        lance_core.LanceOperation.Update(update_mode="other")
    with pytest.raises(InputError, match="expected a schema"):
        lance_core.LanceOperation.Overwrite("schema", [])


OURS_NOT = {
    "DataOverlay": "recognised and refused, as its feature flag asks",
    "DataOverlayFile": "recognised and refused, as its feature flag asks",
    "DataOverlayGroup": "recognised and refused, as its feature flag asks",
}


def test_names_and_arguments() -> None:
    theirs, ours = ({name for name in dir(library.LanceOperation) if name[0] != "_"} for library in BOTH)
    assert theirs - ours == {*OURS_NOT} and not ours - theirs
    for name in sorted(ours - {"BaseOperation"}):
        arguments = [*inspect.signature(getattr(lance.LanceOperation, name)).parameters]
        made = inspect.signature(getattr(lance_core.LanceOperation, name)).parameters
        assert [*made] == arguments, name


def test_operations_are_classes_whose_instances_are_plain() -> None:
    made = lance_core.LanceOperation.Restore(3)
    assert type(made).__module__ == "lance_core.table.operations.restore"
    assert isinstance(made, lance_core.LanceOperation.Restore)
    assert isinstance(made, lance_core.LanceOperation.BaseOperation)
    assert not isinstance(made, lance_core.LanceOperation.Append)
    transaction = lance_core.Transaction(1, made)
    assert isinstance(transaction, lance_core.Transaction) and transaction.operation is made
