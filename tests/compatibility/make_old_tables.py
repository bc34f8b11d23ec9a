"""Make small tables with old releases of the official library: the fixtures of `test_old_tables.py`.

    python3.10 make_old_tables.py all OUT [RELEASE ...] one throw-away environment per release, then its tables, packed
    python3.10 make_old_tables.py changed OUT [RELEASE ...] those of `test_changed_indices.py`, likewise (releases from 0.9)
    python make_old_tables.py worker RELEASE OUT        what runs inside such an environment (Python 3.8 and later)

Each release makes every table it is able to make; a step that a release lacks is skipped and named in `made.json`, beside
the number of rows the release itself counts in each version. A release's tables end as OUT/{release}.tar.xz.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback

RELEASES = (
    "0.4.21 0.5.9 0.5.10 0.6.5 0.7.5 0.8.0 0.8.21 0.9.19 0.10.18 0.11.1 0.12.3 0.13.0 0.14.1 0.15.0 0.16.0 0.16.1 0.17.0 "
    "0.18.2 0.19.2 0.20.0 0.21.0 0.22.0 0.23.2 0.24.1 0.25.2 0.26.1 0.27.2 0.28.0 0.29.0 0.30.0 0.31.1 0.32.1 0.33.0 "
    "0.34.0 0.35.0 0.36.0 0.37.0 0.38.3 0.39.0 1.0.4 2.0.1 3.0.2 4.0.2 6.0.1 6.1.0 7.0.0 7.1.0 8.0.1 9.0.1 10.0.0 11.0.0 "
    "12.0.0 13.0.0"
).split()
MIGRATED = {"0.8.0": "0.7.5", "0.8.21": "0.7.5", "0.12.3": "0.7.5", "0.16.1": "0.7.5", "0.21.0": "0.10.18"}
"""Releases that go on with tables of an older one: they appended, deleted and so wrote its manifest anew."""
PINNED = ("pyarrow==14.0.2", "numpy<2", "pandas<2.2", "tqdm", "attrs", "ml_dtypes", "duckdb==0.9.2")
NEWER = ("pyarrow==19.0.1", "numpy<2", "pandas<2.3", "tqdm", "attrs", "ml_dtypes", "lance-namespace")
"""What releases from 0.25 on are run with: they pass views and extension types that old pyarrow does not have."""
VERSIONS = ("0.1", "2.0", "2.1", "2.2")
WORDS = ("alpha", "beta", "gamma", "delta", "", "a much longer text that no short slot holds", "\u00e9t\u00e9", "zz")


# ---------------------------------------------------------------------------------------------------------------- rows


def scalars(first, count):
    """Columns of every plain type, nulls where the release's format keeps them."""
    import datetime as dt
    import decimal

    import pyarrow as pa

    rows = range(first, first + count)
    day = dt.datetime(2020, 1, 1)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "i8": pa.array([i % 100 - 50 for i in rows], pa.int8()),
            "i32": pa.array([i * 7 % 31 - 5 for i in rows], pa.int32()),
            "u16": pa.array([i % 9 for i in rows], pa.uint16()),
            "f32": pa.array([i / 4 for i in rows], pa.float32()),
            "f64": pa.array([None if i % 11 == 0 else i * 1.5 for i in rows], pa.float64()),
            "flag": pa.array([i % 3 == 0 for i in rows], pa.bool_()),
            "text": pa.array([WORDS[i % 8] + ("" if i % 8 == 4 else str(i)) for i in rows], pa.string()),
            "word": pa.array([None if i % 13 == 0 else "word%d" % (i % 4) for i in rows], pa.string()),
            "raw": pa.array([bytes([i % 251]) * (i % 5 + 1) for i in rows], pa.binary()),
            "day": pa.array([day.date() + dt.timedelta(days=i) for i in rows], pa.date32()),
            "at": pa.array([day + dt.timedelta(minutes=i) for i in rows], pa.timestamp("us")),
            "price": pa.array([decimal.Decimal(i) / 100 for i in rows], pa.decimal128(12, 2)),
            "kind": pa.array(["k%d" % (i % 3) for i in rows]).dictionary_encode(),
        }
    )


def nested(first, count):
    """Structs, lists, lists of structs and fixed-size lists."""
    import pyarrow as pa

    rows = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "point": pa.array([{"x": i, "y": i / 2, "name": "p%d" % i} for i in rows]),
            "numbers": pa.array([list(range(i % 4)) for i in rows], pa.list_(pa.int32())),
            "words": pa.array([["w%d" % j for j in range(i % 3)] for i in rows], pa.list_(pa.string())),
            "pairs": pa.array([[{"k": "a%d" % j, "v": j} for j in range(i % 3)] for i in rows]),
            "vector": pa.array([[float(i + j) for j in range(4)] for i in rows], pa.list_(pa.float32(), 4)),
        }
    )


