"""Baselines of SHARING: SGD over local models, and scikit-learn on all columns or on one party's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import require_counts, require_positive, require_seed
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd

from .problem import Problem, together
from .run import Fitted

#: Standard deviation of the coefficients that SGD starts from: SHARING section 5 starts it "with random numbers".
START = 0.01


@dataclass(frozen=True, eq=False)
class SGDRun(Fitted):
    """A fit by `sgd`.

    `history`: One row per epoch: epoch, objective.
    """

    history: pd.DataFrame


def sgd(
    problem: Problem,
    step: float,
    epochs: int = 20,
    batch: int = 100,
    seed: int = 0,
    callback: Callable[[int, Sequence[Array]], None] | None = None,
) -> SGDRun:
    """Fit by minibatch SGD with the structure of FDML (Hu et al. 2019): every party has its own local model.

    It works on minibatches: the parties send their local predictions D_m x_m of its samples. Each receives the slope of
    the loss at their sum, and moves its own x_m by it, then by the proximal step of lam R_m. An epoch exchanges as much
    as one pass of ADMM: one number per sample and party. FDML's parties may lag behind each other; here none does.

    `step`: Step of the averaged loss in the first epoch; in epoch t it is step/sqrt(t).
    `batch`: Number of samples in a minibatch.
    `seed`: Seed of the start and of the order of the samples.
    `callback`: `callback(epoch, coefficients)` after each epoch.
    Raises ModelError: An option is out of range, or the step so large that the coefficients overflow.

    Examples
    --------
    >>> columns = np.random.default_rng(0).normal(size=(200, 4))
    >>> problem = Problem.of([columns[:, :2], columns[:, 2:]], columns @ [1.0, -1.0, 0.5, 0.0] > 0.0)
    >>> run = sgd(problem, step=1.0, epochs=3, batch=20)
    >>> [x.shape for x in run.coefficients], bool(run.history["objective"].is_monotonic_decreasing)
    ([(2,), (2,)], True)
    """
    require_positive(step=step)
    require_counts(epochs=epochs, batch=batch)
    require_seed(seed)
    rng = np.random.default_rng(seed)
    x = [np.asarray(START * rng.normal(size=(part.shape[1],))) for part in problem.parts]
    rows = []
    for epoch in range(1, epochs + 1):
        order = rng.permutation(problem.samples)
        for first in range(0, problem.samples, batch):
            _step(problem, x, order[first : first + batch], step / np.sqrt(epoch))
        objective = problem.objective(x)
        if not np.isfinite(objective):
            raise ModelError(f"step={step:g} is too large: the objective is not finite after epoch {epoch}, halve it")
        rows.append([epoch, objective])
        if callback is not None:
            callback(epoch, x)
    history = pd.DataFrame(rows, columns=["epoch", "objective"])
    return SGDRun(x, problem.loss.name, problem.classes, history)


def pooled(problem: Problem, parties: Sequence[int] | None = None, **options: Any) -> Fitted:
    """Fit by scikit-learn on the columns of all parties together, or of some of them.

    `problem`: The problem, with the logistic or the squared loss and R_m = (1/2)||x||^2.
    `parties`: The parties whose columns are used: (0,) is the first party alone. None is all.
    `**options`: Options of scikit-learn's LogisticRegression (unless given: solver="newton-cholesky") or Ridge;
    tol=1e-10 for both.
    Returns: The fit, which predicts on the columns of these parties.
    """
    chosen = list(range(problem.parties)) if parties is None else list(parties)
    if not chosen or not set(chosen) <= set(range(problem.parties)):
        raise ModelError(f"parties={parties!r} are not among 0..{problem.parties - 1}")
    parts = [problem.parts[m] for m in chosen]
    squares = all(problem.penalties[m].ridge == 1.0 for m in chosen)
    if problem.loss.name not in ("logistic", "squared") or not squares or problem.lam == 0.0:
        raise ModelError(
            f"scikit-learn fits the logistic and the squared loss with penalty='l2' and lam > 0, not {problem!r}: "
            "use ADMMSharing([...]).solve() on these parties"
        )
    model = _peer(problem, options).fit(together(parts), problem.y, sample_weight=problem.weights)
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    return Fitted(np.split(np.ravel(model.coef_), ends), problem.loss.name, problem.classes)


def _step(problem: Problem, x: list[Array], batch: npt.NDArray[np.intp], step: float) -> None:
    """Do one minibatch in place: the mean gradient of the loss, and the penalty in proportion to the average."""
    parts = [part[batch] for part in problem.parts]
    total = problem.predictions(x, parts)
    slope = problem.weights[batch] * problem.loss.gradient(total, problem.y[batch]) / batch.size
    for m, part in enumerate(parts):
        moved = x[m] - step * (part.T @ slope)
        x[m] = problem.penalties[m].prox(moved, step * problem.lam / problem.samples)


def _peer(problem: Problem, options: dict[str, Any]) -> Any:
    try:
        from sklearn.linear_model import LogisticRegression, Ridge
    except ImportError as error:
        raise ModelError('the pooled fit needs scikit-learn, which is missing: pip install "cvxpriv[learn]"') from error
    if problem.loss.name == "squared":
        return Ridge(**{"alpha": problem.lam, "fit_intercept": False, "tol": 1e-10, **options})
    ours = {"C": 1.0 / problem.lam, "fit_intercept": False, "tol": 1e-10, "solver": "newton-cholesky", "max_iter": 1000}
    return LogisticRegression(**{**ours, **options})
