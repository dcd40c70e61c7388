"""Random private fits of a table and its neighbours, by every learner, and wherever the rows are."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp
from cvxpriv_models import (
    DecentralizedLogisticRegression,
    PrivateSparseLogisticRegression,
    PrivateSparseRegression,
    VerticalLogisticRegression,
)
from cvxpriv_models.admm_sharing import apart_messages as of_sharing
from cvxpriv_models.admm_sharing.apart import SharingApart
from cvxpriv_models.admm_sharing.apart_party import Allowance as PartyAllowance, SharingParty
from cvxpriv_models.recycled_admm import apart_messages as of_consensus
from cvxpriv_models.recycled_admm.apart import ConsensusApart
from cvxpriv_models.recycled_admm.apart_node import Allowance as NodeAllowance, ConsensusNode

from cvxpriv.distributed.carriers import InProcess
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.learning.schema_parts import numbers_in
from cvxpriv.models import ISTDP, ADMMSharing, RecycledADMM
from cvxpriv.privacy import Noise

Rng = np.random.Generator
Table = tuple[Any, Any]
Options = dict[str, Any]
NAMES = list("abcd")


@dataclasses.dataclass(frozen=True)
class Case:
    """A private fit, the epsilon that it asks for, and tables of which each two are neighbours."""

    name: str
    options: Options
    fit: Callable[[Any, Any], Any]
    tables: list[Table]

    @property
    def epsilon(self) -> float:
        return float(self.options["epsilon"])


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class UnspeakableNumber(float):
    __repr__ = Unspeakable.__repr__


CELLS: tuple[Any, ...] = (
    *(1e9, -1e300, np.inf, np.nan, None, "x", "0.2", 0.0, -0.0, 0.4, 1e-320, True, 10**400, -(10**400), 1j, 2**70),
    *(Decimal("1e500"), Decimal("sNaN"), Fraction(1, 3), b"0.1", [0.1], (), {}, {1}, pd.NA, pd.NaT, pd.Timestamp(0)),
    *("1e999", "inf", " 0.3 ", "0x1", "1_0", "\u0663", "\ud800", "9" * 5000, "\0", "", np.datetime64("2020-01-01")),
    *(np.float32(0.3), np.longdouble("1e4000"), np.complex128(1j), object(), np.ma.masked, float, np.array(0.1)),
    *(np.array([0.1, 0.2]), pd.Interval(0, 1), Unspeakable(), UnspeakableNumber(0.1)),
)
SPARSE_PENALTIES = (
    *("auto", "l1:0.05", "l2:0.5", "mcp:0.05:5", "scad:0.1:4", "elastic-net:0.1:0.5", "capped-l1:0.1", "none"),
    *("nonneg", "box:-1:1"),
)
SHARING_PENALTIES = ("l2", "l2", "l2", "l1", "elastic-net:1:0.5", "nonneg", "none", "box:-1:1")


def one_of(rng: Rng, several: Any) -> Any:
    return several[int(rng.integers(len(several)))]


def some(rng: Rng, share: float, **options: Any) -> Options:
    """Each option with a chance, as one of its values."""
    return {name: one_of(rng, values) for name, values in options.items() if rng.random() < share}


def tables(
    rng: Rng, rows: int, *, known: bool = False, numbers: bool = False, removed: bool = False, shared: bool = False
) -> list[Table]:
    """A table and its neighbours. Without a schema cells are numbers within bounds, and labels signs or numbers."""
    x: Any = rng.uniform(-0.5, 0.5, size=(rows, 4))
    signs = np.where(rng.random(rows) < one_of(rng, (0.5, 0.02)), -1.0, 1.0)
    signs[1:3] = [-1.0, 1.0][: max(rows - 1, 0)]
    y: Any = rng.normal(size=rows) if numbers else signs
    if known:
        x, y = x.astype(object), y.astype(object) if numbers else np.where(signs > 0.0, "yes", "no").astype(object)
    place = int(rng.integers(min(3, rows - 1), rows))
    found: list[Table] = [(x, y)]
    for _ in range(2):
        other, label = x.copy(), y.copy()
        if removed:  # two tables that differ in a replaced row are two steps apart: one without that row is between
            other, label = np.delete(other, place, axis=0), np.delete(label, place)
        elif known:
            for column in range(4):
                other[place, column] = one_of(rng, CELLS)
            label[place] = one_of(rng, (1e300, -7.0, *CELLS) if numbers else ("no", "yes", *CELLS))
        else:
            other[place] = rng.uniform(-0.5, 0.5, size=4) * one_of(rng, (0.0, 1.0, 1e-9))
            label[place] = -1e6 if numbers else -label[place]
        found.append((other, y if shared else label))
    return found[: 2 if removed else 3]


def schema_of(rng: Rng, rows: int, adjacency: str = "replace-one", **more: Any) -> PublicSchema:
    ranges: Any = (-0.5, 0.5) if rng.random() < 0.6 else dict.fromkeys(NAMES, (-0.5, 0.5))
    return PublicSchema(
        classes=more.pop("classes", ("no", "yes")),
        ranges=ranges,
        columns=NAMES if isinstance(ranges, dict) or rng.random() < 0.5 else 4,
        rows=max(rows, 2) if adjacency == "replace-one" or rng.random() < 0.5 else None,
        adjacency=adjacency,
        **more,
    )


def _stored(x: Any) -> Any:
    """Cells in sparse rows without order, zeros among them, each number in two halves."""
    x = numbers_in(x, 2)
    rows, columns = np.indices(x.shape).reshape(2, -1)[:, ::-1]
    halves = np.tile(x[rows, columns] / 2.0, 2)
    return sp.coo_array((halves, (np.tile(rows, 2), np.tile(columns, 2))), shape=x.shape)


#: How people hold a table, beside an array of objects: made of its cells one by one.
CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda x: x.tolist(),
    "sparse": _stored,
    "single": lambda x: np.clip(numbers_in(x, 2), -1e30, 1e30).astype(np.float32),
    "long": lambda x: np.where(np.abs(numbers_in(x, 2)) > 1e200, np.longdouble("1e4000"), numbers_in(x, 2)),
    "ragged": lambda x: [row[:3] if row[0] is None else row for row in x.tolist()],
    "masked": lambda x: np.ma.masked_invalid(numbers_in(x, 2)),
    "nullable": lambda x: pd.DataFrame(numbers_in(x, 2), columns=NAMES).astype("Float64"),
}
#: Lives of a fitted estimator.
LIVES: tuple[Callable[[Any], Any], ...] = (
    lambda fitted: fitted,
    lambda fitted: pickle.loads(pickle.dumps(fitted)),
    lambda fitted: fitted.set_params(**fitted.get_params(deep=False)),
)


def as_given(x: Any, schema: PublicSchema | None) -> Any:
    return x if schema is None or not isinstance(schema.columns, tuple) else pd.DataFrame(x, columns=NAMES)


def relation(rng: Rng) -> tuple[str, bool, int]:
    """(neighbour relation, whether a row is removed, how many rows)."""
    removed = bool(rng.random() < 0.5)
    rows = int(rng.integers(1, 60)) if removed else int(rng.integers(6, 60))
    return ("add-remove" if removed else "replace-one"), removed, rows


def descent(rng: Rng) -> Options:
    return some(
        rng,
        0.4,
        max_iter=(1, 2, 5),
        clip=(0.25, 1.0),
        step=("lipschitz", "noisy-bb"),
        support=(1, 3),
        output=("last", "average"),
        centre=("auto", "private", "none"),
        row_bound=(1.0, 2.0),
    )


def sparse_model(rng: Rng) -> Case:
    adjacency, removed, rows = relation(rng)
    known = removed or rng.random() < 0.7
    loss = one_of(rng, ("logistic", "logistic", "huber", "squared", "smoothed-hinge", "sigmoid"))
    numbers, method = loss in ("huber", "squared"), one_of(rng, ("istdp", "istdp", "gradient-descent", "out", "in"))
    posed = {"loss": loss, "penalty": one_of(rng, SPARSE_PENALTIES), "intercept": bool(rng.random() < 0.5)}
    if method in ("out", "in"):
        method = {"out": "output-perturbation", "in": "objective-perturbation"}[method]
        posed |= {"penalty": one_of(rng, ("l2:0.5", "l2:10")), "intercept": False}
        if rng.random() < 0.8:
            posed["loss"], numbers = "logistic", False
        chosen = some(rng, 0.5, row_bound=(1.0, 2.0))
    else:
        chosen = descent(rng)
    schema = schema_of(rng, rows, adjacency, target=(-1.0, 1.0) if numbers else None) if known else None
    options = {"method": method, "epsilon": one_of(rng, (0.1, 1.0, 5.0)), "delta": 1e-6, **chosen}
    if method == "objective-perturbation" and rng.random() < 0.5:
        options["delta"] = None
    if removed:
        options |= some(rng, 0.3, public_rows=(max(rows, 2), 2 * rows))
    stored = rng.random() < 0.3 and not known

    def fit(x: Any, y: Any) -> Any:
        rows_of = sp.csr_array(x) if stored else as_given(x, schema)
        model = ISTDP(rows_of, y, **posed, allow_constant=True, schema=schema)
        return model, model.solve_private(**options, noise_seed=0)

    made = tables(rng, rows, known=known, numbers=numbers, removed=removed)
    return Case("ISTDP", {**posed, **options, "schema": schema}, fit, made)


def sparse_estimator(rng: Rng) -> Case:
    (adjacency, removed, rows), kind = relation(rng), int(rng.integers(3))
    more: Options = [{}, {"classes": ("no", "yes", "never")}, {"target": (-1.0, 2.0)}][kind]
    schema = schema_of(rng, rows, adjacency, **more)
    options = {"epsilon": one_of(rng, (0.5, 3.0)), "penalty": one_of(rng, SPARSE_PENALTIES), **descent(rng)}
    options |= some(rng, 0.4, fit_intercept=(False,)) | (some(rng, 0.5, loss=("squared",)) if kind == 2 else {})
    weighted, maker = rng.random() < 0.5, (PrivateSparseLogisticRegression, PrivateSparseRegression)[kind == 2]
    held, life = one_of(rng, [*CONTAINERS, "frame", "frame"]), one_of(rng, LIVES)
    if isinstance(schema.ranges, dict) and held not in ("nullable", "list", "ragged"):
        held = "frame"

    def fit(x: Any, y: Any) -> Any:
        weights = [3.0 if isinstance(one, str) and one == "yes" else 0.5 for one in y] if weighted else None
        given = as_given(x, schema) if held == "frame" else CONTAINERS[held](x)
        return life(maker(schema=schema, noise_seed=0, **options).fit(given, y, sample_weight=weights))

    made = tables(rng, rows, known=True, numbers=kind == 2, removed=removed)
    return Case(maker.__name__, {**options, "schema": schema, "weighted": weighted, "held": held}, fit, made)


def sharing_options(rng: Rng) -> Options:
    options = {"epsilon": one_of(rng, (0.5, 3.0)), "delta": 1e-6, "labels": one_of(rng, ("held", "held", "shared"))}
    return options | some(
        rng, 0.4, max_iter=(1, 3), rho=(0.2, 1.0), clip=(1.0, 3.0), clip_entries=(0.5,), method=("proximal_jacobi",)
    )


def bounds_of(adjacency: str, row: float) -> dict[str, float]:
    return {"column": {"column_bound": 8.0}, "cell": {"cell_bound": 1.0}}.get(adjacency, {"row_bound": row})


def sharing_model(rng: Rng) -> Case:
    known, rows = rng.random() < 0.6, int(rng.integers(6, 50))
    adjacency = one_of(rng, ("replace-one", "party-row", *(() if known else ("column", "cell"))))
    loss = one_of(rng, ("logistic", "logistic", "hinge", "smoothed-hinge", "sigmoid"))
    schema = schema_of(rng, rows) if known else None
    posed = {"loss": loss, "penalty": one_of(rng, SHARING_PENALTIES), "lam": one_of(rng, (1.0, 20.0))}
    options = (
        sharing_options(rng) | {"adjacency": adjacency} | some(rng, 0.4, shrink=(False,), method=("gauss_seidel",))
    )
    options |= {} if known else {**bounds_of(adjacency, 1.0), "clip_data": bool(rng.random() < 0.5)}

    def fit(x: Any, y: Any) -> Any:
        frame = pd.DataFrame(x, columns=NAMES)
        model = ADMMSharing(
            [frame[NAMES[:2]], frame[NAMES[2:]]] if known else [x[:, :1], x[:, 1:]], y, **posed, schema=schema
        )
        return model, model.solve_private(**options, noise_seed=0)

    shared = options["labels"] == "shared" or adjacency in ("column", "cell")
    return Case(
        "ADMMSharing", {**posed, **options, "schema": schema}, fit, tables(rng, rows, known=known, shared=shared)
    )


def sharing_estimator(rng: Rng) -> Case:
    rows, options = int(rng.integers(8, 50)), sharing_options(rng) | {"lam": 10.0}
    options |= some(rng, 0.4, fit_intercept=(False,), adjacency=("replace-one", "party-row"), penalty=("l1", "l2"))
    schema = schema_of(rng, rows)

    def fit(x: Any, y: Any) -> Any:
        return VerticalLogisticRegression(2, schema=schema, noise_seed=0, **options).fit(as_given(x, schema), y)

    made = tables(rng, rows, known=True, shared=options["labels"] == "shared")
    return Case("VerticalLogisticRegression", {**options, "schema": schema}, fit, made)


class Heard(InProcess):
    """A carrier that keeps what crosses."""

    def __init__(self, roles: Any, spoken: Any) -> None:
        super().__init__(roles, spoken)
        self.heard: list[Any] = []

    def step_all(self, messages: Mapping[str, Any], *, opening: bool = False) -> dict[str, Any]:
        answers = super().step_all(messages, opening=opening)
        both = [(name, one) for name in messages for one in (messages[name], answers[name])]
        self.heard += [(name, one.kind, dict(one.vectors), dict(one.texts)) for name, one in both]
        return answers

    def left(self, run: Any, roles: Mapping[str, Any]) -> Any:
        """The run, what crossed, and what the roles' ledgers and the log say."""
        return run, self.heard, [role.ledger for role in roles.values()], self.log.frame()


