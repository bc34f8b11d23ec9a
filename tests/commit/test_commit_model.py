"""A staged reference between releases: today's names are written beside the former ones, and both are read."""

from __future__ import annotations

import pytest

from lance_core.commit.model import FORMER_FIELDS, StagedTransaction
from lance_core.errors import InputError

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


def test_a_worker_of_the_release_before_reads_what_is_written() -> None:
    plain = STAGED.to_dict()
    former = (plain["uuid"], plain["rows"], plain["bytes"], plain["fragments"], plain["rows_deleted"])
    assert former == ("5d2c", 3, 812, 1, 7)


@pytest.mark.parametrize("names", ["both", "today", "former"])
def test_references_of_both_releases_are_read(names: str) -> None:
    plain = STAGED.to_dict()
    dropped = {"both": (), "today": FORMER_FIELDS.keys(), "former": FORMER_FIELDS.values()}[names]
    assert StagedTransaction.from_dict({name: value for name, value in plain.items() if name not in dropped}) == STAGED


def test_a_reference_without_its_identity_is_refused() -> None:
    plain = {name: value for name, value in STAGED.to_dict().items() if name not in ("identity", "uuid")}
    with pytest.raises(InputError, match="identity is missing"):
        StagedTransaction.from_dict(plain)
