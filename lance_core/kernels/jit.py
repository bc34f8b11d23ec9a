"""The only file that imports numba, and only when a kernel is worth it: compiled lazily, kept on disk, without the GIL.

::

    @kernel("in:T in:i8 out:T -> i8", T=("u1", "u2", "u4", "u8"), plain=add_at_plainly, weight=2)
    def add_at(values, starts, out): ...

    add_at(values, starts, out)         small arrays: the plain function, until many calls have added up to the price of
                                        numba; then compiles (or loads) the variant for values.dtype, and calls it
    warmup()                            compiles every variant of every kernel

A variant that no folder has is compiled in a thread, while the plain function goes on answering; only a call that would
take the plain function longer than the compiler waits for it.

A signature lists the arguments: `in:` and `out:` are contiguous arrays (read-only inputs are accepted without a second
variant), a bare type is a scalar; types are numpy's short names. Variants exist for the types listed for a letter, so
their number is bounded here and not by what callers pass. A kernel checks its bounds itself or is called after a check;
it returns a number, negative for damaged input. `load_u64` and `store_u64` are unaligned eight-byte moves that become
one instruction; they check nothing.
"""

from __future__ import annotations

import itertools
import logging
import mmap
import os
import pickle
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.kernels.cache import KernelCache, digest_of, is_kept

_LOG = logging.getLogger(__name__)
_LOCK = threading.RLock()
_REGISTRY: list[Kernel] = []
_REORDERING = ("reassoc", "contract", "nsz", "arcp")
_SPARED = 8 << 20
_SPARED_LATER = 64 << 10
COMPILER_BYTES = 64 << 20
"""What has to be free before LLVM is asked: it ends the process where it gets no memory (`std::bad_alloc`, which nobody
catches). The first variant of a process takes 51 MB when it is compiled and 18 MB when it is loaded, later ones 8 and 2."""
CHECKED_VARIABLE = "LANCE_KERNELS_CHECKED"
"""Set to 1, kernels are compiled with bounds checks (an index beyond an array is an IndexError), and small inputs go through
them as well. That build is for fuzzers, which must not miss a read out of bounds."""
_COMPILED = "numba kernel %s[%s] compiled in %.1f s (once per machine: it is cached)"


