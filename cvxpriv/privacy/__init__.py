"""Differential privacy: noise, accounting (exact for Gaussian releases), and audits that try to refute a claim."""

from cvxpriv.privacy.accounting import Accounting, Claim, account, account_pure
from cvxpriv.privacy.audit import Audit, audit
from cvxpriv.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, noise_scale
from cvxpriv.privacy.noise import Noise, PrivacyWarning, noise_source

__all__ = [
    "Accounting",
    "Audit",
    "Claim",
    "Noise",
    "PrivacyWarning",
    "account",
    "account_pure",
    "audit",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "noise_scale",
    "noise_source",
]
