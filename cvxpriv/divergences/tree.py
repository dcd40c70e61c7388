"""The tree of f: sums, products of powers, and calls of exp, log, abs, max, min, over t and exact numbers.

Trees are built by `add`, `multiply`, `power` and `call`, which keep one spelling of equal things: like terms are one
term, equal bases one power, and 2 (t + 1) the same as 2 t + 2. Nothing is expanded that was typed as a product.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial


@dataclass(frozen=True, eq=False)
class Node:
    """A part of f. Its hash is computed once: trees are looked up at every evaluation."""

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Node)
            and type(self) is type(other)
            and hash(self) == hash(other)
            and self.__getstate__() == other.__getstate__()
        )

    def __hash__(self) -> int:
        held = self.__dict__.get("hash")
        if held is None:
            held = hash((type(self), *self.__dict__.values()))
            self.__dict__["hash"] = held
        return int(held)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "hash"}  # another process hashes anew


@dataclass(frozen=True, eq=False)
class Number(Node):
    """An exact rational number."""

    value: Fraction


@dataclass(frozen=True, eq=False)
class Leaf(Node):
    """The variable t, or pi."""

    name: str


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """sum coefficient * node; the node of a constant is `ONE`. One term with a coefficient is a sum, too."""

    terms: tuple[tuple[Node, Fraction], ...]


@dataclass(frozen=True, eq=False)
class Product(Node):
    """prod base ** exponent; an exponent is a node without t."""

    factors: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, eq=False)
class Call(Node):
    """exp, log, abs, max or min of arguments."""

    name: str
    arguments: tuple[Node, ...]


T, PI = Leaf("t"), Leaf("pi")
ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def number(value: float | Fraction) -> Number:
    """Return a number as a node; a float stands for its shortest decimal, 0.1 for 1/10."""
    return Number(Fraction(repr(value)) if isinstance(value, float) else Fraction(value))


def linear(node: Node) -> dict[Node, Fraction]:
    """Return a node as terms with rational coefficients."""
    if isinstance(node, Number):
        return {ONE: node.value} if node.value else {}
    return dict(node.terms) if isinstance(node, Sum) else {node: Fraction(1)}


def add(*nodes: Node) -> Node:
    """Return the sum, with like terms taken together."""
    total: dict[Node, Fraction] = {}
    for node in nodes:
        for term, factor in linear(node).items():
            total[term] = total.get(term, Fraction(0)) + factor
    return _of_terms(total)


def scaled(factor: Fraction | int, node: Node) -> Node:
    """Return a rational multiple of a node."""
    return _of_terms({term: factor * one for term, one in linear(node).items()})


def multiply(*nodes: Node) -> Node:
    """Return the product, with powers of equal bases taken together."""
    coefficient, factors = Fraction(1), dict[Node, Node]()
    for node in nodes:
        one, parts = _factors(node)
        coefficient *= one
        for base, exponent in parts:
            factors[base] = add(factors[base], exponent) if base in factors else exponent
    if not coefficient:
        return ZERO
    folded = [(base, exponent) for base, exponent in factors.items() if exponent != ZERO]
    for base, exponent in tuple(folded):
        if isinstance(base, Number) and isinstance(exponent, Number) and exponent.value.denominator == 1:
            coefficient *= base.value**exponent.value.numerator
            folded.remove((base, exponent))
    if len(folded) == 1 and folded[0][1] == ONE:
        return scaled(coefficient, folded[0][0])
    return scaled(coefficient, Product(tuple(sorted(folded, key=repr)))) if folded else Number(coefficient)


def power(base: Node, exponent: Node) -> Node:
    """Return base ** exponent; an exponent with t makes it exp(exponent log base)."""
    if exponent == ONE:
        return base
    if not constant(exponent):
        return call("exp", multiply(exponent, call("log", base)))
    coefficient, parts = _factors(base)
    whole = isinstance(exponent, Number) and exponent.value.denominator == 1
    even = _even(exponent)
    if (coefficient < 0 and not whole) or not coefficient:
        return Product(((base, exponent),))
    made = [_raised(Number(abs(coefficient)), exponent)]
    for inner, old in parts:
        if isinstance(inner, Sum) and even and inner.terms[0][1] < 0 and old == ONE:
            inner = scaled(-1, inner)
        if whole or positive(inner):
            made.append(_raised(inner, multiply(old, exponent)))
        elif _even(old):
            made.append(_raised(call("abs", inner), multiply(old, exponent)))
        elif nonnegative(inner) and nonnegative(exponent):
            made.append(_raised(inner, multiply(old, exponent)))
        else:
            made.append(Product(((power(inner, old), exponent),)))
    return scaled(-1 if coefficient < 0 and not even else 1, multiply(*made))


def _even(exponent: Node) -> bool:
    return isinstance(exponent, Number) and exponent.value % 2 == 0


def call(name: str, *arguments: Node) -> Node:
    """Return exp, log, abs, max or min of nodes."""
    return _CALLS[name](*arguments)


@lru_cache(maxsize=4096)
def constant(node: Node) -> bool:
    """Return whether a node holds no t."""
    return T not in walk(node)


def walk(node: Node) -> Iterator[Node]:
    """Yield every part of a node, itself first."""
    yield node
    for child in _children(node):
        yield from walk(child)


def with_nodes(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return a node with parts replaced, outer parts first; where the function returns None it descends."""
    new = change(node)
    if new is not None:
        return new
    if isinstance(node, Sum):
        return add(*(scaled(factor, with_nodes(term, change)) for term, factor in node.terms))
    if isinstance(node, Product):
        return multiply(*(power(with_nodes(base, change), exponent) for base, exponent in node.factors))
    if isinstance(node, Call):
        return call(node.name, *(with_nodes(one, change) for one in node.arguments))
    return node


