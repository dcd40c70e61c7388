"""The problems of cvxpy's own solver tests, from the installed package, with the values that they expect."""

import inspect
import itertools
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.corpus.known import INFEASIBLE, UNBOUNDED, UNKNOWN, Known

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
