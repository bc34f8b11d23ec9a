"""Mutants by rule: small changes of a function that no test should survive. Pure; standard library only.

::

    negated     if found is None: …                    if not found is None: …
    dropped     store.delete(path)                     pass
    swapped     put_decision(…); put_manifest(…)       put_manifest(…); put_decision(…)
    unguarded   if theirs.uuid == mine: return it      pass

A mutant is named by its file, function, rule and number in there, so that it means the same when code around it changes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

NEGATED, DROPPED, SWAPPED, UNGUARDED = "negated", "dropped", "swapped", "unguarded"
REACHED = "_reached_by_a_test"
"""The name of a list in a changed module, to which the changed function adds when it is called."""

_QUIET = ("log", "logging", "super")
_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function. `digest` is that of the function's source, `line` where it is, `text` what is changed."""

    path: str
    function: str
    rule: str
    number: int
    line: int
    text: str
    digest: str

    @property
    def name(self) -> str:
        """ "lance_core/commit/loop.py:CommitLoop.run:negated:0" """
        return f"{self.path}:{self.function}:{self.rule}:{self.number}"


@dataclass(frozen=True, slots=True)
class _Site:
    rule: str
    node: ast.AST
    text: str
    apply: Callable[[], None]


def mutants_of(root: Path, paths: Iterable[str]) -> list[Mutant]:
    """All mutants of files below `root`, in order."""
    return [mutant for path in paths for mutant in _of_source(path, (root / path).read_text())]


def chosen(mutants: Sequence[Mutant], *, count: int, seed: int) -> list[Mutant]:
    """So many of them by chance, always the same for a seed; more are the fewer and further ones."""
    shuffled = sorted(mutants, key=lambda item: sha256(f"{seed}/{item.name}".encode()).digest())
    return shuffled[:count]


def mutated(source: str, mutant: Mutant) -> str:
    """The module with this change. LookupError when it is not in the source any more."""
    tree = ast.parse(source)
    for name, function in _functions(tree):
        if name == mutant.function:
            found = [site for site in _sites(function) if site.rule == mutant.rule]
            if mutant.number < len(found):
                found[mutant.number].apply()
                function.body.insert(0, ast.parse(f"{REACHED}.append(1)").body[0])
                _after_the_imports_of_the_future(tree, ast.parse(f"{REACHED}: list[int] = []").body[0])
                return ast.unparse(ast.fix_missing_locations(tree))
    raise LookupError(f"{mutant.name} is not in the source")


def _after_the_imports_of_the_future(tree: ast.Module, statement: ast.stmt) -> None:
    places = [
        index for index, item in enumerate(tree.body) if isinstance(item, ast.ImportFrom) and item.module == "__future__"
    ]
    tree.body.insert(places[-1] + 1 if places else 0, statement)


def _of_source(path: str, source: str) -> Iterator[Mutant]:
    for name, function in _functions(ast.parse(source)):
        digest = sha256(ast.unparse(function).encode()).hexdigest()[:16]
        numbers: dict[str, int] = {}
        for site in _sites(function):
            number = numbers[site.rule] = numbers.get(site.rule, -1) + 1
            yield Mutant(path, name, site.rule, number, getattr(site.node, "lineno", 0), site.text, digest)


def _functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, FunctionNode]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{above}{node.name}"
            if not isinstance(node, ast.ClassDef):
                yield name, node
            yield from _functions(node, f"{name}.")
        else:
            yield from _functions(node, above)


def _sites(function: FunctionNode) -> list[_Site]:
    return [site for block in _blocks(function) for site in _of_block(block)] + [*_conditions(function)]


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, without those of functions inside."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield child
            yield from _own(child)


def _blocks(function: FunctionNode) -> Iterator[list[ast.stmt]]:
    for node in (function, *_own(function)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _of_block(block: list[ast.stmt]) -> Iterator[_Site]:
    for index, statement in enumerate(block):
        if _is_call(statement):
            yield _Site(DROPPED, statement, _said(statement), _setter(block, index, ast.Pass()))
        if isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], _LEAVES):
            yield _Site(UNGUARDED, statement, _said(statement), _setter(block, index, ast.Pass()))
        if index and _may_swap(block[index - 1], statement):
            text = f"{_said(block[index - 1])} <-> {_said(statement)}"
            yield _Site(SWAPPED, statement, text, _swapper(block, index))


def _conditions(function: FunctionNode) -> Iterator[_Site]:
    for node in _own(function):
        if isinstance(node, (ast.If, ast.IfExp)) or (
            isinstance(node, ast.While) and not isinstance(node.test, ast.Constant)
        ):
            yield _Site(NEGATED, node, f"if {ast.unparse(node.test)}", _negator(node))
        elif isinstance(node, ast.comprehension):
            for number, test in enumerate(node.ifs):
                yield _Site(NEGATED, test, f"… if {ast.unparse(test)}", _negator_of_part(node, number))


def _is_call(statement: ast.stmt) -> bool:
    """A statement that is a call made for its effect; what is only logged has none."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return not ast.unparse(statement.value.func).startswith(_QUIET)


def _may_swap(first: ast.stmt, second: ast.stmt) -> bool:
    if not (_is_call(first) or _is_call(second)) or not (_calls(first) and _calls(second)):
        return False
    return not (_names(first, ast.Store) & _names(second, ast.Load) or _names(second, ast.Store) & _names(first, ast.Load))


def _calls(statement: ast.stmt) -> bool:
    assigns = isinstance(statement, (ast.Assign, ast.AugAssign)) and isinstance(statement.value, ast.Call)
    return assigns or _is_call(statement)


def _names(node: ast.AST, kind: type[ast.expr_context]) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, kind)}


def _setter(block: list[ast.stmt], index: int, value: ast.stmt) -> Callable[[], None]:
    return lambda: block.__setitem__(index, value)


def _swapper(block: list[ast.stmt], index: int) -> Callable[[], None]:
    return lambda: block.__setitem__(slice(index - 1, index + 1), [block[index], block[index - 1]])


def _negator(node: ast.If | ast.IfExp | ast.While) -> Callable[[], None]:
    return lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))


def _negator_of_part(node: ast.comprehension, number: int) -> Callable[[], None]:
    return lambda: node.ifs.__setitem__(number, ast.UnaryOp(ast.Not(), node.ifs[number]))


def _said(statement: ast.stmt) -> str:
    text = " ".join(ast.unparse(statement).split())
    return text if len(text) <= 120 else text[:117] + "..."
