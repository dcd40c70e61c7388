"""The pytest plugin, and the same check for other test runners.

    def test_mine(cvxpriv_crosscheck):
        cvxpriv_crosscheck(my_problem(), tol=1e-6)

    @pytest.mark.cvxpriv_solvers("CLARABEL", "ECOS")
    def test_by_these(cvxpriv_crosscheck): ...

    pytest --cvxpriv-solvers=CLARABEL,ECOS,SCS

Solvers named in the call take precedence over those of the marker, these over the option, and the option over every
installed one. A named solver that does not take a problem's cones makes the test a skip with the reason, once the
others agree. pytest loads this module at its start, in every project where cvxpriv is installed: it imports nothing of
weight, and a check imports what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck

MARKER = "cvxpriv_solvers"
OPTION = "--cvxpriv-solvers"


def assert_solvers_agree(
    problem: Any, solvers: Sequence[str] | None = None, *, tol: float = 1e-6, **options: Any
) -> CrossCheck:
    """Cross-check a problem and raise unless every answer agrees to a tolerance.

    Parameters
    ----------
    problem : cvxpy.Problem, function that returns one, Case, or mapping of names to those
    solvers : sequence of str, optional
        Names of solvers. None is every installed solver that takes the problem's cones.
    tol : float
        Relative tolerance of residuals and values. Minimisers are held to its square root, which is the accuracy that
        such a value implies for them.
    **options
        Options of `cvxpriv.certify.check.crosscheck`; with ``tolerances`` of its own, ``tol`` has no effect.

    Raises
    ------
    Disagreement
        An answer does not agree; the message has the table of all answers and the reasons.

    Examples
    --------
    >>> import cvxpy as cp
    >>> x = cp.Variable(2, name="x")
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [cp.sum(x) == 1])
    >>> assert_solvers_agree(problem, ["CLARABEL", "ECOS"]).verdicts["ECOS"].verdict
    'agrees'
    """
    from cvxpriv.certify.check import crosscheck
    from cvxpriv.certify.verdicts import Tolerances
    from cvxpriv.errors import Disagreement
    from cvxpriv.numerics.arguments import require_positive

    require_positive(tol=tol)
    judging = options.pop("tolerances", None) or Tolerances(agree=tol, minimiser=tol**0.5)
    check = crosscheck(problem, solvers, tolerances=judging, **options)
    refused = int((check.table["verdict"] != "agrees").sum())
    if refused:
        raise Disagreement(f"{refused} of {len(check.table)} answers do not agree to {judging.agree:g}\n{check}")
    return check


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--cvxpriv-solvers``."""
    parser.getgroup("cvxpriv", "cross-checks of convex problems").addoption(
        OPTION,
        metavar="NAMES",
        help="solvers of the cvxpriv_crosscheck fixture, separated by commas; default: every installed one",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse unknown solvers of the option, once and before any test.

    Raises pytest.UsageError: An unknown solver (the nearest name is given), one that is not installed, or no name at
    all.
    """
    config.addinivalue_line("markers", f"{MARKER}(*names): the solvers that cvxpriv_crosscheck asks in this test")
    named = _named_by_option(config)
    if named is None:
        return
    from cvxpriv.certify.problem_checks import solver_names
    from cvxpriv.errors import ModelError

    try:
        solver_names(named)
    except ModelError as error:
        raise pytest.UsageError(f"{OPTION}: {error}") from error


def _named_by_option(config: pytest.Config) -> list[str] | None:
    """Return the names of the option; None where it is not given."""
    text = config.getoption(OPTION)
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@pytest.fixture
def cvxpriv_crosscheck(request: pytest.FixtureRequest) -> Callable[..., CrossCheck]:
    """`assert_solvers_agree`, with the solvers of the test's marker or of the command line."""
    marker = request.node.get_closest_marker(MARKER)
    chosen: Sequence[str] | None = _named_by_option(request.config) if marker is None else marker.args

    def check(problem: Any, tol: float = 1e-6, *, solvers: Sequence[str] | None = None, **options: Any) -> CrossCheck:
        from cvxpriv.errors import NoSolverTakes

        try:
            found = assert_solvers_agree(problem, chosen if solvers is None else solvers, tol=tol, **options)
        except NoSolverTakes as error:
            pytest.skip(str(error))
        if found.skipped:
            unable = {name: why for several in found.skipped.values() for name, why in several.items()}
            pytest.skip("; ".join(f"{name} {why}" for name, why in unable.items()) + "; the others agree")
        return found

    return check
