"""Build the jar of the Spark bridge: `javac --release 17` against an installed PySpark, no other tool.

::

    python jvm/build.py              -> lance_core/spark/bridge/lance-bridge.jar
    python jvm/build.py --check      compares with the committed jar, byte by byte; needs the JDK that made it

The jar is the same for the same sources, release and JDK: entries are sorted and carry no time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
JAR = HERE.parent / "lance_core" / "spark" / "bridge" / "lance-bridge.jar"
SPARK = "4.2.0"
"""The Spark that the committed jar is compiled against; it is tried on every release of `tests/matrix/spark_matrix.py`."""
JDK = "17"
"""The major version that builds the committed jar. Its class files run on every Java of Spark 3.5 to 4.3 from 17 on."""

_VERSION = """package lancecore.spark;

/** The release that this jar belongs to; workers of another one are refused. */
final class Version {{
  static final String VALUE = "{}";

  private Version() {{}}
}}
"""


def main() -> int:
    """0 when the jar was written, or is the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed jar instead of writing it")
    parser.add_argument("--jars", type=Path, help="the folder of Spark's jars (default: of the installed pyspark)")
    parser.add_argument("--output", type=Path, default=JAR, help="where the jar goes")
    given = parser.parse_args()
    javac = find_javac()
    if javac is None:
        print(f"no javac of JDK {JDK}: install one, or set JAVA_HOME", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder), javac, given.jars or spark_jars())
        if not given.check:
            shutil.copyfile(built, given.output)
            print(f"{given.output.name}: {given.output.stat().st_size:,} bytes")
            return 0
        same = given.output.is_file() and given.output.read_bytes() == built.read_bytes()
    print(
        "the jar is what its sources make" if same else "the jar differs from its sources: run `make jvm`", file=sys.stderr
    )
    return 0 if same else 1


def find_javac() -> str | None:
    """The compiler of the named JDK, from JAVA_HOME, the path, or the usual folder of Linux distributions."""
    homes = [os.environ.get("JAVA_HOME", "")]
    candidates = [f"{home}/bin/javac" for home in homes if home] + [shutil.which("javac") or ""]
    candidates += [str(path) for path in sorted(Path("/usr/lib/jvm").glob(f"*{JDK}*/bin/javac"))]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            told = subprocess.run([candidate, "-version"], capture_output=True, text=True, check=False)
            if re.search(rf"javac {JDK}\b", told.stdout + told.stderr):
                return candidate
    return None


def spark_jars() -> Path:
    """The jars of the installed PySpark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def build(folder: Path, javac: str, jars: Path) -> Path:
    """Compile and pack in `folder`; the jar's place."""
    version = folder / "Version.java"
    version.write_text(_VERSION.format(release()))
    classes = folder / "classes"
    sources = [str(path) for path in sorted(SOURCES.rglob("*.java"))]
    command = [javac, "--release", JDK, "-g:none", "-Xlint:all,-classfile,-processing,-path", "-Werror"]
    subprocess.run([*command, "-cp", f"{jars}/*", "-d", str(classes), *sources, str(version)], check=True)
    jar = folder / "built.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(classes.rglob("*.class")):
            entry = zipfile.ZipInfo(path.relative_to(classes).as_posix(), date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, 0o644 << 16, 3
            packed.writestr(entry, path.read_bytes())
    return jar


def release() -> str:
    """The release of the library, as its package says."""
    found = re.search(r'^__version__ = "([^"]+)"', (HERE.parent / "lance_core" / "__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    sys.exit(main())
