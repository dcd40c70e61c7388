"""The same divergence written in different but equivalent ways, compared on one problem.

The ways differ in cones, size, time and accuracy.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify import Case, Formulations, case_of_block, compare_formulations
from cvxpriv.certify.references import accurate_answer
from cvxpriv.divergences import forms
from cvxpriv.divergences.definition import DCPForm, FDivergence
from cvxpriv.divergences.registry import divergence
from cvxpriv.divergences.term import DivergenceTerm
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import is_whole
from cvxpriv.numerics.arrays import Array, Values

TANGENTS = "adaptive tangents"
"""The name of the way that every convex f has: a linear program whose cuts are placed at its solution."""
Form = tuple[cp.Expression, list[cp.Constraint]]
Cell = Callable[[cp.Expression, cp.Expression], cp.Expression]


def ways_of(f: FDivergence) -> dict[str, DCPForm]:
    """Return the known DCP forms of a divergence, by the name of their cones or atoms.

    >>> from cvxpriv.divergences import divergence
    >>> list(ways_of(divergence("neyman")))
    ['second-order cones', 'one quad_over_lin a cell', 'power cones', 'perspective of a square']
    """
    family, _, number = f.name.partition(":")
    if family in _FAMILIES and number:
        return _FAMILIES[family](float(number))
    known = _WAYS.get(f.name, {})
    return dict(known) if known or f.expression is None else {"own expression": f.expression}


def perspectives(of: Callable[[cp.Variable], cp.Expression]) -> DCPForm:
    """Return cvxpy's perspective of f, cell by cell; it takes a scalar variable that is declared nonnegative."""

    def form(p: cp.Expression, q: cp.Expression) -> Form:
        cells = int(p.size)
        scale = [cp.Variable(nonneg=True) for _ in range(cells)]
        argument = [cp.Variable() for _ in range(cells)]
        terms = [cp.perspective(of(x), s) for x, s in zip(argument, scale, strict=True)]
        return sum(terms[1:], terms[0]), [cp.hstack(scale) == forms.flat(p), cp.hstack(argument) == forms.flat(q)]

    return form


def cell_by_cell(term: Cell) -> DCPForm:
    """Return the sum of one scalar atom for each cell."""

    def form(p: cp.Expression, q: cp.Expression) -> Form:
        p, q = forms.flat(p), forms.flat(q)
        return cp.sum(cp.hstack([term(p[i], q[i]) for i in range(int(p.size))])), []

    return form


#: z >= p log(p/q), exponential cones written out.
relative_entropy_by_cones = forms.with_variable(forms.itself, lambda p, q, z: cp.ExpCone(-z, p, q))
#: g <= p^1/2 q^1/2.
hellinger_by_power_cones = forms.with_variable(forms.mean_difference, lambda p, q, g: cp.PowCone3D(p, q, g, 0.5))


def jensen_shannon_by_cones(p: cp.Expression, q: cp.Expression) -> Form:
    """z >= p log(2p/(p+q)) and w >= q log(2q/(p+q)), exponential cones written out."""
    (to_p, cones_p), (to_q, cones_q) = (relative_entropy_by_cones(one, (p + q) / 2.0) for one in (p, q))
    return to_p + to_q, [*cones_p, *cones_q]


def by_two_inequalities(weight: float, *sides: tuple[float, float]) -> DCPForm:
    """Return weight times the sum of the largest a p + b q, a linear program written out."""
    return forms.with_variable(lambda p, q, z: weight * z, lambda p, q, z: [z >= a * p + b * q for a, b in sides])


def _squares(
    weight_p: float, weight_q: float, of: Callable[[cp.Variable], cp.Expression], shown: str
) -> dict[str, DCPForm]:
    return {
        "second-order cones": forms.squares_over(weight_p, weight_q),
        "one quad_over_lin a cell": cell_by_cell(lambda p, q: cp.quad_over_lin(p - q, weight_p * p + weight_q * q)),
        "power cones": forms.with_variable(
            forms.itself, lambda p, q, z: cp.PowCone3D(z, weight_p * p + weight_q * q, p - q, 0.5)
        ),
        f"perspective of {shown}": perspectives(of),
    }


