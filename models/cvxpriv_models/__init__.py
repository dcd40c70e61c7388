"""The papers, one folder each. Models are reached through `cvxpriv.models`, their scikit-learn faces from here:

    from cvxpriv_models import PrivateSparseLogisticRegression, VerticalLogisticRegression

scikit-learn is imported when one of them is first used, and not before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvxpriv_models.admm_sharing.estimators import VerticalLogisticRegression
    from cvxpriv_models.istdp.estimators import PrivateSparseLogisticRegression, PrivateSparseRegression
    from cvxpriv_models.recycled_admm.estimators import DecentralizedLogisticRegression

_HOMES = {
    "DecentralizedLogisticRegression": "recycled_admm",
    "PrivateSparseLogisticRegression": "istdp",
    "PrivateSparseRegression": "istdp",
    "VerticalLogisticRegression": "admm_sharing",
}

__all__ = [
    "DecentralizedLogisticRegression",
    "PrivateSparseLogisticRegression",
    "PrivateSparseRegression",
    "VerticalLogisticRegression",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"cvxpriv_models.{_HOMES[name]}.estimators"), name)
    raise AttributeError(f"module 'cvxpriv_models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
