"""Differential privacy: noise, accounting (exact for Gaussian releases), and audits that try to refute a claim."""

from cvxpriv.privacy.accounting import Accounting, Claim, mu_beside, optimal_delta, optimal_epsilon
from cvxpriv.privacy.audit import Audit, audit
from cvxpriv.privacy.budget import Budget, Plan, budget_named
from cvxpriv.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from cvxpriv.privacy.grid import BallNoise, GaussianNoise
from cvxpriv.privacy.ledger import EVERYONE, Release, account_ledger, ledger_document, ledger_of
from cvxpriv.privacy.noise import Noise, PrivacyWarning, noise_source

__all__ = [
    "EVERYONE",
    "Accounting",
    "Audit",
    "BallNoise",
    "Budget",
    "Claim",
    "GaussianNoise",
    "Noise",
    "Plan",
    "PrivacyWarning",
    "Release",
    "account_ledger",
    "audit",
    "budget_named",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "ledger_document",
    "ledger_of",
    "mu_beside",
    "noise_source",
    "optimal_delta",
    "optimal_epsilon",
]
