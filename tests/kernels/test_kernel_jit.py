"""The kernel machinery: lazy, cached on disk, few variants, safe on bad input, and no numba for plain columns."""

import logging
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from lance_core.kernels import bits, bytes, cache, fsst, jit, levels, load_all

PLAIN = """
import sys
import numpy as np
from lance_core.codecs import choose, registry
from lance_core.codecs.blocks import FixedBlock, VariableBlock
numbers = FixedBlock(64, np.arange(5000).astype(np.float64).view(np.uint8), 5000)
texts = VariableBlock(np.arange(0, 20004, 4, dtype=np.int32), np.zeros(20000, np.uint8))
from lance_core.codecs import flat, variable
for encoded in (flat.encode_chunks(numbers), variable.encode_chunks(texts)):
    registry.CODECS.decode(encoded.encoding, encoded.buffers, encoded.counts)
assert not {name for name in sys.modules if name.split(".")[0] in ("numba", "llvmlite", "pyarrow")}, "numba came in"
"""

PACKED = """
import logging, sys
import numpy as np
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from lance_core.kernels.bits import unpack
out, one = np.empty(1024, np.uint8), np.ones(1, np.int64)
assert unpack(np.zeros(128, np.uint8), one - 1, one, one * 1024, out.copy(), out) == 1024
"""


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, cwd=Path.cwd()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def only(folder: Path) -> dict[str, str]:
    """An environment in which no other folder has kernels."""
    none = str(folder.parent / "none")
    return {"NUMBA_CACHE_DIR": str(folder), "XDG_CACHE_HOME": none, "TMPDIR": str(folder.parent)}


def test_plain_columns_do_not_import_numba():
    run(PLAIN)


def test_first_compile_is_announced_and_the_next_process_loads_it(tmp_path):
    where = only(tmp_path / "cache")
    assert "unpack[u1] compiled" in run(PACKED, **where)
    assert "compiled" not in run(PACKED, **where)


def test_cache_falls_back_to_the_users_cache_directory(tmp_path):
    run(PACKED, NUMBA_CACHE_DIR="", XDG_CACHE_HOME=str(tmp_path))
    assert [path.name for path in (tmp_path / "lance_core" / "kernels").iterdir() if path.name.startswith("unpack-u1-")]


