"""What the SHARING scripts have in common: the parties of a data set, curves by epoch, and the picture of a comparison.

An epoch is what exchanges one number a sample and party: a pass of ADMM, or one pass of SGD over the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from cvxpriv_models.admm_sharing import algorithm, baselines
from cvxpriv_models.admm_sharing.problem import Part
from cvxpriv_models.admm_sharing.schemes import scheme_named
from drawn import save

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.models import ADMMSharing
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import LOSSES
from cvxpriv.reports.pictures import COLOURS, MARKERS, blank, styled
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run
from cvxpriv.tables.datasets import load_a9a, load_gisette_like


@dataclass(frozen=True)
class Case:
    """A data set whose columns stand with several parties."""

    name: str
    train: list[Part]
    y: Array
    test: list[Part]
    y_test: Array

    def model(self, lam: float = 1.0) -> ADMMSharing:
        """Logistic regression with (lam/2)||x||^2."""
        return ADMMSharing(self.train, self.y, lam=lam)

    def test_loss(self, coefficients: Sequence[Array], parties: Sequence[int] | None = None) -> float:
        """Mean log loss on the test rows, by the columns of some parties."""
        chosen = range(len(self.test)) if parties is None else parties
        total = np.sum([self.test[m] @ x for m, x in zip(chosen, coefficients, strict=True)], axis=0)
        return float(LOSSES["logistic"].value(total, self.y_test).mean())


def a9a() -> Case:
    """a9a, 66 and 57 columns: the paper's split."""
    data = load_a9a()
    train, test = ([x[:, :66], x[:, 66:]] for x in (data.x_train, data.x_test))
    return Case("a9a", train, data.y_train, test, data.y_test)


def gisette_like(folder: Path | None) -> Case:
    """A set like Gisette, 2000, 2000 and 1000 columns: the paper's split of a set that is not to be had here."""
    data = load_gisette_like(folder)
    train, test = (
        [np.ascontiguousarray(x) for x in np.split(side, [2000, 4000], axis=1)] for side in (data.x_train, data.x_test)
    )
    return Case("gisette-like", train, data.y_train, test, data.y_test)


def admm_curve(
    case: Case, model: ADMMSharing, scheme: str, rho: float, epochs: int, accelerate: bool = False
) -> pd.DataFrame:
    """Return epoch, objective and test log loss of ADMM from zero; the model keeps its factors."""
    problem, rows = model.problem, []
    loop = algorithm.schedule(
        problem, scheme_named(scheme), model.factors, tol=0.0, limit=epochs, accelerate=accelerate
    )

    def figures(state: Values) -> dict[str, Array]:
        x = [state[f"x/{m}"][0] for m in range(problem.parties)]
        rows.append([len(rows) + 1, problem.objective(x), case.test_loss(x)])
        return {"kkt": np.ones(1)}

    run(replace(loop, measure=figures), algorithm.initial_state(problem, rho), Context(ClosedForm()))
    return pd.DataFrame(rows, columns=["epoch", "objective", "test"])


def sgd_curve(case: Case, model: ADMMSharing, steps: Sequence[float], epochs: int) -> tuple[pd.DataFrame, float]:
    """Return the same of SGD, at the step whose objective ends lowest, and that step."""
    best: tuple[pd.DataFrame, float] | None = None
    for step in steps:
        tests: list[float] = []
        found = baselines.sgd(
            model.problem, step, epochs, callback=lambda epoch, x, tests=tests: tests.append(case.test_loss(x))
        )
        curve = found.history.assign(test=tests)
        if best is None or curve["objective"].iloc[-1] < best[0]["objective"].iloc[-1]:
            best = curve, step
    assert best is not None
    return best


@styled
def draw_comparison(
    curves: dict[str, pd.DataFrame], references: dict[str, float], optimum: float, title: str, path: Path
) -> Path:
    """Draw the excess of the objective and the test log loss against epochs; references are levels of the latter."""
    figure = blank(9.6, 4.2)
    left, right = figure.subplots(1, 2)
    for (name, curve), colour, marker in zip(curves.items(), COLOURS, MARKERS, strict=False):
        style = {"color": colour, "marker": marker, "markevery": 10, "label": name}
        left.loglog(curve["epoch"], curve["objective"] / optimum - 1.0, **style)
        right.semilogx(curve["epoch"], curve["test"], **style)
    for (name, level), dash in zip(references.items(), ("--", ":"), strict=True):
        right.axhline(level, color="#666666", linestyle=dash, linewidth=1.2, zorder=1, label=name)
    left.set_title(f"{title}: training objective")
    left.set_ylabel("above the optimum, relative")
    right.set_title("test log loss")
    right.set_ylabel("nats")
    high = max(references.values())
    low = min(*references.values(), *(curve["test"].min() for curve in curves.values()))
    right.set_ylim(low - 0.1 * (high - low), high + 0.6 * (high - low))
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick <= max(len(curve) for curve in curves.values())]
    for panel in (left, right):
        panel.set_xlabel("epoch")
        panel.set_xticks(ticks, [str(tick) for tick in ticks])
        panel.minorticks_off()
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return save(figure, path)


def compare(
    case: Case, rhos: dict[str, float], steps: Sequence[float], epochs: int, path: Path, tol: float = 1e-6
) -> None:
    """Draw ADMM against SGD on a case, and print what stands at a few epochs.

    Parameters
    ----------
    rhos : dict
        The penalty of each scheme.
    steps : sequence of float
        What SGD's first step is chosen from.
    tol : float
        Of the optimum that all are compared with.
    """
    model = case.model()
    optimum = model.solve(rho=rhos["averaged"], tol=tol, max_iter=1500)
    rows = {
        "ADMM, averaged": admm_curve(case, model, "averaged", rhos["averaged"], epochs),
        "ADMM, averaged, with Anderson": admm_curve(case, model, "averaged", rhos["averaged"], epochs, accelerate=True),
        "ADMM, Gauss-Seidel": admm_curve(case, model, "gauss_seidel", rhos["gauss_seidel"], epochs),
        "ADMM, as printed": admm_curve(case, model, "printed", rhos["printed"], epochs),
    }
    rows["SGD (FDML)"], step = sgd_curve(case, model, steps, epochs)
    alone = baselines.pooled(model.problem, parties=(0,), tol=1e-6)
    references = {
        "first party alone": case.test_loss(alone.coefficients, parties=(0,)),
        "all columns, the optimum": case.test_loss(optimum.coefficients),
    }
    print(f"{case.name}: optimum {optimum.objective:.7g} (gap {optimum.gap:.1e}), SGD's first step {step:g}")
    print("test log loss: " + ", ".join(f"{name} {level:.4f}" for name, level in references.items()))
    shown = [epoch for epoch in (1, 5, 10, 20, 50, 100) if epoch <= epochs]
    for name, curve in rows.items():
        at = curve.set_index("epoch").loc[shown]
        above = "  ".join(f"{value / optimum.objective - 1.0:8.1e}" for value in at["objective"])
        tests = "  ".join(f"{value:.4f}" for value in at["test"])
        print(f"{name:30s} epochs {shown}: above the optimum {above}; test {tests}")
    print(draw_comparison(rows, references, optimum.objective, case.name, path))