def _alpha(a: float) -> dict[str, DCPForm]:
    scale = 1.0 / (a * (a - 1.0))
    ways: dict[str, DCPForm] = {"power cones": forms.power(a)}
    if 0.0 < a < 1.0:
        ways["one geo_mean a cell"] = cell_by_cell(
            lambda p, q: scale * (cp.geo_mean(cp.hstack([p, q]), [a, 1 - a]) - p)
        )
    ways["perspective of a power"] = perspectives(lambda x: scale * (cp.power(x, 1.0 - a) - 1.0))
    return ways


def _hockey_stick(gamma: float) -> dict[str, DCPForm]:
    return {
        "positive part": forms.hinge(gamma),
        "half of |.| and a line": forms.summed(lambda p, q: (cp.abs(p - gamma * q) + p - gamma * q) / 2.0),
        "inequalities": by_two_inequalities(1.0, (1.0, -gamma), (0.0, 0.0)),
        "perspective of a positive part": perspectives(lambda x: cp.pos(1.0 - gamma * x)),
    }


_FAMILIES: dict[str, Callable[[float], dict[str, DCPForm]]] = {"alpha": _alpha, "hockey-stick": _hockey_stick}

_WAYS: dict[str, dict[str, DCPForm]] = {
    "mutual-information": {
        "rel_entr": forms.relative_entropy,
        "kl_div and a line": forms.summed(lambda p, q: cp.kl_div(p, q) + p - q),
        "exponential cones": relative_entropy_by_cones,
        "perspective of -log": perspectives(lambda x: -cp.log(x)),
    },
    "reverse-kl": {
        "rel_entr": forms.reverse_relative_entropy,
        "kl_div and a line": forms.summed(lambda p, q: cp.kl_div(q, p) + q - p),
        "exponential cones": lambda p, q: relative_entropy_by_cones(q, p),
        "perspective of -entr": perspectives(lambda x: -cp.entr(x)),
    },
    "jensen-shannon": {
        "rel_entr to the midpoint": forms.jensen_shannon,
        "kl_div to the midpoint": forms.summed(lambda p, q: cp.kl_div(p, (p + q) / 2.0) + cp.kl_div(q, (p + q) / 2.0)),
        "rel_entr of doubles": forms.summed(
            lambda p, q: (cp.rel_entr(2.0 * p, p + q) + cp.rel_entr(2.0 * q, p + q)) / 2.0
        ),
        "exponential cones": jensen_shannon_by_cones,
        "perspective of rel_entr": perspectives(
            lambda x: cp.rel_entr(x, (x + 1.0) / 2.0) + cp.rel_entr(1.0, (x + 1.0) / 2.0)
        ),
    },
    "le-cam": {
        **_squares(2.0, 2.0, lambda x: cp.quad_over_lin(1.0 - x, 2.0 * x + 2.0), "quad_over_lin"),
        "one harmonic mean a cell": cell_by_cell(lambda p, q: (p + q) / 2.0 - cp.harmonic_mean(cp.hstack([p, q]))),
    },
    "hellinger": {
        "second-order cones": forms.squared_hellinger,
        "one geo_mean a cell": cell_by_cell(lambda p, q: p + q - 2.0 * cp.geo_mean(cp.hstack([p, q]))),
        "power cones": hellinger_by_power_cones,
        "perspective of -sqrt": perspectives(lambda x: 1.0 + x - 2.0 * cp.sqrt(x)),
    },
    "chi-square": {
        **_squares(0.0, 1.0, lambda x: x - 2.0 + cp.inv_pos(x), "inv_pos"),
        "p^2/q and a line": cell_by_cell(lambda p, q: cp.quad_over_lin(p, q) - 2.0 * p + q),
    },
    "neyman": _squares(1.0, 0.0, lambda x: cp.square(1.0 - x), "a square"),
    "total-variation": {
        "abs": forms.absolute_difference,
        "positive part and a line": forms.summed(lambda p, q: cp.pos(p - q) - (p - q) / 2.0),
        "inequalities": by_two_inequalities(0.5, (1.0, -1.0), (-1.0, 1.0)),
        "perspective of abs": perspectives(lambda x: cp.abs(1.0 - x) / 2.0),
    },
}


