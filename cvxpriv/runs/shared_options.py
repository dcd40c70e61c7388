"""The options that all models share: each has one name, one meaning and one default.

A method takes them as keywords, in the order of `SolveOptions`, and its own options after them. The defaults are those
that the texts below name: ``method=None, engine="closed_form", starts=None, seed=0, tol=1e-7, max_iter=None, init=None,
solver=None, n_jobs=1, progress=False, callback=None, time_limit=None, isolate=None, oversize=False``. None stands for
what is usual in a model, which says so by ``Annotated[Starts, Option(usual="30")]``.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from numpy.typing import ArrayLike

from cvxpriv.blocks import engines
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy.budget import Budget
from cvxpriv.runs.options import Option
from cvxpriv.schedules import problem_starts
from cvxpriv.solvers import place

FOR_THE_BOUND = 0.8
"""The part of a time limit that the search for a certified bound may take; the passes have the rest."""
Watch = Callable[[str, int, Mapping[str, Array]], "bool | None"]
"""`callback(loop, iteration, measured)`; returning True ends the run."""


def solvers_named(text: str) -> str | tuple[str, ...]:
    """Return solvers separated by commas. A single one stays a text, which names the first of the fallback chain.

    >>> solvers_named("ECOS"), solvers_named("ECOS, SCS")
    ('ECOS', ('ECOS', 'SCS'))
    """
    names = tuple(name.strip() for name in text.split(","))
    return names[0] if len(names) == 1 else names


Method = Annotated[str | None, Option("The algorithm, which alternates blocks.")]
Engine = Annotated[
    str | engines.Engine,
    Option(
        "Engine that solves the blocks: exact updates, cvxpy solvers, or both, compared at each step.",
        choices=engines.ENGINES,
    ),
]
Starts = Annotated[int | None, Option("Number of starts. The best run is returned.", low=1)]
Seed = Annotated[
    int, Option("Seed of the random starts. Start k is the same whatever `starts` and `n_jobs` are.", low=0)
]
Tol = Annotated[float, Option("KKT residual at which a start has converged.", above=0.0)]
MaxIter = Annotated[int | None, Option("Largest number of passes per start. A pass is one sweep of all blocks.", low=1)]
Init = Annotated[ArrayLike | None, Option("Starts that replace the usual ones.", kind="array", hidden=True)]
OnlyMethod = Annotated[Method, Option(choices=("alternation",), usual="alternation", hidden=True)]
NamedInit = Annotated[
    problem_starts.Init | None,
    Option("Starts that replace the usual ones: values by name, for one or for several.", kind="mapping", hidden=True),
]
Solver = Annotated[
    str | Sequence[str] | None,
    Option(
        "First solver of the fallback chain, or the whole chain.",
        usual="CLARABEL, ECOS, SCS",
        metavar="NAMES",
        read=solvers_named,
    ),
]
NJobs = Annotated[
    int,
    Option("Number of worker processes; -1 is one per core. The result does not depend on it.", flag="--jobs", low=-1),
]
Progress = Annotated[bool, Option("Show a bar on a terminal.", hidden=True)]
Callback = Annotated[
    Watch | None,
    Option(
        "`callback(loop, iteration, measured)` is called after each pass, in one process only. Returning True ends the "
        "run.",
        hidden=True,
    ),
]
TimeLimit = Annotated[
    float | None,
    Option(
        "Time limit. After it the best so far is returned, which has not converged unless its residual says so. The "
        "clock is read between passes.",
        unit="seconds",
        above=0.0,
        usual="no limit",
    ),
]
Isolate = Annotated[
    float | None,
    Option(
        "Call solvers in a process of their own, and end a call after this time; the next of the chain is then asked. "
        "The search for a bound is one call, which looks for 0.8 of it.",
        unit="seconds",
        low=place.SHORTEST,
        usual="solvers are called here",
    ),
]
Oversize = Annotated[
    bool,
    Option("Go on where the work can take more than a day or 4 GiB, which is refused otherwise.", flag="--yes"),
]

Epsilon = Annotated[float, Option("Privacy budget epsilon of all releases together.", above=0.0, private=True)]
Delta = Annotated[float, Option("Privacy budget delta of all releases together.", above=0.0, below=1.0, private=True)]
Adjacency = Annotated[
    str | None,
    Option(
        "Neighbour relation: the difference of two neighbouring data sets.",
        usual="that of the schema, or replace-one",
        private=True,
    ),
]
BudgetOption = Annotated[
    Budget | str | Path | None,
    Option(
        "The `Budget`, or its file, that this fit spends from; a fit beyond it is refused before a row is read.",
        kind="Budget or path",
        usual="none is kept",
        metavar="FILE",
        private=True,
    ),
]
NoiseSeed = Annotated[
    int | None,
    Option("Seed of the noise, for tests only: anyone who knows it can remove the noise.", low=0, private=True),
]


class SolveOptions(TypedDict, total=False):
    """The shared options of `solve`, in the form in which other methods pass them on; a model adds its own."""

    method: Method
    engine: Engine
    starts: Starts
    seed: Seed
    tol: Tol
    max_iter: MaxIter
    init: Init
    solver: Solver
    n_jobs: NJobs
    progress: Progress
    callback: Callback
    time_limit: TimeLimit
    isolate: Isolate
    oversize: Oversize
