"""The messages of a consensus between a coordinator and nodes that are processes of their own.

The coordinator keeps the clock. It brings a node's vectors to the node's neighbours, and to nobody else. The vocabulary
is the statement of what crosses: `docs/tutorials/parties.md` prints it.
"""

from cvxpriv.distributed.messages import Kind, Text, Vector, Vocabulary

from .graph import VARIANTS
from .options import PRIVATE_METHODS

#: Largest number of nodes: each keeps a matrix of them all, so that its sums are those of one process.
MOST_NODES = 4096.0
_PASS = Vector(1, "the number of the pass", low=1.0, high=2.0**52)
_FIGURES = {
    "pass": _PASS,
    "loss": Vector(1, "the mean loss of the node's rows at its f(2k-1), exact"),
    "stationarity": Vector(1, "the distance of f(2k-1) from the optimality of the node's objective", low=0.0),
}

_PLACE = {
    "nodes": Vector(1, "how many nodes there are", low=2.0, high=MOST_NODES),
    "place": Vector(1, "which of them this one is", low=0.0, high=MOST_NODES),
    "neighbours": Vector("", "which of them are its neighbours", type="word"),
    "C": Vector(1, "the weight of a node's mean loss, an option", low=0.0),
    "reg": Vector(1, "the weight of R, an option", low=0.0),
    "gamma": Vector(1, "gamma of the even step, an option", low=0.0),
}
_OPTIONS = {
    "run": Text("the name of the run"),
    "method": Text("the method, an option", PRIVATE_METHODS),
    "variant": Text("the penalties on the edges, an option", VARIANTS),
    "loss": Text("the loss, an option"),
    "penalty": Text("R, an option"),
}
_LAYOUT = Vector(1, "a hash of the names of its columns and classes", type="word")

SPOKEN = Vocabulary(
    [
        Kind("begin", "holder", _PLACE, _OPTIONS, answer="ready"),
        Kind(
            "ready",
            "party",
            {
                "least": Vector(1, "the least curvature of the node's objective, for the default eta"),
                "largest": Vector(1, "the largest curvature of the node's objective, for the default eta"),
                "layout": _LAYOUT,
            },
        ),
        Kind(
            "odd",
            "holder",
            {
                "pass": _PASS,
                "eta": Vector("closed", "the penalties of the node and its neighbours", low=0.0),
                "f": Vector("edges", "the neighbours' f(2k-2)"),
            },
            answer="published",
        ),
        Kind("published", "party", {"pass": _PASS, "odd": Vector("features", "f(2k-1), exact: for its neighbours")}),
        Kind("even", "holder", {"pass": _PASS, "odd": Vector("edges", "the neighbours' f(2k-1)")}, answer="recycled"),
        Kind(
            "recycled",
            "party",
            {
                **_FIGURES,
                "f": Vector("features", "f(2k), from what it and its neighbours published: for its neighbours"),
            },
        ),
        Kind("finish", "holder", {"pass": _PASS}, answer="finished"),
        Kind(
            "finished",
            "party",
            {**_FIGURES, "smoothness": Vector(1, "the largest curvature that its objective has anywhere", low=0.0)},
        ),
        Kind(
            "begin-private",
            "holder",
            {
                **_PLACE,
                "releases": Vector(1, "how many releases each node will make", low=1.0, high=2.0**31),
                "etas": Vector("", "the penalties of the node and its neighbours in each pass", low=0.0),
                "row_bound": Vector(1, "the public bound of a row's norm, an option", low=0.0),
                "node_tol": Vector(1, "the exactness of a node's minimiser, an option", low=0.0),
                "epsilon": Vector(1, "the epsilon of all releases together; 0 where the rate says it", low=0.0),
                "delta": Vector(1, "the delta of Gaussian noise; 0 for a pure guarantee", low=0.0, high=1.0),
                "alpha": Vector(1, "the rate of the noise; 0 where epsilon says it", low=0.0),
            },
            {**_OPTIONS, "perturbation": Text("where the noise is, an option", ("objective", "output"))},
            answer="agreed",
        ),
        Kind(
            "agreed",
            "party",
            {
                "layout": _LAYOUT,
                "secure": Vector(1, "1 where its noise is from the secure source, 0 for a seed", low=0.0, high=1.0),
            },
        ),
        Kind("release", "holder", {"pass": _PASS, "f": Vector("edges", "the neighbours' f(2k-2)")}, answer="released"),
        Kind(
            "released",
            "party",
            {
                "pass": _PASS,
                "odd": Vector("features", "f(2k-1) with noise, on a public grid: the one release, for its neighbours"),
            },
        ),
        Kind(
            "recycle",
            "holder",
            {"pass": _PASS, "odd": Vector("edges", "the neighbours' released f(2k-1)")},
            answer="reused",
        ),
        Kind(
            "reused",
            "party",
            {"pass": _PASS, "f": Vector("features", "f(2k), from released vectors alone: it costs no privacy")},
        ),
    ]
)
