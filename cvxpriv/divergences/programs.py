"""Symbolic expressions in t as straight lines of arithmetic: compiled once, run with numpy or with mpmath.

Equal parts are computed once, a quotient is one division and an integer power a few products. Nothing is ever turned
into code: a program is a list of whitelisted operations on numbered places.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import sympy

from cvxpriv.divergences.parsing import T

__all__ = ["MPMATH", "NUMPY", "Arithmetic", "Program", "compiled"]

Operation = Callable[..., Any]
Evaluator = Callable[[Any], tuple[Any, ...]]
#: An operation and the places of its arguments.
Step = tuple[str, tuple[int, ...]]

#: Functions of one argument.
UNARY = {sympy.log: "log", sympy.exp: "exp", sympy.Abs: "abs", sympy.sign: "sign"}
#: Functions that fold over their arguments.
FOLDED = {sympy.Max: "max", sympy.Min: "min", sympy.Heaviside: "heaviside"}


@dataclass(frozen=True)
class Arithmetic:
    """What numbers are, and what each operation does to them.

    Attributes
    ----------
    constant : callable
        A symbolic number to a number.
    operations : mapping of str to callable
    fixed : bool
        Whether a constant is the same at each run; that of mpmath depends on how many digits are asked for.
    """

    constant: Callable[[sympy.Expr], Any]
    operations: Mapping[str, Operation]
    fixed: bool = True


@dataclass(frozen=True)
class Program:
    """Steps that fill places one after the other: first t, then the constants, then each step's result.

    Attributes
    ----------
    constants : tuple of sympy.Expr
    steps : tuple of (str, tuple of int)
    results : tuple of int
        The places of the results.
    """

    constants: tuple[sympy.Expr, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def bound(self, arithmetic: Arithmetic) -> Evaluator:
        """Return the program as a function of t that returns every result."""
        operations = [(arithmetic.operations[name], places) for name, places in self.steps]
        unary = [(one, places[0], places[-1] if len(places) > 1 else -1) for one, places in operations]
        fixed = [arithmetic.constant(one) for one in self.constants] if arithmetic.fixed else None
        constants, constant, results = self.constants, arithmetic.constant, self.results

        def run(t: Any) -> tuple[Any, ...]:
            places = [t, *(fixed if fixed is not None else map(constant, constants))]
            put = places.append
            for operation, first, second in unary:
                put(operation(places[first]) if second < 0 else operation(places[first], places[second]))
            return tuple([places[one] for one in results])

        return run


def compiled(expressions: Sequence[sympy.Expr]) -> Program:
    """Return the program whose results are the values of expressions in `T`.

    Examples
    --------
    >>> program = compiled([T * sympy.log(T), sympy.log(T) + 1])
    >>> [name for name, _ in program.steps]
    ['log', 'multiply', 'add']
    >>> [one.tolist() for one in program.bound(NUMPY)(np.array([1.0, 2.0]))]
    [[0.0, 1.386...], [1.0, 1.693...]]
    """
    writer = _Writer()
    places = [writer.place(one) for one in expressions]
    # Places are given out while constants are still found: these stand below zero until all are known.
    first = 1 + len(writer.constants)

    def final(place: int) -> int:
        return 0 if place == 0 else -place if place < 0 else first + place - 1

    steps = tuple((name, tuple(map(final, inputs))) for name, inputs in writer.steps)
    return Program(tuple(writer.constants), steps, tuple(map(final, places)))


class _Writer:
    """Writes steps; the place of t is 0, that of a constant negative, that of a step positive."""

    def __init__(self) -> None:
        self.constants: dict[sympy.Expr, int] = {}
        self.steps: dict[Step, int] = {}

    def place(self, expression: sympy.Expr) -> int:
        if expression == T:
            return 0
        if expression.is_number:
            return self.constants.setdefault(expression, -1 - len(self.constants))
        if expression.is_Add:
            return self.sum(expression.args)
        if expression.is_Mul:
            return self.product(expression)
        if expression.is_Pow:
            return self.power(expression.base, expression.exp)
        inputs = [self.place(argument) for argument in expression.args]
        if expression.func in UNARY:
            return self.step(UNARY[expression.func], *inputs)
        return self.fold(FOLDED[expression.func], inputs)

    def step(self, name: str, *inputs: int) -> int:
        return self.steps.setdefault((name, inputs), 1 + len(self.steps))

    def fold(self, name: str, inputs: Sequence[int]) -> int:
        result = inputs[0]
        for one in inputs[1:]:
            result = self.step(name, result, one)
        return result

    def sum(self, terms: Sequence[sympy.Expr]) -> int:
        falling = [one for one in terms if one.as_coeff_Mul()[0].is_negative]
        rising = [self.place(one) for one in terms if one not in falling]
        result = self.fold("add", rising) if rising else self.place(falling.pop(0))
        for one in falling:
            result = self.step("subtract", result, self.place(-one))
        return result

    def product(self, expression: sympy.Expr) -> int:
        factor, rest = expression.as_coeff_Mul()
        above, below = _sides(rest)
        size = abs(factor)
        if size.is_Rational:
            above, below = [sympy.Integer(size.p), *above], [sympy.Integer(size.q), *below]
        else:
            above = [size, *above]
        over, under = ([self.place(one) for one in side if one != 1] for side in (above, below))
        result = self.fold("multiply", over or [self.place(sympy.S.One)])
        result = self.step("divide", result, self.fold("multiply", under)) if under else result
        return self.step("negative", result) if factor.is_negative else result

    def power(self, base: sympy.Expr, exponent: sympy.Expr) -> int:
        if exponent.is_number and exponent.is_negative:
            return self.step("divide", self.place(sympy.S.One), self.place(base**-exponent))
        if exponent.is_Integer:
            return self.whole_power(self.place(base), int(exponent))
        if exponent.is_Rational and exponent.q == 2:
            root = self.step("sqrt", self.place(base))
            whole = int(exponent.p) // 2
            return self.step("multiply", self.whole_power(self.place(base), whole), root) if whole else root
        return self.step("power", self.place(base), self.place(exponent))

    def whole_power(self, base: int, exponent: int) -> int:
        if exponent == 1:
            return base
        half = self.whole_power(base, exponent // 2)
        square = self.step("multiply", half, half)
        return self.step("multiply", square, base) if exponent % 2 else square


def _sides(product: sympy.Expr) -> tuple[list[sympy.Expr], list[sympy.Expr]]:
    """The factors of a product above and below its line."""
    above, below = [], []
    for one in sympy.Mul.make_args(product):
        if one.is_Pow and one.exp.is_number and one.exp.is_negative:
            below.append(one.base**-one.exp)
        else:
            above.append(one)
    return above, below


def _exact(number: sympy.Expr) -> Any:
    if number.is_Rational:
        return mpmath.mpf(int(number.p)) / int(number.q)
    return mpmath.mpmathify(number.evalf(mpmath.mp.dps))


PLAIN: dict[str, Operation] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "power": operator.pow,
}
NUMPY = Arithmetic(
    constant=float,
    operations={
        **PLAIN,
        "power": np.power,
        "sqrt": np.sqrt,
        "log": np.log,
        "exp": np.exp,
        "abs": np.abs,
        "sign": np.sign,
        "max": np.maximum,
        "min": np.minimum,
        "heaviside": np.heaviside,
    },
)
MPMATH = Arithmetic(
    constant=_exact,
    operations={
        **PLAIN,
        "sqrt": mpmath.sqrt,
        "log": mpmath.log,
        "exp": mpmath.exp,
        "abs": abs,
        "sign": mpmath.sign,
        "max": max,
        "min": min,
        "heaviside": lambda x, middle: middle if x == 0 else mpmath.mpf(x > 0),
    },
    fixed=False,
)