def sharing_apart(rng: Rng) -> Case:
    rows, options = int(rng.integers(6, 50)), sharing_options(rng)
    options["adjacency"] = adjacency = one_of(rng, ("replace-one", "party-row", "column", "cell"))
    posed = {"loss": one_of(rng, ("logistic", "hinge")), "penalty": one_of(rng, SHARING_PENALTIES), "lam": 10.0}
    posed["intercept"] = posed["penalty"] == "l2" and bool(rng.random() < 0.5)
    allowed = PartyAllowance(
        epsilon=options["epsilon"], bounds=bounds_of(adjacency, 1.5), clip_data=bool(rng.random() < 0.5)
    )

    def fit(x: Any, y: Any) -> Any:
        noise = Noise(np.random.default_rng(1))
        roles = {"a": SharingParty(x[:, :1], allowed, noise=noise), "b": SharingParty(x[:, 1:], allowed, noise=noise)}
        carrier = Heard(roles, of_sharing.SPOKEN)
        model = SharingApart(carrier, y, classes=np.array([-1.0, 1.0]), **posed)
        return carrier.left(model.solve_private(**options, noise_seed=0), roles)

    made = tables(rng, rows, shared=options["labels"] == "shared" or adjacency in ("column", "cell"))
    return Case("sharing apart", {**posed, **options}, fit, made)


