# For type checkers alone: the models of this distribution with their real signatures. Models of other packages, which
# `cvxpriv.models` finds by their entry points, are of type Any here.
from importlib.metadata import EntryPoint
from typing import Any

from cvxpriv_models.admm_sharing import ADMMSharing as ADMMSharing
from cvxpriv_models.inference_service import InferenceAsService as InferenceAsService
from cvxpriv_models.istdp import ISTDP as ISTDP
from cvxpriv_models.privacy_funnel import PrivacyFunnel as PrivacyFunnel
from cvxpriv_models.recycled_admm import RecycledADMM as RecycledADMM

GROUP: str

def available() -> dict[str, EntryPoint]: ...
def __getattr__(name: str) -> Any: ...
