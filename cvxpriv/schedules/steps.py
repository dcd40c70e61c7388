"""The schedule: steps over a state, in sweeps and loops, declared here and run by `cvxpriv.schedules.running.run`.

An algorithm reads as in the paper::

    Loop(Sweep([u, r, w, q]), stop=Below("kkt", 1e-7), limit=500)

Steps are pure: each gets the state, returns the entries it writes, and keeps nothing. A `Sweep` is Gauss-Seidel (each
step sees what the one before it wrote), a `Parallel` is Jacobi (all see one snapshot). A `Loop` follows every start
until its own stopping rule holds, and leaves finished starts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvxpriv.blocks.block import Block
from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.doors import door
from cvxpriv.privacy.ledger import Release
from cvxpriv.privacy.noise import Noise
from cvxpriv.schedules.history import Stop

Cost = Sequence[Release] | Callable[[Values], Sequence[Release]]
Measure = Callable[[Values], Mapping[str, Array]]
Accelerator = Callable[[Callable[[Values], dict[str, Array]], dict[str, Array], int], Values]


@door
@dataclass(frozen=True)
class Update:
    """A step that is not an optimisation, such as a dual step or a growing penalty.

    Attributes
    ----------
    name : str
    fn : callable
        Maps the entries read (all starts) to the entries written.
    reads, writes : frozenset of str
    """

    name: str
    fn: Callable[[Values], Values]
    reads: frozenset[str]
    writes: frozenset[str]


@door
@dataclass(frozen=True)
class Draw:
    """The only kind of step with randomness: each of its releases goes to the privacy ledger.

    Of a state of several starts it releases as many times, and the ledger says so. A draw keeps nothing: where its
    noise or its cost changes from pass to pass, it reads a public counter.

    Attributes
    ----------
    name : str
    fn : callable
        Maps (the entries read, `Noise`) to the entries written.
    reads, writes : frozenset of str
        Names of entries. The written ones are released: a `Public` step may read them.
    cost : sequence of Release, or callable
        Its entries in the ledger, or a function of the released ones of the entries read that returns them. At least
        one: a draw without cost is a `Public` step.

    Raises
    ------
    PrivacyError
        The cost is empty.
    """

    name: str
    fn: Callable[[Values, Noise], Values]
    reads: frozenset[str]
    writes: frozenset[str]
    cost: Cost

    def __post_init__(self) -> None:
        if not callable(self.cost) and not self.cost:
            raise PrivacyError(f"draw {self.name!r} has no cost: say what it adds to the ledger")

    @property
    def flawed(self) -> bool:
        """Whether nothing is guaranteed for its releases, which are as a paper prints them."""
        return not callable(self.cost) and all(release.flaw for release in self.cost)


@door
@dataclass(frozen=True)
class Public:
    """A step without privacy cost, because it reads only released entries.

    Attributes
    ----------
    step : Update or Block
    released : frozenset of str
        Names of the public entries: written by `Draw` steps or by other public steps, or public from the start.

    Raises
    ------
    PrivacyError
        The step declares that it reads another entry; when it runs, it finds only released ones.
    """

    step: Update | Block
    released: frozenset[str]

    def __post_init__(self) -> None:
        if private := self.step.reads - self.released:
            raise PrivacyError(
                f"step {self.step.name!r} reads {', '.join(sorted(private))}, which was not released: release it by a "
                "Draw step, or compute this step from what is public"
            )

    @property
    def name(self) -> str:
        """Name of the step."""
        return self.step.name

    @property
    def reads(self) -> frozenset[str]:
        """State entries that the step reads, all of them released."""
        return self.step.reads

    @property
    def writes(self) -> frozenset[str]:
        """State entries that the step writes."""
        return self.step.writes


@door
@dataclass(frozen=True)
class Invariant:
    """A fact that must hold after every sweep; the `checked` engine asserts it.

    Attributes
    ----------
    name : str
    violation : callable
        Maps (state before, state after) to one number per start: the distance of the fact from holding.
    tolerance : float
    """

    name: str
    violation: Callable[[Values, Values], Array]
    tolerance: float


class _Several:
    """Names of the entries that several steps read and write together."""

    steps: Sequence[AnyStep]

    @property
    def reads(self) -> frozenset[str]:
        """State entries that any step reads."""
        return frozenset().union(*(step.reads for step in self.steps))

    @property
    def writes(self) -> frozenset[str]:
        """State entries that any step writes."""
        return frozenset().union(*(step.writes for step in self.steps))


@door
@dataclass(frozen=True)
class Sweep(_Several):
    """Steps one after the other, each of which sees the entries that earlier ones wrote (Gauss-Seidel).

    Attributes
    ----------
    steps : sequence of steps
    fused : callable, optional
        The whole sweep as one exact update, for engines that would run every step by its exact update anyway. A test of
        the model holds that it equals the steps.
    invariants : sequence of Invariant
        Invariants that the `checked` engine asserts after each sweep.
    name : str
    """

    steps: Sequence[AnyStep]
    fused: Callable[[Values], Values] | None = None
    invariants: Sequence[Invariant] = ()
    name: str = "sweep"

    def __post_init__(self) -> None:
        if self.fused is not None and any(map(draws, self.steps)):
            raise ModelError(f"sweep {self.name!r} draws noise and cannot be fused: the ledger would miss its releases")


@door
@dataclass(frozen=True)
class Parallel(_Several):
    """Steps that all see one snapshot (Jacobi); no two may write the same entry."""

    steps: Sequence[AnyStep]
    name: str = "parallel"

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for step in self.steps:
            if both := seen & step.writes:
                raise ModelError(f"parallel steps write {sorted(both)} twice: make them a Sweep, or let one write it")
            seen |= step.writes


@door
@dataclass(frozen=True)
class Loop:
    """Repeat a body until each start's stopping rule holds.

    Beside a draw, also one outside of the loop, `stop`, `measure` and `accept` see released entries alone: anyone who
    sees the result knows when a loop ended, and its measurements.

    Attributes
    ----------
    body : step
    stop : Stop
        The stopping rule, which reads the figures of `measure`.
    limit : int
        Largest number of iterations.
    measure : callable
        Maps a state to named figures, one number per start, after each iteration.
    accept : callable, optional
        Maps (state before, state after) to a mask of starts whose step is taken; the others keep their state.
    accelerate : callable, optional
        Maps (body as a map of states, state, iteration) to the next state, in place of one plain run of the body.
    name : str
    """

    body: AnyStep
    stop: Stop
    limit: int
    measure: Measure
    accept: Callable[[Values, Values], npt.NDArray[np.bool_]] | None = None
    accelerate: Accelerator | None = None
    name: str = "loop"

    def __post_init__(self) -> None:
        if self.accelerate is not None and draws(self.body):
            raise ModelError(f"loop {self.name!r} draws noise and cannot be accelerated: each draw costs privacy")

    @property
    def reads(self) -> frozenset[str]:
        """State entries that the body reads."""
        return self.body.reads

    @property
    def writes(self) -> frozenset[str]:
        """State entries that the body writes."""
        return self.body.writes


AnyStep = Block | Update | Draw | Public | Sweep | Parallel | Loop


def parts_of(step: AnyStep) -> Iterator[Block | Update | Draw | Public]:
    """Yield the elementary steps of a step."""
    match step:
        case Sweep() | Parallel():
            for part in step.steps:
                yield from parts_of(part)
        case Loop():
            yield from parts_of(step.body)
        case _:
            yield step


def draws(step: AnyStep) -> bool:
    """Return whether a step, or any step in it, draws noise."""
    return any(isinstance(part, Draw) for part in parts_of(step))
