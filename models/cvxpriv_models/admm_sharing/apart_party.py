"""A party of ADMM sharing in a process of its own: its columns, its coefficients, its noise, its ledger.

It answers messages of `apart_messages.SPOKEN`, and only those that its own `Allowance` permits. Its checkpoint is
written before an answer leaves: a party that was killed comes back at its pass, and a release that was drawn is sent
again as it was, never drawn twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.distributed.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from cvxpriv.distributed.messages import Message, Vocabulary
from cvxpriv.errors import DataError, PartyError, PrivacyError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import convex_penalty, loss_named
from cvxpriv.penalties.contract import distance
from cvxpriv.privacy import Budget, Noise, Release, gaussian_epsilon, ledger_document, ledger_of
from cvxpriv.reports.files import PathLike
from cvxpriv.schedules.running import run as run_schedule
from cvxpriv.schedules.steps import Context, Sweep

from . import bounds, mechanism
from .apart_messages import SPOKEN
from .blocks import party_towards
from .factor import Factor
from .intercept import bounds_with_ones, with_column
from .problem import Problem, checked_part
from .schemes import Scheme, scheme_named
from .spending import parties_touched

__all__ = ["Allowance", "SharingParty"]

#: Rounding of a budget that an option states in decimals.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Allowance:
    """The limits of what leaves a party's process.

    Attributes
    ----------
    exact : bool
        Whether exact shares may leave it, without any privacy.
    epsilon, delta : float, optional
        The most that a private run may cost; None allows no private run.
    bounds : mapping of str to float
        Public bounds of its data by name: row_bound, column_bound, cell_bound.
    clip_data : bool
        Whether data beyond a bound are clipped rather than refused.
    budget : path, optional
        File of a budget over several runs.
    """

    exact: bool = False
    epsilon: float | None = None
    delta: float = 1e-6
    bounds: Mapping[str, float] = field(default_factory=dict)
    clip_data: bool = False
    budget: PathLike | None = None


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


class SharingParty:
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

    def __init__(
        self,
        part: Any,
        allowance: Allowance,
        *,
        digests: np.ndarray[Any, Any] | None = None,
        noise: Noise | None = None,
        folder: PathLike | None = None,
    ) -> None:
        self.table, self.allowance = checked_part("columns", part), allowance
        self.digests = np.zeros(0, dtype="<u8") if digests is None else digests
        self.noise = noise or Noise()
        self.file = None if folder is None else Path(folder) / "checkpoint.bin"
        self.part, self.sizes = self.table, {"rows": int(self.table.shape[0])}
        self.ledger: list[Release] = []
        self.begun: _Begun | None = None
        self.run, self.passes = "", 0
        self.state: dict[str, Array] = {}
        self.before: dict[str, Array] = {}
        self.terms: dict[str, Any] = {}

    @property
    def coefficients(self) -> Array:
        """The party's coefficients, (d,): of the last pass, or of a private run the mean over passes."""
        return np.asarray(self.state["mean/0" if "mean/0" in self.state else "x/0"][0])

    @property
    def fitted(self) -> bool:
        """Whether there are coefficients: a run has begun."""
        return bool(self.state)

    @property
    def height(self) -> float:
        """Value of the intercept's column, the last one; 0 where there is none."""
        return 0.0 if self.begun is None else self.begun.height

    def hello(self) -> Message:
        """See `Role`."""
        rows, columns = self.table.shape
        return Message(
            "hello", {"rows": np.array([float(rows)]), "columns": np.array([float(columns)]), "digests": self.digests}
        )

    def answer(self, message: Message) -> Message:
        """See `Role`.

        Raises
        ------
        PartyError
            The message is of a pass that this party is not at.
        PrivacyError
            Its allowance does not permit what is asked, or its data exceed their bound.
        """
        match message.kind:
            case "positions":
                return self._aligned(message)
            case "begin":
                return self._begin(message)
            case "begin-private":
                return self._begin_private(message)
            case "step":
                return self._step(message)
            case "finish":
                return self._finish(message)
            case _:
                return self._release(message)

    def _aligned(self, message: Message) -> Message:
        positions = message.vectors["positions"].astype(np.intp)
        rows = self.table.shape[0]
        if positions.size and (positions.max() >= rows or np.unique(positions).size < positions.size):
            raise PartyError("the positions that came are no rows of this table: the orchestrator misread its hashes")
        self.part = self.table[positions] if positions.size else self.table
        self.sizes["rows"] = int(self.part.shape[0])
        return Message("aligned", {"rows": np.array([float(self.sizes["rows"])])})

    def _begin(self, message: Message) -> Message:
        if not self.allowance.exact:
            raise PrivacyError(
                "exact shares were asked for, and this party gives noisy ones alone: give it --exact to allow them"
            )
        self.begun = self._posed(message, self.part)
        x = np.zeros((1, self.begun.factor.part.shape[1]))
        self._resume(message.texts["run"], {"x/0": x})
        return Message("ready")

    def _begin_private(self, message: Message) -> Message:
        relation, mu, releases = message.texts["adjacency"], message.number("mu"), int(message.number("releases"))
        parties = int(message.number("parties"))
        self._require_affordable(mu, releases, parties, relation)
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
        rule = mechanism.ShareRelease(mu, relation, (bound,), (kappa,), clips[0], clips[1])
        wide, long = np.zeros((1, part.shape[1])), np.zeros((1, part.shape[0]))
        names = {f"{one}/0": np.zeros(1) for one in ("noise", "sensitivity", "kept")}
        terms = {
            "mu": mu,
            "releases": releases,
            "parties": parties,
            "adjacency": relation,
            "clips": clips,
            "rho": message.number("rho"),
        }
        run, kept = message.texts["run"], self._checkpoint()
        known = run in (self.run, kept.run if kept else None)
        if not known:  # a run that is refused changes nothing here
            earlier = bool(self.ledger or (kept and kept.ledger))
            self._spend(mu * float(np.sqrt(releases * parties_touched(relation, parties))), relation, earlier)
        self._resume(run, {"x/0": wide, "mean/0": wide, "v/0": long, "share/0": long, **names})
        if not known:
            self.terms = terms
            self._save()
        elif terms != self.terms:
            raise PrivacyError("the run began with other terms: a run keeps its budget, releases and bounds")
        self.begun = replace(posed, release=rule, releases=releases)
        return Message("bounded", {"bound": np.array([bound if np.isfinite(bound) else 0.0])})

    def _require_affordable(self, mu: float, releases: int, parties: int, relation: str) -> None:
        epsilon, delta = self.allowance.epsilon, self.allowance.delta
        if epsilon is None:
            raise PrivacyError("a private run was asked for, and this party has no budget: give it --epsilon")
        together = mu * float(np.sqrt(releases * parties_touched(relation, parties)))
        if not (cost := gaussian_epsilon(delta=delta, mu=together)) <= epsilon * (1.0 + ROUNDING):
            raise PrivacyError(
                f"the run would cost epsilon={cost:.4g} at delta={delta:g}, and this "
                f"party allows {epsilon:g}: lower the run's epsilon, or raise the party's"
            )

    def _spend(self, mu: float, relation: str, earlier: bool) -> None:
        allowed = self.allowance
        if allowed.budget is not None:
            budget = Budget(allowed.epsilon or 0.0, allowed.delta, path=allowed.budget, adjacency=relation)
            budget.spend([Release(mu=mu)], what="ADMMSharing", adjacency=relation)
        elif earlier:
            raise PrivacyError("a second private run was asked for, and this party's budget is for one: give --budget")

    def _posed(self, message: Message, part: Any) -> _Begun:
        rows, scheme = int(part.shape[0]), scheme_named(message.texts["method"])
        height = message.number("intercept")
        penalty, lam = convex_penalty(message.texts["penalty"]), message.number("lam")
        ones = np.ones(rows)
        part = with_column(part, height) if height else part
        problem = Problem((part,), ones, loss_named("squared"), (penalty,), lam, ones)
        place, rho = int(message.number("place")), np.array([message.number("rho")])
        return _Begun(problem, Factor(part), scheme, int(message.number("parties")), place, rho, height=height)

    def _checkpoint(self) -> Checkpoint | None:
        return None if self.file is None else read_checkpoint(self.file)

    def _resume(self, run: str, zeros: dict[str, Array]) -> None:
        """Take up a run where the checkpoint left it, or at its beginning."""
        if run == self.run:
            return
        self.run, self.passes, self.ledger, self.terms = run, 0, [], {}
        self.state, self.before = dict(zeros), dict(zeros)
        found = self._checkpoint()
        if found is None or found.run != run:
            return
        shapes = {name: value.shape for name, value in zeros.items()}
        self.passes, self.terms = found.passes, dict(found.terms)
        try:
            self.state = {name: found.arrays[name].reshape(shape) for name, shape in shapes.items()}
            self.before = {name: found.arrays[f"before {name}"].reshape(shape) for name, shape in shapes.items()}
            self.ledger = list(ledger_of(found.ledger))
        except (KeyError, ValueError) as error:
            raise DataError(f"{self.file} is the checkpoint of another table: serve the table of that run") from error

    def _save(self) -> None:
        """Write the checkpoint; that of a private run is on the disk before anything leaves."""
        if self.file is not None:
            arrays = {**self.state, **{f"before {name}": value for name, value in self.before.items()}}
            found = Checkpoint(self.run, self.passes, arrays, ledger_document(self.ledger), self.terms)
            write_checkpoint(self.file, found, durable=bool(self.terms))

    def _at(self, message: Message) -> _Begun:
        """Go to the pass that is asked for: the next one, or the last one again."""
        asked = int(message.number("pass"))
        if self.begun is None or asked not in (self.passes, self.passes + 1) or asked < 1:
            raise PartyError(
                f"pass {asked} was asked for, and this party is at {self.passes}: its checkpoint is missing"
            )
        if asked == self.passes:
            self.state = dict(self.before)
        else:
            self.before = dict(self.state)
        return self.begun

    def _step(self, message: Message) -> Message:
        if self.begun is not None and self.begun.release is not None:
            raise PrivacyError("an exact share was asked for in a private run")
        begun = self._at(message)
        factor, penalty, x = begun.factor, begun.problem.penalties[0], self.state["x/0"][0]
        y = message.vectors["y"]
        pulled = factor.pull(y)
        figures = {
            "penalty": penalty.value(x),
            "stationarity": distance(penalty, x, pulled, begun.problem.lam),
            "pulled": float(np.linalg.norm(pulled)),
        }
        told = {"target": message.vectors["target"][None], "y": y[None], "rho": begun.rho}
        own = factor.share(x) if begun.scheme.linearises(penalty) else np.zeros(0)
        done = run_schedule(begun.block(), {"x/0": x[None], "v/0": own[None], **told}, Context(ClosedForm()))
        self.state = {"x/0": done["x/0"]}
        self.passes = int(message.number("pass"))
        self._save()
        numbers = {name: np.array([value]) for name, value in figures.items()}
        return Message("share", {"pass": message.vectors["pass"], "share": done["v/0"][0], **numbers})

    def _finish(self, message: Message) -> Message:
        """Keep the coefficients of the pass that was the last; return this party's part of the duality gap."""
        begun, asked = self.begun, int(message.number("pass"))
        if begun is None or asked not in (self.passes - 1, self.passes):
            raise PartyError(
                f"pass {asked} was the last, and this party is at {self.passes}: its checkpoint is missing"
            )
        if begun.release is not None:
            raise PrivacyError("a part of the duality gap, which is exact, was asked for in a private run")
        if asked == self.passes - 1:
            self.state, self.passes = dict(self.before), asked
            self._save()
        curvature = begun.problem.lam * (begun.problem.penalties[0].ridge or 0.0)
        off = np.zeros(1)
        if curvature > 0.0:
            away = self.state["x/0"][0] + (begun.factor.part.T @ message.vectors["y"]) / curvature
            off = np.array([0.5 * curvature * float(away @ away)])
        return Message("finished", {"pass": message.vectors["pass"], "off": off})

    def _release(self, message: Message) -> Message:
        """Take a private step; release the share with noise, unless it is the step after the last release."""
        if message.kind == "release" and self._again(message):
            return self._released()
        begun = self._at(message)
        if begun.release is None:
            raise PartyError(f"a message {message.kind!r} came in a run without privacy")
        asked = int(message.number("pass"))
        if message.kind == "release" and asked > begun.releases:
            raise PrivacyError(f"release {asked} was asked for, and {begun.releases} were announced")
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
        done = run_schedule(Sweep(steps), {**self.state, **told}, context)
        self.state = {name: done[name] for name in self.state}
        self.ledger += [replace(one, source=f"party {begun.place}") for one in context.ledger]
        self.passes = asked
        self._save()
        return self._released() if message.kind == "release" else Message("kept", {"pass": message.vectors["pass"]})

    def _again(self, message: Message) -> bool:
        """Return whether a release is asked for again that was drawn already."""
        return self.begun is not None and 0 < self.passes == int(message.number("pass"))

    def _released(self) -> Message:
        state = self.state
        return Message(
            "released",
            {
                "pass": np.array([float(self.passes)]),
                "values": state["v/0"][0],
                "noise": state["noise/0"],
                "sensitivity": state["sensitivity/0"],
            },
        )
