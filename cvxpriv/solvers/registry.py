"""The solver table: cones and tolerance of each solver, and the options that request a tolerance.

Another package adds a row by the entry-point group `cvxpriv.solvers`: the name that cvxpy has for the solver, and a
`SolverSpec`.

A solver keeps options from one solve of a problem to the next (CLARABEL does): every solve passes its full set.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import cvxpy as cp

from cvxpriv.errors import ModelError, shown, suggest
from cvxpriv.numerics.packages import extension, extensions


@dataclass(frozen=True)
class SolverSpec:
    """One row of the solver table.

    `name`: Name in cvxpy's spelling.
    `cones`: Among zero, nonneg, soc, exp, power, psd; `quadratic` when it takes a quadratic objective.
    `tolerance`: Default feasibility and gap: the accuracy that the solver reaches on well-scaled entropy blocks.
    Requesting more than it can do costs its full iteration limit and an `optimal_inaccurate`.
    `options`: Maps a tolerance to the full set of options, which every solve passes.
    `licence`: Licence of the solver itself.
    `note`: A caution for users of the solver.
    `main_option`: The option that sets the accuracy of a solution; empty where no single number does.
    """

    name: str
    cones: frozenset[str]
    tolerance: float
    options: Callable[[float], dict[str, Any]]
    licence: str
    note: str
    main_option: str = ""

    def full_options(self, tolerance: float | None, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole option set: for a tolerance (None is the table's), overridden by a caller's own."""
        return {**self.options(self.tolerance if tolerance is None else tolerance), **own}

    def timed_options(self, tolerance: float | None, seconds: float = 60.0) -> dict[str, Any]:
        """Return the whole option set with a limit on the clock, for a solve that nobody waits for by name.

        ECOS has no clock: 200 iterations are its limit.
        """
        clock = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}.get(self.name)
        return self.full_options(tolerance, {clock: seconds} if clock else {})

    def accuracy(self, tolerance: float | None, options: Mapping[str, Any]) -> float:
        """Return the requested accuracy of a solution, where the full options state it."""
        if self.main_option:
            return float(options[self.main_option])
        return self.tolerance if tolerance is None else tolerance


def _clarabel(tolerance: float) -> dict[str, Any]:
    """Return options for gap, feasibility and certificates to the tolerance.

    `tol_ktratio`, which tells a solution from a certificate, follows when the tolerance is tighter than its default of
    1e-6 allows for.
    """
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_infeas_abs", "tol_infeas_rel")
    return {**dict.fromkeys(names, tolerance), "tol_ktratio": min(1e-6, 100 * tolerance), "max_iter": 200}


def _scs(tolerance: float) -> dict[str, Any]:
    """Return options for residuals to the tolerance, with a limit that keeps a hopeless block to seconds.

    A funnel's q block at 4 x 16 took half a minute to 50,000 iterations and was inaccurate there too.
    """
    return {"eps_abs": tolerance, "eps_rel": tolerance, "eps_infeas": min(1e-7, tolerance), "max_iters": 10_000}


def _osqp(tolerance: float) -> dict[str, Any]:
    """Return options for residuals to the tolerance, with a polishing step that finds an exact active-set answer.

    Iterations cost from microseconds to milliseconds: what keeps a hopeless problem short is a limit in seconds.
    Linear programs need many of them: one of 24 variables and 208 rows, the tangents of a divergence, 52,000 (0.2 s);
    a dense one of 500 variables and 250 equations 4,500 (3 s). There polishing leaves residuals of 8e-14; 1e-8 was not
    reached in 200,000 (4 minutes), and without its end there is no polishing.
    """
    names = ("eps_abs", "eps_rel", "eps_prim_inf", "eps_dual_inf")
    return {**dict.fromkeys(names, tolerance), "max_iter": 100_000, "time_limit": 10.0, "polishing": True}


def _highs(tolerance: float) -> dict[str, Any]:
    """Return options for feasibilities to the tolerance, but not below 1e-10, which HiGHS refuses.

    The quadratic solver adds a multiple of the identity to P, 1e-7 by default, and so solves another problem: its
    multipliers were off by 1.3e-6 where 1e-9 was asked for. A tenth of the tolerance leaves 1e-9. On underdetermined
    least squares that fit exactly it goes round for ever, so that its time is limited.
    """
    bounded = max(tolerance, 1e-10)
    return {
        "primal_feasibility_tolerance": bounded,
        "dual_feasibility_tolerance": bounded,
        "qp_regularization_value": min(1e-7, 0.1 * tolerance),
        "time_limit": 10.0,
    }


PROGRAMS = frozenset({"zero", "nonneg", "quadratic"})
"""Linear and quadratic programs."""
CONES = PROGRAMS | {"soc", "exp", "power", "psd"}

