"""A budget that counts: every fit spends from it before it reads a row, across models and processes.

What is spent is written down, and is on the disk, before anything is released. So a crash in between loses budget, and
never privacy. A file is changed under a lock, in one rename.

**What composes how.** Gaussian releases together are one Gaussian release, pure ones are coins (`composition`): the
budget holds for as long as the least delta of all of them at its epsilon is at most its delta. Nothing tighter is true
of releases whose costs were decided beforehand. Where the cost of a fit was chosen *after* the results of an earlier
one were seen, that is proven for Gaussian releases alone (Smith and Thakurta, "Fully adaptive composition for Gaussian
differential privacy", 2022). With `adaptive=True` a pure release therefore counts as the Gaussian one that covers it,
of mu = -2 Phi^-1(1/(1 + exp(epsilon))) (Dong, Roth and Su 2022); without a delta pure epsilons add up, which holds
either way.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erfinv, log_expit, ndtri_exp

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arguments import is_number
from cvxpriv.numerics.doors import door
from cvxpriv.privacy.accounting import mu_beside, optimal_delta
from cvxpriv.privacy.budget_file import locked, read_budget, write_budget
from cvxpriv.privacy.gaussian import composed, gaussian_epsilon
from cvxpriv.privacy.ledger import Release, ledger_document, ledger_of
from cvxpriv.reports.files import PathLike


@dataclass(frozen=True)
class Plan:
    """The planned releases of a fit, known from its options alone.

    `releases`: One that covers several is enough. `what`: The purpose, for readers.
    """

    releases: tuple[Release, ...]
    what: str
    adjacency: str

    def require(self, budget: Budget | PathLike | None) -> None:
        """Refuse the fit if the budget does not hold it: see `Budget.spend`."""
        if (own := budget_named(budget)) is not None:
            own.require(self.releases, what=self.what, adjacency=self.adjacency)

    def spend(self, budget: Budget | PathLike | None) -> None:
        """Spend what the fit costs."""
        if (own := budget_named(budget)) is not None:
            own.spend(self.releases, what=self.what, adjacency=self.adjacency)


@door
class Budget:
    """A privacy budget from which fits spend.

    Parameters
    ----------
    epsilon : float
        > 0, of everything together.
    delta : float
        In [0, 1); 0 takes pure releases alone.
    path : path, optional
        A file that several processes may spend from. One that exists must hold the same budget, and what was spent
        from it stays spent. None: it counts in this process alone, and is shared by copies of it.
    adjacency : str
        Neighbour relation: the change that is covered. A fit under another relation is refused: its cost says nothing
        here.
    adaptive : bool
        Whether the cost of a fit may be chosen after looking at the results of earlier ones.

    Raises
    ------
    PrivacyError
        epsilon or delta is out of range, or the file holds another budget.
    DataError
        The file cannot be read or written.

    Examples
    --------
    >>> budget = Budget(1.5, 1e-6)
    >>> for fit in range(50):
    ...     budget.spend([Release(epsilon=0.05)], what=f"fit {fit}")
    >>> budget.spend([Release(epsilon=0.05)], what="one more")
    Traceback (most recent call last):
    ...
    cvxpriv.errors.PrivacyError: the budget of epsilon=1.5, delta=1e-06 does not hold one more ...
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        path: PathLike | None = None,
        *,
        adjacency: str = "replace-one",
        adaptive: bool = False,
    ) -> None:
        if not (is_number(epsilon) and math.isfinite(epsilon) and epsilon > 0.0):
            raise PrivacyError(f"epsilon={epsilon!r} is no budget: pass a finite number > 0, for example 1.0")
        if not (is_number(delta) and 0.0 <= delta < 1.0):
            raise PrivacyError(f"delta={delta!r} is not in [0, 1): pass a number far below 1/n, for example 1e-6, or 0")
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.adjacency, self.adaptive = str(adjacency), bool(adaptive)
        self.path = None if path is None else Path(path)
        self._kept: tuple[Release, ...] = ()
        self._lock = threading.Lock()
        if self.path is not None:
            with locked(self.path):
                if self.path.exists():
                    self._require_same(read_budget(self.path))
                else:
                    write_budget(self.path, self._document(()))

    @classmethod
    def open(cls, path: PathLike) -> Budget:
        """Return the budget of a file.

        Raises
        ------
        DataError
            No such file, or no budget.
        """
        found = read_budget(path)
        given = {name: found[name] for name in ("adjacency", "adaptive")}
        return cls(found["epsilon"], found["delta"], path, **given)

    @property
    def ledger(self) -> tuple[Release, ...]:
        """The spending so far: one entry per release, or one for all of a fit's; its `step` names the purpose."""
        return self._kept if self.path is None else ledger_of(read_budget(self.path)["spent"])

    @property
    def left(self) -> float:
        """The epsilon, at the budget's delta, of the largest Gaussian fit that is left; without a delta of a pure one.

        >>> budget = Budget(1.0, 1e-6)
        >>> budget.spend([Release(mu=0.1)])
        >>> round(budget.left, 3)
        0.9
        """
        mus, epsilons = _costs(self.ledger, self.adaptive and self.delta > 0.0)
        if self.delta == 0.0:
            return max(self.epsilon - math.fsum(epsilons), 0.0)
        if not self._holds(self.ledger):
            return 0.0
        most = mu_beside(self.epsilon, self.delta, epsilons)
        return gaussian_epsilon(delta=self.delta, mu=math.sqrt(max(most**2 - composed(mus) ** 2, 0.0)))

    def require(self, releases: Sequence[Release], *, what: str = "", adjacency: str | None = None) -> None:
        """Refuse releases that the budget does not hold, and spend nothing: see `spend`."""
        self._checked(self.ledger, releases, what, adjacency)

    def spend(self, releases: Sequence[Release], *, what: str = "", adjacency: str | None = None) -> None:
        """Spend what releases cost, before they are made. It is on the disk when this returns.

        Parameters
        ----------
        releases : sequence of Release
            All that a fit will release, or one entry that covers them together.
        what : str
            The purpose of the spending, for readers.
        adjacency : str, optional
            The relation under which the costs hold; None: the budget's own.

        Raises
        ------
        PrivacyError
            More than is left, another relation, or a release that guarantees nothing. Nothing is spent then.
        """
        with self._alone():
            before = self.ledger
            after = self._checked(before, releases, what, adjacency)
            if self.path is None:
                self._kept = after
            else:
                write_budget(self.path, self._document(after))

    def _checked(
        self, before: tuple[Release, ...], releases: Sequence[Release], what: str, adjacency: str | None
    ) -> tuple[Release, ...]:
        if adjacency not in (None, self.adjacency):
            raise PrivacyError(
                f"adjacency={adjacency!r}: the budget counts {self.adjacency!r}, and what a fit costs under another "
                "relation says nothing of that; take the budget's, or a budget of its own"
            )
        if flaws := [one.flaw for one in releases if one.flaw]:
            raise PrivacyError(f"nothing is guaranteed for this release, and no budget covers it: {flaws[0]}")
        after = (*before, *(one.at(what or one.step, one.iteration) for one in releases))
        if not self._holds(after):
            raise PrivacyError(
                f"the budget of epsilon={self.epsilon:g}, delta={self.delta:g} does not hold {what or 'this'} beside "
                f"what was spent: left is a fit of epsilon={self.left:.4g}{'' if self.delta else ', pure,'} at its "
                "delta; ask for less, or stop here. Nothing was spent or released"
            )
        return after

    def _holds(self, ledger: tuple[Release, ...]) -> bool:
        mus, epsilons = _costs(ledger, self.adaptive and self.delta > 0.0)
        if not mus and math.fsum(epsilons) <= self.epsilon:
            return True
        return self.delta > 0.0 and optimal_delta(self.epsilon, epsilons, composed(mus)) <= self.delta

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out, and other processes from the file."""
        with self._lock:
            if self.path is None:
                yield
                return
            with locked(self.path):
                yield

    def _require_same(self, found: dict[str, Any]) -> None:
        own = self._document(())
        if other := [name for name in ("epsilon", "delta", "adjacency", "adaptive") if own[name] != found[name]]:
            raise PrivacyError(
                f"path={str(self.path)!r} holds another budget, with {other[0]}={found[other[0]]!r}: open it by "
                "Budget.open, or name a new file"
            )

    def _document(self, ledger: tuple[Release, ...]) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "adaptive": self.adaptive,
            "spent": ledger_document(ledger),
        }

    def __repr__(self) -> str:
        where = "" if self.path is None else f", {str(self.path)!r}"
        return f"Budget(epsilon={self.epsilon:g}, delta={self.delta:g}{where})"

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self  # a clone of an estimator spends from the same budget

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise PrivacyError(
                "a budget in memory cannot go to another process, where it would be spent again: give it a file, "
                "Budget(epsilon, delta, path)"
            )
        return Budget.open, (self.path.absolute(),)


def budget_named(budget: Budget | PathLike | None) -> Budget | None:
    """Return a budget, or that of a file."""
    return budget if budget is None or isinstance(budget, Budget) else Budget.open(budget)


def covering_mu(epsilon: float) -> float:
    """Return the mu of the Gaussian release that covers whatever is epsilon-private.

    >>> round(covering_mu(1.0), 4)
    1.232
    """
    # The first form loses digits where epsilon is large, the second where it is small.
    mu = np.sqrt(8.0) * erfinv(np.tanh(epsilon / 2.0)) if epsilon < 1.0 else -2.0 * ndtri_exp(log_expit(-epsilon))
    return float(mu) * (1.0 + 1e-12)


def _costs(ledger: Sequence[Release], covered: bool) -> tuple[list[float], list[float]]:
    """The mus and the epsilons of a ledger; with `covered` each epsilon as the mu that covers it."""
    mus = [float(one.mu) for one in ledger if one.mu is not None]
    epsilons = [float(one.epsilon) for one in ledger if one.epsilon is not None]
    return ([*mus, *map(covering_mu, epsilons)], []) if covered else (mus, epsilons)
