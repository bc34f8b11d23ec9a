"""Words that name a column where an operand is expected, as the official library reads them: `and = 2`, `x > case`.

The parser knows them as operators and clauses. Between operands they are; where an operand has to begin they cannot be.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from sqlglot import tokens

_T: Any = vars(tokens)["TokenType"]


def _kinds(names: str) -> frozenset[Any]:
    return frozenset(getattr(_T, name) for name in names.split() if hasattr(_T, name))


_ALWAYS = _kinds(
    "AND OR ALIAS BETWEEN LIKE ILIKE RLIKE GLOB XOR DISTINCT ELSE THEN WHEN FROM SELECT WITH NOTNULL SIMILAR_TO"
)
"""Nothing that begins an operand."""
_UNLESS_FOLLOWED = _kinds("NOT CASE ANY")
"""What may begin an operand: a name only before what must have an operand in front of it."""
_AFTER_OPERAND = frozenset(
    {_T.EQ, _T.NEQ, _T.GT, _T.GTE, _T.LT, _T.LTE, _T.IS, _T.IN, _T.BETWEEN, _T.LIKE, _T.ILIKE, _T.AND, _T.OR, _T.R_PAREN}
)
_BEFORE_OPERAND = frozenset(
    {
        _T.EQ, _T.NEQ, _T.GT, _T.GTE, _T.LT, _T.LTE, _T.PLUS, _T.DASH, _T.STAR, _T.SLASH, _T.MOD, _T.DPIPE, _T.AND, _T.OR,
        _T.LIKE, _T.ILIKE, _T.BETWEEN, _T.L_PAREN, _T.L_BRACKET, _T.COMMA, _T.WHEN, _T.THEN, _T.ELSE, _T.CASE, _T.FROM,
    }
)  # fmt: skip


def with_names(found: Sequence[Any]) -> list[Any]:
    """The tokens, words in the place of an operand made names."""
    made: list[Any] = []
    expected = True
    for number, token in enumerate(found):
        kind = token.token_type
        if expected and _is_name(found, number):
            made.append(_as_name(token))
            expected = False
            continue
        made.append(token)
        # NOT before an operand leaves it expected; after one, as in NOT IN, it does not.
        expected = kind in _BEFORE_OPERAND or (expected and kind is _T.NOT)
    return made


def _is_name(found: Sequence[Any], number: int) -> bool:
    kind = found[number].token_type
    following = found[number + 1].token_type if number + 1 < len(found) else None
    if kind in _ALWAYS:
        in_case = number > 0 and found[number - 1].token_type is _T.CASE
        return following is not _T.L_PAREN and not (kind is _T.WHEN and in_case)
    is_if = kind is _T.VAR and found[number].text.upper() == "IF"
    return (is_if or kind in _UNLESS_FOLLOWED) and (following is None or following in _AFTER_OPERAND)


def _as_name(token: Any) -> Any:
    named = copy.copy(token)
    named.token_type = _T.IDENTIFIER
    return named
