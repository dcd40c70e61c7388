"""The methods that the privacy funnel paper compares with, as pure functions of a joint table.

`greedy` merges pairs of symbols, `quickly_merged` those worth most of many, `agglomerative` subsets; `drs` splits the
Lagrangian in two blocks and alternates. None of them knows blocks, schedules or solvers: a baseline shares no code with
what it is compared with.
"""

from cvxpriv_models.privacy_funnel.baselines.clustering import agglomerative, agglomerative_curve
from cvxpriv_models.privacy_funnel.baselines.merging import greedy, quickly_merged
from cvxpriv_models.privacy_funnel.baselines.outcome import Baseline, as_frame
from cvxpriv_models.privacy_funnel.baselines.splitting import drs, drs_curve

__all__ = [
    "Baseline",
    "agglomerative",
    "agglomerative_curve",
    "as_frame",
    "drs",
    "drs_curve",
    "greedy",
    "quickly_merged",
]