def positive(node: Node) -> bool:
    """Return whether the form of a node shows that it is > 0 for every t > 0."""
    return _signed(node, True)


def nonnegative(node: Node) -> bool:
    """Return whether the form of a node shows that it is >= 0 for every t > 0."""
    return _signed(node, False)


@lru_cache(maxsize=8192)
def _signed(node: Node, strictly: bool) -> bool:
    if isinstance(node, Number):
        return node.value > 0 or (not strictly and node.value == 0)
    if isinstance(node, Leaf):
        return True
    if isinstance(node, Sum):
        rest = all(factor > 0 and nonnegative(term) for term, factor in node.terms)
        return rest and (not strictly or any(positive(term) for term, _ in node.terms))
    if isinstance(node, Product):
        return all(
            positive(base) or (not strictly and (_even(exponent) or (nonnegative(base) and nonnegative(exponent))))
            for base, exponent in node.factors
        )
    assert isinstance(node, Call)
    if node.name == "exp":
        return True
    if node.name == "log":
        return _signed(add(node.arguments[0], Number(Fraction(-1))), strictly)
    if node.name == "abs":
        return not strictly
    return (any if node.name == "max" else all)(_signed(one, strictly) for one in node.arguments)


def _children(node: Node) -> Iterable[Node]:
    if isinstance(node, Sum):
        return (term for term, _ in node.terms)
    if isinstance(node, Product):
        return (one for pair in node.factors for one in pair)
    return node.arguments if isinstance(node, Call) else ()


def _of_terms(terms: dict[Node, Fraction]) -> Node:
    kept = {term: factor for term, factor in terms.items() if factor}
    if not kept:
        return ZERO
    if len(kept) == 1:
        ((term, factor),) = kept.items()
        if term == ONE or factor == 1:
            return Number(factor) if term == ONE else term
    return Sum(tuple(sorted(kept.items(), key=repr)))