def _renew_lock() -> None:
    """A fork may have copied the lock while another thread held it."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Kernel:
    """A function that is compiled when an element type of its arguments has become worth it."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        variants: dict[str, tuple[str, ...]],
        *,
        reorders: bool = False,
        plain: Callable[..., int] | None = None,
        weight: float | Callable[..., float] = 1,
    ) -> None:
        self.function = function
        self.plain = plain
        self._weight = weight
        self._flags: Any = set(_REORDERING) if reorders else False
        self.name = function.__qualname__
        self.__doc__ = function.__doc__
        self._arguments, self._result = _parse(signature)
        self._variants = variants
        self._keyed_by = [_argument_of(self._arguments, letter) for letter in variants]
        self._arrays = [position for position, (kind, _) in enumerate(self._arguments) if kind]
        self._compiled: dict[tuple[str, ...], Callable[..., Any]] = {}
        self._is_kept: dict[tuple[str, ...], bool] = {}
        self._awaited: set[tuple[str, ...]] = set()
        self._spared = 0.0

    def __call__(self, *arguments: Any) -> int:
        """Run the variant for the arguments' element types; returns the kernel's number."""
        key = tuple(arguments[position].dtype.str[1:] for position in self._keyed_by)
        compiled = self._compiled.get(key)
        if compiled is None:
            if self.plain is not None and not self._is_due(self._work(arguments), key):
                return int(self.plain(*arguments))
            compiled = self._compile(key)
        return int(compiled(*arguments))

    def _work(self, arguments: tuple[Any, ...]) -> float:
        if callable(self._weight):
            return self._weight(*arguments)
        return self._weight * sum(len(arguments[position]) for position in self._arrays)

    def is_worth_loading(self, work: float, *kinds: np.dtype[Any]) -> bool:
        """Whether a call should run the kernel: it is there, or small calls like this one have added up.

        `work` is the size of a call that numpy could do as well, slower; importing numba costs as much as `_SPARED` of it,
        loading one more kernel as `_SPARED_LATER`. `kinds` are the element types that choose the variant, in the order of
        the signature's letters.
        """
        key = tuple(kind.str[1:] for kind in kinds)
        return key in self._compiled or self._is_due(work, key)

    def _is_due(self, work: float, key: tuple[str, ...]) -> bool:
        """Whether the caller should wait for the variant; one that takes long is begun in the background instead."""
        if is_checked():
            return True
        # Two threads may count at once and lose a little: no harm.
        self._spared += work
        if key not in self._is_kept:
            self._is_kept[key] = is_kept(self._file_name(key))
        if self._is_kept[key] and "numba" in sys.modules:
            return self._spared > _SPARED_LATER
        if max(self._spared, sum(item._spared for item in _REGISTRY)) <= _SPARED:
            return False
        if self._is_kept[key] or work > _SPARED:
            return self._spared > _SPARED_LATER
        if self._spared > _SPARED and key not in self._awaited:
            self._awaited.add(key)
            threading.Thread(target=self._compile, args=(key,), name=f"compile {self.name}", daemon=True).start()
        return False

    def keys(self) -> Iterator[tuple[str, ...]]:
        """The variants, as element types."""
        return itertools.product(*self._variants.values())

    def compile_all(self) -> int:
        """Compile or load every variant; returns how many there are."""
        keys = list(self.keys())
        for key in keys:
            if key not in self._compiled:
                self._compile(key)
        return len(keys)

    def _file_name(self, key: tuple[str, ...]) -> str:
        return "-".join((self.name, *key, *(["checked"] if is_checked() else [])))

    def _compile(self, key: tuple[str, ...]) -> Callable[..., Any]:
        with _LOCK:
            if key in self._compiled:
                return self._compiled[key]
            if key not in set(self.keys()):
                raise TypeError(f"kernel {self.name} has no variant for {key}; it has {list(self.keys())}")
            letters = dict(zip(self._variants, key, strict=True))
            started = time.perf_counter()
            compiled, was_kept = _numba_compile(
                self.function, self._arguments, self._result, letters, self._flags, name=self._file_name(key)
            )
            if not was_kept:
                _LOG.info(_COMPILED, self.name, ",".join(key), time.perf_counter() - started)
            self._compiled[key] = compiled
            return compiled


