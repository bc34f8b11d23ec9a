"""What a fresh worker pays for kernels that nobody compiled: `python -m bench.cold_worker`.

Each first write, scan and question to an index of 5,000 rows is done by a process of its own, in turns with an empty folder
of kernels and with a full one. What counts is the processor time of the call, imports apart; the program ends with 1 when a
median is more than 1.3 times the warm one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather

import lance_core
from bench.installed import as_installed

ROWS = 5_000
DIMENSION = 32
ALLOWED = 1.3
INDICES = {
    "BTREE": "ints = 77",
    "BITMAP": "cities = 'w3'",
    "ZONEMAP": "floats > 4000.0",
    "LABEL_LIST": "array_has_any(labels, ['w5'])",
    "NGRAM": "contains(texts, 'w13')",
    "INVERTED": "w13",
    "IVF_FLAT": "vectors",
    "IVF_PQ": "vectors",
}
COLUMNS = {
    "BTREE": "ints",
    "BITMAP": "cities",
    "ZONEMAP": "floats",
    "LABEL_LIST": "labels",
    "NGRAM": "texts",
    "INVERTED": "texts",
    "IVF_FLAT": "vectors",
    "IVF_PQ": "vectors",
}
WARM = "from lance_core.kernels import jit, load_all; load_all(); jit.warmup()"
CHILD = """
import json, sys, time
import numpy, pyarrow as pa, pyarrow.feather
import lance_core
told = json.loads(sys.argv[1])
given = pyarrow.feather.read_table(told["given"]) if "given" in told else None
began = time.process_time()
if given is not None:
    lance_core.write_dataset(given, told["uri"])
elif "index" not in told:
    lance_core.dataset(told["uri"]).to_table()
elif told["index"].startswith("IVF"):
    nearest = dict(column="vectors", q=numpy.linspace(-1, 1, told["dimension"]).astype("float32"), k=10)
    lance_core.dataset(told["uri"]).to_table(nearest=nearest, columns=[])
elif told["index"] == "INVERTED":
    lance_core.dataset(told["uri"]).to_table(full_text_query=told["asks"])
else:
    lance_core.dataset(told["uri"]).to_table(filter=told["asks"])
print(json.dumps(time.process_time() - began))
"""


def columns() -> dict[str, pa.Array]:
    """5,000 values of each kind."""
    rng = np.random.default_rng(3)
    words = np.array([f"w{number}" for number in range(200)])
    ints = pa.array(rng.integers(0, 1 << 20, ROWS))
    floats = pa.array(rng.random(ROWS) * ROWS)
    texts = pa.array([" ".join(words[rng.integers(0, 200, 6)]) for _ in range(ROWS)])
    vectors = pa.array(rng.normal(size=ROWS * DIMENSION).astype(np.float32))
    return {
        "ints": ints,
        "ints with nulls": pa.array([None if number % 3 == 0 else number for number in range(ROWS)]),
        "floats": floats,
        "booleans": pa.array(rng.random(ROWS) < 0.5),
        "timestamps": pa.array(rng.integers(0, 1 << 40, ROWS)).cast(pa.timestamp("us")),
        "decimals": pa.array(rng.integers(0, 1 << 30, ROWS)).cast(pa.decimal128(22, 2)),
        "short texts": texts,
        "long texts (300 bytes)": pa.array([" ".join(words[rng.integers(0, 200, 75)]) for _ in range(ROWS)]),
        "long texts (2,000 bytes)": pa.array([" ".join(words[rng.integers(0, 200, 500)]) for _ in range(ROWS)]),
        "lists": pa.array([list(range(number % 5)) for number in range(ROWS)]),
        "lists of texts": pa.array([list(words[: number % 4]) for number in range(ROWS)]),
        "structs": pa.StructArray.from_arrays([ints, floats, texts], ["a", "b", "c"]),
        "vectors": pa.FixedSizeListArray.from_arrays(vectors, DIMENSION),
        "dictionaries": pa.array(words[rng.integers(0, 8, ROWS)]).dictionary_encode(),
        "binary": pa.array([rng.bytes(200) for _ in range(ROWS)]),
        "maps": pa.array([[("k", number)] for number in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    }


def indexed(folder: Path, made: dict[str, pa.Array]) -> dict[str, str]:
    """A table for each kind of index."""
    labels = pa.array([[f"w{number % 7}", f"w{number % 11}"] for number in range(ROWS)])
    cities = pa.array([f"w{number % 8}" for number in range(ROWS)])
    table = pa.table(
        {"ints": made["ints"], "cities": cities, "floats": made["floats"], "labels": labels}
        | {"texts": made["short texts"], "vectors": made["vectors"]}
    )
    found = {}
    for kind in INDICES:
        uri = str(folder / f"indexed-{kind}.lance")
        dataset = lance_core.write_dataset(table, uri)
        if kind.startswith("IVF"):
            parts = {"num_sub_vectors": 8} if kind == "IVF_PQ" else {}
            dataset.create_index(COLUMNS[kind], kind, num_partitions=8, **parts)
        else:
            dataset.create_scalar_index(COLUMNS[kind], kind)
        found[kind] = uri
    return found


def cost(told: dict[str, object], kernels: Path) -> float:
    """Processor seconds of one call in a fresh process with this folder of kernels and no other."""
    env = {**as_installed(), "NUMBA_CACHE_DIR": str(kernels), "XDG_CACHE_HOME": str(kernels), "TMPDIR": str(kernels)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(told)], check=True, capture_output=True, text=True, env=env
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def ratio(told: dict[str, object], warm: Path, repeats: int, scratch: Path) -> tuple[float, float]:
    """Medians: (with an empty folder, with a full one)."""
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(repeats + 1):
        for place, kernels in enumerate((None, warm)):
            with tempfile.TemporaryDirectory(dir=scratch) as empty:
                new = {"uri": f"{empty}/new.lance"} if "given" in told else {}
                spent = cost({**told, **new}, kernels or Path(empty))
            if number:
                found[place].append(spent)
    return statistics.median(found[0]), statistics.median(found[1])


def main() -> int:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="Rows whose name contains this.")
    parser.add_argument("--kernels", type=Path, default=None, help="Where compiled kernels are, or are made and kept.")
    given = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm = given.kernels or folder / "kernels"
        warm.mkdir(mode=0o700, exist_ok=True)
        env = {**as_installed(), "NUMBA_CACHE_DIR": str(warm)}
        subprocess.run([sys.executable, "-c", WARM], check=True, env=env)
        made = columns()
        told: dict[str, dict[str, object]] = {}
        for kind, values in made.items():
            path = folder / f"{kind}.arrow"
            pyarrow.feather.write_feather(pa.table({"v": values}), path)
            told[f"write {kind}"] = {"given": str(path)}
            uri = str(folder / f"{kind}.lance")
            lance_core.write_dataset(pa.table({"v": values}), uri)
            told[f"scan {kind}"] = {"uri": uri}
        for kind, uri in indexed(folder, made).items():
            told[f"question {kind}"] = {"uri": uri, "index": kind, "asks": INDICES[kind], "dimension": DIMENSION}
        print("| first | cold, CPU ms | warm, CPU ms | ratio |\n|---|---|---|---|")
        for title, task in told.items():
            if given.only in title:
                cold, kept = ratio(task, warm, given.repeats, folder)
                worst = max(worst, cold / kept)
                print(f"| {title} | {cold * 1e3:.0f} | {kept * 1e3:.0f} | {cold / kept:.2f} |", flush=True)
    return int(worst > ALLOWED)


if __name__ == "__main__":
    raise SystemExit(main())