def test_foreign_or_open_directories_are_not_trusted(tmp_path):
    assert cache.is_private_and_writable(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert not cache.is_private_and_writable(tmp_path / "open")
    assert not cache.is_trusted(tmp_path / "open")
    (tmp_path / "open").chmod(0o775)
    assert not cache.is_trusted(tmp_path / "open")
    (tmp_path / "file").touch()
    assert not cache.is_private_and_writable(tmp_path / "file")
    assert not cache.is_trusted(tmp_path / "file")


def test_a_folder_of_kernels_is_good_at_another_place_and_for_readers_only(tmp_path):
    run(PACKED, **only(tmp_path / "built"))
    shipped = tmp_path / "shipped"
    shutil.copytree(tmp_path / "built", shipped)
    shipped.chmod(0o555)
    for path in shipped.iterdir():
        os.utime(path, (0, 0))
    assert "compiled" not in run(PACKED, **only(shipped))


def test_a_damaged_file_is_compiled_anew(tmp_path):
    where = only(tmp_path / "cache")
    run(PACKED, **where)
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(b"not a kernel")
    assert "compiled" in run(PACKED, **where)
    assert "compiled" not in run(PACKED, **where)


def test_another_processor_finds_none(tmp_path):
    where = only(tmp_path / "cache")
    run(PACKED, **where)
    assert "compiled" in run(PACKED, **where, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")


def test_no_writable_directory_means_that_nothing_is_kept(monkeypatch, caplog):
    monkeypatch.setattr(cache, "is_private_and_writable", lambda path: False)
    kept = cache.KernelCache("x", lambda processor: "0", dump=lambda compiled: b"", load=lambda context, data: None)
    with caplog.at_level(logging.WARNING):
        kept.save_overload(None, None)
    assert "NUMBA_CACHE_DIR" in caplog.text


def test_small_work_is_done_plainly_and_much_of_it_compiles(monkeypatch):
    calls = []

    def plainly(values, out):
        calls.append(len(values))
        out[:] = values
        return len(values)

    def copy(values, out):
        for index in range(len(values)):
            out[index] = values[index]
        return len(values)

    item = jit.Kernel(copy, "in:i8 out:i8 -> i8", {}, plain=plainly)
    begun = []
    monkeypatch.setattr(jit.Kernel, "_compile", lambda self, key: begun.append(key) or plainly)
    monkeypatch.setattr(jit, "_REGISTRY", [item])
    monkeypatch.setattr(jit, "is_kept", lambda name: False)
    small, large = np.arange(1000), np.zeros(jit._SPARED, np.int64)
    assert item(small, np.zeros(1000, np.int64)) == 1000
    assert begun == []
    # Two arrays of a million, many times: the plain function answers, and the compiler begins behind it, once.
    for _ in range(6):
        assert item(large[:1_000_000], large[:1_000_000]) == 1_000_000
    for thread in threading.enumerate():
        if thread.name.startswith("compile "):
            thread.join()
    assert begun == [()]
    item._awaited.clear()
    item(large, large)
    assert begun == [(), ()]


def test_the_number_of_variants_is_bounded():
    load_all()
    ours = [item for item in jit.registered() if item.function.__module__.startswith("lance_core.kernels")]
    assert {item.function.__module__.rpartition(".")[2] for item in ours} >= {"bits", "bytes", "fsst", "levels", "text"}
    # Each is compiled once for a machine: some are worth a second or two of everybody's first run, hundreds are not.
    assert len(ours) <= 61
    assert sum(len(list(item.keys())) for item in ours) <= 80


def test_an_element_type_without_variant_is_a_type_error():
    with pytest.raises(TypeError, match="no variant"):
        numbers = np.zeros(4, np.float32)
        bits.unpack(numbers, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), numbers, numbers)


def test_read_only_inputs_need_no_second_variant():
    words = np.frombuffer(b"\xff" * 128, np.uint8)
    out = np.empty(1024, np.uint8)
    one = np.ones(1, np.int64)
    assert bits.unpack(words, one - 1, one, one * 1024, np.empty(1024, np.uint8), out) == 1024
    assert (out == 1).all()
    assert bits.unpack(words.copy(), one - 1, one, one * 1024, np.empty(1024, np.uint8), out) == 1024


@pytest.mark.parametrize(
    ("start", "width", "count"),
    [(0, 9, 1024), (0, 10, 10), (0, -1, 1024), (-1, 1, 1024), (1, 1, 1024), (0, 1, 2000), (0, 1, -5)],
)
def test_unpack_and_pack_refuse_what_leaves_their_arrays(start, width, count):
    words, out, scratch = np.zeros(128, np.uint8), np.zeros(1024, np.uint8), np.zeros(1024, np.uint8)
    place = [np.array([value], np.int64) for value in (start, width, count)]
    accepted = width == 9 and count <= 128
    assert (bits.unpack(words, place[0], place[1], place[2], scratch, out) < 0) is not accepted
    assert (bits.pack(out, place[2], place[0], place[1], scratch, words) < 0) is not accepted


@pytest.mark.parametrize(
    ("start", "size", "target"), [(-1, 1, 0), (0, -1, 0), (0, 1, -1), (9, 2, 0), (0, 2, 9), (2**62, 2**62, 0)]
)
def test_copy_runs_refuses_what_leaves_its_arrays(start, size, target):
    data, out = np.zeros(10, np.uint8), np.zeros(10, np.uint8)
    place = [np.array([value], np.int64) for value in (start, size, target)]
    assert bytes.copy_runs(data, *place, out) == -1


def test_gather_refuses_bad_numbers_and_offsets():
    offsets, numbers, targets = np.array([0, 2]), np.array([1], np.uint32), np.zeros(2, np.int32)
    assert bytes.gather_offsets(offsets, numbers, targets) == -1
    wild = np.array([0, 2**40])
    assert (
        bytes.gather_strings(wild, np.zeros(10, np.uint8), numbers - 1, np.array([0, 2], np.int32), np.zeros(9, np.uint8))
        == -1
    )


def test_fsst_refuses_small_outputs_and_wild_offsets():
    symbols, lengths = np.zeros(256, np.uint64), np.ones(256, np.uint8)
    codes, targets = np.zeros(4, np.uint8), np.zeros(2, np.int32)
    assert fsst.decode(codes, np.array([0, 4], np.int32), symbols, lengths, np.zeros(8, np.uint8), targets) == -1
    assert fsst.decode(codes, np.array([0, 9], np.int32), symbols, lengths, np.zeros(40, np.uint8), targets) == -1
    assert fsst.decode(codes, np.array([3, 1], np.int32), symbols, lengths, np.zeros(40, np.uint8), targets) == -1


def test_pure_python_moves_are_the_same_moves():
    array = np.zeros(12, np.uint8)
    jit.store_u64(array, 2, 0x0102030405060708)
    assert jit.load_u64(array, 2) == 0x0102030405060708
    assert array.tolist() == [0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]


@pytest.mark.slow
def test_warmup_compiles_every_variant():
    load_all()
    assert jit.warmup() == sum(len(list(item.keys())) for item in jit.registered())


def test_split_lists_counts_items_and_refuses_too_little_room():
    rep, def_ = np.array([1, 0, 1, 1, 1], np.uint16), np.array([0, 1, 2, 3, 0], np.uint16)
    facts = np.array([1, 0, 1])
    for num_slots, kept in ((4, 3), (3, -1)):
        offsets, defs = np.empty(num_slots + 1, np.int64), np.empty(num_slots + 1, np.uint16)
        next_rep, next_def = np.empty(6, np.uint16), np.empty(6, np.uint16)
        assert levels.split_lists(rep, def_, facts, offsets, defs, next_rep, next_def) == kept
        if kept > 0:
            assert offsets.tolist() == [0, 2, 2, 2, 3]
            assert defs[:4].tolist() == [0, 2, 3, 0]
            assert next_def[:kept].tolist() == [0, 1, 0]
    assert levels.split_lists(rep, def_, facts, offsets, defs, next_rep[:5], next_def) == -1


LITTLE_MEMORY = """
import os, resource
from pathlib import Path
import numba
import llvmlite.binding
from lance_core.kernels.bits import unpack
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
ended = []
for more in (8, 12, 16, 18, 20, 24, 40, 60, 200):
    child = os.fork()
    if child == 0:
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + (more << 20), resource.RLIM_INFINITY))
        try:
            unpack._compile(("u1",))
        except MemoryError:
            os._exit(1)
        os._exit(0)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(ended)
"""


@pytest.mark.skipif(not hasattr(os, "fork") or not sys.platform.startswith("linux"), reason="no limit of address space")
def test_a_compiler_without_memory_does_not_end_the_process(tmp_path: Path) -> None:
    """LLVM aborts where it gets no memory: it is not asked when there is not enough, from disk or anew."""
    told = run(LITTLE_MEMORY, NUMBA_CACHE_DIR=str(tmp_path), XDG_CACHE_HOME=str(tmp_path), TMPDIR=str(tmp_path))
    assert told.splitlines()[-1] == str([1] * 8 + [0])
    told = run(LITTLE_MEMORY)
    assert told.splitlines()[-1] == str([1] * 8 + [0])