def consensus_options(rng: Rng) -> Options:
    options = {"epsilon": one_of(rng, (0.5, 5.0, 30.0))} | some(rng, 0.2, row_bound=(0.9, 2.0))
    return options | some(
        rng,
        0.4,
        max_iter=(1, 2, 4),
        eta=(1.0, 5.0),
        growth=(1.0, 1.1),
        gamma=(0.0, 0.5),
        perturbation=("objective", "output"),
        method=("admm", "m-admm", "r-admm", "mr-admm", "dvp"),
        delta=(1e-6,),
    )


def consensus_model(rng: Rng, apart: bool = False) -> Case:
    known, nodes, each = not apart and rng.random() < 0.6, int(rng.integers(2, 4)), int(rng.integers(3, 12))
    schema = schema_of(rng, nodes * each) if known else None
    posed = {"loss": one_of(rng, ("logistic", "logistic", "smoothed-hinge"))}
    posed |= some(rng, 0.5, reg=(0.3, 20.0), C=(1.0, 2.0)) | some(rng, 0.1, penalty=("l1", "elastic-net:1:0.5"))
    options, clip_rows = consensus_options(rng), bool(rng.random() < 0.7)
    graph = nx.relabel_nodes(nx.path_graph(nodes), lambda node: f"n{node}")

    def fit(x: Any, y: Any) -> Any:
        shards = {f"n{k}": (x[k::nodes], y[k::nodes]) for k in range(nodes)}
        if not apart:
            model = RecycledADMM(graph, shards, **posed, schema=schema)
            return model, model.solve_private(**options, clip_rows=clip_rows, noise_seed=0)
        allowed = NodeAllowance(epsilon=options["epsilon"], clip_rows=clip_rows)
        noise = Noise(np.random.default_rng(0))
        roles = {name: ConsensusNode(*shard, allowed, noise=noise) for name, shard in shards.items()}
        carrier = Heard(roles, of_consensus.SPOKEN)
        run = ConsensusApart(carrier, graph, **posed, classes=np.array([-1.0, 1.0])).solve_private(**options)
        return carrier.left(run, roles)

    made = tables(rng, nodes * each, known=known)
    return Case("consensus apart" if apart else "RecycledADMM", {**posed, **options, "schema": schema}, fit, made)


