"""Random SQL expressions over the columns of `expression_tables`: every function and operator, with arguments of every type.

A signature is a text of letters, one for each argument: see `_LETTERS`. Functions, columns and pairs of types are taken in
turn from shuffled decks, so that few expressions cover what a random draw leaves out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "one")
FLOATS = ("f64", "g64", "f32", "f16")
DECIMALS = ("dec", "dec5", "dec38", "whole", "huge")
TEXTS = ("s", "t", "ls", "dict", "num")
BYTES = ("raw", "lraw", "fixed")
BOOLS = ("b", "c")
DATES = ("d32", "d64")
STAMPS = ("ts_s", "ts_ms", "ts_us", "ts_ns")
ZONED = ("z_utc", "z_ber", "z_nyc", "z_ind", "zn_utc", "zn_ber", "zn_nyc", "zn_ind")
TIMES = ("time_s", "time_ms", "time_us", "time_ns")
DURATIONS = ("dur_s", "dur_ms", "dur_us", "dur_ns")
LISTS = ("li", "ll", "lf", "lt", "lb", "ldt", "lll", "vec", "deep")
NESTED = ("st", "m")
SCALARS = (*INTS, *FLOATS, *DECIMALS, *TEXTS, *BYTES, *BOOLS, *DATES, *STAMPS, *ZONED, *TIMES, *DURATIONS)
COLUMNS = (*SCALARS, *LISTS, *NESTED)
_FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "int": INTS,
        "float": FLOATS,
        "decimal": DECIMALS,
        "text": TEXTS,
        "bytes": BYTES,
        "bool": BOOLS,
        "date": DATES,
        "stamp": STAMPS,
        "zoned": ZONED,
        "time": TIMES,
        "duration": DURATIONS,
        "list": LISTS,
        "nested": NESTED,
    }
)
_CONSTANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "int": ("0", "1", "-1", "2", "3", "100", "127", "128", "-129", "2147483648", "9223372036854775807", "NULL"),
        "float": ("0.0", "-0.0", "0.5", "1.5", "0.1", "99.99", "1e300", "-2.5", "1e-7", "cast('nan' as double)"),
        "decimal": ("cast(1.5 as decimal(10,2))", "cast('99.99' as decimal(10,2))", "cast(7 as decimal(38,0))"),
        "text": ("''", "'a'", "'b'", "'A b'", "'12'", "'ß'", "'2020-02-29'", "' '", "'%'", "'日本'", "NULL"),
        "bytes": ("x''", "x'61'", "X'00ff'"),
        "bool": ("true", "false", "NULL"),
        "date": ("date '2020-02-29'", "date '1969-12-31'", "cast('2024-03-31' as date)"),
        "stamp": ("timestamp '2024-03-31 01:30:00'", "timestamp '1970-01-01 00:00:01.5'", "timestamp '2020-02-29 00:00:00'"),
        "zoned": ("timestamp '2024-10-27 02:30:00'", "'2024-03-31T01:00:00Z'"),
        "time": ("cast('03:00:00' as time)",),
        "duration": ("interval '1' day", "interval '90' second"),
        "list": ("[1, 2]", "[1, NULL]", "['a', 'b']", "[1.5]", "[true]"),
        "nested": ("named_struct('x', 1)",),
    }
)
FAMILY_OF = MappingProxyType({name: family for family, names in _FAMILIES.items() for name in names})
_ITEMS = MappingProxyType(
    {
        "li": "int",
        "ll": "int",
        "lll": "int",
        "lf": "float",
        "vec": "float",
        "lt": "text",
        "lb": "bool",
        "ldt": "date",
        "deep": "list",
    }
)
_PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
_PATTERNS = (
    r"'a'",
    r"'(a)(z)?'",
    r"'^.'",
    r"'\w+'",
    r"'\d'",
    r"'\s'",
    r"''",
    r"'[[:alpha:]]+'",
    r"'(?i)S'",
    r"'x*'",
    r"'\b'",
)
_FORMATS = (
    "'%Y-%m-%d'",
    "'%H:%M:%S%.3f'",
    "'%d.%m.%y %H'",
    "'%j %a %b'",
    "'%Y-%m-%dT%H:%M:%S'",
    "'%c|%x|%X|%D|%F|%v|%r|%R|%h|%A|%B'",
    "'%C|%G|%g|%V|%u|%w|%U|%W|%q|%s'",
    "'%_d|%-m|%0e|%_H|%-I|%k|%l|%_Y|%-j|%P|%p'",
    "'%.f|%f|%-f|%6f|%.9f'",
)
_CAST_TYPES = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "tinyint unsigned",
    "smallint unsigned",
    "int unsigned",
    "bigint unsigned",
    "float",
    "double",
    "decimal(10,2)",
    "decimal(38,10)",
    "decimal(5,0)",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp(0)",
    "timestamp(3)",
    "timestamp(9)",
    "time",
)
_ARROW_TYPES = (
    "Int8",
    "Int64",
    "UInt64",
    "Float32",
    "Float64",
    "Utf8",
    "LargeUtf8",
    "Date32",
    "Boolean",
    "Timestamp(Second, None)",
    "Timestamp(Microsecond, None)",
    'Timestamp(Microsecond, Some("UTC"))',
    'Timestamp(Nanosecond, Some("Europe/Berlin"))',
    "Decimal128(12, 3)",
    "Duration(Microsecond)",
    "Time64(Nanosecond)",
    "Float16",
)
SIGNATURES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("lower", "upper", "reverse", "initcap", "ascii", "bit_length", "trim"), ("T",)),
        **dict.fromkeys(("btrim", "ltrim", "rtrim"), ("T", "TT", "Tc")),
        **dict.fromkeys(("length", "char_length", "character_length", "octet_length", "md5", "sha224", "sha256"), ("X",)),
        **dict.fromkeys(("sha384", "sha512"), ("X",)),
        **dict.fromkeys(("substr", "substring"), ("Tk", "Tkk")),
        **dict.fromkeys(("left", "right", "repeat"), ("Tk",)),
        **dict.fromkeys(("lpad", "rpad"), ("Tk", "TkT")),
        **dict.fromkeys(("starts_with", "ends_with", "contains", "strpos", "instr", "position"), ("TT", "Tc")),
        **dict.fromkeys(("find_in_set", "contains_tokens", "levenshtein"), ("TT",)),
        **dict.fromkeys(("split_part", "substr_index", "substring_index"), ("TTk", "Tck")),
        **dict.fromkeys(("replace", "translate"), ("TTT", "Tcc")),
        "overlay": ("TTk", "TTkk"),
        "concat": ("TT", "TA", "T", "AA"),
        "concat_ws": ("cTT", "TTA"),
        "chr": ("k", "I"),
        "digest": ("Xh",),
        "encode": ("XH",),
        "decode": ("WH",),
        "to_hex": ("I",),
        "regexp_match": ("TR", "TRi"),
        "regexp_like": ("TR", "TRi"),
        "regexp_count": ("TR", "TRk", "TRki"),
        "regexp_instr": ("TR", "TRk"),
        "regexp_replace": ("TRg", "TRgG"),
        **dict.fromkeys(
            (
                "abs",
                "sqrt",
                "floor",
                "ceil",
                "isnan",
                "exp",
                "ln",
                "log10",
                "log2",
                "sin",
                "cos",
                "tan",
                "asin",
                "acos",
                "atan",
                "sinh",
                "cosh",
                "tanh",
                "asinh",
                "acosh",
                "atanh",
                "cot",
                "cbrt",
                "degrees",
                "radians",
                "signum",
                "iszero",
            ),
            ("N",),
        ),
        "round": ("N", "Nk"),
        "trunc": ("N", "Nk"),
        "log": ("N", "NN"),
        "factorial": ("k",),
        "pi": ("",),
        **dict.fromkeys(("power", "pow", "atan2", "nanvl"), ("NN", "Nk")),
        **dict.fromkeys(("gcd", "lcm"), ("II", "Ik")),
        **dict.fromkeys(("coalesce", "greatest", "least"), ("AA", "SS", "Av", "FF", "DD", "SSS")),
        **dict.fromkeys(("nvl", "ifnull", "nullif"), ("AA", "SS", "Av", "DD")),
        "nvl2": ("ASS", "AAA", "SDD"),
        "if": (),
        **dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "to_local_time", "to_unixtime"), ("D",)),
        **dict.fromkeys(("date_part", "datepart"), ("pD",)),
        **dict.fromkeys(("date_trunc", "datetrunc"), ("PD",)),
        **dict.fromkeys(("to_char", "date_format"), ("Df",)),
        "date_bin": ("wD", "wDz"),
        "make_date": ("yod",),
        "make_time": ("kkk",),
        "from_unixtime": ("I",),
        "to_date": ("T", "D", "k", "S"),
        **dict.fromkeys(
            ("to_timestamp", "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", "to_timestamp_nanos"),
            ("S", "D", "I", "F", "u"),
        ),
        **{
            f"{kind}_{name}": ("L",)
            for kind in ("array", "list")
            for name in (
                "any_value",
                "compact",
                "dims",
                "distinct",
                "empty",
                "length",
                "max",
                "min",
                "ndims",
                "pop_back",
                "pop_front",
                "reverse",
            )
        },
        **{
            f"{kind}_{name}": ("Le", "Ln")
            for kind in ("array", "list")
            for name in (
                "append",
                "contains",
                "has",
                "indexof",
                "position",
                "positions",
                "push_back",
                "remove",
                "remove_all",
            )
        },
        **{f"{kind}_{name}": ("Lk",) for kind in ("array", "list") for name in ("element", "extract")},
        **{
            f"{kind}_{name}": ("LM", "LL")
            for kind in ("array", "list")
            for name in ("cat", "concat", "except", "intersect", "union", "has_all", "has_any")
        },
        **dict.fromkeys(("array_distance", "list_distance", "cosine_distance", "inner_product", "dot_product"), ("VV",)),
        **{f"{kind}_{name}": ("V",) for kind in ("array", "list") for name in ("normalize",)},
        **{f"{kind}_{name}": ("qL",) for kind in ("array", "list") for name in ("prepend", "push_front")},
        **{f"{kind}_remove_n": ("Lek",) for kind in ("array", "list")},
        **{f"{kind}_{name}": ("Lee",) for kind in ("array", "list") for name in ("replace", "replace_all")},
        **{f"{kind}_replace_n": ("Leek",) for kind in ("array", "list")},
        **{f"{kind}_repeat": ("Sk",) for kind in ("array", "list")},
        **{f"{kind}_resize": ("Lj", "Lje") for kind in ("array", "list")},
        **{f"{kind}_slice": ("Lkk", "Lkkk") for kind in ("array", "list")},
        **{f"{kind}_sort": ("L", "Lx") for kind in ("array", "list")},
        **dict.fromkeys(("array_to_string", "list_to_string", "array_join", "list_join"), ("Lc", "Lcc")),
        "arrays_overlap": ("LM",),
        "arrays_zip": ("LL", "L"),
        "list_zip": ("LL",),
        "cardinality": ("L", "m"),
        "empty": ("L",),
        "flatten": ("O", "L"),
        "range": ("j", "jj", "jjk"),
        "generate_series": ("j", "jj"),
        "make_array": ("SS", "AA", "S"),
        "make_list": ("SS",),
        "string_to_array": ("Tc", "Tcc"),
        "string_to_list": ("Tc",),
        "map": ("",),
        "make_map": ("0S",),
        "map_entries": ("m",),
        "map_keys": ("m",),
        "map_values": ("m",),
        "map_extract": ("mc",),
        "element_at": ("mc",),
        "get_field": ("QY",),
        "named_struct": ("YA",),
        "struct": ("AA",),
        "row": ("A",),
        "arrow_cast": ("SE", "AE"),
        "arrow_try_cast": ("SE", "AE"),
        "arrow_typeof": ("C",),
    }
)
UNASKED = frozenset(
    {"current_date", "current_time", "current_timestamp", "now", "today", "version", "random", "uuid"}
    | {
        f"json_{name}"
        for name in (
            "array_contains",
            "array_length",
            "exists",
            "extract",
            "get",
            "get_bool",
            "get_float",
            "get_int",
            "get_string",
        )
    }
)
"""What gives another value each time, and JSON, which has a sweep of its own."""


class Expressions:
    """An endless, seeded supply of expressions."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._decks: dict[str, list[object]] = {}

    def _deal(self, name: str, cards: Sequence[object]) -> object:
        deck = self._decks.setdefault(name, [])
        if not deck:
            deck.extend(cards)
            self.rng.shuffle(deck)
        return deck.pop()

    def expression(self) -> str:
        """The next expression."""
        kind = self.rng.random()
        if kind < 0.45:
            name, signature = self._deal("functions", [(n, s) for n, ss in SIGNATURES.items() for s in ss or ()])  # type: ignore[misc]
            return self.function(name, signature)
        rule = self._deal("operators", sorted(_OPERATORS))
        return _OPERATORS[str(rule)](self)

    def function(self, name: str, signature: str) -> str:
        """A call by a signature."""
        if name == "map":
            return f"map([k], [{self.scalar()}])"
        self._list = str(self._deal("lists", LISTS)) if "L" in signature else ""
        first = True
        given = []
        odd = self.rng.randrange(len(signature)) if signature and self.rng.random() < 0.1 else -1
        for number, letter in enumerate(signature):
            drawn = self._list if letter == "L" and first else self.argument(letter)
            given.append(self.scalar() if number == odd else drawn)
            first = first and letter != "L"
        return f"{name}({', '.join(given)})"

    def argument(self, letter: str) -> str:
        """An argument of a letter."""
        return _LETTERS[letter](self)

    def of(self, *families: str, constants: float = 0.15, deep: float = 0.15) -> str:
        """A column, a constant or an expression of one of some families."""
        family = self.rng.choice(families)
        drawn = self.rng.random()
        if drawn < constants:
            return self.rng.choice(_CONSTANTS[family])
        if drawn < constants + deep and family in _DEEP:
            return self.rng.choice(_DEEP[family])(self)
        return str(self._deal(family, _FAMILIES[family]))

    def column(self) -> str:
        """A column of any type."""
        return str(self._deal("columns", COLUMNS))

    def scalar(self) -> str:
        """A column of any type that is not nested."""
        return str(self._deal("scalars", SCALARS))

    def pair(self) -> tuple[str, str]:
        """Two columns, their types from a deck of all pairs."""
        left, right = self._deal("pairs", [(a, b) for a in SCALARS for b in SCALARS])  # type: ignore[misc]
        return left, right

    def number(self) -> str:
        """Anything numeric."""
        return self.of("int", "float", "decimal")

    def condition(self) -> str:
        """A simple condition."""
        return self.rng.choice(
            [lambda: f"{self.of('int')} > {self.of('int')}", lambda: "b", lambda: "c", lambda: f"{self.scalar()} IS NULL"]
        )()

    def item(self, *, exact: bool = True) -> str:
        """An item that the chosen list may hold."""
        family = _ITEMS.get(self._list, "int")
        return self.of(family, constants=0.6 if exact else 1.0, deep=0)


