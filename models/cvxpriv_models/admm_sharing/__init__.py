"""Learning over features split among parties (SHARING): each party shares one value per sample, and no column.

Hu, Liu, Kong, Niu: "Learning Privately over Distributed Features: An ADMM Sharing Approach".
"""

from .model import ADMMSharing
from .problem import Problem
from .run import SharingRun

__all__ = ["ADMMSharing", "Problem", "SharingRun"]
