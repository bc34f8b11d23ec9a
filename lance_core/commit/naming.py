"""Every file name of a table, and the meaning of a name. Pure: no store, no bytes.

::

    _versions/18446744073709551613.manifest          version 2, scheme V2: counts down, so a listing begins with the newest
    _versions/2.manifest                             version 2, scheme V1
    _versions/d9223372036854775810.manifest          a detached version (bit 63 set)
    _transactions/1-f9a6932a-….txn                   what was done to version 1
    _transactions/1-{identity}.{attempt}.txn         what is staged on version 1
    data/{24 binary digits}{16 hex: attempt}{10 hex}.lance
    _deletions/{fragment}-{read version}-{id}.arrow  id = 40 bits of the attempt, 24 random bits
    _indices/{uuid}/…                                the last 12 hex digits of the uuid are of the attempt
    _lance_core/…                                    ours alone: attempts, decisions, intents, segments

An attempt id is 16 hex digits. Because every name carries it, the files of a dead attempt are found by their names alone.
(Spec: FORMAT C.3.)
"""

from __future__ import annotations

import enum
import re
import secrets
import uuid as uuids
from collections.abc import Iterable, Sequence

from lance_core.errors import InputError
from lance_core.io import manifest_names
from lance_core.io.manifest_names import SUFFIX, U64_MAX, V2_DIGITS
from lance_core.io.paths import is_unfinished

VERSIONS = "_versions"
TRANSACTIONS = "_transactions"
DATA = "data"
DELETIONS = "_deletions"
INDICES = "_indices"
INDEX_CHECKSUMS = "checksums"
INDEX_CHECKSUMS_HINT, INDEX_CHECKSUMS_KIND = "lance_core.checksums", "crc32"
"""An index segment's entry has this in its metadata when its folder has the file `checksums` beside the official files."""
HINT_PATH = f"{VERSIONS}/latest_version_hint.json"

PRIVATE = "_lance_core"
"""Our own folder in a table; the official library's readers, writers and cleanup look past it."""
STAGED = f"{PRIVATE}/staged"
DECISIONS = f"{PRIVATE}/decisions"
INTENTS = f"{PRIVATE}/intents"
SEGMENTS = f"{PRIVATE}/segments"
PROGRESS = f"{PRIVATE}/progress"
COLUMNS = f"{PRIVATE}/columns"
"""Of declared columns: which fragments were seen to be fresh, values that are computed and not published yet, or kept."""

DETACHED_BIT = 1 << 63
_ATTEMPT_DIGITS = 16
_DELETION_DIGITS = 10
_INDEX_DIGITS = 12
_ATTEMPT = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ATTEMPT_RECORD = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,127})\.([0-9a-f]{16})\.([a-z]+)\.json")
_OF_AN_ATTEMPT = {
    DATA: re.compile(r"[01]{24}([0-9a-f]{16}).*", re.DOTALL),
    TRANSACTIONS: re.compile(r".*\.([0-9a-f]{16})\.txn", re.DOTALL),
    DELETIONS: re.compile(r"\d+-\d+-(\d+)\.(?:arrow|bin)"),
    INDICES: re.compile(r"[^/]*([^/]{12})(?:/.*)?", re.DOTALL),
}
"""Names in each folder, with the part that is of the attempt; of a deletion file a decimal number that contains it."""


class NamingScheme(enum.Enum):
    """How a table names its manifests; a table keeps the scheme it has."""

    V1 = 1
    V2 = 2


def manifest_name(version: int, scheme: NamingScheme = NamingScheme.V2) -> str:
    if version & DETACHED_BIT:
        return f"d{version}{SUFFIX}"
    if scheme is NamingScheme.V1:
        return f"{version}{SUFFIX}"
    return f"{U64_MAX - version:0{V2_DIGITS}d}{SUFFIX}"


def manifest_path(version: int, scheme: NamingScheme = NamingScheme.V2) -> str:
    return f"{VERSIONS}/{manifest_name(version, scheme)}"


def parse_manifest_name(name: str) -> tuple[int, NamingScheme] | None:
    """(version, scheme) of a manifest's name; None when it is no manifest of an attached version."""
    found = manifest_names.number_of(name)
    return None if found is None else (found[0], NamingScheme.V2 if found[1] else NamingScheme.V1)


def parse_detached_name(name: str) -> int | None:
    """The version of a detached manifest's name, else None."""
    stem = name[1 : -len(SUFFIX)]
    if not name.startswith("d") or not name.endswith(SUFFIX) or not stem.isdigit():
        return None
    version = int(stem)
    return version if version & DETACHED_BIT and version <= U64_MAX else None


def transaction_name(read_version: int, uuid: str) -> str:
    """File name of a transaction, as a manifest's `transaction_file` holds it."""
    return f"{read_version}-{uuid}.txn"


