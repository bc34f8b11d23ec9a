"""The conflict rule for each pair of operations: one grid, a row for mine, a column for theirs.

    mine Delete, theirs Rewrite -> column Rw of row Delete -> o -> overlap

A cell is a letter, the letters stand for the rules of `lance_core.table.rules`. The grid is total; a test holds it so, and
another one compares it with the matrix that was measured on the official library. (Spec: FORMAT D.2, D.3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lance_core.format.fragment import Fragment
from lance_core.table import rules
from lance_core.table.operations import OPERATIONS, Operation
from lance_core.table.rules import OK, Known, Rule, Verdict, VerdictKind
from lance_core.table.transaction import Transaction

__all__ = ["RULES", "Verdict", "VerdictKind", "judge", "judge_all"]

_LETTERS: dict[str, Rule] = {
    ".": rules.fine,
    "X": rules.gone,
    "R": rules.replan,
    "n": rules.nullability,
    "o": rules.overlap,
    "d": rules.deletions,
    "e": rules.rewrites,
    "k": rules.inserted_keys,
    "a": rules.appended_keys,
    "g": rules.generations,
    "i": rules.index_names,
    "c": rules.rewritten_coverage,
    "f": rules.indexed_fields,
    "u": rules.updated_coverage,
    "w": rules.mem_wal_index,
    "l": rules.log_state,
    "r": rules.replaced_rows,
    "s": rules.same_cells,
    "p": rules.kept_fields,
    "v": rules.overlaid,
    "K": rules.same_keys,
    "S": rules.schema_metadata,
    "M": rules.replaced_metadata,
    "O": rules.overwritten,
    "b": rules.bases,
}

# Columns in the order of OPERATIONS: Append Delete Overwrite CreateIndex Rewrite Merge Restore ReserveFragments Update
# Project UpdateConfig DataReplacement UpdateMemWalState Clone UpdateBases DataOverlay
_GRID = """
                   Ap De Ov CI Rw Me Re RF Up Pr UC DR MW Cl UB DO
Append             .  .  X  .  .  n  X  .  .  n  .  .  X  .  .  .
Delete             .  d  X  .  o  R  X  .  d  .  .  o  X  .  .  .
Overwrite          .  .  O  .  .  .  .  .  .  .  K  .  X  .  .  .
CreateIndex        .  .  X  i  c  w  X  .  u  .  .  f  l  .  .  .
Rewrite            .  o  X  c  e  R  X  .  o  .  .  o  .  .  .  o
Merge              R  R  X  w  R  R  X  .  R  X  S  R  X  .  .  R
Restore            .  .  .  .  .  .  .  .  .  .  M  .  X  .  .  .
ReserveFragments   .  .  X  .  .  .  X  .  .  .  .  .  .  .  .  .
Update             a  d  X  .  o  R  X  .  k  n  .  o  g  .  .  v
Project            n  .  X  .  .  R  X  .  n  R  .  n  X  .  .  n
UpdateConfig       .  .  M  .  .  S  M  .  .  .  K  .  .  .  .  .
DataReplacement    .  r  X  f  o  R  X  .  r  p  .  s  X  .  .  .
UpdateMemWalState  X  X  X  w  .  X  X  .  g  X  .  X  g  X  .  X
Clone              .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .
UpdateBases        .  .  .  .  .  .  .  .  .  .  .  .  .  .  b  .
DataOverlay        .  v  X  .  o  R  X  .  v  n  .  .  X  .  .  .
"""


def _read_grid() -> dict[tuple[type[Operation], type[Operation]], Rule]:
    rows = {line.split()[0]: line.split()[1:] for line in _GRID.strip().splitlines()[1:]}
    return {
        (mine, theirs): _LETTERS[letter]
        for mine in OPERATIONS
        for theirs, letter in zip(OPERATIONS, rows[mine.name], strict=True)
    }


RULES: Mapping[tuple[type[Operation], type[Operation]], Rule] = _read_grid()


def judge(
    mine: Transaction,
    theirs: Transaction,
    *,
    affected_rows: bool = False,
    originals: Mapping[int, Fragment] | None = None,
) -> Verdict:
    """May `mine` still be committed, now that `theirs` was committed after the version it read?

    `affected_rows`: the rows that mine deletes are known, so deletion vectors can be merged (else such a pair is RETRY).
    `originals`: fragments as mine read them, by id.
    """
    rule = RULES[type(mine.operation), type(theirs.operation)]
    return rule(mine.operation, theirs.operation, Known(affected_rows=affected_rows, originals=originals or {}))


def judge_all(
    mine: Transaction,
    committed: Iterable[Transaction],
    *,
    affected_rows: bool = False,
    originals: Mapping[int, Fragment] | None = None,
) -> Verdict:
    """The gravest verdict over all transactions that were committed since, the first of its kind."""
    worst = OK
    for theirs in committed:
        verdict = judge(mine, theirs, affected_rows=affected_rows, originals=originals)
        if verdict.kind > worst.kind:
            worst = verdict
    return worst
