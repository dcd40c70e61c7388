"""A party of ADMM sharing in a process of its own: its columns, its coefficients, its noise, its ledger.

It answers messages of `apart_messages.SPOKEN`, and only those that its own `Allowance` permits. A pass is one step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.distributed import participant
from cvxpriv.distributed.messages import Message, Vocabulary
from cvxpriv.errors import PartyError, PrivacyError
from cvxpriv.learning.matrices import with_column
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import convex_penalty, loss_named
from cvxpriv.penalties.contract import distance
from cvxpriv.privacy import Noise, Release
from cvxpriv.reports.files import PathLike
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run as run_schedule
from cvxpriv.schedules.steps import AnyStep, Sweep

from . import bounds, mechanism
from .apart_messages import SPOKEN
from .blocks import party_towards
from .factor import Factor
from .kkt import part_of_gap
from .private_settings import UNRESOLVED
from .problem import Problem, bounds_with_ones, checked_part
from .schemes import Scheme, scheme_named
from .sensitivity import parties_touched, resolved


@dataclass(frozen=True)
class Allowance(participant.Allowance):
    """The limits of what leaves a party's process: see `cvxpriv.distributed.participant.Allowance`.

    Attributes
    ----------
    bounds : mapping of str to float
        Public bounds of its data by name: row_bound, column_bound, cell_bound.
    clip_data : bool
        Whether data beyond a bound are clipped rather than refused.
    """

    bounds: Mapping[str, float] = field(default_factory=dict)
    clip_data: bool = False


@dataclass(frozen=True)
class _Begun:
    """A run that this party takes part in: its own problem, and the rule of its releases if it is private."""

    problem: Problem
    factor: Factor
    scheme: Scheme
    parties: int
    place: int
    rho: Array
    height: float = 0.0
    release: mechanism.ShareRelease | None = None

    def told(self, message: Message) -> Values:
        """Return the entries of a step that a message brings."""
        return {"target": message.vectors["target"][None], "y": message.vectors["y"][None], "rho": self.rho}

    def block(self) -> Any:
        """Return the party's step towards a target that it is told."""
        one, shares = self.problem, frozenset({"target"})
        return party_towards(
            lambda view: view["target"], shares, self.factor, one.penalties[0], one.lam, self.scheme, self.parties, 0
        )