def indexed(first, count):
    """Columns that indices are built on, small vectors among them."""
    import pyarrow as pa

    made = random.Random(first)
    rows = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "few": pa.array(["v%d" % (i % 5) for i in rows]),
            "number": pa.array([i * 37 % 101 for i in rows], pa.int32()),
            "zone": pa.array(rows, pa.int64()),
            "bloom": pa.array([i * 3 for i in rows], pa.int64()),
            "gram": pa.array(["text number %d" % i for i in rows]),
            "labels": pa.array([["l%d" % (i % 3), "m%d" % (i % 7)] for i in rows], pa.list_(pa.string())),
            "text": pa.array(["the %s fox %d jumps over %s" % (WORDS[i % 4], i, WORDS[i % 3]) for i in rows]),
            "vector": pa.array([[round(made.gauss(0, 4)) / 4 for _ in range(8)] for _ in rows], pa.list_(pa.float32(), 8)),
        }
    )


# --------------------------------------------------------------------------------------------------------------- tables


class Maker:
    """One release at work."""

    def __init__(self, release, out):
        import lance

        self.lance, self.release, self.out = lance, release, out
        self.made, self.skipped = {}, {}

    def numbers(self):
        return tuple(int(part) for part in self.release.split("."))

    def file_versions(self):
        """The file versions the release can write, and how it is asked for them."""
        release = self.numbers()
        if release < (0, 12):
            return {"0.1": {}}
        if release < (0, 16, 1):
            return {"0.1": {"use_legacy_format": True}, "2.0": {"use_legacy_format": False}}
        known = ["legacy", "2.0"] + (["2.1"] if release >= (0, 20) else []) + (["2.2"] if release >= (1, 0) else [])
        return {("0.1" if name == "legacy" else name): {"data_storage_version": name} for name in known}

    def write(self, path, data, mode="create", **options):
        known = dict(options)
        if self.numbers() < (0, 4, 22):
            known.pop("max_rows_per_file", None)
        return self.lance.write_dataset(data, path, mode=mode, **known)

    def table(self, name, make):
        """One table; what fails is written down and leaves no table behind."""
        path = os.path.join(self.out, name)
        steps = []
        try:
            make(path, Steps(steps))
            dataset = self.lance.dataset(path)
            self.made[name] = {"rows": dataset.count_rows(), "version": dataset.version, "skipped": steps}
        except BaseException as error:
            self.skipped[name] = "%s: %s" % (type(error).__name__, str(error)[:200])
            shutil.rmtree(path, ignore_errors=True)


class Steps:
    """Runs the steps of a table that may lack in a release."""

    def __init__(self, skipped):
        self.skipped = skipped

    def attempt(self, what, function, *args, **kwargs):
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            self.skipped.append("%s: %s: %s" % (what, type(error).__name__, str(error)[:120]))
            return None


def make_history(maker, data, options):
    """Written, appended, deleted, updated, merged, compacted: a version each."""

    def make(path, steps):
        maker.write(path, data(0, 60), max_rows_per_file=40, max_rows_per_group=16, **options)
        maker.write(path, data(60, 30), mode="append", **options)
        open_ = lambda: maker.lance.dataset(path)  # noqa: E731
        steps.attempt("delete", lambda: open_().delete("id % 7 = 3"))
        steps.attempt("update", lambda: open_().update({"id": "id + 1000"}, where="id = 5"))

        def merge():
            import pyarrow as pa

            ids = [*range(90), 1005]
            more = pa.table({"id": pa.array(ids, pa.int64()), "more": pa.array([i / 2 for i in ids])})
            open_().merge(more, "id")

        steps.attempt("merge", merge)

    return make


def make_plain(maker, data, options):
    def make(path, _steps):
        maker.write(path, data(0, 50), **options)

    return make


def make_compacted(maker, data, options):
    def make(path, steps):
        for first in range(0, 80, 20):
            maker.write(path, data(first, 20), mode="append" if first else "create", **options)
        steps.attempt("delete", lambda: maker.lance.dataset(path).delete("id < 5"))
        maker.lance.dataset(path).optimize.compact_files()
        maker.write(path, data(80, 12), mode="append", **options)

    return make


def make_stable(maker, data, options):
    def make(path, steps):
        error = None
        for name in ("enable_stable_row_ids", "enable_move_stable_row_ids"):
            try:
                maker.write(path, data(0, 60), max_rows_per_file=25, **{name: True}, **options)
                break
            except TypeError as wrong:
                error = wrong
        else:
            raise error
        maker.write(path, data(60, 30), mode="append", **options)
        maker.lance.dataset(path).delete("id % 5 = 2")
        steps.attempt("update", lambda: maker.lance.dataset(path).update({"id": "id + 1000"}, where="id < 4"))
        steps.attempt("compact", lambda: maker.lance.dataset(path).optimize.compact_files())

    return make