def transaction_path(name: str) -> str:
    return f"{TRANSACTIONS}/{name}"


def new_attempt() -> str:
    """A fresh attempt id: 16 random hex digits."""
    return secrets.token_hex(_ATTEMPT_DIGITS // 2)


def data_file_name(attempt: str | None = None) -> str:
    """A fresh name (below `data/`) that carries the attempt; a random attempt when there is none.

    The binary digits come first, so that object stores spread the keys over their partitions.
    """
    digits = f"{secrets.randbits(24):024b}"
    return f"{digits}{_checked_attempt(attempt)}{secrets.token_hex(5)}.lance"


def data_path(name: str) -> str:
    return f"{DATA}/{name}"


def deletion_file_id(attempt: str | None = None) -> int:
    """A fresh unsigned 64-bit id for a deletion file that carries 40 bits of the attempt."""
    return int(_checked_attempt(attempt)[:_DELETION_DIGITS], 16) << 24 | secrets.randbits(24)


def deletion_path(fragment_id: int, read_version: int, deletion_id: int, file_type: str) -> str:
    """Path of a deletion file; `file_type` as `DeletionFile.file_type` has it: "array" or "bitmap"."""
    suffix = "arrow" if file_type == "array" else "bin"
    return f"{DELETIONS}/{fragment_id}-{read_version}-{deletion_id}.{suffix}"


def index_uuid(attempt: str | None = None) -> str:
    """A fresh uuid (version 4 in form) for an index segment whose last 12 digits are of the attempt."""
    tail = _checked_attempt(attempt)[:_INDEX_DIGITS]
    return str(uuids.UUID(hex=uuids.uuid4().hex[:-_INDEX_DIGITS] + tail))


def is_of_attempt(path: str, attempt: str) -> bool:
    """Whether a path below the table is a file that this attempt wrote (temporary names count), judged by the name alone."""
    return attempt.startswith(attempt_prefix(path) or "-")


def is_of_any(path: str, attempts: Iterable[str]) -> bool:
    """`is_of_attempt` of one of several."""
    prefix = attempt_prefix(path) or "-"
    return any(attempt.startswith(prefix) for attempt in attempts)


def paths_of_attempt(paths: Sequence[str], attempt: str) -> list[str]:
    """Those of very many paths that are `is_of_attempt`, in order; each once."""
    is_plain = re.compile(f"{DATA}/[01]{{24}}{re.escape(attempt)}").match
    return [path for path in dict.fromkeys(paths) if is_plain(path) or is_of_attempt(path, attempt)]


def attempt_prefix(path: str) -> str:
    """The first digits of the attempt that wrote a file, as its name has them; "" when it has none.

    16 in names of data files and staged transactions, 12 in index folders, 10 in deletion files.
    """
    folder, _, rest = path.partition("/")
    pattern = _OF_AN_ATTEMPT.get(folder)
    found = None if pattern is None else pattern.fullmatch(_finished_name(rest))
    if found is None:
        return ""
    return f"{int(found[1]) >> 24:0{_DELETION_DIGITS}x}" if folder == DELETIONS else found[1]


def _finished_name(rest: str) -> str:
    # A write that has not ended wears `.{name}.{random}.unfinished`.
    folder, slash, name = rest.rpartition("/")
    if name.startswith(".") and is_unfinished(name):
        name = name[1:].rsplit(".", 2)[0]
    return folder + slash + name


def staged_path(identity: str, kind: str, *, attempt: str = "") -> str:
    """A record about an identity, or about an attempt at it. `kind` is a word without dots."""
    middle = f".{_checked_attempt(attempt)}" if attempt else ""
    return f"{STAGED}/{checked_identity(identity)}{middle}.{kind}.json"


def parse_attempt_record(name: str, kind: str) -> tuple[str, str] | None:
    """(identity, attempt) of a name that `staged_path` made for an attempt; None for any other name."""
    if not name.endswith(f".{kind}.json"):
        return None
    found = _ATTEMPT_RECORD.fullmatch(name)
    return (found[1], found[2]) if found is not None and found[3] == kind else None


def checked_identity(identity: str) -> str:
    """The identity, when it can be a file name; InputError otherwise."""
    if not _NAME.fullmatch(identity):
        raise InputError(
            f"identity {identity!r} cannot be used in the name of a record",
            cure="Use a uuid, or up to 128 letters, digits, dots, dashes and underscores.",
        )
    return identity


def _checked_attempt(attempt: str | None) -> str:
    if attempt is None:
        return new_attempt()
    if not _ATTEMPT.fullmatch(attempt):
        raise InputError(f"attempt {attempt!r} is not 16 hex digits", cure="Pass the attempt that `begin_attempt` returned.")
    return attempt
