"""The privacy funnel (PF): release as little about S as possible while Y still tells R about X.

Chen, Ye, Wu, Wu, Wu, Zhang: "An Expectation-Maximization Relaxed Method for Privacy Funnel".
"""

from .model import PrivacyFunnel
from .problem import Problem
from .run import FunnelRun

__all__ = ["FunnelRun", "PrivacyFunnel", "Problem"]
