"""A parser from one line of text to a tree in t > 0, by a whitelist: the text is never executed.

`ast` reads the text, a whitelist decides, and the tree is built node by node. Limits on length, numbers and powers
keep a hostile line from costing time or memory.
"""

import ast
import re
from dataclasses import dataclass
from fractions import Fraction

import mpmath

from cvxpriv.divergences.jets import constant_value
from cvxpriv.divergences.tree import (
    ONE,
    PI,
    ZERO,
    Call,
    Node,
    Number,
    Product,
    Sum,
    T,
    add,
    call,
    constant,
    multiply,
    number,
    power,
    scaled,
    walk,
)
from cvxpriv.errors import ModelError, suggest

LENGTH, NODES, DEPTH = 2000, 1000, 40
#: Largest number as written, and the most bits of a numerator or denominator that it may become.
LARGEST, BITS = 1e9, 256
#: Largest power, up or down, as written and as a degree of the whole; and the largest degree within an exponential.
POWER, POWER_WITHIN = 64, 8
#: Least distance of a power of t from a whole number: the limit of t^0.0001 shows too late.
NEAR = Fraction(1, 1000)
TOO_LONG = f"a number that takes more than {BITS} bits"

CONSTANTS = {"t": T, "pi": PI, "e": call("exp", ONE)}

#: Each function with the least and the largest number of its arguments.
FUNCTIONS = {"log": (1, 1), "exp": (1, 1), "sqrt": (1, 1), "abs": (1, 1), "pos": (1, 1), "max": (2, 8), "min": (2, 8)}
#: Other spellings of functions that have another name here.
OTHER_NAMES = {
    "ln": "log",
    "log1p": "log(1 + x)",
    "log2": "log(x)/log(2)",
    "log10": "log(x)/log(10)",
    "expm1": "exp(x) - 1",
    "huber": "x**2 - pos(abs(x) - 1)**2",
    "inv_pos": "1/x",
    "kl_div": "x*log(x/y) - x + y",
    "rel_entr": "x*log(x/y)",
    "entr": "-x*log(x)",
    "xlogy": "x*log(y)",
    "quad_over_lin": "x**2/y",
    "log_sum_exp": "log(exp(x) + exp(y))",
    "logaddexp": "log(exp(x) + exp(y))",
    "square": "x**2",
    "power": "x**a",
    "pow": "x**a",
    "maximum": "max",
    "minimum": "min",
    "relu": "pos",
    "where": "max(a, b) of the branches a convex f is made of, or pos",
    "softplus": "log(1 + exp(x))",
    "logistic": "log(1 + exp(x))",
    "cosh": "(exp(x) + exp(-x))/2",
    "sinh": "(exp(x) - exp(-x))/2",
    "norm": "abs",
    "Abs": "abs",
}


@dataclass(frozen=True)
class Line:
    """The parsed content of a line of text.

    `denominators`: The denominators, and the bases of negative powers, as typed.
    """

    f: Node
    denominators: tuple[Node, ...]


