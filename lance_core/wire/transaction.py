"""Transactions on the wire (`lance.table.Transaction`): a few facts and one arm for each operation.

    08 04                    read_version = 4
    12 24 33 66 ..           uuid, as text
    a2 06 ..                 append (field 100)

The table at the end says, for each operation, its arm and how it is written and read; `wire/operations.py` and
`wire/operations_rows.py` hold those functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.format.fragments import FragmentList
from lance_core.table.operations import (
    Append,
    Clone,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)
from lance_core.table.transaction import Transaction
from lance_core.wire import operations, operations_rows
from lance_core.wire.fragments import WireFragments, all_messages, encode_fragment
from lance_core.wire.new_fragments import MANY, are_plain, join_append, split_append
from lance_core.wire.pb import transaction_pb2
from lance_core.wire.schema import parse_message, unknown_bytes

Encode = Callable[[Any], Any]
Decode = Callable[[Any], Operation]

_ARMS: dict[type[Any], tuple[str, Encode, Decode]] = {
    Append: ("append", operations_rows.encode_append, operations_rows.decode_append),
    Delete: ("delete", operations_rows.encode_delete, operations_rows.decode_delete),
    Overwrite: ("overwrite", operations_rows.encode_overwrite, operations_rows.decode_overwrite),
    CreateIndex: ("create_index", operations.encode_create_index, operations.decode_create_index),
    Rewrite: ("rewrite", operations_rows.encode_rewrite, operations_rows.decode_rewrite),
    Merge: ("merge", operations_rows.encode_merge, operations_rows.decode_merge),
    Restore: ("restore", operations.encode_restore, operations.decode_restore),
    ReserveFragments: ("reserve_fragments", operations.encode_reserve, operations.decode_reserve),
    Update: ("update", operations_rows.encode_update, operations_rows.decode_update),
    Project: ("project", operations.encode_project, operations.decode_project),
    UpdateConfig: ("update_config", operations.encode_update_config, operations.decode_update_config),
    DataReplacement: ("data_replacement", operations_rows.encode_replacement, operations_rows.decode_replacement),
    UpdateMemWalState: ("update_mem_wal_state", operations.encode_mem_wal, operations.decode_mem_wal),
    Clone: ("clone", operations.encode_clone, operations.decode_clone),
    UpdateBases: ("update_bases", operations.encode_update_bases, operations.decode_update_bases),
    DataOverlay: ("data_overlay", operations_rows.encode_overlay, operations_rows.decode_overlay),
}
_MANY_BYTES = 16 * MANY
"""Transactions of fewer bytes cannot hold many fragments."""
_UUID = 2
"""The field of a Transaction that has its uuid."""
_BY_ARM = {name: decode for name, _, decode in _ARMS.values()}


def decode_transaction(data: bytes) -> Transaction:
    """The transaction in these bytes.

    Raises CorruptFileError when they are not a transaction, UnsupportedFeatureError for an operation of a newer release.
    """
    raws, rest = split_append(data) if len(data) >= _MANY_BYTES else ([], data)
    if len(raws) < MANY or not are_plain(raws):
        raws, rest = [], data
    message = parse_message(transaction_pb2.Transaction, rest, what="transaction")
    arm = message.WhichOneof("operation")
    if raws and arm != "append":
        raws, message = [], parse_message(transaction_pb2.Transaction, data, what="transaction")
        arm = message.WhichOneof("operation")
    unknown = unknown_bytes(message)
    if arm is None and not unknown:
        raise CorruptFileError(f"transaction {message.uuid!r} has no operation")
    if arm is None:
        raise UnsupportedFeatureError(
            f"transaction {message.uuid!r} has an operation that this library does not know", cure="Use a newer release."
        )
    return Transaction(
        read_version=message.read_version,
        uuid=message.uuid,
        operation=Append(FragmentList.of_bytes(raws, WireFragments())) if raws else _BY_ARM[arm](getattr(message, arm)),
        tag=message.tag,
        properties=dict(message.transaction_properties),
        unknown=unknown,
    )


def decode_uuid(data: bytes) -> str:
    """The uuid of the transaction in these bytes, whose operation is not decoded: it may name very many fragments.

    Raises CorruptFileError when they are not a message with one.
    """
    found = all_messages(data, _UUID)
    try:
        return found[-1].decode() if found else ""
    except UnicodeDecodeError as error:
        raise CorruptFileError("the uuid of a transaction is not UTF-8") from error


def encode_transaction(transaction: Transaction) -> bytes:
    """The bytes of a transaction; the same transaction gives the same bytes."""
    arm, encode, _ = _ARMS[type(transaction.operation)]
    message = transaction_pb2.Transaction(read_version=transaction.read_version, uuid=transaction.uuid, tag=transaction.tag)
    message.transaction_properties.update(transaction.properties)
    operation = transaction.operation
    if isinstance(operation, Append) and isinstance(operation.fragments, FragmentList) and not transaction.unknown:
        return join_append(
            bytes(message.SerializeToString(deterministic=True)), operation.fragments.to_bytes(encode_fragment)
        )
    getattr(message, arm).CopyFrom(encode(operation))
    if transaction.unknown:
        message.MergeFromString(transaction.unknown)
    return bytes(message.SerializeToString(deterministic=True))


def with_packed_fragments(transaction: Transaction) -> Transaction:
    """The same transaction; if it has very many new fragments, these are bytes from here on, made once for all writes."""
    operation = transaction.operation
    if not isinstance(operation, Append | Overwrite) or isinstance(operation.fragments, FragmentList):
        return transaction
    if len(operation.fragments) < MANY:
        return transaction
    raws = [encode_fragment(item) for item in operation.fragments]
    return replace(transaction, operation=replace(operation, fragments=FragmentList.of_bytes(raws, WireFragments())))
