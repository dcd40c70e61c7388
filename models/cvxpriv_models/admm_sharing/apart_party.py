"""A party of ADMM sharing in a process of its own: its columns, its coefficients, its noise, its ledger.

It answers messages of `apart_messages.SPOKEN`, and only those that its own `Allowance` permits. A pass is one step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

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
from cvxpriv.schedules.steps import Sweep

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
    release: mechanism.ShareRelease | None = None
    releases: int = 0
    height: float = 0.0

    def block(self) -> Any:
        """Return the party's step towards a target that it is told."""
        one, shares = self.problem, frozenset({"target"})
        return party_towards(
            lambda view: view["target"], shares, self.factor, one.penalties[0], one.lam, self.scheme, self.parties, 0
        )


class SharingParty(participant.Participant):
    """The party's side of `SharingApart`.

    Parameters
    ----------
    part : array or scipy.sparse, (N, d)
        Its columns.
    allowance : Allowance
    digests : ndarray of uint64, optional
        Keyed hashes of its rows' identifiers (`cvxpriv.distributed.alignment.digests`); None where all parties have
        the same rows in the same order.
    noise : Noise, optional
        Source of its noise; the operating system's secure one unless a test brings another.
    folder : path, optional
        Folder of its checkpoint. Without one it cannot come back to a run.
    """

    vocabulary: Vocabulary = SPOKEN
    answers: ClassVar[Mapping[str, str]] = {
        **{"positions": "_aligned", "begin": "_begin", "weigh": "_weigh", "step": "_step", "finish": "_finish"},
        **{"begin-private": "_begin_private", "release": "_release", "last": "_release"},
    }
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
        super().__init__(allowance, folder)
        self.table = checked_part("columns", part)
        self.digests = np.zeros(0, dtype="<u8") if digests is None else digests
        self.noise = noise or Noise()
        self.part, self.sizes = self.table, {"rows": int(self.table.shape[0])}
        self.begun: _Begun | None = None

    @property
    def coefficients(self) -> Array:
        """The party's coefficients, (d,): of the last pass, or of a private run the mean over passes."""
        return np.asarray(self.state["mean/0" if "mean/0" in self.state else "x/0"][0])

    @property
    def height(self) -> float:
        """Value of the intercept's column, the last one; 0 where there is none."""
        return 0.0 if self.begun is None else self.begun.height

    def hello(self) -> Message:
        rows, columns = self.table.shape
        return Message(
            "hello", {"rows": np.array([float(rows)]), "columns": np.array([float(columns)]), "digests": self.digests}
        )

    def _aligned(self, message: Message) -> Message:
        positions = message.vectors["positions"].astype(np.intp)
        rows = self.table.shape[0]
        if positions.size and (positions.max() >= rows or np.unique(positions).size < positions.size):
            raise PartyError("the positions that came are no rows of this table: the orchestrator misread its hashes")
        self.part = self.table[positions] if positions.size else self.table
        self.sizes["rows"] = int(self.part.shape[0])
        return Message("aligned", {"rows": np.array([float(self.sizes["rows"])])})

    def _begin(self, message: Message) -> Message:
        self.allowance.require_exact()
        begun = self._posed(message, self.part, direct=True)
        self._enter(message, {"x/0": np.zeros((1, begun.factor.part.shape[1]))})
        self.begun = begun
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
        posed = self._posed(message, self.part)
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
        self.begun = replace(posed, release=rule, releases=releases)
        return Message("bounded", {"bound": np.array([bound if np.isfinite(bound) else 0.0])})

    def _posed(self, message: Message, part: Any, *, direct: bool = False) -> _Begun:
        rows, scheme = int(part.shape[0]), scheme_named(message.texts["method"], direct=direct)
        height = message.number("intercept")
        penalty, lam = convex_penalty(message.texts["penalty"]), message.number("lam")
        ones = np.ones(rows)
        part = with_column(part, height) if height else part
        problem = Problem((part,), ones, loss_named("squared"), (penalty,), lam, ones)
        place, rho = int(message.number("place")), np.array([message.number("rho")])
        return _Begun(problem, Factor(part), scheme, int(message.number("parties")), place, rho, height=height)

    def _at(self, message: Message) -> tuple[_Begun, int, dict[str, Array]]:
        """Return the run, the pass that is asked for, and the state before it."""
        asked = int(message.number("pass"))
        before = self._start(asked)
        assert self.begun is not None  # it began with the run
        return self.begun, asked, before

    def _weigh(self, message: Message) -> Message:
        """Take the penalty of each row for the steps from here on."""
        if self.begun is None or self.begun.release is not None:
            raise PartyError("a penalty of each row came outside a run without privacy: the label holder misread it")
        self.begun = replace(self.begun, rho=message.vectors["rho"][None])
        return Message("weighed")

    def _step(self, message: Message) -> Message:
        begun, asked, before = self._at(message)
        if begun.release is not None:
            raise PrivacyError("an exact share was asked for in a private run")
        factor, penalty, x = begun.factor, begun.problem.penalties[0], before["x/0"][0]
        y = message.vectors["y"]
        pulled = factor.pull_dual(y)
        figures = {
            "penalty": penalty.value(x),
            "stationarity": distance(penalty, x, pulled, begun.problem.lam),
            "pulled": float(np.linalg.norm(pulled)),
        }
        told = {"target": message.vectors["target"][None], "y": y[None], "rho": begun.rho}
        own = factor.share(x) if begun.scheme.linearises(penalty) else np.zeros(0)
        done = run_schedule(begun.block(), {"x/0": x[None], "v/0": own[None], **told}, Context(ClosedForm()))
        self._keep(asked, before, {"x/0": done["x/0"]})
        numbers = {name: np.array([value]) for name, value in figures.items()}
        return Message("share", {"pass": message.vectors["pass"], "share": done["v/0"][0], **numbers})

    def _finish(self, message: Message) -> Message:
        """Keep the coefficients of the pass that was the last; return this party's part of the duality gap."""
        begun, asked = self.begun, int(message.number("pass"))
        if begun is None or asked not in (self.done - 1, self.done):
            raise PartyError(f"pass {asked} was the last, and this party is at {self.done}: its checkpoint is missing")
        if begun.release is not None:
            raise PrivacyError("a part of the duality gap, which is exact, was asked for in a private run")
        if asked == self.done - 1:
            self._keep(asked, self.before, self.before)
        off = part_of_gap(begun.problem, 0, self.state["x/0"][0], message.vectors["y"])
        return Message("finished", {"pass": message.vectors["pass"], "off": np.array([off])})

    def _release(self, message: Message) -> Message:
        """Take a private step; release the share with noise, unless it is the step after the last release."""
        begun, asked, before = self._at(message)
        if begun.release is None:
            raise PartyError(f"a message {message.kind!r} came in a run without privacy")
        if message.kind == "release" and asked > begun.releases:
            raise PrivacyError(f"release {asked} was asked for, and {begun.releases} were announced")
        if message.kind == "release" and asked == self.done:
            return self._released()
        told: Values = {
            "target": message.vectors["target"][None],
            "y": message.vectors["y"][None],
            "rho": begun.rho,
            "passes": np.array([float(asked - 1)]),
        }
        steps: list[Any] = list(mechanism.kept_at_home(begun.block(), 0))
        if message.kind == "release":
            rule = begun.release
            steps.append(
                mechanism.draw_towards(lambda view: view["target"][0], frozenset({"target"}), begun.factor, 0, rule)
            )
        context = Context(ClosedForm(), noise=self.noise, iteration=asked)
        done = run_schedule(Sweep(steps), {**before, **told}, context)
        released = [replace(one, source=f"party {begun.place}") for one in context.ledger]
        self._keep(asked, before, {name: done[name] for name in before}, released)
        return self._released() if message.kind == "release" else Message("kept", {"pass": message.vectors["pass"]})

    def _released(self) -> Message:
        state = self.state
        return Message(
            "released",
            {
                "pass": np.array([float(self.done)]),
                "values": state["v/0"][0],
                "noise": state["noise/0"],
                "sensitivity": state["sensitivity/0"],
            },
        )
