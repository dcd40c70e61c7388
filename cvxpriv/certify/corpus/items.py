"""The problems of a corpus, from several sources: cvxpy's own, adversarial ones, known liars, files."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import Stored
from cvxpriv.certify.corpus import conic, degenerate, edges, polyhedral
from cvxpriv.certify.corpus.files import files_of_folder, problems_of_folder
from cvxpriv.certify.corpus.known import INFEASIBLE, UNBOUNDED, UNKNOWN, Known
from cvxpriv.certify.corpus.liars import LIARS
from cvxpriv.certify.verdicts import VERDICTS
from cvxpriv.errors import ModelError, suggest

#: Arguments of its functions, where they take any.
CHOICES: dict[str, tuple[Any, ...]] = {"axis": (0, 1), "objective_sense": ("min", "max")}

#: Relative accuracy of some of the values in cvxpy's tests, which have two digits.
EXPECTED = 1e-2


def cvxpys() -> Iterator[Known]:
    """Yield every problem of `cvxpy.tests.solver_test_helpers` that is continuous; nothing where cvxpy has none.

    >>> next(cvxpys()).name
    'cvxpy expcone_1'
    """
    try:
        helpers = import_module("cvxpy.tests.solver_test_helpers")
    except ImportError:  # a package of cvxpy without its tests, or without what they need
        return
    for name, make in inspect.getmembers(helpers, inspect.isfunction):
        if make.__module__ != helpers.__name__:
            continue
        wanted = list(inspect.signature(make).parameters)
        if any(one not in CHOICES for one in wanted):
            continue
        for chosen in itertools.product(*(CHOICES[one] for one in wanted)):
            helper = make(*chosen)
            if isinstance(helper, helpers.SolverTestHelper) and not helper.prob.is_mixed_integer():
                yield replace(_known(helper.prob, helper.expect_val), name=" ".join(["cvxpy", name, *map(str, chosen)]))


def _known(problem: cp.Problem, value: float | None) -> Known:
    if value is None or np.isnan(value):
        return Known(problem, UNKNOWN)
    if np.isinf(value):
        best = np.inf if isinstance(problem.objective, cp.Maximize) else -np.inf
        return Known(problem, UNBOUNDED if value == best else INFEASIBLE)
    return Known(problem, value=float(value), far=EXPECTED)


SOURCES = ("cvxpy", "adversarial", "liars")


@dataclass(frozen=True, eq=False)
class Item:
    """A problem of a corpus.

    `known`: The problem with its known truth; None where there is no problem.
    `stored`: False answers that solvers once gave.
    `allowed`: Verdicts that these may have.
    `skipped`: The reason why there is no problem.
    """

    source: str
    name: str
    known: Known | None = None
    stored: Mapping[str, Stored] = field(default_factory=dict)
    allowed: tuple[str, ...] = VERDICTS
    skipped: str = ""


def items(
    sources: Sequence[str] = SOURCES,
    *,
    count: int = 100,
    seed: int = 0,
    folder: str | Path | None = None,
    largest: int = 400,
) -> Iterator[Item]:
    """Yield the problems of a corpus.

    `count`, `seed`: Number and seed of the adversarial problems (`cvxpriv.certify.corpus.items`).
    `folder`: Folder of files, whose problems come last (`cvxpriv.certify.corpus.files`).
    `largest`: Largest number of variables and rows of a file's problem.
    Raises ModelError: There is no such source.
    Raises DataError: There is no such folder, or it holds no problems.

    >>> [item.name for item in items(["adversarial"], count=2)]
    ['linear[0]', 'badly scaled linear[1]']
    """
    made: Mapping[str, Callable[[], Iterator[Item]]] = {
        "cvxpy": lambda: (Item("cvxpy", known.name, known) for known in cvxpys()),
        "adversarial": lambda: map(_with_denials, adversarial(count, seed)),
        "liars": _liars,
    }
    if unknown := [source for source in sources if source not in made]:
        raise ModelError(f"source={unknown[0]!r} is none: {suggest(unknown[0], made)}")
    if folder is not None:  # before anything is judged
        files_of_folder(folder)
    for source in sources:
        yield from made[source]()
    if folder is not None:
        yield from _of_folder(folder, largest)


def _with_denials(known: Known) -> Item:
    """Return an item with the false claims that its problem has no solution."""
    claims = [] if known.status == UNKNOWN else [one for one in (INFEASIBLE, UNBOUNDED) if one != known.status]
    denials = {f"says {claim}": Stored(None, status=claim, solver="denial") for claim in claims}
    return Item("adversarial", known.name, known, denials, ("loose", "failed", "WRONG"))


def _liars() -> Iterator[Item]:
    for liar in LIARS:
        known = liar.build()
        told = replace(known, name=liar.name, answers={n: one for n, one in known.answers.items() if n == "truth"})
        yield Item("known liars", liar.name, told, {"stored": liar.stored}, liar.verdicts)


def _of_folder(folder: str | Path, largest: int) -> Iterator[Item]:
    for found in problems_of_folder(folder, largest):
        if isinstance(found, Known):
            yield Item("files", found.name, found)
        else:
            yield Item("files", found[0], skipped=found[1])


FAMILIES = (*polyhedral.FAMILIES, *conic.FAMILIES, *edges.FAMILIES, *degenerate.FAMILIES)


def adversarial(count: int, seed: int = 0) -> Iterator[Known]:
    """Draw problems, one family after the other.

    `count`: The number of problems. `seed`: Seed. The k-th problem depends on the seed and on k alone.

    >>> [known.name for known in adversarial(2)]
    ['linear[0]', 'badly scaled linear[1]']
    """
    for k in range(count):
        family = FAMILIES[k % len(FAMILIES)]
        known = family(np.random.default_rng([seed, k]))
        yield replace(known, name=f"{family.__name__.replace('_', ' ')}[{k}]")
