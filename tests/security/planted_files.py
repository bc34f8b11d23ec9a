"""In a process of its own, with little memory: every verb that reads, on a table with one planted file; errors by name.

::

    python tests/security/planted_files.py /tmp/t      prints e.g. {"open": "UnsupportedFeatureError", "count": ""}
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import lance_core
from lance_core.errors import LanceError
from lance_core.io.resolve import resolve_store
from lance_core.publish.attempts import list_staged

MEMORY_BYTES = 3 << 29


def main(uri: str) -> None:
    """Run the verbs and print what each ended with."""
    verbs = {
        "open": lambda: lance_core.dataset(uri),
        "rows": lambda: lance_core.dataset(uri).to_table(),
        "tags": lambda: lance_core.dataset(uri).tags.list(),
        "tag": lambda: lance_core.dataset(uri, version="good").count_rows(),
        "log": lambda: lance_core.dataset(uri).get_transactions(3),
        "staged": lambda: list_staged(resolve_store(uri)),
        "search": lambda: lance_core.dataset(uri).to_table(filter="id = 5"),
        "validate": lambda: lance_core.dataset(uri).validate(),
        "delete": lambda: lance_core.dataset(uri).delete("id = 7"),
    }
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.RLIM_INFINITY))
    ended = {}
    for name, verb in verbs.items():
        try:
            verb()
            ended[name] = ""
        except LanceError as error:
            ended[name] = type(error).__name__
        except BaseException as error:
            ended[name] = f"ESCAPED {type(error).__name__}: {error!s:.200}"
    print(json.dumps(ended))


if __name__ == "__main__":
    main(sys.argv[1])
