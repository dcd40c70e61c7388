"""The messages of a consensus between a coordinator and nodes that are processes of their own.

The coordinator keeps the clock. It brings a node's vectors to the node's neighbours, and to nobody else. The vocabulary
is the statement of what crosses: `docs/tutorials/parties.md` prints it.
"""

from cvxpriv.distributed.kinds import PASS, Text, Vector, exchange
from cvxpriv.distributed.messages import Vocabulary

from .graph import VARIANTS
from .options import PRIVATE_METHODS

#: Largest number of nodes: each keeps a matrix of them all, so that its sums are those of one process.
MOST_NODES = 4096.0
_PLACE = {
    "nodes": Vector(1, "how many nodes there are", low=2.0, high=MOST_NODES),
    "place": Vector(1, "which of them this one is", low=0.0, high=MOST_NODES),
    "neighbours": Vector("", "which of them are its neighbours", type="word"),
    "C": Vector(1, "the weight of a node's mean loss, an option", low=0.0),
    "reg": Vector(1, "the weight of R, an option", low=0.0),
    "gamma": Vector(1, "gamma of the even step, an option", low=0.0),
}
_COST = {
    "releases": Vector(1, "how many releases each node will make", low=1.0, high=2.0**31),
    "etas": Vector("", "the penalties of the node and its neighbours in each pass", low=0.0),
    "row_bound": Vector(1, "the public bound of a row's norm, an option", low=0.0),
    "node_tol": Vector(1, "the exactness of a node's minimiser, an option", low=0.0),
    "epsilon": Vector(1, "the epsilon of all releases together; 0 where the rate says it", low=0.0),
    "delta": Vector(1, "the delta of Gaussian noise; 0 for a pure guarantee", low=0.0, high=1.0),
    "alpha": Vector(1, "the rate of the noise; 0 where epsilon says it", low=0.0),
}
_OPTIONS = {
    "run": Text("the name of the run"),
    "method": Text("the method, an option", PRIVATE_METHODS),
    "variant": Text("the penalties on the edges, an option", VARIANTS),
    "loss": Text("the loss, an option"),
    "penalty": Text("R, an option"),
}
_WHERE = {"perturbation": Text("where the noise is, an option", ("objective", "output"))}
_LAYOUT = Vector(1, "a hash of the names of its columns and classes", type="word")
_READY = {
    "least": Vector(1, "the least curvature of the node's objective, for the default eta"),
    "largest": Vector(1, "the largest curvature of the node's objective, for the default eta"),
    "layout": _LAYOUT,
}
_SECURE = Vector(1, "1 where its noise is from the secure source, 0 for a seed", low=0.0, high=1.0)
_FIGURES = {
    **PASS,
    "loss": Vector(1, "the mean loss of the node's rows at its f(2k-1), exact"),
    "stationarity": Vector(1, "the distance of f(2k-1) from the optimality of the node's objective", low=0.0),
}
_ETA = Vector("closed", "the penalties of the node and its neighbours", low=0.0)
_EVEN_OF_NEIGHBOURS = Vector("edges", "the neighbours' f(2k-2)")
_ODD = Vector("features", "f(2k-1), exact: for its neighbours")
_EVEN = Vector("features", "f(2k), from what it and its neighbours published: for its neighbours")
_SMOOTHNESS = Vector(1, "the largest curvature that its objective has anywhere", low=0.0)
_RELEASED = Vector("features", "f(2k-1) with noise, on a public grid: the one release, for its neighbours")
_REUSED = Vector("features", "f(2k), from released vectors alone: it costs no privacy")
_ODD_OF_NEIGHBOURS, _RELEASED_OF_NEIGHBOURS = (
    {**PASS, "odd": Vector("edges", f"the neighbours' {what}")} for what in ("f(2k-1)", "released f(2k-1)")
)

SPOKEN = Vocabulary(
    [
        *exchange("begin", _PLACE, "ready", _READY, _OPTIONS),
        *exchange(
            "odd", {**PASS, "eta": _ETA, "f": _EVEN_OF_NEIGHBOURS}, "published", {**PASS, "odd": _ODD}, run="exact"
        ),
        *exchange("even", _ODD_OF_NEIGHBOURS, "recycled", {**_FIGURES, "f": _EVEN}, run="exact"),
        *exchange("finish", PASS, "finished", {**_FIGURES, "smoothness": _SMOOTHNESS}, run="exact"),
        *exchange(
            "begin-private",
            {**_PLACE, **_COST},
            "agreed",
            {"layout": _LAYOUT, "secure": _SECURE},
            {**_OPTIONS, **_WHERE},
        ),
        *exchange("release", {**PASS, "f": _EVEN_OF_NEIGHBOURS}, "released", {**PASS, "odd": _RELEASED}, run="release"),
        *exchange("recycle", _RELEASED_OF_NEIGHBOURS, "reused", {**PASS, "f": _REUSED}, run="private"),
    ]
)