Make = Callable[[Expressions], str]
_LETTERS: Mapping[str, Make] = MappingProxyType(
    {
        "T": lambda e: e.of("text"),
        "X": lambda e: e.of("text", "bytes"),
        "W": lambda e: e.rng.choice(["num", "'YWI='", "'6162'"]),
        "c": lambda e: e.rng.choice(_CONSTANTS["text"]),
        "N": Expressions.number,
        "I": lambda e: e.of("int"),
        "F": lambda e: e.of("float", "int", "decimal"),
        "k": lambda e: e.rng.choice(["0", "1", "2", "3", "-1", "-2", "5", "one"]),
        "j": lambda e: e.rng.choice(["0", "1", "3", "5", "one"]),
        "D": lambda e: e.of("date", "stamp", "zoned", "zoned"),
        "A": Expressions.column,
        "S": Expressions.scalar,
        "C": Expressions.column,
        "L": lambda e: str(e._deal("lists", LISTS)),
        "v": lambda e: e.rng.choice(_CONSTANTS[e.rng.choice([*_CONSTANTS])]),
        "e": Expressions.item,
        "q": Expressions.item,
        "n": lambda e: "NULL",
        "M": lambda e: e.rng.choice([e._list, f"[{e.item(exact=False)}, {e.item(exact=False)}]"]),
        "V": lambda e: e.rng.choice(["vec", "[1.0, 2.0]", "[3, 4]", "vec"]),
        "O": lambda e: e.rng.choice(["deep", "[li, li]"]),
        "m": lambda e: "m",
        "Q": lambda e: "st",
        "Y": lambda e: e.rng.choice(["'x'", "'y'"]),
        "0": lambda e: "k",
        "p": lambda e: f"'{e.rng.choice([*_PARTS, 'doy', 'dow', 'epoch', 'isodow', 'nanosecond'])}'",
        "P": lambda e: f"'{e.rng.choice(_PARTS)}'",
        "f": lambda e: e.rng.choice(_FORMATS),
        "w": lambda e: e.rng.choice(["interval '1' day", "interval '15' minute", "interval '7' hour"]),
        "z": lambda e: "timestamp '2001-01-01 00:00:00'",
        "y": lambda e: e.rng.choice(["2020", "one + 1990", "9999"]),
        "o": lambda e: e.rng.choice(["2", "12"]),
        "d": lambda e: e.rng.choice(["1", "29"]),
        "u": lambda e: e.rng.choice(["'2020-02-29'", "'2024-03-31T01:30:00'", "'2024-03-31 01:30:00.5+02:00'"]),
        "R": lambda e: e.rng.choice(_PATTERNS),
        "i": lambda e: e.rng.choice(["'i'", "'s'", "'m'"]),
        "g": lambda e: e.rng.choice(["'X'", r"'[\1]'", "'$1'", "''"]),
        "G": lambda e: e.rng.choice(["'g'", "'gi'", "''"]),
        "h": lambda e: e.rng.choice(["'md5'", "'sha256'"]),
        "H": lambda e: e.rng.choice(["'hex'", "'base64'"]),
        "E": lambda e: "'" + e.rng.choice(_ARROW_TYPES) + "'",
        "x": lambda e: e.rng.choice(["'DESC'", "'ASC'"]),
    }
)


