"""Regenerate lance_core/wire/pb from the .proto files beside this script; run it with `make protos`.

The digest of the sources is written next to the generated code; a test compares it with the sources and says when the
generated code is stale.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

PROTOS = Path(__file__).resolve().parent
ROOT = PROTOS.parent
PB = ROOT / "lance_core" / "wire" / "pb"


def digest_sources() -> str:
    """SHA-256 over names and contents of all .proto files."""
    digest = hashlib.sha256()
    for source in sorted(PROTOS.rglob("*.proto")):
        digest.update(source.relative_to(PROTOS).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def main() -> int:
    """Run protoc over all sources and record their digest."""
    sources = [str(path.relative_to(PROTOS)) for path in sorted(PROTOS.rglob("*.proto"))]
    for old in PB.glob("*_pb2.py*"):
        old.unlink()
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", f"--python_out={ROOT}", f"--pyi_out={ROOT}"]
    code = subprocess.call([*command, *sources], cwd=PROTOS)
    if code == 0:
        (PB / "SOURCES.sha256").write_text(digest_sources() + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
