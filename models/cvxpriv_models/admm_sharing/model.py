"""The model's face: `ADMMSharing`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.blocks.declaration import Constraint
from cvxpriv.blocks.engines import Engine, engine_named
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError, NoGuaranteeWarning, suggest
from cvxpriv.numerics.arguments import require_counts, require_positive
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.penalties import Loss, Penalty
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.progress import track
from cvxpriv.runs.saved import read_run
from cvxpriv.schedules.history import History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Context

from . import algorithm, kkt
from .assumptions import Assumptions, check
from .factor import Factor
from .problem import Problem
from .run import Settings, SharingRun
from .schemes import Scheme, scheme_named

if TYPE_CHECKING:
    from .private_run import PrivateSharingRun

__all__ = ["ADMMSharing"]

#: callback(loop, pass, figures); returning True ends the run.
Callback = Callable[[str, int, Mapping[str, Array]], "bool | None"]


class ADMMSharing:
    """Fit a linear model whose columns are split among parties; each shares one value a sample. SHARING (1).

    Minimise sum_i weight_i l(S_i, y_i) + lam sum_m R_m(x_m) over x_m in X_m, with S = sum_m D_m x_m. The loss is
    **summed** over the samples, not averaged.

    Parameters
    ----------
    parts : sequence of array or scipy.sparse, (N, d_m)
        Each party's columns of the same samples, in the same order.
    y : array, (N,)
        Labels; for a margin loss two classes, of any type.
    loss : {"logistic", "squared", "huber", "hinge", "smoothed-hinge", "sigmoid"} or Loss
        `sigmoid` is not convex: it needs a large enough rho, and reaches a stationary point.
    penalty : str or Penalty, or one a party
        R_m, convex: `l2` is (1/2)||x||^2, `l1` is ||x||_1, `elastic-net:<weight>:<ratio>`, `nonneg`,
        `box:<low>:<high>`, `none` (`cvxpriv.penalties.penalty_named`), or an object such as
        `cvxpriv.penalties.GroupLasso(...)`.
    lam : float
        >= 0. It multiplies every penalty, whatever the weight in its text.
    sets : str, or one a party, optional
        X_m: `nonneg` or `box:<low>:<high>`, on top of the penalty. `constrain` takes any other convex set.
    weights : array, (N,), optional
        > 0.

    Raises
    ------
    DataError
        Parties of unequal rows, an empty party, NaN, labels that are not two classes (the message names those found).
    ModelError
        An unknown loss, penalty or set, or lam < 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxpriv.models import ADMMSharing
    >>> columns = np.random.default_rng(0).normal(size=(60, 4))
    >>> labels = np.where(columns @ [1.0, -1.0, 0.5, 0.0] > 0, "yes", "no")
    >>> run = ADMMSharing([columns[:, :2], columns[:, 2:]], labels).solve()
    >>> run.converged, [x.shape for x in run.coefficients], str(run.predict([columns[:1, :2], columns[:1, 2:]])[0])
    (True, [(2,), (2,)], 'yes')
    """

    def __init__(
        self,
        parts: Sequence[ArrayLike | sparse.sparray],
        y: ArrayLike,
        loss: str | Loss = "logistic",
        penalty: str | Penalty | Sequence[str | Penalty] = "l2",
        lam: float = 1.0,
        sets: str | Penalty | Sequence[str | Penalty | None] | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        self.problem = Problem.of(parts, y, loss, penalty, lam, weights, sets)
        self.factors = tuple(Factor(part) for part in self.problem.parts)
        self.constraints: algorithm.Constraints = ()

    def __repr__(self) -> str:
        return f"ADMMSharing({self.problem!r})"

    def constrain(self, name: str, constraint: Constraint, party: int = 0) -> ADMMSharing:
        """Return this model with one more constraint on the coefficients of one party: its X_m, SHARING (2).

        Parameters
        ----------
        name : str
        constraint : callable
            x_m, a cvxpy expression (d_m,), to a constraint or several: `lambda x: cvxpy.sum(x) == 1`.
        party : int
            m, from 0.

        Raises
        ------
        ModelError
            No such party, the name is taken, or the function returns no convex constraint.
        """
        if party not in range(self.problem.parties):
            raise ModelError(f"party={party!r} is not one of 0..{self.problem.parties - 1}")
        other = object.__new__(type(self))
        other.problem, other.factors = self.problem, self.factors
        other.constraints = (*self.constraints, (party, name, constraint))
        blocks = algorithm.blocks(self.problem, scheme_named("averaged"), self.factors, other.constraints)
        blocks[f"x/{party}"].declaration()  # refuses here what is no constraint, or not DCP
        return other

    def solve(
        self,
        rho: float = 1.0,
        scheme: str = "averaged",
        engine: str | Engine = "closed_form",
        *,
        max_iter: int = 500,
        tol: float = 1e-8,
        adapt_rho: bool = False,
        accelerate: str = "auto",
        solver: str | Sequence[str] | None = None,
        progress: bool = False,
        callback: Callback | None = None,
    ) -> SharingRun:
        """Run ADMM from x = z = y = 0.

        Parameters
        ----------
        rho : float
            The penalty. `averaged` uses rho/M on S = z: about the mean curvature of the loss is a good rho/M.
        scheme : {"averaged", "gauss_seidel", "proximal_jacobi", "printed"}
            See `cvxpriv_models.admm_sharing.schemes`. The default converges for every rho; `printed` may diverge.
        engine : {"closed_form", "dcp", "checked"} or Engine
            Who does the blocks: exact updates, cvxpy solvers, or both compared at each step. A party without an exact
            update (another penalty than a square, but for `proximal_jacobi`) goes to a solver.
        max_iter : int
            Most passes.
        tol : float
            The relative KKT residual (`SharingResiduals.largest`) at which the run has converged.
        adapt_rho : bool
            Residual balancing: rho is doubled or halved every ten passes, and factored anew, until it fits.
        accelerate : {"auto", "none", "anderson"}
            "none" is the plain scheme; "anderson" combines the last passes, with the same optimum and fewer passes;
            "auto" is "anderson" where it has a guarantee: a convex loss, exact updates, a scheme that converges, rho
            fixed.
        solver : str or sequence of str, optional
            The first of the fallback chain, or the whole chain.
        progress : bool
            A bar on a terminal.
        callback : callable, optional
            `callback(loop, pass, figures)` after each pass; returning True ends the run.

        Raises
        ------
        ModelError
            An option is out of range, or a non-convex loss with a penalty too small for its z step.
        SolverFailure
            No solver of the chain solved a block.
        Disagreement
            The `checked` engine found two answers.

        Notes
        -----
        A keyboard interrupt returns the last pass, with `converged` False where it is not.
        """
        begun = time.perf_counter()
        require_positive(rho=rho, tol=tol)
        require_counts(max_iter=max_iter)
        chosen, who = scheme_named(scheme), engine_named(engine, solver=solver)
        if callback is not None and not callable(callback):
            raise ModelError(f"callback={callback!r} is no function: pass one of (loop, pass, figures)")
        self.require_guarantee(chosen, rho)
        anderson = self._accelerated(accelerate, chosen, who, adapt_rho)
        loop = algorithm.schedule(
            self.problem,
            chosen,
            self.factors,
            tol=tol,
            limit=max_iter,
            adapt_rho=adapt_rho,
            accelerate=anderson,
            constraints=self.constraints,
        )
        bar = iter(track(range(max_iter), total=max_iter, description="passes", shown=progress))

        def each(name: str, iteration: int, figures: Mapping[str, Array]) -> bool | None:
            next(bar, None)
            return None if callback is None else callback(name, iteration, figures)

        context = Context(who, History(), each)
        state = single(run(loop, algorithm.initial_state(self.problem, rho), context), 0)
        settings = Settings(chosen.name, who.name, rho, anderson, adapt_rho, max_iter, tol)
        return self._finished(state, context, settings, time.perf_counter() - begun)

    def check_assumptions(self, rho: float, scheme: str = "printed") -> Assumptions:
        """Return the paper's Assumptions 1 and 2 with measured numbers, and the right condition beside each.

        Parameters
        ----------
        rho : float
        scheme : str
            For which the right conditions are told.
        """
        require_positive(rho=rho)
        return check(self.problem, scheme_named(scheme), self.factors, rho)

    def solve_private(self, *args: Any, **options: Any) -> PrivateSharingRun:
        """Fit with differential privacy; see `cvxpriv_models.admm_sharing.private.solve_private` for the parameters."""
        from .private import solve_private

        return solve_private(self, *args, **options)

    @staticmethod
    def example_cases() -> list[Case]:
        """Return every block of a few small problems: what `cvxpriv crosscheck --all` checks."""
        return example_cases()

    @staticmethod
    def load_run(path: PathLike) -> SharingRun | PrivateSharingRun:
        """Read a saved run, private or not: what `cvxpriv.load` calls."""
        from .private_run import PrivateSharingRun

        return PrivateSharingRun.load(path) if read_run(path).get("private") else SharingRun.load(path)

    def require_guarantee(self, scheme: Scheme, rho: float) -> None:
        """Warn where a scheme may diverge; `solve` and `solve_private` ask this first.

        Raises
        ------
        ModelError
            The loss is not convex and the penalty so small that the z step has several minima.
        """
        problem = self.problem
        r = float(scheme.weight(np.asarray(rho), problem.parties))
        bend = float(problem.weights.max()) * problem.loss.smoothness
        if not problem.loss.convex and r <= bend:
            least = scheme.rho(bend, problem.parties)
            raise ModelError(
                f"rho={rho:g} is too small for loss {problem.loss.name!r}, whose z step then has several minima: "
                f"choose rho > {least:.4g}"
            )
        if scheme.name == "printed" and not r >= 1.5 * problem.parties * bend:
            bound = 1.5 * problem.parties * bend
            need = f"rho >= 1.5 M L = {bound:.4g}" if bend < float("inf") else "a smooth loss"
            warnings.warn(
                f"scheme='printed' with rho={rho:g} may diverge: it needs {need}; scheme='averaged' converges for "
                "every rho",
                NoGuaranteeWarning,
                stacklevel=3,
            )

    def _accelerated(self, accelerate: str, scheme: Scheme, engine: Engine, adapt_rho: bool) -> bool:
        known = ("auto", "none", "anderson")
        if accelerate not in known:
            raise ModelError(f"accelerate={accelerate!r} is not an acceleration: {suggest(str(accelerate), known)}")
        fit = self.problem.loss.convex and scheme.name != "printed" and engine.name == "closed_form" and not adapt_rho
        if accelerate == "anderson" and not fit:
            raise ModelError(
                "accelerate='anderson' goes with a convex loss, engine='closed_form', a scheme other than 'printed' "
                "and adapt_rho=False: pass accelerate='none'"
            )
        return fit and accelerate != "none"

    def _finished(self, state: Values, context: Context, settings: Settings, seconds: float) -> SharingRun:
        problem, report = self.problem, context.reports[algorithm.LOOP]
        coefficients = [state[f"x/{m}"] for m in range(problem.parties)]
        found = algorithm.residuals_with_constraints(
            problem, scheme_named(settings.scheme), self.factors, state, self.constraints
        )
        return SharingRun(
            coefficients,
            problem.loss.name,
            problem.classes,
            state,
            settings,
            converged=found.largest <= settings.tol,
            iterations=int(report.iterations[0]),
            objective=problem.objective(coefficients),
            kkt=found,
            gap=float("inf") if self.constraints else kkt.duality_gap(problem, state),
            seconds=seconds,
            problem=problem,
            log=context.history,
            constraints=self.constraints,
            interrupted=context.interrupted,
        )


def example_cases() -> list[Case]:
    """Return the blocks of small problems, one for each loss and some penalties, where a few passes lead."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(40, 5))
    labels = np.where(columns[:, 0] - columns[:, 3] + rng.normal(size=40) > 0.0, 1.0, -1.0)
    cases = []
    for loss, penalty in (
        ("logistic", "l2"),
        ("squared", "l1"),
        ("huber", "elastic-net:1:0.5"),
        ("hinge", "l2"),
        ("smoothed-hinge", "nonneg"),
    ):
        model = ADMMSharing([columns[:, :3], columns[:, 3:]], labels, loss, penalty)
        solved = model.solve(scheme="proximal_jacobi", max_iter=30)
        found = [case_of_block(block, solved.state) for block in solved.blocks().values()]
        cases += [replace(case, name=f"sharing {loss} {penalty} {case.name}") for case in found]
    return cases