def _compare(e: Expressions) -> str:
    op = e.rng.choice(["=", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
    if e.rng.random() < 0.4:
        left, right = e.pair()
        return f"{left} {op} {right}"
    column = e.scalar()
    return f"{column} {op} {e.rng.choice(_CONSTANTS[FAMILY_OF[column]])}"


def _compare_mixed(e: Expressions) -> str:
    column = e.column()
    families = {
        "int": "float",
        "float": "int",
        "decimal": "float",
        "zoned": "text",
        "stamp": "text",
        "date": "text",
        "time": "text",
        "text": "int",
        "duration": "duration",
    }
    family = e.rng.choice([families.get(FAMILY_OF[column], FAMILY_OF[column]), e.rng.choice([*_CONSTANTS])])
    return f"{column} {e.rng.choice(['=', '<', '>=', '!='])} {e.rng.choice(_CONSTANTS[family])}"


def _arithmetic(e: Expressions) -> str:
    return f"{e.number()} {e.rng.choice('+-*/%')} {e.number()}"


def _times(e: Expressions) -> str:
    return f"{e.of('date', 'stamp', 'zoned', 'duration')} {e.rng.choice('+-')} {e.of('date', 'stamp', 'zoned', 'duration')}"


def _case(e: Expressions) -> str:
    left, right = e.pair()
    if e.rng.random() < 0.4:
        return f"CASE WHEN {e.condition()} THEN {left} WHEN {e.condition()} THEN {e.scalar()} ELSE {right} END"
    if e.rng.random() < 0.3:
        return f"CASE {left} WHEN {e.rng.choice(_CONSTANTS[FAMILY_OF[left]])} THEN {right} END"
    return f"CASE WHEN {e.condition()} THEN {left} ELSE {right} END"


def _cast(e: Expressions) -> str:
    word = e.rng.choice(["CAST", "CAST", "TRY_CAST"])
    source, target = e._deal("casts", [(a, b) for a in COLUMNS for b in _CAST_TYPES])  # type: ignore[misc]
    return f"{word}({source} AS {target})"


def _in(e: Expressions) -> str:
    column = e.scalar()
    values = [e.rng.choice(_CONSTANTS[FAMILY_OF[column]]) for _ in range(e.rng.choice([1, 2, 3, 5]))]
    return f"{column} {e.rng.choice(['IN', 'NOT IN'])} ({', '.join(values)})"


def _between(e: Expressions) -> str:
    column = e.scalar()
    low, high = (e.rng.choice([*_CONSTANTS[FAMILY_OF[column]], column]) for _ in range(2))
    return f"{column} {e.rng.choice(['', 'NOT '])}BETWEEN {low} AND {high}"


def _like(e: Expressions) -> str:
    pattern = e.rng.choice(["'a%'", "'%b%'", "'_'", "'%'", "''", "'%ß%'", "'a\\_b%'", "'%S%'", "t", "'日%'"])
    return f"{e.of('text')} {e.rng.choice(['LIKE', 'ILIKE', 'NOT LIKE'])} {pattern}"


def _pair_of(name: str) -> Make:
    def make(e: Expressions) -> str:
        left, right = e.pair()
        return name.format(left, right)

    return make


def _text_of(e: Expressions) -> str:
    return f"{e.rng.choice(['CAST({} AS STRING)', 'concat({})', 'concat({}, s)', 'concat_ws(s, {})'])}".format(e.column())


_OPERATORS: Mapping[str, Make] = MappingProxyType(
    {
        "compare": _compare,
        "compare2": _compare,
        "mixed": _compare_mixed,
        "arithmetic": _arithmetic,
        "arithmetic2": _arithmetic,
        "times": _times,
        "case": _case,
        "cast": _cast,
        "cast2": _cast,
        "in": _in,
        "between": _between,
        "like": _like,
        "coalesce": _pair_of("coalesce({}, {})"),
        "greatest": _pair_of("greatest({}, {})"),
        "least": _pair_of("least({}, {})"),
        "nvl2": lambda e: "nvl2({}, {}, {})".format(e.scalar(), *e.pair()),
        "nullif": _pair_of("nullif({}, {})"),
        "text": _text_of,
        "negate": lambda e: f"-{e.of('int', 'float', 'decimal', 'duration', deep=0, constants=0)}",
        "null": lambda e: f"{e.column()} IS {e.rng.choice(['NULL', 'NOT NULL'])}",
        "shift": lambda e: f"{e.of('int')} {e.rng.choice(['<<', '>>'])} {e.rng.choice(['1', '3', 'one', 'u8', '65'])}",
        "join": lambda e: f"{e.of('text')} || {e.of('text', 'text', 'int')}",
        "bool": lambda e: f"({e.condition()}) {e.rng.choice(['AND', 'OR'])} {e.rng.choice(['', 'NOT '])}({e.condition()})",
        "truth": lambda e: f"({e.condition()}) IS {e.rng.choice(['TRUE', 'FALSE', 'NOT TRUE', 'NOT FALSE'])}",
        "element": lambda e: f"{e._deal('lists', LISTS)}[{e.rng.choice(['1', '2', '-1', '0', 'one', 'i8'])}]",
        "field": lambda e: e.rng.choice(["st.x", "st['y']", "`st`.`x`", "st.`x` + one", "`st`.y || s"]),
        "list": lambda e: f"{e._deal('lists', LISTS)} {e.rng.choice(['=', '!='])} {e._deal('lists', LISTS)}",
    }
)
_DEEP: Mapping[str, Sequence[Make]] = MappingProxyType(
    {
        "int": (
            lambda e: f"({e.of('int')} + {e.of('int')})",
            lambda e: f"length({e.of('text')})",
            lambda e: f"abs({e.of('int')})",
        ),
        "float": (lambda e: f"({e.number()} * {e.of('float')})", lambda e: f"CAST({e.number()} AS DOUBLE)"),
        "decimal": (lambda e: f"CAST({e.number()} AS DECIMAL(20,3))", lambda e: f"({e.of('decimal')} + {e.of('decimal')})"),
        "text": (
            lambda e: f"lower({e.of('text')})",
            lambda e: f"CAST({e.scalar()} AS STRING)",
            lambda e: f"({e.of('text')} || 'x')",
        ),
        "stamp": (lambda e: f"CAST({e.of('date', 'zoned')} AS TIMESTAMP)", lambda e: f"date_trunc('day', {e.of('stamp')})"),
        "zoned": (lambda e: f"date_trunc('hour', {e.of('zoned')})",),
        "date": (lambda e: f"CAST({e.of('stamp', 'zoned')} AS DATE)",),
        "bool": (lambda e: f"({e.condition()})", lambda e: f"({e.scalar()} IS NULL)"),
    }
)


def constant_of(rng: random.Random, family: str) -> str:
    """A constant of a family of types."""
    return rng.choice(_CONSTANTS[family])
