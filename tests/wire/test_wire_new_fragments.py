"""Very many new fragments as bytes: the same as one object each, and nothing damaged passes because there are many."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError, InputError
from lance_core.format.fragment import DataFile, DeletionFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest, WriterVersion
from lance_core.format.schema import Field, Schema
from lance_core.table.build import build
from lance_core.table.draft import TableOptions
from lance_core.table.operations import Append, Overwrite
from lance_core.table.transaction import Transaction
from lance_core.wire.fragments import WireFragments, encode_fragment, encode_fragment_message
from lance_core.wire.manifest_file import decode_manifest_file, encode_manifest_file
from lance_core.wire.new_fragments import MANY, encode_plain, numbered, paths_of
from lance_core.wire.operations_rows import encode_append
from lance_core.wire.pb import transaction_pb2
from lance_core.wire.transaction import decode_transaction, encode_transaction, with_packed_fragments
from tests.wire.wire_strategies import DATA_FILES, FRAGMENTS

PLAIN = st.builds(
    Fragment,
    id=st.integers(0, 2**32 - 1),
    files=st.tuples(DATA_FILES),
    physical_rows=st.integers(0, 2**32 - 1),
)
SCHEMA = Schema(
    (Field(id=0, name="a", parent_id=-1, logical_type="int64"), Field(id=1, name="b", parent_id=-1, logical_type="int64"))
)
WRITER = WriterVersion("lance_core", "1")


def as_message(fragment: Fragment) -> bytes:
    return bytes(encode_fragment_message(fragment).SerializeToString(deterministic=True))


def new(number: int, *, fields: tuple[int, ...] = (0, 1), rows: int = 300, size: int | None = 70_000) -> Fragment:
    file = DataFile(f"{number:024b}ä.lance", fields, tuple(range(len(fields))), 2, 1, file_size_bytes=size)
    return Fragment(id=0, files=(file,), physical_rows=rows)


def many(*odd: Fragment) -> tuple[Fragment, ...]:
    kinds = [new(n, rows=n, size=n or None, fields=(0, 1) if n % 3 else (1, 0)) for n in range(MANY)]
    kinds[MANY // 2 : MANY // 2] = odd
    return tuple(kinds)


def table_before() -> Manifest:
    first = Transaction(0, "u0", Overwrite((new(1),), SCHEMA))
    made = build(None, first, timestamp_ns=1, writer_version=WRITER, options=TableOptions())
    return decode_manifest_file(encode_manifest_file(made)).manifest


def next_version(previous: Manifest | None, transaction: Transaction) -> bytes:
    made = build(previous, transaction, timestamp_ns=2, writer_version=WRITER, options=TableOptions())
    return encode_manifest_file(made)


def in_protobuf(transaction: Transaction) -> bytes:
    """What the protobuf runtime alone makes of an append."""
    message = transaction_pb2.Transaction(read_version=transaction.read_version, uuid=transaction.uuid)
    message.transaction_properties.update(transaction.properties)
    message.append.CopyFrom(encode_append(transaction.operation))
    return bytes(message.SerializeToString(deterministic=True))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(FRAGMENTS | PLAIN)
def test_a_fragment_is_the_bytes_that_protobuf_makes(fragment: Fragment) -> None:
    assert encode_fragment(fragment) == as_message(fragment)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(PLAIN.map(lambda item: replace(item, id=0)), min_size=1, max_size=6), st.integers(0, 2**32 - 10))
def test_numbering_bytes_is_numbering_objects(fragments: list[Fragment], first: int) -> None:
    raws = [as_message(item) for item in fragments]
    expected = [as_message(replace(item, id=first + place)) for place, item in enumerate(fragments)]
    found = numbered(raws, first)
    if found is not None:
        assert found[0] == expected
    paths = paths_of(raws)
    if paths is not None:
        assert paths == [item.files[0].path for item in fragments]


def test_ordinary_new_fragments_are_plain() -> None:
    raws = [as_message(item) for item in many()]
    found = numbered(raws, 7)
    assert found is not None
    assert [raws[place] for place in found[1]] == raws[:2]
    assert all(encode_plain(item) == raw for item, raw in zip(many(), raws, strict=True))


@pytest.mark.parametrize("is_new_table", [True, False], ids=["new", "there"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_the_next_version_is_the_same(is_new_table: bool, stable: bool) -> None:
    previous = None if is_new_table else table_before()
    operation = Overwrite(many(), SCHEMA) if is_new_table else Append(many())
    plain = Transaction(0 if is_new_table else 1, "u", operation)
    packed = with_packed_fragments(plain)
    assert isinstance(packed.operation, Append | Overwrite)
    assert isinstance(packed.operation.fragments, FragmentList)
    options = TableOptions(stable_row_ids=stable)
    expected, found = (
        encode_manifest_file(build(previous, item, timestamp_ns=2, writer_version=WRITER, options=options))
        for item in (plain, packed)
    )
    assert found == expected


def test_a_large_append_travels_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    transaction = Transaction(4, "u", Append(many()), properties={"why": "because"})
    data = encode_transaction(with_packed_fragments(transaction))
    assert data == in_protobuf(transaction) == encode_transaction(transaction)

    def refuse(self: WireFragments, raw: bytes) -> Fragment:
        raise AssertionError("no fragment has to be made an object")

    monkeypatch.setattr(WireFragments, "decode", refuse)
    found = decode_transaction(data)
    assert isinstance(found.operation, Append)
    assert len(found.operation.fragments) == MANY
    assert encode_transaction(found) == data
    monkeypatch.undo()
    assert found == transaction


@pytest.mark.parametrize(
    "odd",
    [
        replace(new(1), id=3),
        replace(new(1), files=()),
        replace(new(1), files=(*new(1, fields=(0,)).files, *new(2, fields=(1,)).files)),
        replace(new(1), deletion_file=DeletionFile("array", 1, 2, 3)),
        replace(new(1), row_ids=b"\x0a\x00"),
        replace(new(1), metadata={"a": "b"}),
        replace(new(1), files=(replace(new(1).files[0], base_id=4),)),
    ],
    ids=["id", "no file", "two files", "deletions", "row ids", "metadata", "base"],
)
def test_one_fragment_that_is_not_plain_changes_nothing(odd: Fragment) -> None:
    transaction = Transaction(1, "u", Append(many(odd)))
    data = encode_transaction(with_packed_fragments(transaction))
    assert data == in_protobuf(transaction)
    found = decode_transaction(data)
    assert found == transaction
    if odd.id == 0:
        expected = next_version(table_before(), transaction)
        assert (
            next_version(table_before(), found)
            == expected
            == next_version(table_before(), with_packed_fragments(transaction))
        )


@pytest.mark.parametrize("packs", [False, True], ids=["objects", "bytes"])
def test_a_field_twice_is_refused(packs: bool) -> None:
    transaction = Transaction(1, "u", Append(many(new(1, fields=(0, 0)))))
    with pytest.raises(InputError, match="holds a field twice"):
        next_version(table_before(), with_packed_fragments(transaction) if packs else transaction)


def test_fields_in_two_pieces_are_not_taken_for_one() -> None:
    """A file may name its fields in two pieces; only the last would be seen, so such an entry is decoded."""
    raw = as_message(new(1, fields=(0,)))
    file = (
        bytes(encode_fragment_message(new(1, fields=(0,))).files[0].SerializeToString(deterministic=True)) + b"\x12\x01\x00"
    )
    twice = b"\x12" + bytes([len(file)]) + file + raw[-3:]
    assert FragmentList.of_bytes([twice], WireFragments())[0].files[0].fields == (0, 0)
    assert numbered([raw, twice], 1) is None


@pytest.mark.parametrize("damage", ["text", "cut", "rows"])
def test_damage_among_many_is_found_when_it_is_read(damage: str) -> None:
    raws = [as_message(item) for item in many()]
    place = MANY // 3
    if damage == "text":
        raws[place] = raws[place].replace("ä".encode(), b"\xff\xfe")
    elif damage == "cut":
        raws[place] = raws[place][:9]
    else:
        raws[place] = as_message(replace(new(1), physical_rows=2**33))
    operation = Append(FragmentList.of_bytes(raws, WireFragments()))
    with pytest.raises(CorruptFileError):
        decode_transaction(encode_transaction(Transaction(1, "u", operation)))