def kernel(
    signature: str,
    *,
    reorders: bool = False,
    plain: Callable[..., int] | None = None,
    weight: float | Callable[..., float] = 1,
    **variants: tuple[str, ...],
) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator: make a function a kernel (see the head of this file).

    `reorders`: sums of floats may be taken in any order, so that they fill vector registers; NaN and infinity keep theirs.
    `plain`: the same function with numpy alone, which answers until the kernel is worth its price; `weight` is what an item
    of its arrays costs there, in units of about 50 ns, or a function that says what a call costs.
    """

    def decorate(function: Callable[..., Any]) -> Kernel:
        made = Kernel(function, signature, variants, reorders=reorders, plain=plain, weight=weight)
        _REGISTRY.append(made)
        return made

    return decorate


def require_free(size: int, *, what: str) -> None:
    """Raise MemoryError when this process may not have so many bytes more (`ulimit -v`); nothing is touched."""
    try:
        mmap.mmap(-1, size).close()
    except (OSError, ValueError) as error:
        raise MemoryError(f"no {size >> 20} MiB are left for {what}") from error


def is_checked() -> bool:
    """Whether this process compiles kernels with bounds checks."""
    return os.environ.get(CHECKED_VARIABLE, "") not in ("", "0")


def registered() -> tuple[Kernel, ...]:
    """Every kernel of the modules imported so far."""
    return tuple(_REGISTRY)


def warmup() -> int:
    """Compile or load every variant of every registered kernel; returns their number.

    Import the kernel modules first: `lance_core.kernels.load_all()`.
    """
    return sum(item.compile_all() for item in registered())


def load_u64(array: npt.NDArray[np.uint8], position: int) -> int:
    """Eight bytes at `position` as a little-endian number; unchecked when compiled."""
    return int.from_bytes(array[position : position + 8].tobytes(), "little")


def store_u64(array: npt.NDArray[np.uint8], position: int, value: int) -> None:
    """Write eight little-endian bytes at `position`; unchecked when compiled."""
    array[position : position + 8] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


def _parse(signature: str) -> tuple[list[tuple[str, str]], str]:
    head, result = signature.split("->")
    arguments = []
    for word in head.split():
        kind, _, name = word.rpartition(":")
        arguments.append((kind, name))
    return arguments, result.strip()


def _argument_of(arguments: list[tuple[str, str]], letter: str) -> int:
    return next(position for position, (kind, name) in enumerate(arguments) if name == letter and kind)


def _numba_compile(
    function: Callable[..., Any],
    arguments: list[tuple[str, str]],
    result: str,
    letters: dict[str, str],
    flags: Any,
    *,
    name: str,
) -> tuple[Callable[..., Any], bool]:
    """The compiled variant, and whether it was kept on disk."""
    import llvmlite  # type: ignore[import-untyped]
    import numba
    from numba.core import compiler, serialize
    from numba.core import types as numba_types

    require_free(COMPILER_BYTES, what=f"the compiler of kernel {name}")
    # Neither is typed.
    dump: Any = serialize.dumps
    rebuild: Any = compiler.CompileResult._rebuild

    def of(kind: str, name: str) -> Any:
        scalar = numba.from_dtype(np.dtype(letters.get(name, name)))
        return numba_types.Array(scalar, 1, "C", readonly=kind == "in") if kind else scalar

    def digest(processor: object) -> str:
        code = function.__code__
        told = (name, arguments, result, sorted(flags or ()), is_checked(), code.co_code, code.co_names)
        return digest_of(numba.__version__, llvmlite.__version__, processor, *told)

    signature = of("", result)(*(of(kind, name) for kind, name in arguments))
    dispatcher: Any = numba.njit(nogil=True, boundscheck=is_checked(), fastmath=flags)(_with_intrinsics(function))
    kept = KernelCache(
        name,
        digest,
        dump=lambda compiled: bytes(dump(compiled._reduce())),
        # Compiled code, as numba keeps it, of folders that nobody else may write (`cache.is_trusted`); never of a table.
        load=lambda context, data: rebuild(context, *pickle.loads(data)),  # nosec B301
    )
    dispatcher._cache = kept
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    compiled: Callable[..., Any] = dispatcher
    return compiled, kept.was_found


def _with_intrinsics(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with `load_u64` and `store_u64` replaced by their one-instruction forms."""
    names = set(function.__code__.co_names) & {"load_u64", "store_u64"}
    if not names:
        return function
    moves = _intrinsics()
    own = {**function.__globals__, **{name: moves[name] for name in names}}
    copy = types.FunctionType(function.__code__, own, function.__name__, function.__defaults__)
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


@cache
def _intrinsics() -> dict[str, Any]:
    return _checked_moves() if is_checked() else _make_intrinsics()


def _checked_moves() -> dict[str, Any]:
    import numba

    def load(array: Any, position: int) -> Any:
        if position < 0 or position + 8 > len(array):
            raise IndexError("a kernel read eight bytes beyond an array")
        value = np.uint64(0)
        for place in range(8):
            value |= np.uint64(array[position + place]) << np.uint64(8 * place)
        return value

    def store(array: Any, position: int, value: Any) -> None:
        if position < 0 or position + 8 > len(array):
            raise IndexError("a kernel wrote eight bytes beyond an array")
        for place in range(8):
            array[position + place] = np.uint8((np.uint64(value) >> np.uint64(8 * place)) & np.uint64(255))

    return {"load_u64": numba.njit(load, boundscheck=True), "store_u64": numba.njit(store, boundscheck=True)}


def _make_intrinsics() -> dict[str, Any]:
    from llvmlite import ir
    from numba.core import types as numba_types
    from numba.extending import intrinsic

    def pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())

    def load(typing_context: Any, array: Any, position: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(pointer(context, builder, signature, args), align=1)

        return numba_types.uint64(array, numba_types.int64), generate

    def store(typing_context: Any, array: Any, position: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[2], pointer(context, builder, signature, args), align=1)
            return context.get_dummy_value()

        return numba_types.void(array, numba_types.int64, numba_types.uint64), generate

    return {"load_u64": intrinsic(load), "store_u64": intrinsic(store)}