def make_columns(maker, data, options):
    """Columns added, dropped and renamed."""

    def make(path, steps):
        maker.write(path, data(0, 40), max_rows_per_file=25, **options)
        maker.lance.dataset(path).add_columns({"twice": "id * 2", "up": "upper(word)"})
        maker.lance.dataset(path).drop_columns(["f32", "raw"])
        steps.attempt("alter", lambda: maker.lance.dataset(path).alter_columns({"path": "twice", "name": "double"}))
        steps.attempt("append", lambda: maker.write(path, maker.lance.dataset(path).to_table(), mode="append", **options))

    return make


SCALARS = {
    "btree": ("number", "BTREE"),
    "bitmap": ("few", "BITMAP"),
    "label": ("labels", "LABEL_LIST"),
    "ngram": ("gram", "NGRAM"),
    "zone": ("zone", "ZONEMAP"),
    "bloom": ("bloom", "BLOOMFILTER"),
    "fts": ("text", "INVERTED"),
}


def build_scalars(maker, path, steps):
    """Every scalar index that the release knows; ValueError when it knows none."""
    built = 0
    for column, kind in SCALARS.values():
        before = len(steps.skipped)
        steps.attempt(kind, lambda c=column, k=kind: maker.lance.dataset(path).create_scalar_index(c, k))
        built += len(steps.skipped) == before
    if not built:
        raise ValueError("; ".join(steps.skipped))


def make_scalar_indices(maker, data, options, optimised):
    def make(path, steps):
        maker.write(path, data(0, 300), max_rows_per_file=150, **options)
        build_scalars(maker, path, steps)
        maker.lance.dataset(path).delete("id % 50 = 7")
        maker.write(path, data(300, 40), mode="append", **options)
        if optimised:
            steps.attempt("optimize", lambda: maker.lance.dataset(path).optimize.optimize_indices())
            maker.write(path, data(340, 10), mode="append", **options)

    return make


def make_changed_indices(maker, data, options, stable, compacted):
    """Rows deleted before indices are built and after, some updated, perhaps all moved: places and bitmaps must follow."""

    def make(path, steps):
        name = "enable_stable_row_ids" if maker.numbers() >= (0, 35) else "enable_move_stable_row_ids"
        maker.write(path, data(0, 300), max_rows_per_file=150, **({name: True} if stable else {}), **options)
        maker.lance.dataset(path).delete("id % 3 = 1 AND id < 120 OR id IN (7, 148, 299)")
        build_scalars(maker, path, steps)
        maker.lance.dataset(path).delete("id % 50 = 17")
        steps.attempt("update", lambda: maker.lance.dataset(path).update({"number": "number + 1"}, where="id % 40 = 8"))
        if compacted:
            steps.attempt("compact", lambda: maker.lance.dataset(path).optimize.compact_files())
        maker.write(path, data(300, 40), mode="append", **options)
        steps.attempt("optimize", lambda: maker.lance.dataset(path).optimize.optimize_indices())

    return make


def make_vector_index(maker, data, options, kind, metric, optimised=False):
    def make(path, steps):
        maker.write(path, data(0, 300), max_rows_per_file=200, **options)
        parameters = {"num_partitions": 2}
        if kind.endswith("PQ"):
            parameters["num_sub_vectors"] = 4
        maker.lance.dataset(path).create_index("vector", kind, metric=metric, **parameters)
        maker.write(path, data(300, 30), mode="append", **options)
        if optimised:
            steps.attempt("optimize", lambda: maker.lance.dataset(path).optimize.optimize_indices())
            maker.write(path, data(330, 10), mode="append", **options)

    return make


def work(release, out):
    """All tables of the release that this process runs."""
    maker = Maker(release, out)
    for version, options in maker.file_versions().items():
        suffix = "-" + version
        maker.table("scalars" + suffix, make_history(maker, scalars, options))
        maker.table("nested" + suffix, make_history(maker, nested, options))
        maker.table("plain" + suffix, make_plain(maker, scalars, options))
        maker.table("compacted" + suffix, make_compacted(maker, nested, options))
        maker.table("columns" + suffix, make_columns(maker, scalars, options))
        maker.table("stable" + suffix, make_stable(maker, scalars, options))
    options = {}
    maker.table("indices", make_scalar_indices(maker, indexed, options, False))
    maker.table("indices-optimised", make_scalar_indices(maker, indexed, options, True))
    for kind in ("IVF_PQ", "IVF_FLAT", "IVF_SQ", "IVF_RQ", "IVF_HNSW_PQ", "IVF_HNSW_SQ", "IVF_HNSW_FLAT"):
        maker.table(kind.lower().replace("_", "-"), make_vector_index(maker, indexed, options, kind, "L2"))
    maker.table("ivf-pq-cosine", make_vector_index(maker, indexed, options, "IVF_PQ", "cosine"))
    maker.table("ivf-pq-dot", make_vector_index(maker, indexed, options, "IVF_PQ", "dot"))
    maker.table("ivf-pq-optimised", make_vector_index(maker, indexed, options, "IVF_PQ", "L2", True))
    with open(os.path.join(out, "made.json"), "w") as file:
        json.dump({"release": release, "made": maker.made, "skipped": maker.skipped}, file, indent=1, sort_keys=True)


