"""ISTDP on the rows of a table, as `cvxpriv sparse` fits it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxpriv.learning.fit import Columns, Fit, Scored
from cvxpriv.learning.labels import LinearFit
from cvxpriv.learning.schema import relation_of
from cvxpriv.numerics.sizes import counted
from cvxpriv.penalties import penalty_named
from cvxpriv.privacy import Plan, gaussian_mu
from cvxpriv.reports.facts import Fact

from .centring import resolves
from .private import PRIVATE_METHODS, planned
from .private_options import public_divisor

#: Part of a row's largest gradient at which it is clipped, unless `clip` is named: few gradients of a fitted model are
#: longer.
COUNTED = 0.5
#: Penalty of a fit without privacy, on rows of norm at most 1.
PENALTY = "mcp:0.001:50"
DELTA = 1e-6


@dataclass(kw_only=True, eq=False)
class SparseOnRows(Fit):
    """A fit of ISTDP; the coefficients of a private one are released."""

    usual: ClassVar[Mapping[str, str]] = {
        "penalty": f"{PENALTY}; private: from public numbers",
        "delta": "1e-6",
        "clip": "half of the most that a row's gradient can be",
    }
    title: ClassVar[str] = "Sparse learning"

    columns: Columns = None

    @classmethod
    def plan(cls, options: Mapping[str, Any], adjacency: str) -> Plan:
        return planned(options.get("epsilon"), options.get("delta", DELTA), options.get("method"), adjacency)

    def pose(self, kind: Any, options: Mapping[str, Any]) -> None:
        posed = {"penalty": "auto" if self.private else PENALTY, **options}
        posed |= {"intercept": self.intercept, "allow_constant": True, "schema": self.rows.known}
        self.model = kind(self.rows.x, self.rows.y, **posed)

    def public_numbers(self) -> dict[str, Any]:
        """See `Fit`. The encoding bounds the rows' norms."""
        bound = float(np.hypot(self.rows.encoding.row_bound(), float(self.intercept)))
        slope = self.model.problem.loss.slope
        if np.isfinite(slope) and self._centred():
            return {"delta": DELTA, "clip": slope * bound, "row_bound": bound}
        if np.isfinite(slope):
            return {"delta": DELTA, "clip": COUNTED * slope * bound}
        return {"delta": DELTA, "clip": None, "row_bound": bound}

    def _centred(self) -> bool:
        """Return whether the model is going to centre its rows, by the number of rows that is public."""
        chosen, method = self.solving.get("centre", "auto"), self.solving.get("method") or PRIVATE_METHODS[0]
        problem = self.model.problem
        if chosen != "auto" or method != PRIVATE_METHODS[0]:
            return bool(chosen == "private")
        relation = relation_of(problem.schema, self.solving.get("adjacency"))
        count = public_divisor(problem, relation, self.solving.get("public_rows"))
        mu = gaussian_mu(self.solving["epsilon"], self.solving.get("delta", DELTA))
        return count is not None and resolves(problem, count, mu, relation)

    def linear(self, run: Any) -> LinearFit:
        return LinearFit(run.coefficients, run.intercept)

    @property
    def name(self) -> str:
        return f"this model, {counted(self.run.support.size, 'column')}"

    def compared(self, kind: Any, options: Mapping[str, Any]) -> list[Scored]:
        """See `Fit`. The comparison has hardly any penalty."""
        bare = self.model.with_penalty(penalty_named("l2:1e-6")).solve(**{**self.solving, "tol": 1e-6})
        return [self.score(f"hardly penalised, {counted(bare.support.size, 'column')}", self.linear(bare))]

    @property
    def summary(self) -> str:
        return f"A linear model with {self.run.support.size} of {len(self.rows.encoding.features)} coefficients"

    @property
    def layout(self) -> list[Fact]:
        return [Fact("loss", self.model.problem.loss.name, aside=True), Fact("penalty", self.run.penalty.name)]

    @property
    def crosschecked(self) -> str:
        if self.private:
            return "The last proximal problem, which reads released values alone,"
        return "The proximal problem at the answer"
