"""The least information at a price of errors, by the alternation of Blahut (1972) and Arimoto (1972)."""

from typing import Annotated

import cvxpy as cp
import numpy as np
from scipy.special import rel_entr

import cvxpriv as cpv
from cvxpriv.blocks.distributions import distribution_block
from cvxpriv.runs.alternating_model import AlternatingModel
from cvxpriv.runs.options import Option, declared

Price = Annotated[float, Option("Price of an error, Y other than X.", unit="nats", above=0.0)]


@declared
class RateDistortion(AlternatingModel):
    """Design Y, a copy of X that tells as little of X as the price of its errors allows.

    Minimise I(X;Y) + price P(Y != X) over the mechanism P(Y|X) and the marginal r of Y.

    Parameters
    ----------
    table : JointTable or array, (|S|, |X|)
    """

    command = "rate-distortion"
    curve_option = "price"

    @declared
    def __init__(self, table, price: Price = 2.0):
        super().__init__(table, price=price)
        self.p = self.table.p_x
        self.errors = 1.0 - np.eye(self.p.size)

    def posterior(self, state):
        """The exact mechanism for a marginal: r_j exp(-price [j != i]), rows divided by their sums."""
        weight = state["r"][..., None, :] * np.exp(-self.options["price"] * self.errors)
        return {"mechanism": weight / weight.sum(axis=-1, keepdims=True)}

    def marginal(self, state):
        """The exact marginal of a mechanism."""
        return {"r": self.p @ state["mechanism"]}

    def mechanism_block(self):
        u, prior = cp.Variable(self.errors.shape, name="u"), cp.Parameter(self.errors.shape, nonneg=True, name="prior")
        joint = cp.multiply(self.p[:, None] * np.ones(self.p.size), u)
        objective = cp.Minimize(cp.sum(cp.rel_entr(joint, prior)))
        rows = {"rows sum to 1": cp.sum(u, axis=1) == 1}
        return cpv.Declaration(objective, rows, {"mechanism": u}, {"prior": prior}, u, cpv.Known.of_table(self.table))

    def marginal_block(self):
        r, weight = cp.Variable(self.p.size, name="r"), cp.Parameter(self.p.size, nonneg=True, name="weight")
        objective = cp.Minimize(-cp.sum(cp.multiply(weight, cp.log(r))))
        return cpv.Declaration(objective, {"r sums to 1": cp.sum(r) == 1}, {"r": r}, {"weight": weight})

    def steps(self):
        prior = lambda state: {"prior": self.p[:, None] * self.posterior(state)["mechanism"]}  # noqa: E731
        weight = lambda state: {"weight": self.marginal(state)["r"]}  # noqa: E731

        mechanism = distribution_block("mechanism", self.mechanism_block, {"r"}, prior, self.posterior)
        return mechanism, distribution_block("marginal", self.marginal_block, {"mechanism"}, weight, self.marginal)

    def start(self, rng):
        r = rng.dirichlet(np.ones(self.p.size))
        return {"r": r, **self.posterior({"r": r})}

    def figures(self, state):
        u = state["mechanism"]
        information = float(np.sum(self.p[:, None] * rel_entr(u, self.p @ u)))
        errors = float(np.sum(self.p[:, None] * u * self.errors))
        return {"cost": information + self.options["price"] * errors, "information": information, "errors": errors}
