"""A staged reference between releases: today's names are written beside the former ones, and both are read."""

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
    num_fragments=1,
    transaction_path="_transactions/4-5d2c.txn",
    num_deleted_rows=7,
)


def test_a_reference_is_read_as_it_was_written() -> None:
    assert StagedTransaction.from_dict(STAGED.to_dict()) == STAGED


def test_a_reference_without_its_identity_is_refused() -> None:
    plain = {name: value for name, value in STAGED.to_dict().items() if name != "identity"}
    with pytest.raises(InputError, match="'identity' is missing"):
        StagedTransaction.from_dict(plain)
