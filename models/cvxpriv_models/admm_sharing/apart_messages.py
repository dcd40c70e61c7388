"""The messages of ADMM sharing between the label holder and parties that are processes of their own.

The vocabulary is the statement of what crosses: `docs/tutorials/parties.md` prints it, and a test holds that the log of
a run has nothing else.
"""

from cvxpriv.distributed.kinds import PASS, Text, Vector, exchange
from cvxpriv.distributed.messages import Vocabulary

from .bounds import ADJACENCIES
from .schemes import SCHEMES

_WEIGHTS = {
    "rho": Vector(1, "the penalty of S = z, an option", low=0.0),
    "lam": Vector(1, "the weight of the party's penalty, an option", low=0.0),
    "parties": Vector(1, "how many parties there are", low=1.0),
    "intercept": Vector(1, "the height of a column of one number for the intercept, 0 for none", low=0.0),
    "place": Vector(1, "which of them this one is", low=0.0),
}
_LIMITS = {
    "mu": Vector(1, "the privacy loss of each release", low=0.0),
    "releases": Vector(1, "how many releases each party will make", low=1.0, high=2.0**31),
    "clip": Vector(1, "bound of the norm of a share; 0 for none", low=0.0),
    "clip_entries": Vector(1, "bound of each entry of a share; 0 for none", low=0.0),
}
_OPTIONS = {
    "run": Text("the name of the run"),
    "method": Text("the scheme, an option", tuple(SCHEMES)),
    "penalty": Text("the party's penalty, an option"),
}
_RELATION = {"adjacency": Text("the neighbour relation", tuple(ADJACENCIES))}
_CURVATURE = Vector("rows", "the curvature of the loss at each row, which y tells, times one number", low=0.0)
_AIM = {
    **PASS,
    "target": Vector("rows", "what the party's share is to be: the others' shares together, the labels and the loss"),
    "y": Vector("rows", "the dual: the slope of the loss at each row, whose sign is the label"),
}
_SHARE = {
    **PASS,
    "share": Vector("rows", "D x: one number a row, exact, which tells of the party's columns"),
    "penalty": Vector(1, "R(x), the penalty of the party's coefficients"),
    "stationarity": Vector(1, "the distance of the party's coefficients from optimality", low=0.0),
    "pulled": Vector(1, "||D'y||", low=0.0),
}
_LAST = {**PASS, "y": Vector("rows", "the dual within the slopes of the loss")}
_OFF = {**PASS, "off": Vector(1, "the party's part of the duality gap", low=0.0)}
_BOUND = {"bound": Vector(1, "the party's public bound of its data", low=0.0)}
_RELEASED = {
    **PASS,
    "values": Vector("rows", "the share with noise, on a public grid: the one release"),
    "noise": Vector(1, "the standard deviation of that noise, public", low=0.0),
    "sensitivity": Vector(1, "the sensitivity that it hides, public", low=0.0),
}

SPOKEN = Vocabulary(
    [
        *exchange("begin", _WEIGHTS, "ready", {}, _OPTIONS),
        *exchange("weigh", {"rho": _CURVATURE}, "weighed", {}),
        *exchange("step", _AIM, "share", _SHARE, run="exact"),
        *exchange("finish", _LAST, "finished", _OFF, run="exact"),
        *exchange("begin-private", {**_WEIGHTS, **_LIMITS}, "bounded", _BOUND, {**_OPTIONS, **_RELATION}),
        *exchange("release", _AIM, "released", _RELEASED, run="release"),
        *exchange("last", _AIM, "kept", PASS, run="private"),
    ]
)
