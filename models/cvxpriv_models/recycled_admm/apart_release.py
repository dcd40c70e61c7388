"""The releases of a node that is apart: what it was asked, what that costs, and the step that draws its noise.

The node computes the cost itself, from its own number of rows and the penalties of every pass, which are told before
anything leaves; it does not rest on what the coordinator says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from cvxpriv.distributed.messages import Message
from cvxpriv.errors import PartyError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.privacy import EVERYONE, Noise, Release
from cvxpriv.schedules.steps import Draw

from .graph import edge_weights, pull, reach
from .private import released
from .private_settings import Privacy, PrivateSettings, Releases, releases_of, require_suitable, within_bound
from .problem import Problem

#: The vectors of what a node is told, by name.
Terms: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Private:
    """A private run, as a node knows it: its own problem, and the rule of its releases."""

    alone: Problem
    settings: PrivateSettings
    releases: Releases
    etas: Array

    @property
    def total(self) -> Release:
        """The cost of all releases together."""
        if self.releases.mu:
            return Release(mu=self.releases.mu * float(np.sqrt(len(self.etas))))
        return Release(epsilon=float(self.releases.epsilon.sum()))

    def within(self, clip_rows: bool) -> Private:
        """Return it on rows within their bound; raises PrivacyError where one is beyond, and is not to be clipped."""
        return replace(self, alone=within_bound(self.alone, self.settings.row_bound, clip_rows))

    def draw(self, problem: Problem, place: int, turn: int) -> Draw:
        """Return the release of a pass, from 0, on entries of all nodes, of which the node knows some."""

        def fn(view: Values, noise: Noise) -> Values:
            links, odd = edge_weights(view["eta"][0], problem.network.adjacency, self.settings.variant), view["odd"][0]
            pulled, dual, start = (one[[place]] for one in (pull(links, view["f"][0]), view["dual"][0], odd))
            written = odd.copy()
            written[place] = released(self.alone, self.settings, self.releases, turn, pulled, dual, start, noise)[0]
            return {"odd": written[None]}

        # Whoever is in the ledger of this node alone is one of its own records.
        cost = [replace(one, touches=EVERYONE) for one in self.releases.entries(turn, [place])]
        return Draw("release", fn, frozenset({"f", "odd", "dual", "eta"}), frozenset({"odd"}), cost)


def terms_of(settings: PrivateSettings, etas: Array, releases: Releases, asked: Privacy, node: int) -> Terms:
    """Return what a node is told of a private run before it agrees: all that its cost depends on.

    `etas`: The penalties of the node and its neighbours in every pass.
    """
    rated = bool(np.isfinite(releases.alpha[node]))
    return {
        "etas": etas.ravel(),
        "releases": len(etas),
        "row_bound": settings.row_bound,
        "node_tol": settings.node_tol,
        "alpha": releases.alpha[node] if rated else 0.0,
        "epsilon": 0.0 if rated else asked.epsilon,
        "delta": asked.delta if releases.mu else 0.0,
    }


def private_of(message: Message, problem: Problem, place: int, known: Array) -> Private:
    """Return the run that a message asks for; no row is read for that.

    Raises PrivacyError: It has no budget, or the loss or the penalty bounds no sensitivity.
    Raises PartyError: The table of penalties is malformed.
    """
    passes, texts, table = int(message.number("releases")), message.texts, message.vectors["etas"]
    if table.size != passes * known.size or not (table > 0.0).all():
        raise PartyError("the penalties that came are not one a pass and neighbour: the coordinator is at fault")
    etas = table.reshape(passes, known.size)
    several = np.ones((passes, problem.nodes))
    several[:, known] = etas
    links = [edge_weights(eta, problem.network.adjacency, texts["variant"]) for eta in several]
    reaches = np.array([reach(one)[place] for one in links])[:, None]
    choices: dict[str, Any] = {name: texts[name] for name in ("method", "perturbation", "variant")}
    choices |= {name: message.number(name) for name in ("gamma", "row_bound", "node_tol", "C", "reg")}
    settings = PrivateSettings(**choices, max_iter=passes, eta=tuple(etas[0].tolist()))
    alone = problem.of_node(place)
    require_suitable(alone, settings)
    epsilon, delta, alpha = (message.number(name) or None for name in ("epsilon", "delta", "alpha"))
    asked = Privacy(epsilon, delta, alpha)
    return Private(alone, settings, releases_of(alone, settings, reaches, asked), etas)
