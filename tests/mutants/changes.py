"""Which wrong changes a module can suffer: a sign, a factor, an off by one, a dropped term, a comparison, a bound.

Only code that computes is changed: docstrings, messages, annotations, imports and names of things stay as they are.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants_of"]

SWAPPED_CALLS = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "floor": "ceil",
    "ceil": "floor",
}
DROPPED_CALLS = {"sqrt", "abs", "log1p", "expm1"}
SWAPPED: dict[type[ast.operator] | type[ast.cmpop], type[ast.operator] | type[ast.cmpop]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


@dataclass(frozen=True)
class Mutant:
    """One wrong change.

    Attributes
    ----------
    function : str
        The function that it changes; empty at the top of the module.
    line : int
    before, after : str
        The expression, as source.
    changed : str
        The line with the change.
    source : str
        The whole module with the change.
    """

    function: str
    line: int
    before: str
    after: str
    changed: str
    source: str

    def __str__(self) -> str:
        return f"{self.function or '(module)'}, line {self.line}: {self.before}  ->  {self.after}"


def mutants_of(source: str, functions: frozenset[str] = frozenset()) -> list[Mutant]:
    """Return the mutants of a module's source, or of some of its functions.

    >>> [(mutant.before, mutant.after) for mutant in mutants_of("def double(x):\\n    return 2.0 * x\\n")]
    [('2.0 * x', '2.0 / x'), ('2.0 * x', '2.0'), ('2.0 * x', 'x'), ('2.0', '4.0'), ('2.0', '1.0')]
    """
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line.encode()))
    found = []
    for function, node in _computing(tree, ""):
        if functions and not functions & {function, function.split(".")[-1]}:
            continue
        before = ast.unparse(node)
        for change in _changes(node):
            after = ast.unparse(change)
            begin = begins[node.lineno - 1] + node.col_offset
            end = begins[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            raw = source.encode()
            changed = (raw[:begin] + f"({after})".encode() + raw[end:]).decode()
            line = changed.splitlines()[node.lineno - 1].strip()
            found.append(Mutant(function, node.lineno, before, after, line, changed))
    return found


def _computing(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr]]:
    """Yield expressions that compute, with the function that they stand in."""
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            inner = f"{function}.{node.name}" if function else node.name
            for part in [*node.body, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
                yield from _computing(part, inner)
            return
        case ast.AnnAssign():
            if node.value is not None:
                yield from _computing(node.value, function)
            return
        case ast.Subscript():  # which entry is read is structure; what is computed in the index still counts
            yield from _computing(node.value, function)
            return
        case ast.Call(keywords=keywords):
            yield function, node
            for part in [*node.args, *(word.value for word in keywords if word.arg not in ("axis", "stacklevel"))]:
                yield from _computing(part, function)
            return
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Constant():
            yield function, node
    for child in ast.iter_child_nodes(node):
        yield from _computing(child, function)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int(number)):
            yield ast.Constant(number + 1)
            if number > 0:
                yield ast.Constant(number - 1)
        case ast.Constant(value=float(number)) if number != 0.0:
            yield ast.Constant(2.0 * number)
            yield ast.Constant(number / 2.0)
        case ast.BinOp(left=left, op=op, right=right):
            if isinstance(left, ast.Constant) and isinstance(left.value, str):
                return
            if type(op) in SWAPPED:
                changed = copy.copy(node)
                changed.op = SWAPPED[type(op)]()  # type: ignore[assignment]
                yield changed
            if not isinstance(op, ast.BitOr):
                yield left
                yield right
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield operand
        case ast.Compare(ops=[op], comparators=[_]) if type(op) in SWAPPED:
            flipped = copy.copy(node)
            flipped.ops = [SWAPPED[type(op)]()]  # type: ignore[list-item]
            yield flipped
        case ast.Call(func=func, args=[first, *_]):
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if name in SWAPPED_CALLS:
                other = copy.deepcopy(node)
                if isinstance(other.func, ast.Attribute):
                    other.func.attr = SWAPPED_CALLS[name]
                elif isinstance(other.func, ast.Name):
                    other.func.id = SWAPPED_CALLS[name]
                yield other
            elif name in DROPPED_CALLS:
                yield first
