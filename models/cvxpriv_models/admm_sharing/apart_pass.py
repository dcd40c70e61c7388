"""The questions of the label holder to parties that are apart, and the figures that their answers give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvxpriv.distributed.messages import Message
from cvxpriv.distributed.orchestrator import Orchestrator, numbers
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.schedules.steps import Update

from . import algorithm, blocks, kkt, mechanism
from .problem import Problem
from .schemes import Scheme


class Asked(Orchestrator):
    """The parties of a problem; an intercept is with the first one."""

    problem: Problem
    penalty: str
    intercept: bool

    def start(
        self, kind: str, scheme: Scheme, rho: float, height: float, texts: Mapping[str, str] = {}, **more: float
    ) -> dict[str, Message]:
        """Begin a run at every party; the column of an intercept is with the first one."""
        parties, told = self.problem.parties, {"method": scheme.name, "penalty": self.penalty, **texts}
        own = [{"intercept": height if self.intercept and place == 0 else 0.0} for place in range(parties)]
        return self.begin(kind, told, own, rho=rho, lam=self.problem.lam, parties=parties, **more)

    def aim(self, kind: str, scheme: Scheme, view: Values, turn: int) -> dict[str, Message]:
        """Ask every party for a pass: it gets the target of its share, and the dual."""
        parties, total = self.problem.parties, blocks.total_share(view, self.problem.parties)[0]
        targets = (scheme.target(view[f"v/{m}"][0], total, view["z"][0], parties) for m in range(parties))
        return self.ask(kind, own=[{"target": target, "y": view["y"][0]} for target in targets], turn=turn)


class Together:
    """The step of all parties at once, asked one pass ahead."""

    def __init__(self, fit: Asked, scheme: Scheme, gap: float) -> None:
        self.fit, self.scheme, self.problem, self.gap = fit, scheme, fit.problem, gap
        self.asked, self.told = 0, np.zeros(0)
        self.ahead: dict[str, Message] | None = None
        self.figures: dict[str, Message] = {}

    def update(self) -> Update:
        """Return the step that brings the parties' shares of this pass."""
        reads = mechanism.public_entries(self.problem)
        return Update("parties", self._shares, reads, frozenset(f"v/{m}" for m in range(self.problem.parties)))

    def _shares(self, view: Values) -> Values:
        answers = self.ahead if self.ahead is not None else self._ask(view)
        self.ahead = None
        return {f"v/{m}": answer.vectors["share"][None] for m, answer in enumerate(answers.values())}

    def _ask(self, view: Values) -> dict[str, Message]:
        fit = self.fit
        if view["rho"].ndim == 2 and view["rho"] is not self.told:
            self.told = view["rho"]
            fit.ask("weigh", opening=True, rho=view["rho"][0])
        fit.done, fit.latest = self.asked, dict(view)
        self.asked += 1
        return fit.aim("step", self.scheme, view, self.asked)

    def measure(self, state: Values) -> dict[str, Array]:
        """Return the figures of a state, as `algorithm.measure` does; the parties then have begun the next pass."""
        self.ahead = self.figures = self._ask(state)
        view = single(state, 0)
        found = self.residuals(view)
        figures = algorithm.figures_of(self.problem, found, self.objective(view), view, self.gap)
        return {name: np.array([value]) for name, value in figures.items()}

    def residuals(self, view: Values) -> kkt.SharingResiduals:
        """Return the residuals of the state that was measured last."""
        stationarity, pulled = (numbers(self.figures, name) for name in ("stationarity", "pulled"))
        return kkt.residuals_of_parts(self.problem, view, stationarity, pulled)

    def objective(self, view: Values) -> float:
        """Return the objective of the state that was measured last."""
        fit = self.problem.fit_value(blocks.total_share(view, self.problem.parties))
        return fit + self.problem.weighted(numbers(self.figures, "penalty"))
