"""The exception tree. An error says what happened, where, what was expected, what was found, and the cure.

::

    LanceError
    ├── FormatError                    bytes that break the format's rules
    │   ├── CorruptFileError           damaged or truncated
    │   ├── UnsupportedVersionError    a file or table version this library does not know
    │   ├── UnsupportedFeatureError    an unknown feature flag, an unknown table feature
    │   ├── UnsupportedRecordError     a record of staged or committed work that a newer release has written
    │   └── UnsupportedEncodingError   an encoding this library does not read
    ├── CheckEndedError                a check that runs in a process of its own ended that process
    ├── NotFoundError                  also FileNotFoundError and ValueError
    ├── CommitError
    │   ├── CommitConflictError        another commit came first
    │   │   ├── RetryableConflictError     retryable: plan again on the newest version, then commit again
    │   │   └── IncompatibleConflictError  a retry cannot help
    │   ├── CommitStateUnknownError    unknown whether it was committed; check it, never just retry
    │   └── GateFailedError            a gate refused the staged data; readers saw nothing
    ├── StoreError                     retryable: the store failed (network, throttling)
    │   ├── AlreadyExistsError         put_if_absent found the object there
    │   ├── StoreRefusedError          full, read-only, or no permission: a retry cannot help
    │   └── PreconditionError          the store cannot give the requested guarantee
    ├── MemoryShortageError            retryable, also MemoryError: this process may not have so much memory
    └── InputError                     also ValueError and OSError: what the caller passed is wrong
        ├── SourceMissingError         retryable: a file or folder of a source does not exist, or holds nothing yet
        ├── SchemaMismatchError
        ├── FilterError
        ├── UnknownColumnError         also KeyError
        ├── UnknownIndexError          also KeyError and RuntimeError
        ├── UnknownIndexKindError      also NotImplementedError
        └── WrongTypeError             also TypeError

Each is also what users of the official library catch for the same failure, so that their `except` clauses go on working:
`FormatError` and `NotFoundError` are ValueErrors, `InputError` and `CommitConflictError` OSErrors, `StoreError` an OSError,
`AlreadyExistsError` a FileExistsError and a ValueError.

`retryable` on the class tells an orchestrator whether the same call may simply be made again.
"""

from __future__ import annotations

import re
from typing import ClassVar

_PASSWORD = re.compile(r"(?<=://)[^/\s@:]*:[^/\s@]+(?=@)")


def without_passwords(text: str) -> str:
    """A text whose uris hold no user with a password; every error of this library passes through here.

    >>> without_passwords("no answer of https://me:secret@host/t")
    'no answer of https://***@host/t'
    """
    return _PASSWORD.sub("***", text) if "@" in text else text


class LanceError(Exception):
    """Base of every error this library raises on purpose.

    The keyword fields are optional facts for programs; the message already tells people.
    `cure` is appended to the message as its last sentence.
    """

    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        uri: str | None = None,
        version: int | None = None,
        other_version: int | None = None,
        operation: str | None = None,
        cure: str | None = None,
    ) -> None:
        text = message if cure is None else f"{message.rstrip('.')}. {cure}"
        super().__init__(without_passwords(text))
        self.uri = None if uri is None else without_passwords(uri)
        self.version = version
        self.other_version = other_version
        self.operation = operation
        self.cure = cure

    def __str__(self) -> str:
        # Of the exceptions that the classes below also are, some show their message in another way.
        return str(self.args[0]) if self.args else ""


class FormatError(LanceError, ValueError):
    """Bytes that break the format's rules; names the file and, where known, the column and page."""


class CorruptFileError(FormatError):
    """A damaged or truncated file."""


class UnsupportedVersionError(FormatError):
    """A file or table version this library does not know."""


class UnsupportedFeatureError(FormatError):
    """A feature flag or table feature this library does not implement, so it must not touch the table."""


class UnsupportedRecordError(FormatError):
    """A record of staged or committed work in a format, or with a decision, that this library does not know: a newer release
    has written it. Nothing is concluded from it, and nothing that it may speak of is committed or removed."""


class UnsupportedEncodingError(FormatError):
    """An encoding this library does not read or write."""


class NotFoundError(LanceError, FileNotFoundError, ValueError):
    """A table, version, tag or file that does not exist."""


class CheckEndedError(LanceError):
    """A check that runs in a process of its own ended that process: a native library aborted."""


class CommitError(LanceError):
    """A commit did not happen, or its outcome is unknown."""


class CommitConflictError(CommitError, OSError):
    """Another commit was first and this one did not take effect; the subclass decides whether planning again can help."""


class RetryableConflictError(CommitConflictError):
    """A concurrent commit invalidated this one; plan again on the newest version and commit again."""

    retryable = True


class IncompatibleConflictError(CommitConflictError):
    """A concurrent commit makes this one meaningless; a retry cannot help."""


class CommitStateUnknownError(CommitError):
    """It is unknown whether the commit took effect. Never retry blindly; check it first."""


class GateFailedError(CommitError):
    """A gate refused the staged data. Readers saw nothing; the staged files can be collected."""


class StoreError(LanceError, OSError):
    """The object store or file system failed."""

    retryable = True


class AlreadyExistsError(StoreError, FileExistsError, ValueError):
    """`put_if_absent` found an existing object: another writer was first."""

    retryable = False


class StoreRefusedError(StoreError):
    """The store rejects the request: the disk is full, it is read-only, or there is no permission."""

    retryable = False


class PreconditionError(StoreError):
    """The store cannot give the requested guarantee (for example a conditional put)."""

    retryable = False


class MemoryShortageError(LanceError, MemoryError):
    """This process could not get the memory that the call needs; the table is not damaged. The error names the limits of the
    process and the settings that make it hold less. Another try may come to a worker with more room."""

    retryable = True


class InputError(LanceError, ValueError, OSError):
    """What the caller passed is wrong; nothing was changed."""


class SourceMissingError(InputError):
    """A file or folder that a job reads does not exist, or holds no file; late data is the common reason."""

    retryable = True


class SchemaMismatchError(InputError):
    """Data that does not fit the table's schema."""


class FilterError(InputError):
    """A filter that cannot be parsed or evaluated."""


class UnknownColumnError(InputError, KeyError):
    """No column of that name."""


class UnknownIndexError(InputError, KeyError, RuntimeError):
    """No index of that name."""


class UnknownIndexKindError(InputError, NotImplementedError):
    """An index of a kind that is not known here."""


class WrongTypeError(InputError, TypeError):
    """A value, or a column, of a type that the operation does not support."""