def _factors(node: Node) -> tuple[Fraction, tuple[tuple[Node, Node], ...]]:
    """Return a node as a rational number times powers; the first coefficient of a sum stands outside."""
    if isinstance(node, Number):
        return node.value, ()
    if isinstance(node, Sum):
        size = abs(node.terms[0][1])
        inner = scaled(1 / size, node)
        if isinstance(inner, Sum) and len(inner.terms) == 1:
            size, inner = -size, scaled(-1, inner)
        return size, (inner.factors if isinstance(inner, Product) else ((inner, ONE),))
    return Fraction(1), (node.factors if isinstance(node, Product) else ((node, ONE),))


def _raised(base: Node, exponent: Node) -> Node:
    if exponent == ZERO or base == ONE:
        return ONE
    if exponent == ONE:
        return base
    if isinstance(base, Number) and isinstance(exponent, Number):
        value, root = base.value, exponent.value.denominator
        if root > 1 and value > 0:
            tops = [round(part ** (1.0 / root)) for part in (value.numerator, value.denominator)]
            if tops[0] ** root == value.numerator and tops[1] ** root == value.denominator:
                base, exponent = Number(Fraction(*tops)), Number(exponent.value * root)
        if exponent.value.denominator == 1:
            return Number(base.value**exponent.value.numerator)
    if isinstance(base, Call) and base.name == "exp":
        return call("exp", multiply(base.arguments[0], exponent))
    bare = base.arguments[0] if _even(exponent) and isinstance(base, Call) and base.name == "abs" else base
    return Product(((bare, exponent),))


def _exp(argument: Node) -> Node:
    """exp(a + c log x) is x**c exp(a)."""
    logs = {one: c for one, c in linear(argument).items() if isinstance(one, Call) and one.name == "log"}
    rest = add(argument, *(scaled(-c, one) for one, c in logs.items()))
    powers = [power(one.arguments[0], Number(c)) for one, c in logs.items() if isinstance(one, Call)]
    return multiply(*powers, *([] if rest == ZERO else [Call("exp", (rest,))])) if powers or rest != ZERO else ONE


def _log(argument: Node) -> Node:
    if isinstance(argument, Call) and argument.name == "exp":
        return argument.arguments[0]
    if isinstance(argument, Product) and len(argument.factors) == 1:
        ((base, exponent),) = argument.factors
        if positive(base):
            return multiply(exponent, _log(base))
    return ZERO if argument == ONE else Call("log", (argument,))


def _abs(argument: Node) -> Node:
    if nonnegative(argument):
        return argument
    coefficient, parts = _factors(argument)
    inner = multiply(*(power(base, exponent) for base, exponent in parts))
    if isinstance(inner, Sum) and inner.terms[0][1] < 0:
        inner = scaled(-1, inner)
    return scaled(abs(coefficient), inner if nonnegative(inner) else Call("abs", (inner,)))


def _extreme(name: str, *arguments: Node) -> Node:
    parts: list[Node] = []
    for one in arguments:
        inner = one.arguments if isinstance(one, Call) and one.name == name else (one,)
        parts += [part for part in inner if part not in parts]
    if len(parts) == 2 and add(*parts) == ZERO:
        return scaled(1 if name == "max" else -1, call("abs", parts[0]))
    numbers = [part.value for part in parts if isinstance(part, Number)]
    if len(numbers) > 1:
        least = max(numbers) if name == "max" else min(numbers)
        parts = [part for part in parts if not isinstance(part, Number)] + [Number(least)]
    others = [part for part in parts if not isinstance(part, Number)]
    if name == "max" and numbers and max(numbers) <= 0 and any(map(nonnegative, others)):
        parts = others
    return parts[0] if len(parts) == 1 else Call(name, tuple(sorted(parts, key=repr)))


_CALLS: dict[str, Callable[..., Node]] = {
    "exp": _exp,
    "log": _log,
    "abs": _abs,
    "max": partial(_extreme, "max"),
    "min": partial(_extreme, "min"),
}
