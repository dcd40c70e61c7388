"""The result of inference as a service: `InferenceRun`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.bounds.master import master_block
from cvxpriv.bounds.service_certificate import service_certificate_of
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.errors import DataError, ModelError, SolverFailure
from cvxpriv.kkt import Residuals
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Facts
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.mechanism_run import Beside, MechanismRun, restored
from cvxpriv.runs.saved import decoded, read_run
from cvxpriv.tables.documents import table_of

from . import algorithm, closed_form, kkt
from .algorithm import Moduli, moduli
from .bound import ServiceBound, bound_of
from .certificates import local_gap
from .facts import NOTHING, by_solver, inference_facts
from .kkt import PointResiduals
from .measured import Options
from .problem import Problem
from .starts import symbol_values

#: Largest local gap, as a share of the tolerance for the residual.
GAP_SHARE = 1e-3
#: An objective may be so far below the bound's own, relative, by rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Settings:
    """The options of `InferenceAsService.solve` that decide its result."""

    method: str
    engine: str
    starts: int
    seed: int
    options: Options

    @property
    def tol(self) -> float:
        """The KKT residual asked for."""
        return self.options.tol


@dataclass(frozen=True, eq=False, repr=False)
class InferenceRun(MechanismRun[Problem, Settings]):
    """The best of a solve's starts: see `MechanismRun`; objective, accuracy and leakage among the columns of `starts`.

    Attributes
    ----------
    note : str
        Caution about the answer; empty when there is none.
    """

    model: ClassVar[str] = "InferenceAsService"
    whole: ClassVar[str] = "joint"

    note: str = ""
    bound: ServiceBound | None = None

    @property
    def gap(self) -> float | None:
        """Certified distance in nats from the best objective of any mechanism, whatever the server's reading of U.

        None where `no_gap` says why: |S| > 4, or a method or starts of the caller's; and in a run that was loaded where
        no certificate was kept (`bound.no_certificate`). What the bound leaves out
        (`bound.ignored`) makes it loose, not wrong. Where nothing is worth telling it is an absolute number too: no
        mechanism is worth more.
        """
        return None if self.bound is None else max(self.bound.upper - self.objective, 0.0)

    @property
    def mechanism(self) -> Array:
        """P(U|Y), (|Y|, |U|), rows sum to 1."""
        return self.state["mechanism"]

    @cached_property
    def accuracy(self) -> float:
        """I(S;U) in nats."""
        return self.problem.accuracy(self.mechanism)

    @cached_property
    def leakage(self) -> float:
        """E[f(p(u)/p(u|y))]."""
        return self.problem.leakage(self.mechanism)

    @property
    def objective(self) -> float:
        """IAS (1): accuracy - beta * leakage."""
        return self.accuracy - self.problem.beta * self.leakage

    @property
    def trivial(self) -> bool:
        """Whether U tells nothing of S."""
        return self.accuracy <= NOTHING

    @property
    def converged(self) -> bool:
        """Whether the best start's KKT residual is within the tolerance, or its distance from the optimum is proved.

        Its local gap decides too. A solver's point is right to about 1e-8 in value, and its residual to the root of
        that; with hundreds of cells that exact steps hardly move, the residual is the last to fall. A first-order point
        need not be the best one: how far it may be from that is `gap`.
        """
        return not (self.interrupted or self.missed) and (super().converged or self._proved or self._still)

    @property
    def _proved(self) -> bool:
        """Whether the bound reached the gap asked for, and the mechanism is as good as its own."""
        proof = self.bound
        return proof is not None and proof.certified and self.objective >= proof.lower - ROUNDING * (1.0 + proof.lower)

    @property
    def _still(self) -> bool:
        """Whether its local gap is small: below the tolerance where a solver made the point, else a thousandth of it.

        Near the optimum of (10) the gap falls with the square of the residual.
        """
        return self.local_gap <= (self.tol if by_solver(self) else GAP_SHARE * self.tol)

    @cached_property
    def local_gap(self) -> float:
        """The largest improvement by any mechanism while the server reads U as it does now: F* - F of IAS (10).

        A certified bound of that; with constraints a loose one where no solver's dual certifies a better one.
        """
        try:
            return self._supervised("the local gap", local_gap, self.problem, self.state, self.constraints)
        except SolverFailure:  # of an isolated call
            return local_gap(self.problem, self.state)

    @cached_property
    def kkt(self) -> PointResiduals | Residuals:
        """The whole problem's residuals at the mechanism.

        With user constraints: those of the joint block at its own point, which stays there iff the point is stationary.
        """
        if self.constraints:
            return self.blocks()[self.whole].residual(self.state, self.state)
        return kkt.residuals(self.problem, self.mechanism[None]).of(0)

    @property
    def moduli(self) -> Moduli:
        """The constants that the convergence proof of Bregman ADMM asks for, l_g among them."""
        return moduli(self.problem, self.settings.options.c, self.settings.options.rho)

    def blocks(self) -> dict[str, Block]:
        found = algorithm.blocks(self.problem, self.settings.options.rho, self.constraints)
        if self.bound is None:
            return found
        joint = self.problem.p_y[:, None] * self.bound.mechanism
        used = joint.sum(axis=0) > 0.0
        return {**found, "columns": columns_block(self.problem, joint[:, used] / joint[:, used].sum(axis=0))}

    def as_mechanism(self) -> Mechanism:
        """See `MechanismRun`.

        What is inferred is no private column of it: a release needs the data's columns only, and may keep S beside U to
        train a server on. The figures then do not cover S.
        """
        figures = {
            "accuracy": self.accuracy,
            "leakage": self.leakage,
            "objective": self.objective,
            "beta": self.problem.beta,
            "kkt": self.kkt.largest,
        }
        origin = {
            "divergence": self.problem.divergence.name,
            "inferred": ", ".join(self.problem.table.private.columns),
            "constraints": ", ".join(name for name, _ in self.constraints),
            **{name: value for name, value in asdict(self.settings).items() if name != "options"},
        }
        return self._designed(figures, origin, outputs=[f"u{index}" for index in range(self.problem.size_u)])

    def _described(self, beside: Beside) -> Facts:
        return inference_facts(self, beside, self.local_gap, self.gap, self.bound, self.note)

    def saved(self) -> dict[str, Any]:
        """See `MechanismRun`; a divergence is saved by name."""
        problem = self.problem
        certificate = None if self.bound is None else self.bound.certificate
        proof: dict[str, Any] = {}
        if self.bound is not None and certificate is not None:
            proof = {"certificate": certificate.without_table().document(), "reason": self.bound.reason}
        return {
            **proof,
            "no_gap": self.no_gap if self.bound is None else self.bound.no_certificate,
            "beta": problem.beta,
            "divergence": problem.divergence.name,
            "size_u": problem.size_u,
            "floor": problem.floor,
            "note": self.note,
        }

    @classmethod
    def load(cls, path: PathLike, own: FDivergence | None = None) -> InferenceRun:
        """Read what `save` wrote; the history and functions that the user gave as constraints are not in it.

        Parameters
        ----------
        path : path
        own : FDivergence, optional
            The divergence of the run, if it was a user's own.

        Raises
        ------
        DataError
            No such file, not a saved run, of another version, or with a divergence that is not known here; or its
            certificate proves nothing.
        """
        return cls.opened(read_run(path, cls.model), path, own=own)

    def contradiction(self) -> str:
        shape = (self.problem.p_s_given_y.shape[0], self.mechanism.shape[1])
        if missing := {"objective", "accuracy", "leakage"} - set(self.starts):
            return f"its starts have no {min(missing)}"
        if self.state["posterior"].shape != shape:
            return "its posterior has a wrong shape"
        if said := super().contradiction():
            return said
        mass = self.problem.p_y @ self.mechanism
        own = closed_form.posterior(self.mechanism, self.problem.p_y, self.problem.p_s_given_y)
        near = bool((mass * np.abs(self.state["posterior"] - own)).max() <= SAME_POSTERIOR)  # NaN is not
        return "" if near or not self.converged else "its posterior P(S|U) is not that of its mechanism"

    @classmethod
    def of_document(cls, document: Mapping[str, Any], own: FDivergence | None = None) -> InferenceRun:
        proof = document.get("certificate")
        problem = Problem(
            table_of(document),
            decoded(float, document["beta"]),
            _divergence(document, own),
            decoded(int, document["size_u"]),
            decoded(float, document["floor"]),
        )
        kept = restored(document)
        bound = None
        if proof is not None:
            bound = bound_of(service_certificate_of(proof), problem, kept["constraints"])
            bound = replace(bound, reason=decoded(str, document.get("reason", "")))
        return cls(
            problem=problem,
            bound=bound,
            settings=decoded(Settings, document["settings"]),
            note=decoded(str, document["note"]),
            **kept,
        )


def _divergence(document: Mapping[str, Any], own: FDivergence | None) -> FDivergence:
    name = document["divergence"]
    if own is not None and own.name == name:
        return own
    try:
        return divergence(name)
    except ModelError as error:
        raise DataError(
            f"the run's divergence {name!r} is not built in: pass it to InferenceRun.load(path, own=...)"
        ) from error


#: Largest difference of a stored P(S,U) from that of the mechanism: the local gap is one at the stored P(S|U).
SAME_POSTERIOR = 1e-5
#: The multipliers of this constraint are alpha.
AVERAGE = "columns average to P(Y)"


def columns_block(problem: Problem, columns: Array) -> Block:
    """The mixture of given posteriors P(Y|u), (|Y|, k), that is worth most; a minimisation of its negative worth."""
    worth = symbol_values(problem, columns.T)
    return master_block(-worth, {AVERAGE: (columns, problem.p_y, True)})
