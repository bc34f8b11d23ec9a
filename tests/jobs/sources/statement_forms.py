"""Random expressions and the forms of a statement in which each of them means the same."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

TABLE = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "n": pa.array([7, -7, 0, 1, None, 10, -3, 9], pa.int64()),
        "m": pa.array([2, 3, -2, 4, 5, None, -1, 7], pa.int32()),
        "k": pa.array([1, 2, 3, -4, 100, -100, None, 7], pa.int16()),
        "f": pa.array([2.5, -2.5, 0.5, 1e5, None, 1 / 3, -0.125, 3.0], pa.float64()),
        "g": pa.array([1.5, -0.5, 2.5, None, 0.1, 100.0, 7.0, -3.5], pa.float32()),
        "d": pa.array(
            [
                None if text is None else Decimal(text)
                for text in "100.13 -0.50 2.50 x 0.01 7.00 -3.49 99.99".replace("x", "0.00").split()
            ],
            pa.decimal128(10, 2),
        ),
        "s": ["abc", "A b", "", None, "12", "ß", "-3.7", " x "],
        "t": ["7", "-2", "2.6", "2020-02-29", "true", None, "0", "1e3"],
        "b": [True, False, None, True, False, True, True, False],
        "day": pa.array([18321, -1, None, 20088, 10957, 18630, 19659, -25509], pa.date32()),
        "ts": pa.array(
            [
                dt.datetime(2020, 2, 29, 1, 2, 3, 456000),
                dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
                None,
                *5 * [dt.datetime(2021, 1, 3)],
            ],
            pa.timestamp("us"),
        ),
    }
)
FORMS = {
    "plain": "SELECT id, {} AS x FROM t",
    "with": "WITH q AS (SELECT * FROM t) SELECT id, {} AS x FROM q",
    "inside": "SELECT id, x FROM (SELECT id, {} AS x FROM (SELECT * FROM t) a) b",
    "join": "SELECT t.id, {} AS x FROM t JOIN (SELECT id AS other FROM t) u ON t.id = u.other",
    "union": "SELECT id, {} AS x FROM t WHERE id < 4 UNION ALL SELECT id, {} FROM t WHERE id >= 4",
    "group": "SELECT min(id) AS id, {} AS x FROM t GROUP BY id, ({})",
    "order": "SELECT * FROM (SELECT id, {} AS x FROM t WHERE ({}) IS NOT NULL OR true ORDER BY x, id)",
    "exists": "SELECT id, {} AS x FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id = t.id)",
    "scalar": "SELECT a.id, (SELECT {} FROM t WHERE t.id = a.id) AS x FROM t a",
}
_NUMBERS = (("n", "m", "k", "3", "4", "-2", "7"), ("n", "m", "k"), ("f", "g", "1.5", "0.1", "2e0", "-0.5"), ("d",))
_TYPES = ("INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(10,2)", "DECIMAL(20,1)", "SMALLINT")


class Expressions:
    """A seeded supply of them."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def next(self) -> str:
        """An expression of any type."""
        number, text, rng = self._number, self._text, self._rng
        makers: list[Callable[[], str]] = [
            lambda: number(1),
            lambda: number(2),
            lambda: text(1),
            lambda: self._condition(1),
            lambda: f"CASE WHEN {self._condition(0)} THEN {number(1)} ELSE {number(0)} END",
            lambda: f"CAST({rng.choice([number(1), text(0)])} AS {rng.choice([*_TYPES, 'STRING', 'BOOLEAN'])})",
            lambda: f"{rng.choice(['greatest', 'least', 'nullif', 'coalesce'])}({number(0)}, {number(0)})",
            lambda: f"TRY_CAST(t AS {rng.choice(['INT', 'DOUBLE', 'DATE'])})",
            lambda: f"{number(1)} / nullif({number(0)}, 0)",
            lambda: f"{self._condition(0)} {rng.choice(['AND', 'OR'])} {number(0)} / {number(0)} > {number(0)}",
            lambda: f"CASE WHEN {self._condition(0)} THEN {number(0)} / {number(0)} ELSE {number(0)} END",
        ]
        made = rng.choice(makers)()
        # A group by 3 is one by the third column.
        return made if set(made) & set("( ") or made[0].isalpha() else self.next()

    def _number(self, depth: int) -> str:
        rng, number = self._rng, self._number
        drawn = rng.random() if depth else 1
        if drawn < 0.4:
            return f"({number(depth - 1)} {rng.choice('+-*/%')} {number(depth - 1)})"
        if drawn < 0.6:
            one = number(0)
            return rng.choice(
                [
                    *(f"{name}({one})" for name in ("abs", "round", "floor", "ceil", "trunc")),
                    f"round({one}, {rng.choice('012')})",
                    f"CAST({one} AS {rng.choice(_TYPES)})",
                    f"length({self._text(0)})",
                    f"-({one})",
                ]
            )
        return rng.choice(rng.choice(_NUMBERS))

    def _text(self, depth: int) -> str:
        rng, text = self._rng, self._text
        if not depth or rng.random() < 0.4:
            return rng.choice(["s", "t", "'ab'", "''"])
        return rng.choice(
            [
                *(f"{name}({text(0)})" for name in ("lower", "upper", "trim")),
                f"CAST({rng.choice([self._number(0), 'b', 'day', 'ts'])} AS STRING)",
                f"({text(0)} || {rng.choice(['s', 'f', 'd', 'ts', 'n'])})",
                f"substr({text(0)}, {rng.choice('012')}, {rng.choice('12')})",
                f"replace({text(0)}, 'b', 'c')",
            ]
        )

    def _condition(self, depth: int) -> str:
        rng, number = self._rng, self._number
        if depth and rng.random() < 0.3:
            return f"({self._condition(0)} {rng.choice(['AND', 'OR'])} {self._condition(0)})"
        return rng.choice(
            [
                f"{number(1)} {rng.choice(['=', '<', '>=', '<>'])} {number(0)}",
                f"{number(1)} IN ({number(0)}, 3)",
                f"{number(0)} BETWEEN 0 AND {number(0)}",
                f"{self._text(0)} LIKE 'a%'",
                f"CAST({rng.choice(['f', 'd', 'n', 'g', 'ts'])} AS STRING) LIKE '%0%'",
                "day > DATE '2020-01-01'",
                "ts < TIMESTAMP '2021-01-01 00:00:00'",
            ]
        )
