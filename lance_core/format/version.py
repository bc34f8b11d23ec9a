"""Storage versions and their three notations.

A version has a name in the manifest (`data_format.version`), a (major, minor) pair in each DataFile entry, and a pair in
the file's own footer. The three disagree for historical reasons (spec: file format, "versioning"):

    name   DataFile   footer
    0.1    0, 2       0, 2       legacy files
    2.0    2, 0       0, 3
    2.1    2, 1       2, 1
    2.2    2, 2       2, 2       the default
    2.3    2, 3       2, 3       unstable
"""

from __future__ import annotations

import enum

from lance_core.errors import InputError, UnsupportedVersionError


class FileVersion(enum.IntEnum):
    """A storage version; members compare in order of age."""

    V0_1 = 1
    V2_0 = 20
    V2_1 = 21
    V2_2 = 22
    V2_3 = 23

    @property
    def text(self) -> str:
        """The name as the manifest writes it, for example `"2.2"`."""
        return _TEXT[self]

    @property
    def data_file_numbers(self) -> tuple[int, int]:
        """(major, minor) as a DataFile entry records it."""
        return _DATA_FILE[self]

    @property
    def footer_numbers(self) -> tuple[int, int]:
        """(major, minor) as the footer of a file records it."""
        return _FOOTER[self]

    @property
    def is_legacy(self) -> bool:
        """True for 0.1, which shares nothing with the 2.x container."""
        return self is FileVersion.V0_1


_TEXT = {
    FileVersion.V0_1: "0.1",
    FileVersion.V2_0: "2.0",
    FileVersion.V2_1: "2.1",
    FileVersion.V2_2: "2.2",
    FileVersion.V2_3: "2.3",
}
_DATA_FILE = {
    FileVersion.V0_1: (0, 2),
    FileVersion.V2_0: (2, 0),
    FileVersion.V2_1: (2, 1),
    FileVersion.V2_2: (2, 2),
    FileVersion.V2_3: (2, 3),
}
_FOOTER = {**_DATA_FILE, FileVersion.V2_0: (0, 3)}
_NAMES = {
    "legacy": FileVersion.V0_1,
    "0.1": FileVersion.V0_1,
    "0.3": FileVersion.V2_0,
    "2.0": FileVersion.V2_0,
    "2.1": FileVersion.V2_1,
    "2.2": FileVersion.V2_2,
    "stable": FileVersion.V2_2,
    "2.3": FileVersion.V2_3,
    "next": FileVersion.V2_3,
}
# (0, 1) is how the oldest releases numbered legacy files; (0, 3) and (2, 0) are the same version.
_BY_NUMBERS = {
    **{numbers: version for version, numbers in _DATA_FILE.items()},
    (0, 0): FileVersion.V0_1,
    (0, 1): FileVersion.V0_1,
    (0, 3): FileVersion.V2_0,
}

DEFAULT_VERSION = FileVersion.V2_2


def parse_storage_version(name: str | None) -> FileVersion:
    """The version a user names with `data_storage_version=`; None means the default.

    Raises InputError for a name the format does not have.
    """
    if name is None:
        return DEFAULT_VERSION
    version = _NAMES.get(name)
    if version is None:
        raise InputError(f"unknown storage version {name!r}", cure=f"Use {', '.join(sorted(_NAMES))}, or omit it.")
    return version


def version_of_numbers(major: int, minor: int) -> FileVersion:
    """The version that a footer or a DataFile entry means by (major, minor)."""
    version = _BY_NUMBERS.get((major, minor))
    if version is None:
        raise UnsupportedVersionError(
            f"file version {major}.{minor} is unknown", cure="Read it with a newer release of this library."
        )
    return version