SOLVERS: Mapping[str, SolverSpec] = {
    spec.name: spec
    for spec in (
        SolverSpec(
            "CLARABEL",
            CONES,
            1e-10,
            _clarabel,
            "Apache-2.0",
            "interior point; minimisers are only as good as the square root of its gap",
            "tol_gap_rel",
        ),
        SolverSpec(
            "ECOS",
            frozenset({"zero", "nonneg", "soc", "exp"}),
            1e-9,
            lambda tolerance: {"abstol": tolerance, "reltol": tolerance, "feastol": tolerance, "max_iters": 200},
            "GPL-3.0",
            "interior point; the most accurate of the three on small entropy problems",
            "reltol",
        ),
        SolverSpec(
            "SCS",
            CONES,
            1e-7,
            _scs,
            "MIT",
            "first order; can report a false optimum with exponential cones: read its dual cone distance",
            "eps_rel",
        ),
        SolverSpec(
            "OSQP",
            PROGRAMS,
            1e-6,
            _osqp,
            "Apache-2.0",
            "first order; exact where its polishing step finds the active rows, else no better than asked for",
            "eps_rel",
        ),
        SolverSpec(
            "HIGHS",
            PROGRAMS,
            1e-9,
            _highs,
            "MIT",
            "simplex, interior point and active set; linear and quadratic problems",
            "dual_feasibility_tolerance",
        ),
        SolverSpec(
            "PIQP",
            PROGRAMS,
            1e-9,
            lambda tolerance: dict.fromkeys(
                ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"), tolerance
            ),
            "BSD-2-Clause",
            "interior point and proximal; linear and quadratic problems",
            "eps_rel",
        ),
        SolverSpec(
            "PROXQP",
            PROGRAMS,
            1e-8,
            lambda tolerance: {"eps_abs": tolerance, "eps_rel": 0.0},
            "BSD-2-Clause",
            "augmented Lagrangian; linear and quadratic problems",
            "eps_abs",
        ),
        SolverSpec(
            "DAQP",
            PROGRAMS,
            1e-9,
            lambda tolerance: {"primal_tol": tolerance, "dual_tol": tolerance},
            "MIT",
            "dual active set; small dense quadratic problems",
            "primal_tol",
        ),
    )
}

#: The package of each of the table's solvers whose name is another.
PACKAGES = {"HIGHS": "highspy", "PROXQP": "proxsuite"}

#: Tolerance of a solver whose options are not known: most stop between 1e-6 and 1e-9.
UNLISTED_TOLERANCE = 1e-6

#: The entry points by which another package brings solvers.
GROUP = "cvxpriv.solvers"


@cache
def installed() -> tuple[str, ...]:
    """Return the solvers that this machine has: the table's in its order, then those of other packages."""
    present = set(cp.installed_solvers())
    return tuple(
        name for name in (*SOLVERS, *(one for one in extensions(GROUP) if one not in SOLVERS)) if name in present
    )


def among_installed(*names: str) -> tuple[str, ...]:
    """Return those of the table's solvers whose packages this machine has, in the order given; imports none of them."""
    return tuple(name for name in names if find_spec(PACKAGES.get(name, name.lower())) is not None)


#: Order in which solvers are tried when one fails: the three of them that are installed.
DEFAULT_CHAIN = among_installed("CLARABEL", "ECOS", "SCS")


def solver_spec(name: str) -> SolverSpec:
    """Return the table's row for a solver; one without options for another solver that cvxpy finds here.

    >>> solver_spec("clarabel").licence
    'Apache-2.0'
    """
    if not isinstance(name, str):
        raise ModelError(f"solver={shown(name)} is no name: pass one of {', '.join(SOLVERS)}")
    key = name.upper()
    if key not in SOLVERS and key not in (outside := extensions(GROUP)):
        if key in cp.installed_solvers():
            note = "not in cvxpriv's table: asked with its own defaults, whatever tolerance is wanted"
            return SolverSpec(key, frozenset(), UNLISTED_TOLERANCE, lambda _: {}, "", note)
        raise ModelError(f"solver={shown(name)} is not in cvxpriv's table: {suggest(key, [*SOLVERS, *outside])}")
    spec = SOLVERS[key] if key in SOLVERS else extension(GROUP, key)  # asking for extensions takes milliseconds
    if not isinstance(spec, SolverSpec) or spec.name != key:
        raise ModelError(
            f"solver={shown(name)}: its package must name a SolverSpec of that name, and names {shown(spec)}"
        )
    if spec.name not in installed():
        raise ModelError(f"solver={name!r} is not installed: pip install {package_of(spec.name)}")
    return spec


def package_of(name: str) -> str:
    """Return the package that a solver comes from.

    >>> package_of("PROXQP")
    'proxsuite'
    """
    return PACKAGES.get(name, name.lower())


def fallback_chain(solver: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the solvers to try, in order: the requested one, then the rest of the default chain.

    A sequence is taken as it is: nothing is added to it.

    >>> fallback_chain("ECOS")
    ('ECOS', 'CLARABEL', 'SCS')
    """
    if solver is None:
        if not DEFAULT_CHAIN:
            raise ModelError("none of CLARABEL, ECOS and SCS is installed: pip install clarabel, or pass solver=")
        return DEFAULT_CHAIN
    if isinstance(solver, str):
        first = solver_spec(solver).name
        return (first, *(name for name in DEFAULT_CHAIN if name != first))
    if not isinstance(solver, Sequence):
        raise ModelError(f"solver={shown(solver)} is no name and no sequence of names: pass, for example, 'CLARABEL'")
    chain = tuple(solver_spec(name).name for name in solver)
    if not chain:
        raise ModelError("solver=() names no solver: pass at least one of " + ", ".join(SOLVERS))
    return chain