class SharingParty(participant.Participant[_Begun]):
    """The party's side of `SharingApart`.

    Parameters
    ----------
    part : array or scipy.sparse, (N, d)
        Its columns.
    allowance : Allowance
    digests, noise, folder
        See `cvxpriv.distributed.participant.Participant`.
    """

    vocabulary: Vocabulary = SPOKEN
    allowance: Allowance

    def __init__(
        self,
        part: Any,
        allowance: Allowance,
        *,
        digests: np.ndarray[Any, Any] | None = None,
        noise: Noise | None = None,
        folder: PathLike | None = None,
    ) -> None:
        super().__init__(checked_part("columns", part), allowance, folder, noise, digests)
        self.part = self.table

    @property
    def coefficients(self) -> Array:
        """The party's coefficients, (d,): of the last pass, or of a private run the mean over passes."""
        return np.asarray(self.state["mean/0" if "mean/0" in self.state else "x/0"][0])

    def _positions(self, message: Message) -> Message:
        positions = message.vectors["positions"].astype(np.intp)
        rows = self.table.shape[0]
        if positions.size and (positions.max() >= rows or np.unique(positions).size < positions.size):
            raise PartyError("the positions that came are no rows of this table: the orchestrator misread its hashes")
        self.part = self.table[positions] if positions.size else self.table
        self.sizes["rows"] = int(self.part.shape[0])
        return Message.of("aligned", rows=self.sizes["rows"])

    def _begin(self, message: Message) -> Message:
        self.allowance.require_exact()
        begun = self._posed(message, direct=True)
        self._enter(message, {"x/0": np.zeros((1, begun.factor.part.shape[1]))})
        self._go(begun)
        return Message("ready")

    def _begin_private(self, message: Message) -> Message:
        relation, mu, releases = message.texts["adjacency"], message.number("mu"), int(message.number("releases"))
        parties = int(message.number("parties"))
        total = Release(mu=mu * float(np.sqrt(releases * parties_touched(relation, parties))))
        self.allowance.require(total)
        bound = self.allowance.bounds.get(bounds.ADJACENCIES[relation][0], float("inf"))
        clips = [message.number(name) or float("inf") for name in ("clip", "clip_entries")]
        height = message.number("intercept")
        if height and np.isfinite(bound):
            bound = bounds_with_ones([bound], relation, self.sizes["rows"])[0]
        if height not in (0.0, 1.0):
            raise PrivacyError(f"a private intercept's column has height 1, and {height:g} was asked for")
        posed = self._posed(message)
        if posed.scheme.proximal or posed.scheme.in_turn:
            raise PrivacyError(f"method={posed.scheme.name!r} has no private form across parties: take 'averaged'")
        if not (np.isfinite(bound) or np.isfinite(clips[0])):
            raise PrivacyError(f"adjacency={relation!r} without a public bound of this party's data: give its ranges")
        part = bounds.within(posed.problem, relation, (bound,), self.allowance.clip_data)[0]
        posed = replace(posed, problem=replace(posed.problem, parts=(part,)), factor=Factor(part))
        ridge = posed.problem.penalties[0].ridge or 0.0
        if not ridge * posed.problem.lam > 0.0 and not np.isfinite(clips[0]):
            raise PrivacyError("a step has a bounded sensitivity for penalty='l2' with lam > 0 alone: pass clip")
        kappa = posed.problem.lam * ridge / float(posed.rho[0])
        if not (np.isfinite(clips).any() or resolved(relation, bound, kappa, *part.shape)):
            raise PrivacyError(UNRESOLVED)
        rule = mechanism.ShareRelease(mu, relation, (bound,), (kappa,), clips[0], clips[1])
        wide, long = np.zeros((1, part.shape[1])), np.zeros((1, part.shape[0]))
        names = {f"{one}/0": np.zeros(1) for one in ("noise", "sensitivity", "kept")}
        zeros = {"x/0": wide, "mean/0": wide, "v/0": long, "share/0": long, **names}
        self._enter(message, zeros, total, "ADMMSharing", relation)
        self._go(replace(posed, release=rule))
        return Message.of("bounded", bound=bound if np.isfinite(bound) else 0.0)

    def _go(self, begun: _Begun) -> None:
        self.begun, self.height = begun, begun.height

    def _posed(self, message: Message, *, direct: bool = False) -> _Begun:
        height, rho, lam = (message.number(name) for name in ("intercept", "rho", "lam"))
        part = with_column(self.part, height) if height else self.part
        ones, penalty = np.ones(part.shape[0]), convex_penalty(message.texts["penalty"])
        problem = Problem((part,), ones, loss_named("squared"), (penalty,), lam, ones)
        scheme = scheme_named(message.texts["method"], direct=direct)
        parties, place = int(message.number("parties")), int(message.number("place"))
        return _Begun(problem, Factor(part), scheme, parties, place, np.array([rho]), height=height)

    def _weigh(self, message: Message) -> Message:
        """Take the penalty of each row for the steps from here on."""
        if self.begun is None or self.terms:
            raise PartyError("a penalty of each row came outside a run without privacy: the label holder misread it")
        self.begun = replace(self.begun, rho=message.vectors["rho"][None])
        return Message("weighed")

    def _step(self, message: Message) -> Message:
        begun, asked = self.running, int(message.number("pass"))
        before = self._start(asked)
        factor, penalty, x = begun.factor, begun.problem.penalties[0], before["x/0"][0]
        pulled = factor.pull_dual(message.vectors["y"])
        own = factor.share(x) if begun.scheme.linearises(penalty) else np.zeros(0)
        told = {**begun.told(message), "x/0": x[None], "v/0": own[None]}
        done = run_schedule(begun.block(), told, Context(ClosedForm()))
        self._keep(asked, before, {"x/0": done["x/0"]})
        return Message.of(
            "share",
            **{"pass": asked},
            share=done["v/0"][0],
            penalty=penalty.value(x),
            stationarity=distance(penalty, x, pulled, begun.problem.lam),
            pulled=float(np.linalg.norm(pulled)),
        )

    def _finish(self, message: Message) -> Message:
        """Keep the coefficients of the pass that was the last; return this party's part of the duality gap."""
        asked = int(message.number("pass"))
        if asked not in (self.done - 1, self.done):
            raise PartyError(f"pass {asked} was the last, and this party is at {self.done}: its checkpoint is missing")
        if asked == self.done - 1:
            self._keep(asked, self.before, self.before)
        off = part_of_gap(self.running.problem, 0, self.state["x/0"][0], message.vectors["y"])
        return Message.of("finished", **{"pass": asked, "off": off})

    def _release(self, message: Message) -> Message:
        """Take a private step and release the share with noise; one that was drawn is sent again as it was."""
        begun, asked = self.running, int(message.number("pass"))
        if asked != self.done:
            assert begun.release is not None  # the run is private
            draw = mechanism.draw_towards(_target, frozenset({"target"}), begun.factor, 0, begun.release)
            self._private_step(message, draw)
        state = self.state
        figures = {"noise": state["noise/0"], "sensitivity": state["sensitivity/0"]}
        return Message.of("released", **{"pass": asked, "values": state["v/0"][0], **figures})

    def _last(self, message: Message) -> Message:
        """Take the step after the last release."""
        self._private_step(message)
        return Message("kept", {"pass": message.vectors["pass"]})

    def _private_step(self, message: Message, *draw: AnyStep) -> None:
        begun, asked = self.running, int(message.number("pass"))
        before, context = self._start(asked), Context(ClosedForm(), noise=self.noise, iteration=asked)
        told = {**before, **begun.told(message), "passes": np.array([float(asked - 1)])}
        done = run_schedule(Sweep([*mechanism.kept_at_home(begun.block(), 0), *draw]), told, context)
        released = [replace(one, source=f"party {begun.place}") for one in context.ledger]
        self._keep(asked, before, {name: done[name] for name in before}, released)


def _target(view: Values) -> Array:
    return np.asarray(view["target"][0])