def work_changed(release, out):
    """Tables whose rows were deleted, updated and moved around their indices."""
    maker = Maker(release, out)
    for stable in (False, True):
        for compacted in (False, True):
            name = "changed" + ("-stable" if stable else "") + ("-compacted" if compacted else "")
            maker.table(name, make_changed_indices(maker, indexed, {}, stable, compacted))
    with open(os.path.join(out, "made.json"), "w") as file:
        json.dump({"release": release, "made": maker.made, "skipped": maker.skipped}, file, indent=1, sort_keys=True)


def go_on(release, out, older):
    """Tables of an older release that this one appends to and deletes from."""
    maker = Maker(release, out)
    for name, data in (("plain-0.1", scalars), ("compacted-0.1", nested)):

        def make(path, steps, name=name, data=data):
            shutil.copytree(os.path.join(older, name), path)
            rows = data(1000, 15)
            have = maker.lance.dataset(path).schema.names
            maker.write(path, rows.select([column for column in rows.column_names if column in have]), mode="append")
            steps.attempt("delete", lambda: maker.lance.dataset(path).delete("id % 9 = 4"))

        maker.table("migrated-" + name, make)
    path = os.path.join(out, "made.json")
    with open(path) as file:
        told = json.load(file)
    told["made"].update(maker.made)
    told["skipped"].update(maker.skipped)
    with open(path, "w") as file:
        json.dump(told, file, indent=1, sort_keys=True)


# ---------------------------------------------------------------------------------------------------------------- driver


def environment(folder, release):
    """A folder with the release, and the interpreter that runs it."""
    newer = tuple(int(part) for part in release.split(".")) >= (0, 25)
    base = os.path.join(folder, "newer" if newer else "pinned")
    python = os.path.join(base, "bin", "python")
    if not os.path.exists(python):
        subprocess.check_call([sys.executable, "-m", "venv", base])
        subprocess.check_call([python, "-m", "pip", "install", "-q", *(NEWER if newer else PINNED)])
    target = os.path.join(folder, release)
    if not os.path.exists(os.path.join(target, "lance")):
        subprocess.check_call([python, "-m", "pip", "install", "-q", "--no-deps", "--target", target, "pylance==" + release])
    return python, target


def pack(made, packed):
    """A release's tables in one archive that is the same for the same files."""

    def plain(entry):
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
        return entry

    with tarfile.open(packed, "w:xz") as archive:
        for name in sorted(os.listdir(made)):
            archive.add(os.path.join(made, name), name, filter=plain)


def run_worker(folder, release, arguments):
    """This script, run by an old release."""
    python, target = environment(folder, release)
    subprocess.run(
        [python, os.path.abspath(__file__), *arguments],
        env={**os.environ, "PYTHONPATH": target, "RUST_BACKTRACE": "0"},
        check=True,
        timeout=600,
        stderr=subprocess.DEVNULL,
    )


def make_all(out, releases, worker="worker"):
    """Make and pack the tables of releases."""
    folder = os.environ.get("OLD_RELEASES", os.path.join(tempfile.gettempdir(), "old-releases"))
    os.makedirs(folder, exist_ok=True)
    os.makedirs(out, exist_ok=True)
    for release in releases or RELEASES:
        try:
            with tempfile.TemporaryDirectory() as made:
                run_worker(folder, release, [worker, release, made])
                if release in MIGRATED and worker == "worker":
                    with tempfile.TemporaryDirectory() as older:
                        run_worker(folder, MIGRATED[release], ["worker", MIGRATED[release], older])
                        run_worker(folder, release, ["go-on", release, made, older])
                pack(made, os.path.join(out, release + ".tar.xz"))
                with open(os.path.join(made, "made.json")) as file:
                    told = json.load(file)
            print(release, len(told["made"]), "tables,", len(told["skipped"]), "skipped", flush=True)
        except Exception:
            print(release, "failed", flush=True)
            traceback.print_exc(limit=1)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        work(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "worker-changed":
        work_changed(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "go-on":
        go_on(sys.argv[2], sys.argv[3], sys.argv[4])
    elif sys.argv[1] == "changed":
        make_all(sys.argv[2], sys.argv[3:] or RELEASES[RELEASES.index("0.9.19") :], "worker-changed")
    else:
        make_all(sys.argv[2], sys.argv[3:])
