"""A staged reference: what travels from a staging task to its commit."""

from __future__ import annotations

import pytest

from lance_core.errors import InputError
from lance_core.publish.model import StagedTransaction

STAGED = StagedTransaction(
    uri="/t",
    identity="5d2c",
    attempt="00ff",
    read_version=4,
    operation="delete",
    num_rows=3,
    num_bytes=812,
    num_deleted_rows=7,
)


def test_a_reference_is_ten_plain_values_at_most() -> None:
    plain = STAGED.to_dict()
    assert len(plain) <= 10
    assert all(isinstance(value, str | int) for value in plain.values())


def test_a_reference_names_its_transaction() -> None:
    assert STAGED.transaction_path == "_transactions/4-5d2c.00ff.txn"


def test_a_reference_is_read_as_it_was_written() -> None:
    assert StagedTransaction.from_dict(STAGED.to_dict()) == STAGED


def test_a_reference_without_its_identity_is_refused() -> None:
    plain = {name: value for name, value in STAGED.to_dict().items() if name != "identity"}
    with pytest.raises(InputError, match="'identity' is missing"):
        StagedTransaction.from_dict(plain)