def consensus_apart(rng: Rng) -> Case:
    return consensus_model(rng, apart=True)


def consensus_estimator(rng: Rng) -> Case:
    rows, options = int(rng.integers(8, 40)), consensus_options(rng)
    options |= some(rng, 0.4, reg=(0.3, 20.0), fit_intercept=(False,), C=(1.0, 2.0))
    schema = schema_of(rng, rows)

    def fit(x: Any, y: Any) -> Any:
        model = DecentralizedLogisticRegression(2, schema=schema, noise_seed=0, random_state=0, **options)
        return model.fit(as_given(x, schema), y)

    made = tables(rng, rows, known=True)
    return Case("DecentralizedLogisticRegression", {**options, "schema": schema}, fit, made)


KINDS: tuple[Callable[[Rng], Case], ...] = (
    *(sparse_model, sparse_estimator, sharing_model, sharing_estimator, sharing_apart),
    *(consensus_model, consensus_apart, consensus_estimator),
)


def power(rng: Rng, low: float, high: float) -> float:
    return float(10.0 ** rng.uniform(low, high))


def odd_tables(rng: Rng, rows: int, columns: int, numbers: bool) -> list[Table]:
    """A table, of zeros, of one row again and again or of any size, and neighbours in the first row."""
    x = rng.normal(size=(rows, columns)) * one_of(rng, (0.0, 1.0, power(rng, -300, 40)))
    x = np.repeat(x[:1], rows, axis=0) if rng.random() < 0.2 else x
    y = rng.normal(size=rows) if numbers else np.resize([-1.0, 1.0], rows)
    found = [(x, y)]
    for _ in range(2):
        other, label = x.copy(), y.copy()
        other[0] = rng.normal(size=columns) * one_of(rng, (0.0, 1.0, 1e-320, 1e-200, 1e30))
        label[0] = one_of(rng, (0.0, 1e49, -1e49)) if numbers else -label[0]
        found.append((other, label))
    return found