MEANS, FLOOR, CAP = (0.3, 0.6), 1e-3, 1.8
LARGEST = 100
"""Largest number of points: with more, cvxpy's `perspective` takes seconds to compile."""
PROBLEM = (
    "the smallest D(p, q) between a distribution p with mean 0.3 and a distribution q with mean 0.6 on N points "
    "from 0 to 1, each probability from 0.001 to 1.8/N"
)
"""The problem on which the ways are compared: p and q both move, as in the joint block of IAS (10). The means are not
mirror images of each other, so that D(p, q) and D(q, p) differ."""


def formulations(
    target: FDivergence | str, size: int = 6, solvers: Sequence[str] | None = None, tolerance: float | None = None
) -> Formulations:
    """Write a divergence in every known way, and compare them on `PROBLEM`.

    Parameters
    ----------
    target : FDivergence or str
        The divergence. One without known ways is written by its own `expression`, if it has one, and by tangents.
    size : int
        Number N of points, 3 to `LARGEST`.
    solvers : sequence of str, optional
        Names of solvers. None is every installed one that takes a way's cones.
    tolerance : float, optional
        Tolerance requested of every solver. None is each solver's own.

    Raises
    ------
    ModelError
        Unknown name or solver, or a size that is out of range.

    Examples
    --------
    >>> found = formulations("total-variation", 3, ["CLARABEL"])
    >>> set(found.table["verdict"])
    {'agrees'}
    """
    f = divergence(target)
    if not is_whole(size, 3) or size > LARGEST:
        raise ModelError(f"size={size!r}: give a whole number from 3 to {LARGEST}")
    ways = {name: replace(f, expression=form, auxiliary=None) for name, form in ways_of(f).items()}
    written = {**ways, TANGENTS: replace(f, expression=None, auxiliary=None)}
    cases = {name: _case(name, way, int(size)) for name, way in written.items()}
    if not ways:
        return compare_formulations(cases, solvers, tolerance=tolerance)
    # Tangents have the smallest residuals of all, and a value that is their gap off: they are no reference.
    first = next(iter(ways))
    best, how = accurate_answer(cases[first])
    found = compare_formulations(cases, solvers, reference=best.objective, tolerance=tolerance)
    asked = f"{best.solver} at {best.asked:.0e}"
    return replace(found, why=f"{first} by {asked}, {how} (exact residual {best.quality:.1e})")


def pair_block(f: FDivergence, size: int) -> Block:
    """Return `PROBLEM` as a block, with the DCP form that f has; f without one gets adaptive tangents."""
    term = DivergenceTerm(f, (size,))
    points = np.linspace(0.0, 1.0, size)

    def declare(_: object) -> Declaration:
        p, q = cp.Variable(size, name="p"), cp.Variable(size, name="q")
        form = term.declare(p, q)
        constraints: dict[str, cp.Constraint] = {}
        for name, one, mean in (("p", p, MEANS[0]), ("q", q, MEANS[1])):
            constraints[f"sum {name}"], constraints[f"mean {name}"] = cp.sum(one) == 1.0, points @ one == mean
            constraints[f"floor {name}"], constraints[f"cap {name}"] = one >= FLOOR, one <= CAP / size
        return Declaration(
            cp.Minimize(form.expression),
            {**constraints, **form.constraints},
            {"p": p, "q": q, **form.variables},
            form.parameters,
        )

    def complete(values: Values, _: Values) -> dict[str, Array]:
        p, q = np.maximum(values["p"], FLOOR), np.maximum(values["q"], FLOOR)
        return {"p": p, "q": q, **term.values(p, q)}

    return Block(
        name=f.name,
        reads=frozenset({"p", "q"}),
        writes=frozenset({"p", "q"}),
        declare=declare,
        parameters=term.parameters,
        embed=complete,
        write=lambda solution, _: {"p": solution.values["p"], "q": solution.values["q"]},
        repair=complete,
        refinement=term.refinement(lambda values, _: (values["p"], values["q"])),
    )


def _case(name: str, f: FDivergence, size: int) -> Case:
    uniform = np.full(size, 1.0 / size)
    case = case_of_block(pair_block(f, size), {"p": uniform, "q": uniform})
    # A form's own variables are as the solver left them; only under cuts do true values take their place.
    return replace(case, name=name, repair=case.repair if f.expression is None else None)
