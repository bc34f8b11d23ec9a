"""Places below other places, in the form in which they are opened."""

from __future__ import annotations

import pytest

from lance_core.io.scope import is_allowed, is_below


@pytest.mark.parametrize(
    ("uri", "base", "expected"),
    [
        ("/lake/t.lance", "/lake", True),
        ("/lake/t.lance", "/lake/", True),
        ("/lake/a b/t.lance", "file:///lake/a%20b", True),
        ("file:///lake/t.lance", "/lake", True),
        ("s3://lake/a/t", "s3://lake/a", True),
        ("s3://lake/ab/t", "s3://lake/a", False),
        ("/lake", "/lake", False),
        ("/lake/t", "", False),
        ("/lake/../etc/t", "/lake", False),
        ("file:///lake/%2e%2e/etc/t", "file:///lake", False),
        ("file:///lake/%2E./etc/t", "/lake", False),
        ("file:///lake/%252e%252e/etc/t", "/lake", False),
        ("file:///lake/a%2f..%2f../t", "/lake", False),
        ("s3://lake/a/%2e%2e/b", "s3://lake/a", False),
        ("/lake/a\\..\\..\\b", "/lake", False),
        ("file://elsewhere/lake/t", "/lake", False),
    ],
)
def test_below(uri: str, base: str, expected: bool) -> None:
    assert is_below(uri, base) is expected
    if uri != base:
        assert is_allowed(uri, {"allowed_bases": base.replace(" ", "%20")} if base else {}) is expected
