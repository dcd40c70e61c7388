"""Learning by consensus over a graph, where every second update costs no privacy (RADMM).

Zhang, Khalili, Liu: "Recycled ADMM: Improving the Privacy and Accuracy of Distributed Algorithms".
"""

from .model import RecycledADMM
from .problem import Problem
from .run import ConsensusRun

__all__ = ["ConsensusRun", "Problem", "RecycledADMM"]
