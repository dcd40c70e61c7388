"""The messages of ADMM sharing between the label holder and parties that are processes of their own.

The vocabulary is the statement of what crosses: `docs/tutorials/parties.md` prints it, and a test holds that the log of
a run has nothing else.
"""

from cvxpriv.distributed.messages import Kind, Text, Vector, Vocabulary

from .bounds import ADJACENCIES
from .schemes import SCHEMES

_PASS = Vector(1, "the number of the pass", low=0.0, high=2.0**53)
_WEIGHTS = {
    "rho": Vector(1, "the penalty of S = z, an option", low=0.0),
    "lam": Vector(1, "the weight of the party's penalty, an option", low=0.0),
    "parties": Vector(1, "how many parties there are", low=1.0),
    "intercept": Vector(1, "the height of a column of one number for the intercept, 0 for none", low=0.0),
    "place": Vector(1, "which of them this one is", low=0.0),
}
_OPTIONS = {
    "run": Text("the name of the run"),
    "method": Text("the scheme, an option", tuple(SCHEMES)),
    "penalty": Text("the party's penalty, an option"),
}
_AIM = {
    "pass": _PASS,
    "target": Vector("rows", "what the party's share is to be: the others' shares together, the labels and the loss"),
    "y": Vector("rows", "the dual: the slope of the loss at each row, whose sign is the label"),
}

SPOKEN = Vocabulary(
    [
        Kind("begin", "holder", _WEIGHTS, _OPTIONS, answer="ready"),
        Kind("ready", "party"),
        Kind(
            "weigh",
            "holder",
            {"rho": Vector("rows", "the curvature of the loss at each row, which y tells, times one number", low=0.0)},
            answer="weighed",
        ),
        Kind("weighed", "party"),
        Kind("step", "holder", _AIM, answer="share"),
        Kind(
            "share",
            "party",
            {
                "pass": _PASS,
                "share": Vector("rows", "D x: one number a row, exact, which tells of the party's columns"),
                "penalty": Vector(1, "R(x), the penalty of the party's coefficients"),
                "stationarity": Vector(1, "the distance of the party's coefficients from optimality", low=0.0),
                "pulled": Vector(1, "||D'y||", low=0.0),
            },
        ),
        Kind(
            "finish",
            "holder",
            {"pass": _PASS, "y": Vector("rows", "the dual within the slopes of the loss")},
            answer="finished",
        ),
        Kind("finished", "party", {"pass": _PASS, "off": Vector(1, "the party's part of the duality gap", low=0.0)}),
        Kind(
            "begin-private",
            "holder",
            {
                **_WEIGHTS,
                "mu": Vector(1, "the privacy loss of each release", low=0.0),
                "releases": Vector(1, "how many releases each party will make", low=1.0, high=2.0**31),
                "clip": Vector(1, "bound of the norm of a share; 0 for none", low=0.0),
                "clip_entries": Vector(1, "bound of each entry of a share; 0 for none", low=0.0),
            },
            {**_OPTIONS, "adjacency": Text("the neighbour relation", tuple(ADJACENCIES))},
            answer="bounded",
        ),
        Kind("bounded", "party", {"bound": Vector(1, "the party's public bound of its data", low=0.0)}),
        Kind("release", "holder", _AIM, answer="released"),
        Kind(
            "released",
            "party",
            {
                "pass": _PASS,
                "values": Vector("rows", "the share with noise, on a public grid: the one release"),
                "noise": Vector(1, "the standard deviation of that noise, public", low=0.0),
                "sensitivity": Vector(1, "the sensitivity that it hides, public", low=0.0),
            },
        ),
        Kind("last", "holder", _AIM, answer="kept"),
        Kind("kept", "party", {"pass": _PASS}),
    ]
)
