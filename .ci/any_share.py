"""How many expressions are `Any` to mypy, outside the kernels: fails above the bound, which only ever goes down.

mypy --any-exprs-report build/any && python .ci/any_share.py build/any/any-exprs.txt
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

MOST = 8.0
"""In percent."""
ROW = re.compile(r"^\s*(\S+)\s+(\d+)\s+(\d+)\s+[\d.]+%$")


def main(path: str) -> int:
    """Print the share and the modules that have most; 1 when the share is above the bound."""
    rows = [match.groups() for line in Path(path).read_text().splitlines() if (match := ROW.match(line))]
    counted = [(name, int(anys), int(total)) for name, anys, total in rows if name != "Total"]
    counted = [row for row in counted if not row[0].startswith("lance_core.kernels")]
    share = 100 * sum(row[1] for row in counted) / max(1, sum(row[2] for row in counted))
    print(f"Any in {share:.2f} % of expressions outside the kernels, at most {MOST} % are allowed")
    for name, anys, total in sorted(counted, key=lambda row: -row[1])[:10]:
        print(f"  {name}: {anys} of {total}")
    return int(share > MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