def line_of(text: str) -> Line:
    """Return the tree in `T` that a line of text stands for.

    The text may hold t, pi, e, numbers, + - * / **, parentheses, and the functions log, exp, sqrt, abs, pos, max, min.

    >>> line_of("t + t").f == line_of("2*t").f
    True
    """
    if not isinstance(text, str) or not text.strip():
        raise ModelError(f"f={text!r} is no formula: write f as text in t, for example 't*log(t)'")
    if strange := next((one for one in text if not one.isascii()), ""):
        raise ModelError(f"f={_short(text)} holds {strange!r}, U+{ord(strange):04X}: write it in plain ASCII")
    if "#" in text:
        raise ModelError(f"f={_short(text)} holds a comment: leave out '#' and what follows")
    if len(text) > LENGTH:
        raise ModelError(f"f has {len(text)} characters: at most {LENGTH} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or type(error).__name__
        raise ModelError(
            f"f={_short(text)} cannot be read ({reason}): write it as in Python, with ** for powers, "
            "* for products and abs(t) for |t|"
        ) from None
    if sum(1 for _ in ast.walk(tree)) > 3 * NODES:  # an operator and a name's context are nodes of their own
        raise ModelError(f"f={_short(text)} has too many parts: at most about {NODES} are read")
    builder = _Builder(text)
    built = builder.build(tree, 0)
    return Line(built, tuple(dict.fromkeys(builder.denominators)))


class _Builder:
    """Builds trees from whitelisted nodes of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.denominators: list[Node] = []

    def build(self, node: ast.AST, depth: int) -> Node:
        if depth > DEPTH:
            raise self.refused(node, f"nested deeper than {DEPTH}")
        if isinstance(node, ast.Constant):
            return self.number(node)
        if isinstance(node, ast.Name):
            if node.id in CONSTANTS:
                return CONSTANTS[node.id]
            if node.id in FUNCTIONS:
                raise self.refused(node, f"a function without an argument: write {node.id}(...)")
            raise self.refused(node, f"unknown name; {suggest(node.id, [*CONSTANTS, *FUNCTIONS])}")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
            inner = self.build(node.operand, depth + 1)
            return scaled(-1, inner) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            return self.chain(node, depth)
        if isinstance(node, ast.Call):
            return self.small(node, self.call(node, depth))
        raise self.refused(node, "only numbers, t, pi, e, + - * / **, and functions may stand here")

    def chain(self, node: ast.BinOp, depth: int) -> Node:
        """Read a + b + c + ... as one sum, and a * b * c as one product: a chain is not nesting."""
        links = [node]
        while isinstance(links[-1].left, ast.BinOp) and _kin(links[-1], links[-1].left):
            links.append(links[-1].left)
        result = self.build(links[-1].left, depth + 1)
        for link in reversed(links):
            result = self.small(link, self.operation(link, result, self.build(link.right, depth + 1)))
        return result

    def number(self, node: ast.Constant) -> Node:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise self.refused(node, f"not a real number of at most {LARGEST:g}")
        if not value and re.search(
            "[1-9]", (ast.get_source_segment(self.text.strip(), node) or "").lower().split("e")[0]
        ):
            raise self.refused(node, "a number that doubles round to 0")
        return self.small(node, number(value))  # 0.1 is meant as 1/10

    def operation(self, node: ast.BinOp, left: Node, right: Node) -> Node:
        if isinstance(node.op, ast.Add | ast.Sub):
            return add(left, scaled(-1, right) if isinstance(node.op, ast.Sub) else right)
        if isinstance(node.op, ast.Mult):
            return multiply(left, right)
        if isinstance(node.op, ast.Div):
            if right == ZERO or (constant(right) and constant_value(right) == 0):
                raise self.refused(node, "division by zero")
            self.denominators.append(right)
            return multiply(left, power(right, number(-1)))
        if isinstance(node.op, ast.Pow):
            return self.power(node, left, right)
        if isinstance(node.op, ast.BitXor):
            raise self.refused(node, "^ is no power in Python: write ** for it, t**2 for the square of t")
        raise self.refused(node, "only + - * / and ** are operators")

    def power(self, node: ast.BinOp, base: Node, exponent: Node) -> Node:
        if constant(exponent):
            size = constant_value(exponent)
            if not mpmath.isfinite(size):
                raise self.refused(node, "a power that is no real number")
            if constant(base) and _bits(base) * abs(size) > BITS:
                raise self.refused(node, TOO_LONG)
            if constant(base) and constant_value(base) == 0 and size <= 0:
                raise self.refused(node, "division by zero")
            whole = isinstance(exponent, Number) and exponent.value.denominator == 1
            if not whole and abs(size - mpmath.nint(size)) < float(NEAR):
                raise self.refused(node, f"a power within {float(NEAR):g} of a whole number, which it is not")
            if abs(size) > POWER:
                raise self.refused(node, f"a power beyond {POWER}")
            if size < 0:
                self.denominators.append(base)
        else:
            self.one_exponential(node, exponent)
        return power(base, exponent)

    def call(self, node: ast.Call, depth: int) -> Node:
        factor = isinstance(node.func, ast.Name) and node.func.id in CONSTANTS
        if factor or isinstance(node.func, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call)):
            raise self.refused(node, "two factors without a sign between them: write * for products")
        if node.keywords:
            raise self.refused(node, "arguments have no names: leave out what stands before =")
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            name = ast.unparse(node.func)
            other = OTHER_NAMES.get(name.rpartition(".")[2], "")
            other = other and f"write {other}; "
            raise self.refused(node, f"no such function; {other}{suggest(name, FUNCTIONS)}")
        name, (least, most) = node.func.id, FUNCTIONS[node.func.id]
        if not least <= len(node.args) <= most:
            takes = "1 argument" if most == 1 else f"{least} to {most} arguments"
            raise self.refused(node, f"{name} takes {takes}")
        arguments = [self.build(one, depth + 1) for one in node.args]
        if name == "exp":
            if constant(arguments[0]) and not -1e3 * LARGEST <= constant_value(arguments[0]) <= POWER:
                raise self.refused(node, f"exp of a number beyond {POWER}")
            self.one_exponential(node, arguments[0])
        if name == "sqrt":
            return power(arguments[0], number(Fraction(1, 2)))
        if name == "pos":
            return call("max", arguments[0], ZERO)
        return call(name, *arguments)

    def one_exponential(self, node: ast.AST, exponent: Node) -> None:
        """Refuse a tower of exponentials: its values exceed any memory."""
        if any(isinstance(one, Call) and one.name == "exp" and not constant(one) for one in walk(exponent)):
            raise self.refused(node, "an exponential within an exponential")
        if _degree(exponent) > POWER_WITHIN:
            raise self.refused(node, f"a power beyond {POWER_WITHIN} within an exponential")

    def small(self, node: ast.AST, value: Node) -> Node:
        if _bits(value) > BITS:
            raise self.refused(node, TOO_LONG)
        if _degree(value) > POWER:
            raise self.refused(node, f"a power beyond {POWER}")
        if constant(value) and not mpmath.isfinite(constant_value(value)):
            raise self.refused(node, "not a real number; it must be a real number for every t > 0")
        return value

    def refused(self, node: ast.AST, why: str) -> ModelError:
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        return ModelError(f"f={_short(self.text)} is refused at {_short(part)}: {why}")


def _kin(outer: ast.BinOp, inner: ast.BinOp) -> bool:
    sums, products = ast.Add | ast.Sub, ast.Mult | ast.Div
    return any(isinstance(outer.op, kind) and isinstance(inner.op, kind) for kind in (sums, products))


def _bits(node: Node) -> int:
    """Return the bits of the longest number in a node, at least 2."""
    numbers = [one.value for one in walk(node) if isinstance(one, Number)]
    numbers += [factor for one in walk(node) if isinstance(one, Sum) for _, factor in one.terms]
    return max((max(one.numerator.bit_length(), one.denominator.bit_length()) for one in numbers), default=2)


def _degree(node: Node) -> float:
    """Return the growth of a node as a power of t, which bounds the cost of its values."""
    if constant(node):
        return 0.0
    if isinstance(node, Sum):
        return max(_degree(term) for term, _ in node.terms)
    if isinstance(node, Product):
        return sum(_degree(base) * max(1.0, abs(float(constant_value(exponent)))) for base, exponent in node.factors)
    return max(_degree(one) for one in node.arguments) if isinstance(node, Call) else 1.0


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
