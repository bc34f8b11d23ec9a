"""Every field of a protobuf message or a JSON record, and what a stranger could write in its place.

::

    for place in places(manifest):           fragments[0].files[0].path, string, with the words of a path
        for word in place.words: ...
    edited(manifest, place, word)            the bytes of a message that differs in that one field

The fields come from the descriptors, present or not; bytes fields that hold a message of their own are entered. Words are
those of the field's type and, where its name has a grammar, of the grammar. Two are no values at all and are written into
the bytes: text that is no UTF-8, and a field of another wire type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from lance_core.wire.pb import index_old_pb2, index_pb2, rowids_pb2, table_pb2

Step = str | int
Path = tuple[Step, ...]

NUMBERS = (
    0, 1, 2, 3, 7, 63, 64, 65, 255, 65_535, 65_536, 2**20, 2**24, 2**27, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40,
    2**53 + 1,
    2**62, 2**63 - 1, 2**63, 2**64 - 1, -1, -2, -(2**31), -(2**63),
)  # fmt: skip
FLOATS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1e308, 5e-324, 2.0)
TEXTS = (
    "", " ", ".", "..", "/", "\x00", "a\nb", "\x1b[2J", "é" * 300, "\u202e", "x" * 300, "x" * 70_000, "id", "s", "-1",
    "9" * 5_000,
    "2147483648", "1e999", "nan", "true", "%s", "{}", "'; drop", "null", "\ud7ff", "\U0010ffff",
)  # fmt: skip
PATHS = (
    "../../../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "http://127.0.0.1:9/x", "s3://evil/x", "az://c@evil/x",
    "a/../b",
    "a//b", "a/./b", "C:\\x", "\\\\evil\\x", "memory://x", "~", "%2e%2e/x", "data", "_versions", "x.lance/", "?x", "#x",
    "s3+ddb://b/t?ddbTableName=t",
)  # fmt: skip
TYPES = (
    "struct", "list", "list.struct", "large_list", "map", "blob", "json", "null", "int8", "string", "binary",
    "lance.bfloat16",
    "fixed_size_list:float:1000000000", "fixed_size_list:float:0", "fixed_size_binary:2147483647", "dict:string:int8:false",
    "dict:dict:string:int8:false:int8:false", "decimal:128:99:99", "decimal:256:76:-128", "timestamp:us:Nowhere/At_All",
    "timestamp:ns:UTC", "duration:ns", "time64:us", "fixed_size_list:" * 3000 + "float" + ":1" * 3000, "halffloat",
    "date32:day",
)  # fmt: skip
GRAMMARS: Mapping[str, Sequence[str]] = {
    "path": PATHS, "transaction_file": PATHS, "ref_path": PATHS, "map_id": PATHS, "logical_type": TYPES,
    "result_type": TYPES,
    "name": ("_rowid", "_rowaddr", "_rowoffset", "a.b", "`", "__lance_frag_reuse", "__lance_mem_wal", "id_idx", "S",
    "_distance"),
    "uuid": ("00000000-0000-0000-0000-000000000000", "not-a-uuid", "../x", "0" * 32),
    "branch": ("main", "side", "a/b", "../x", "-", "refs/heads/x", "x.lock"), "branch_name": ("main", "side", "../x"),
    "ref_name": ("main", "side", "good", "../x"), "file_format": ("lance", "parquet", "LANCE"),
    "version": ("0.1", "2.0", "2.1", "2.2", "2.3", "stable", "next", "legacy", "99.99", "2.-1", "2.2.2", "2.\u0663"),
    "type_url": (
        "/lance.table.BTreeIndexDetails", "/lance.table.VectorIndexDetails", "/lance.index.pb.VectorIndexDetails", "x",
        "/lance.table.InvertedIndexDetails", "/lance.table.FragmentReuseIndexDetails", "/lance.table.ZoneMapIndexDetails",
        "type.googleapis.com/lance.table.BitmapIndexDetails", "/google.protobuf.Any", "/lance.table.MemWalIndexDetails",
        "/lance.table.NGramIndexDetails", "/lance.table.LabelListIndexDetails", "/",
    ),
    "base_tokenizer": ("simple", "whitespace", "raw", "ngram", "icu", "jieba/default", "lindera/ipadic", "../x", "code"),
    "language": ("English", "english", "Klingon", '"English"'), "json_tokenizer_mode": ("json", "flat"),
    "predicate": ("id = 1", "(" * 5_000, "id in (" + "1," * 5_000 + "1)", "not " * 5_000 + "true", "x'", "id = 1 -- "),
    "expression": ("id", "(" * 5_000), "library": ("lance", "lance_core", "lance-rust"),
    "extension_name": ("arrow.json", "arrow.uuid", "lance.blob.v2", "arrow.py_extension_type", "arrow.fixed_shape_tensor"),
}  # fmt: skip
KEYS = (
    "", "\x00", "x" * 70_000, "lance-encoding:compression", "lance-encoding:structural-encoding", "lance-encoding:packed",
    "lance-encoding:blob", "lance-schema:unenforced-primary-key", "lance-schema:unenforced-primary-key:position",
    "ARROW:extension:name", "ARROW:extension:metadata", "lance.auto_cleanup.interval", "lance.auto_cleanup.older_than",
    "lance.auto_cleanup.retain_versions", "lance.auto_cleanup.referenced_branch", "lance.commit.max_retries",
    "deletion_threshold",
    "lance.compaction.target_rows", "lance.tiers", "__lance_commit_message", "lance_core.identities", "lance_core.commit",
)  # fmt: skip
VALUES = (
    b"", b"0", b"-1", b"1", b"9" * 5_000, b"nan", b"1e999", b"true", b"zstd", b"\xff\xfe", b"arrow.uuid", b'{"shape":[2,2]}',
    b"{" * 5_000, b"x" * 70_000, b"99999999w", b"7d", b"-7d", b"1h1h", "٣".encode(), b"arrow.fixed_shape_tensor",
)  # fmt: skip
COUNT = b"\x3a\x30\x00\x00"
"""The cookie of a roaring bitmap without runs; the number of its containers follows."""
BYTES = (
    b"", b"\x00", b"\x00" * 8, b"\xff" * 8, b"\xff" * 64, b"\x0a\x0a" * 200, b"\x00" * 16, b"\xff" * 16, b"\x00" * 15,
    b"x" * 70_000,
    COUNT + b"\x00" * 4, COUNT + b"\x01\x00\x00\x00", COUNT + b"\x00\x00\x01\x00", COUNT + b"\xff\xff\xff\xff",
    COUNT + b"\x01\x00\x00\x00" + b"\xff\xff\xff\xff" + b"\x10\x00\x00\x00", b"\x3b\x30\xff\xff", b"\x3b\x30\x00\x00\x01",
    COUNT + b"\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00", b"\xff\xff\xff\xff\xff\xff\xff\xff" + COUNT,
)  # fmt: skip
NOT_TEXT, OTHER_WIRE = "(no UTF-8)", "(another wire type)"
EMBEDDED: Mapping[str, type[Message]] = {
    "inline_row_ids": rowids_pb2.RowIdSequence,
    "inline_last_updated_at_versions": rowids_pb2.RowDatasetVersionSequence,
    "inline_created_at_versions": rowids_pb2.RowDatasetVersionSequence,
}
DETAILS: Mapping[str, type[Message]] = {
    message.DESCRIPTOR.full_name: message
    for module in (index_old_pb2, index_pb2, table_pb2)
    for message in vars(module).values()
    if isinstance(message, type) and issubclass(message, Message)
}
ABSENT_DEPTH = 3
"""How deep messages are entered that are not there."""
_SENTINEL = b"\x01Qx#\x02Z~"
_LARGE, _SMALL = 0x3C5A3C5A3C5A3C5A, 0x0A5A3C5
_NAMES = {getattr(FieldDescriptor, name): name[5:].lower() for name in dir(FieldDescriptor) if name.startswith("TYPE_")}


@dataclass(frozen=True, slots=True)
class Place:
    """A field somewhere in a message, and what may stand there."""

    path: Path
    words: Sequence[Any]

    def __str__(self) -> str:
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)[1:]


def places(message: Message, path: Path = (), *, absent: int = 0) -> Iterator[Place]:
    """Every field below a message, those that are not there too, up to a depth."""
    if isinstance(message, AnyMessage):
        yield from _details(message, path, absent)
    for field in message.DESCRIPTOR.fields:
        here = (*path, field.name)
        if _is_map(field):
            yield Place(here, _map_words(field))
            values = getattr(message, field.name)
            inner = field.message_type.fields_by_name["value"]
            if len(values) and inner.message_type is not None:
                key = sorted(values)[0]
                yield from places(values[key], (*here, key), absent=absent)
        elif _is_repeated(field):
            yield from _repeated(message, field, here, absent)
        elif field.message_type is not None:
            yield Place(here, ("remove", "empty"))
            there = message.HasField(field.name)
            if there or absent < ABSENT_DEPTH:
                yield from places(getattr(message, field.name), here, absent=absent if there else absent + 1)
        else:
            yield Place(here, words_of(field))
            if field.name in EMBEDDED:
                held = EMBEDDED[field.name].FromString(getattr(message, field.name))
                yield from places(held, (*here, "as"), absent=absent)


def _details(message: AnyMessage, path: Path, absent: int) -> Iterator[Place]:
    kind = DETAILS.get(message.type_url.rpartition("/")[2])
    if kind is not None:
        yield from places(kind.FromString(message.value), (*path, "value", "as"), absent=absent)


def _repeated(message: Message, field: Any, here: Path, absent: int) -> Iterator[Place]:
    items = getattr(message, field.name)
    if field.message_type is None:
        several = [[word] * count for word in words_of(field)[:40] if word not in (NOT_TEXT, OTHER_WIRE) for count in (1, 3)]
        yield Place(here, ("clear", "double", "drop", "reverse", *several, OTHER_WIRE))
        return
    yield Place(here, ("clear", "double", "drop", "reverse", "many", "empty"))
    for number in sorted({0, len(items) - 1} if items else {0}):
        if items:
            yield from places(items[number], (*here, number), absent=absent)
        elif absent < ABSENT_DEPTH:
            yield from places(field.message_type._concrete_class(), (*here, number), absent=absent + 1)


def words_of(field: Any) -> tuple[Any, ...]:
    """What may be written into a field of one value."""
    if field.type == FieldDescriptor.TYPE_STRING:
        return (*GRAMMARS.get(field.name, ()), *TEXTS, NOT_TEXT, OTHER_WIRE)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return (*BYTES, OTHER_WIRE)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return (True, False)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return (0, 1, 2, 3, 4, 99, -1, 2**31 - 1)
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return FLOATS
    bits = 64 if "64" in _NAMES[field.type] else 32
    low, high = (0, 2**bits - 1) if "uint" in _NAMES[field.type] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return (*(number for number in NUMBERS if low <= number <= high), OTHER_WIRE)


def _map_words(field: Any) -> tuple[Any, ...]:
    key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    if value.message_type is not None:
        return ("clear", *((number,) for number in (0, 1, 2**31 - 1)))
    if key.type != FieldDescriptor.TYPE_STRING:
        return ("clear", *((number, word) for number in (0, 1, 2**31 - 1) for word in words_of(value)[:12]))
    values: Sequence[Any] = VALUES
    if value.type == FieldDescriptor.TYPE_STRING:
        values = [item.decode("utf-8", "replace") for item in VALUES]
    return ("clear", "many", *((name, word) for name in KEYS for word in values))


def edited(message: Message, place: Place, word: Any) -> bytes:
    """The bytes of a message in which a place holds a word; the message itself is changed, too."""
    _apply(message, place.path, word)
    data = bytes(message.SerializeToString())
    return _raw(data, word) if word in (NOT_TEXT, OTHER_WIRE) else data


def _apply(message: Any, path: Path, word: Any) -> None:
    name, rest = str(path[0]), path[1:]
    field = message.DESCRIPTOR.fields_by_name[name]
    value = getattr(message, name)
    if not rest:
        _set(message, field, value, word)
    elif rest[0] == "as":
        kind = EMBEDDED.get(name) or DETAILS[message.type_url.rpartition("/")[2]]
        held = kind.FromString(value)
        _apply(held, rest[1:], word)
        setattr(message, name, held.SerializeToString())
    elif _is_map(field):
        _apply(value[rest[0]], rest[1:], word)
    elif _is_repeated(field):
        if not len(value):
            value.add()
        _apply(value[rest[0]], rest[1:], word)
    else:
        value.SetInParent()
        _apply(value, rest, word)


def _set(message: Any, field: Any, value: Any, word: Any) -> None:
    if word == OTHER_WIRE and _is_repeated(field):
        message.ClearField(field.name)
        value = getattr(message, field.name)
        value.append(_sentinel(field))
    elif isinstance(word, str) and word in (NOT_TEXT, OTHER_WIRE):
        setattr(message, field.name, _sentinel(field))
    elif _is_map(field):
        _set_map(message, field, value, word)
    elif _is_repeated(field):
        _set_repeated(message, field, value, word)
    elif field.message_type is not None:
        message.ClearField(field.name)
        if word == "empty":
            getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, word)


def _set_map(message: Any, field: Any, value: Any, word: Any) -> None:
    kind = field.message_type.fields_by_name["value"].type
    if word == "clear":
        message.ClearField(field.name)
    elif word == "many":
        for number in range(3_000):
            value[f"key {number}"] = b"x" if kind == FieldDescriptor.TYPE_BYTES else "x"
    elif len(word) == 1:
        value[word[0]].SetInParent()
    else:
        value[word[0]] = word[1] if kind != FieldDescriptor.TYPE_BYTES or isinstance(word[1], bytes) else word[1].encode()


def _set_repeated(message: Any, field: Any, value: Any, word: Any) -> None:
    items = list(value)
    if word == "clear":
        message.ClearField(field.name)
    elif word == "drop":
        del value[-1:]
    elif word in ("double", "many"):
        value.extend(items[:1] * (1 if word == "double" else 300))
    elif word == "reverse":
        copies = [type(item).FromString(item.SerializeToString()) if isinstance(item, Message) else item for item in items]
        message.ClearField(field.name)
        getattr(message, field.name).extend(copies[::-1])
    elif word == "empty":
        value.add()
    else:
        value.extend(word)


def _sentinel(field: Any) -> Any:
    """A value whose bytes are found again in what is serialized."""
    if field.type == FieldDescriptor.TYPE_STRING:
        return _SENTINEL.decode()
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _SENTINEL
    return _LARGE if "64" in _NAMES[field.type] else _SMALL


def _raw(data: bytes, word: Any) -> bytes:
    """Write what is no value over a sentinel, of the same length."""
    if _SENTINEL in data:
        at = data.index(_SENTINEL)
        if word == NOT_TEXT:
            return data.replace(_SENTINEL, b"\xff\xfe\xc0\x80\xed\xa0\x80")
        tag = data[at - 2] & 0xF8  # length-delimited: a length of 7 and its bytes become eight bytes of a fixed number
        return data[: at - 2] + bytes([tag | 1]) + data[at - 1 :]
    for number, size in ((_LARGE, 9), (_SMALL, 4)):
        varint = _varint(number)
        assert len(varint) == size
        if varint in data:
            at = data.index(varint)
            before = data[at - 1]
            # A number becomes bytes of its own (a packed one loses its last), or four bytes of a fixed number.
            if size == 9:
                return data[: at - 1] + bytes([before & 0xF8 | 2, 8]) + varint[1:] + data[at + 9 :]
            return data[: at - 1] + bytes([before & 0xF8 | 5]) + data[at:]
    return data


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _is_repeated(field: Any) -> bool:
    # The name of this question changed with protobuf 6.
    found = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED) if found is None else bool(found)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


JSON_WORDS = (
    None, True, False, 0, 1, 2, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**400, 1.5, float("nan"), float("inf"),
    1e308, "", " ",
    "x", "x" * 70_000, "9" * 5_000, "\x00", "\ud800", "é" * 300, *PATHS, "main", "side", "good", [], {}, [[]], [None], [1],
    ["x"], {"x": 1},
    {"": None}, ["x"] * 3_000, {"env": "HOME"}, {"__class__": "os.system"}, {"__type": "builtins.eval"},
    "00000000-0000-0000-0000-000000000007",
)  # fmt: skip
JSON_TURNS: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "not text": lambda data: data.replace(b'"', b'"\xff', 1),
    "nested": lambda data: b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "lists": lambda data: b"[" * 5_000,
    "twice": lambda data: data + data,
    "duplicate keys": lambda data: data[:-1] + b"," + data[1:] if data[:1] == b"{" else data,
    "array": lambda data: b"[" + data + b"]",
    "null": lambda data: b"null",
    "number": lambda data: b"1" * 5_000,
    "utf-16": lambda data: data.decode("utf-8", "replace").encode("utf-16"),
    "bom": lambda data: b"\xef\xbb\xbf" + data,
}


def json_places(plain: Any, path: Path = ()) -> Iterator[Path]:
    """Every value of a record, the record itself first."""
    yield path
    items: Any = plain.items() if isinstance(plain, dict) else enumerate(plain[:2]) if isinstance(plain, list) else ()
    for key, value in items:
        yield from json_places(value, (*path, key))


def json_edited(data: bytes, path: Path, word: Any) -> bytes:
    """A record in which one value is another, or is not there (`...`)."""
    plain = json.loads(data)
    if not path:
        return json.dumps(word).encode()
    holder = plain
    for step in path[:-1]:
        holder = holder[step]
    if word is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = word
    return json.dumps(plain).encode()
