"""One line of text to a sympy expression in t > 0, by a whitelist: nothing of the text is ever executed.

sympy's own `sympify` and `parse_expr` run code. Here `ast` reads the text, a whitelist decides, and sympy objects are
built node by node. Limits on length, numbers and powers keep a hostile line from costing time or memory.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

from cvxpriv.errors import ModelError, suggest

__all__ = ["FUNCTIONS", "T", "expression_of"]

T = sympy.Symbol("t", positive=True)

LENGTH, NODES, DEPTH = 500, 200, 40
#: Numbers as written, and the bits of a numerator or denominator that may come of them.
LARGEST, BITS = 1e9, 256
#: The largest power, up or down, as written and as a degree of the whole; the largest degree within an exponential.
POWER, POWER_WITHIN = 64, 8
#: How near a power of t may be to a whole number: t^0.0001 goes its way so late that no limit shows it.
NEAR = 1e-3
TOO_LONG = f"a number that takes more than {BITS} bits"

CONSTANTS = {"t": T, "pi": sympy.pi, "e": sympy.E}

#: Each function with the least and the largest number of its arguments.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "log": (sympy.log, 1, 1),
    "exp": (sympy.exp, 1, 1),
    "sqrt": (sympy.sqrt, 1, 1),
    "abs": (lambda x: sympy.Abs(x) if x.is_extended_real else sympy.Max(x, -x), 1, 1),  # else |x|' is one of atan2
    "pos": (lambda x: sympy.Max(x, 0), 1, 1),
    "max": (sympy.Max, 2, 4),
    "min": (sympy.Min, 2, 4),
}


def expression_of(text: str) -> sympy.Expr:
    """Return the expression in `T` that a line of text stands for.

    The text may hold t, pi, e, numbers, + - * / **, parentheses, and the functions log, exp, sqrt, abs, pos, max, min.

    Raises
    ------
    ModelError
        The text is no such expression, or it is beyond a limit; the message shows the part.

    Examples
    --------
    >>> expression_of("t*log(2*t/(t+1)) + log(2/(t+1))")
    t*log(2*t/(t + 1)) + log(2/(t + 1))
    """
    if not isinstance(text, str) or not text.strip():
        raise ModelError(f"f={text!r} is no formula: write f as text in t, for example 't*log(t)'")
    if strange := next((one for one in text if not one.isascii()), ""):
        raise ModelError(f"f={_short(text)} holds {strange!r}, U+{ord(strange):04X}: write it in plain ASCII")
    if len(text) > LENGTH:
        raise ModelError(f"f has {len(text)} characters: at most {LENGTH} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or type(error).__name__
        raise ModelError(
            f"f={_short(text)} cannot be read ({reason}): write it as in Python, with ** for powers and * for products"
        ) from None
    if sum(1 for _ in ast.walk(tree)) > 3 * NODES:  # an operator and a name's context are nodes of their own
        raise ModelError(f"f={_short(text)} has too many parts: at most about {NODES} are read")
    built = _Builder(text).build(tree, 0)
    if not isinstance(built, sympy.Expr) or built.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.I):
        raise ModelError(f"f={_short(text)} becomes {built}: it must be a real number for every t > 0")
    return built


class _Builder:
    """Builds sympy objects from whitelisted nodes of one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def build(self, node: ast.AST, depth: int) -> Any:
        if depth > DEPTH:
            raise self.refused(node, f"nested deeper than {DEPTH}")
        if isinstance(node, ast.Constant):
            return self.number(node)
        if isinstance(node, ast.Name):
            if node.id in CONSTANTS:
                return CONSTANTS[node.id]
            raise self.refused(node, f"unknown name; {suggest(node.id, [*CONSTANTS, *FUNCTIONS])}")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
            inner = self.build(node.operand, depth + 1)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            return self.small(node, self.operation(node, depth))
        if isinstance(node, ast.Call):
            return self.small(node, self.call(node, depth))
        raise self.refused(node, "only numbers, t, pi, e, + - * / **, and functions may stand here")

    def number(self, node: ast.Constant) -> sympy.Rational:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise self.refused(node, f"not a real number of at most {LARGEST:g}")
        exact = Fraction(repr(value))  # 0.1 is meant as 1/10
        return self.small(node, sympy.Rational(exact.numerator, exact.denominator))

    def operation(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.build(node.left, depth + 1), self.build(node.right, depth + 1)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            if right.is_zero:
                raise self.refused(node, "division by zero")
            return left / right
        if isinstance(node.op, ast.Pow):
            return self.power(node, left, right)
        raise self.refused(node, "only + - * / and ** are operators (^ is not: write **)")

    def power(self, node: ast.BinOp, base: Any, exponent: Any) -> Any:
        if exponent.is_number and not exponent.is_real:
            raise self.refused(node, "a power that is no real number")
        if base.is_number and exponent.is_number:
            self.small(node, base)
            size = max(
                (int(one.p).bit_length() + int(one.q).bit_length() for one in base.atoms(sympy.Rational)), default=2
            )
            if size * abs(float(exponent)) > BITS:
                raise self.refused(node, TOO_LONG)
        if exponent.is_number and not exponent.is_Integer and abs(float(exponent) - round(float(exponent))) < NEAR:
            raise self.refused(node, f"a power within {NEAR:g} of a whole number, which it is not")
        if not exponent.is_number:
            self.one_exponential(node, exponent)
        return base**exponent

    def call(self, node: ast.Call, depth: int) -> Any:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            name = ast.unparse(node.func)
            raise self.refused(node, f"no such function; {suggest(name, FUNCTIONS)}")
        function, least, most = FUNCTIONS[node.func.id]
        if not least <= len(node.args) <= most:
            takes = "1 argument" if most == 1 else f"{least} to {most} arguments"
            raise self.refused(node, f"{node.func.id} takes {takes}")
        arguments = [self.build(one, depth + 1) for one in node.args]
        if node.func.id == "exp":
            if arguments[0].is_number and not (arguments[0].is_real and abs(float(arguments[0])) <= POWER):
                raise self.refused(node, f"exp of a number beyond {POWER}")
            self.one_exponential(node, arguments[0])
        try:
            return function(*arguments)
        except (TypeError, ValueError):  # sympy does not order complex numbers
            raise self.refused(node, "not a real number") from None

    def one_exponential(self, node: ast.AST, exponent: Any) -> None:
        """A tower of exponentials has values that no memory holds."""
        if any(one.exp.has(T) for one in exponent.atoms(sympy.Pow)) or exponent.has(sympy.exp):
            raise self.refused(node, "an exponential within an exponential")
        if _degree(exponent) > POWER_WITHIN:
            raise self.refused(node, f"a power beyond {POWER_WITHIN} within an exponential")

    def small(self, node: ast.AST, value: Any) -> Any:
        for one in value.atoms(sympy.Rational):
            if int(one.p).bit_length() > BITS or int(one.q).bit_length() > BITS:
                raise self.refused(node, TOO_LONG)
        if _degree(value) > POWER:
            raise self.refused(node, f"a power beyond {POWER}")
        return value

    def refused(self, node: ast.AST, why: str) -> ModelError:
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        return ModelError(f"f={_short(self.text)} is refused at {_short(part)}: {why}")


def _degree(expression: Any) -> float:
    """How fast an expression may grow, as a power of t: what it costs to expand it."""
    if expression.is_number:
        return 0.0
    if expression == T:
        return 1.0
    parts = [_degree(argument) for argument in expression.args]
    if expression.is_Pow and expression.exp.is_number:
        return parts[0] * max(1.0, abs(float(expression.exp)))
    return sum(parts) if expression.is_Mul else max(parts)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
