"""What the commands that design a mechanism share: work that can be interrupted, its files, its text, its page."""

from cvxpriv.cli.studies.finish import crosschecked, finish
from cvxpriv.cli.studies.study import SOLVERS, Extras, Study, exact_zero, extra_options, solvers_option
from cvxpriv.cli.studies.work import curve_points, solve_watched, studied

__all__ = [
    "SOLVERS",
    "Extras",
    "Study",
    "crosschecked",
    "curve_points",
    "exact_zero",
    "extra_options",
    "finish",
    "solve_watched",
    "solvers_option",
    "studied",
]