def any_sharing(rng: Rng) -> Case:
    rows, loss = int(rng.integers(4, 40)), one_of(rng, ("logistic", "hinge", "squared", "huber"))
    adjacency, numbers = one_of(rng, ("replace-one", "party-row", "column", "cell")), loss in ("squared", "huber")
    posed = {"loss": loss, "penalty": one_of(rng, ("l2", "l2", "l1", "none")), "lam": power(rng, -14, 10)}
    options = {"epsilon": power(rng, -3, 3), "delta": 1e-6, "adjacency": adjacency, "clip_data": True}
    several = ("rho", -8, 8), ("clip", -8, 8), ("clip_entries", -8, 8)
    options |= {name: power(rng, low, high) for name, low, high in several if rng.random() < 0.4}
    options |= bounds_of(adjacency, power(rng, -5, 5))

    def fit(x: Any, y: Any) -> Any:
        model = ADMMSharing([x[:, :1], x[:, 1:]], y, **posed)
        return model, model.solve_private(**options, noise_seed=0)

    made, labels = odd_tables(rng, rows, 3, numbers), one_of(rng, (1.0, 1.0, 1e49)) if numbers else 1.0
    return Case("any sharing", {**posed, **options}, fit, [(x, labels * made[0][1]) for x, _ in made])  # labels: public


def any_consensus(rng: Rng) -> Case:
    loss, each = one_of(rng, ("logistic", "smoothed-hinge", "huber")), int(rng.integers(2, 30))
    posed = {"loss": loss, "reg": power(rng, -14, 6)}
    options = {"epsilon": power(rng, -1, 4), "max_iter": 2, "eta": power(rng, -9, 6), "row_bound": power(rng, -3, 3)}
    options |= some(rng, 0.6, perturbation=("output",), delta=(1e-6,))

    def fit(x: Any, y: Any) -> Any:
        model = RecycledADMM(nx.path_graph(2), [(x[:each], y[:each]), (x[each:], y[each:])], **posed)
        return model, model.solve_private(**options, clip_rows=True, noise_seed=0)

    return Case("any consensus", {**posed, **options}, fit, odd_tables(rng, 2 * each, 3, loss == "huber"))


ANY = (any_sharing, any_consensus)
"""Fits of any size: whether one ends must not tell of a row."""
