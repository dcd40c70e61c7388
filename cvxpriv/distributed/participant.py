"""The memory of a party between messages: its limits, the present run, and all that it ever released.

A run that is refused changes nothing. A step is in the checkpoint before its answer leaves: a party that was killed
comes back where it was, and a release that was drawn is sent again as it was, never drawn twice. The ledger is of all
runs: one without privacy leaves the entries of earlier ones where they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from cvxpriv.distributed.checkpoint import FILE, Checkpoint, hold, read_checkpoint, write_checkpoint
from cvxpriv.distributed.messages import Message, Vocabulary
from cvxpriv.errors import DataError, PartyError, PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Budget, Noise, Release, gaussian_epsilon, ledger_document, ledger_of
from cvxpriv.reports.files import PathLike

Begun = TypeVar("Begun")
#: Rounding of a budget that an option states in decimals.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Allowance:
    """The limits of what leaves a party's process.

    Attributes
    ----------
    exact : bool
        Whether exact vectors may leave it, without any privacy.
    epsilon, delta : float, optional
        The most that a private run may cost; None allows no private run.
    budget : path, optional
        File of a budget over several runs; without one a party takes part in one private run.
    """

    exact: bool = False
    epsilon: float | None = None
    delta: float = 1e-6
    budget: PathLike | None = None

    def require_exact(self) -> None:
        """Refuse a run without privacy, unless it is allowed; raises PrivacyError."""
        if not self.exact:
            raise PrivacyError(
                "exact vectors were asked for, and this party gives noisy ones alone: give it --exact to allow them"
            )

    def require(self, total: Release) -> None:
        """Refuse a private run that costs more than is allowed; raises PrivacyError."""
        if self.epsilon is None:
            raise PrivacyError("a private run was asked for, and this party has no budget: give it --epsilon")
        cost = total.epsilon if total.mu is None else gaussian_epsilon(delta=self.delta, mu=total.mu)
        if cost is None or not cost <= self.epsilon * (1.0 + ROUNDING):
            raise PrivacyError(
                f"the run would cost epsilon={cost:.4g} at delta={self.delta:g}, and this party allows "
                f"{self.epsilon:g}: lower the run's epsilon, or raise the party's"
            )

    def spend(self, total: Release, what: str, relation: str, earlier: bool) -> None:
        """Write down what a run costs, before anything leaves; raises PrivacyError where the budget is spent."""
        if self.budget is not None:
            budget = Budget(self.epsilon or 0.0, self.delta, path=self.budget, adjacency=relation)
            budget.spend([total], what=what, adjacency=relation)
        elif earlier:
            raise PrivacyError("a second private run was asked for, and this party's budget is for one: give --budget")


class Participant(Generic[Begun]):
    """A party's memory.

    A model's party has a method for each kind of message that it answers: `_begin_private` for "begin-private".

    Parameters
    ----------
    table : array or scipy.sparse, (rows, columns)
        The party's rows, or its columns of all rows.
    allowance : Allowance
    folder : path, optional
        Folder of its checkpoint, which one process holds at a time (`checkpoint.hold`). Without one it cannot come back
        to a run, and a new process knows of no earlier one.
    noise : Noise, optional
        Source of its noise; the operating system's secure one unless `noise_source(seed)` is given, which warns.
    digests : ndarray of uint64, optional
        Keyed hashes of its rows' identifiers (`cvxpriv.distributed.alignment.digests`); None where all parties have
        the same rows in the same order.

    Attributes
    ----------
    begun : object
        The present run, as the model poses it; None before the first.
    run : str
        The name of the run that it takes part in.
    done : int
        The steps of it that it has taken.
    state, before : dict of str to ndarray
        The run's entries after the last step, and before it.
    terms : dict
        The message that began a private run; empty for one without privacy.
    ledger : list of Release
        Its releases, of all runs.
    """

    vocabulary: Vocabulary
    #: Value of a further column that the run itself gives the party, for an intercept; 0 for none.
    height: float = 0.0

    def __init__(
        self,
        table: Any,
        allowance: Allowance,
        folder: PathLike | None,
        noise: Noise | None = None,
        digests: np.ndarray[Any, Any] | None = None,
    ) -> None:
        self.table, self.allowance, self.noise = table, allowance, noise or Noise()
        self.digests = np.zeros(0, dtype="<u8") if digests is None else digests
        self.sizes: dict[str, int] = {"rows": int(table.shape[0])}
        self.begun: Begun | None = None
        self.file = None if folder is None else Path(folder) / FILE
        if self.file is not None:
            hold(self.file.parent.resolve())
        self.run, self.done = "", 0
        self.state: dict[str, Array] = {}
        self.before: dict[str, Array] = {}
        self.terms: dict[str, Any] = {}
        self.ledger: list[Release] = []

    @property
    def fitted(self) -> bool:
        """Whether there are coefficients: a run has begun."""
        return bool(self.state)

    @property
    def running(self) -> Begun:
        """The present run."""
        assert self.begun is not None  # `answer` refuses a step before it
        return self.begun

    def hello(self) -> Message:
        rows, columns = self.table.shape
        return Message.of("hello", rows=rows, columns=columns, digests=self.digests)

    def answer(self, message: Message) -> Message:
        """See `Role`.

        Raises
        ------
        PartyError
            The message is not for this kind of party, not of its run, or of a pass that it is not at.
        PrivacyError
            Its allowance does not permit what is asked, or its data exceed their bound.
        DataError
            Its labels do not suit the loss.
        """
        kind = self.vocabulary.kinds.get(message.kind)
        method = getattr(self, f"_{message.kind.replace('-', '_')}", None)
        if kind is None or not kind.answer or method is None:
            raise PartyError(f"a message {message.kind!r} came, which is for another kind of party")
        if kind.run:
            self._require_run(kind.run, message)
        answered: Message = method(message)
        return answered

    def _require_run(self, run: str, message: Message) -> None:
        """Refuse a step that is not of the run that has begun here, or a release beyond those announced."""
        number = int(message.number("pass"))
        if self.begun is None:
            raise PartyError(f"step {number} was asked for, and no run has begun here: its checkpoint is missing")
        if run == "exact" and self.terms:
            raise PrivacyError(f"a message {message.kind!r}, whose answer is exact, came in a private run")
        if run != "exact" and not self.terms:
            raise PartyError(f"a message {message.kind!r} came outside a private run")
        if run == "release" and number > (announced := int(self.terms["releases"][0])):
            raise PrivacyError(f"release {number} was asked for, and {announced} were announced")

    def _enter(
        self,
        message: Message,
        zeros: Mapping[str, Array],
        total: Release | None = None,
        what: str = "",
        relation: str = "replace-one",
    ) -> None:
        """Go back to the run that a message begins where it was left; or begin it, and pay the total if it has one."""
        run, terms = message.texts["run"], {}
        if total is not None:
            terms = {**message.texts, **{name: vector.tolist() for name, vector in message.vectors.items()}}
        found = None if self.file is None or run == self.run else read_checkpoint(self.file)
        if run == self.run or (found is not None and found.run == run):
            if terms != (self.terms if found is None else dict(found.terms)):
                raise PrivacyError("the run began with other terms: a run keeps its privacy, budget, releases, bounds")
            if found is not None:
                state, before = (self._shaped(found, prefix, zeros) for prefix in ("", "before "))
                self.run, self.done, self.terms, self.ledger = run, found.passes, terms, list(ledger_of(found.ledger))
                self.state, self.before = state, before
            return
        ledger = self.ledger or list(ledger_of(found.ledger) if found else ())
        if total is not None:
            self.allowance.spend(total, what, relation, bool(ledger))
            self._write(run, 0, zeros, zeros, terms, ledger)
        self.run, self.done, self.terms, self.ledger = run, 0, terms, ledger
        self.state, self.before = dict(zeros), dict(zeros)

    def _start(self, step: int) -> dict[str, Array]:
        """Return the entries before a step: the next one, or the last one again."""
        if not self.run or step not in (self.done, self.done + 1) or step < 1:
            raise PartyError(f"step {step} was asked for, and this party is at {self.done}: its checkpoint is missing")
        return dict(self.before if step == self.done else self.state)

    def _keep(
        self, step: int, before: Mapping[str, Array], state: Mapping[str, Array], released: Iterable[Release] = ()
    ) -> None:
        """Write a step down, and only then go on from it."""
        ledger = [*self.ledger, *released]
        self._write(self.run, step, before, state, self.terms, ledger)
        self.done, self.before, self.state, self.ledger = step, dict(before), dict(state), ledger

    def _shaped(self, found: Checkpoint, prefix: str, zeros: Mapping[str, Array]) -> dict[str, Array]:
        try:
            return {name: found.arrays[prefix + name].reshape(zero.shape) for name, zero in zeros.items()}
        except (KeyError, ValueError) as error:
            raise DataError(f"{self.file} is the checkpoint of another table: serve the table of that run") from error

    def _write(
        self,
        run: str,
        step: int,
        before: Mapping[str, Array],
        state: Mapping[str, Array],
        terms: Mapping[str, Any],
        ledger: list[Release],
    ) -> None:
        """Write the checkpoint; what tells of releases is on the disk when this returns."""
        if self.file is not None:
            arrays = {**state, **{f"before {name}": np.asarray(value) for name, value in before.items()}}
            found = Checkpoint(run, step, arrays, ledger_document(ledger), terms)
            write_checkpoint(self.file, found, durable=bool(terms or ledger))
