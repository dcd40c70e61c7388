"""Options of every model with values of any kind, some without a `repr` to quote: a typed error, or an answer.

Each value goes into each argument: whole numbers of thousands of digits, objects whose `repr` raises, lists that hold
themselves, nesting deeper than the interpreter follows.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv import constraints
from cvxpriv.errors import LONGEST_MESSAGE, CvxprivError
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM

FAST, MANY = 150, 100_000
"""How many inputs `make test` tries, and the slow tests together."""
DEAR, SHARE = "inference.solve", 6
"""The call whose answers take a cone program each, and how many of every other call there are to one of it."""
TABLE = [[0.3, 0.1], [0.1, 0.5]]
X, Y = np.random.default_rng(0).uniform(-0.5, 0.5, size=(12, 2)), np.tile([-1.0, 1.0], 6)
SHARDS = [(X[:6], Y[:6]), (X[6:], Y[6:])]
PATH = nx.path_graph(2)
ODD: dict[str, Any] = {
    repr(one): one
    for one in (
        *(None, True, False, 0, 1, 2, 3, -1, 0.5, 0.1, 1.5, -0.5, 1e-9, 1e-320, 1e9, 1e300, float("inf"), "", "auto"),
        *("aem", "admm", "newton", "dcp", "closed_form", "CLARABEL", "gradient-descent", "l1:0.1", "mcp:0.1:3", "nats"),
        *("hinge", "logistic", "le-cam", "t*log(t)", "outer", [0, 1], [0.5, 0.5], (1.0, 1.0), np.zeros(2), np.eye(2)),
        *(np.float32(0.5), np.int8(2), np.full(2, np.nan), X, TABLE, {0: 1}, "edge-replace", "output", "objective"),
    )
}
"""Values that some option takes, beside the hostile ones."""


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class UnspeakableNumber(float):
    def __repr__(self) -> str:
        raise ValueError("no")


def values() -> dict[str, Any]:
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    return {
        "huge": 10**5000,
        "minus huge": -(10**5000),
        "unspeakable": Unspeakable(),
        "unspeakable number": UnspeakableNumber(2.0),
        "endless": endless,
        "deep": deep,
        "huge in a list": [10**5000],
        "huge in a pair": (1, 10**5000),
        "unspeakable in a mapping": {Unspeakable(): 1},
        "escapes": "\x1b[2J" * 100,
        "null": "\0",
        "nan": float("nan"),
        "minus infinity": float("-inf"),
        "complex": 1j,
        "bytes": b"\xff",
        "empty": [],
        "class": int,
        "set": {1, 2},
        "object array": np.array([None, object()], dtype=object),
        "date": np.datetime64("2020-01-01"),
        "masked": np.ma.masked,
        "half a pair": "\ud800",
    }


def usual_calls() -> dict[str, tuple[Callable[..., Any], list[str]]]:
    """Return by a name a call that is right as it stands, and its options."""
    few: dict[str, Any] = {"starts": 1, "max_iter": 2}
    clear: dict[str, Callable[..., Any]] = {
        "funnel": lambda **options: PrivacyFunnel(TABLE, 0.5).solve(**{**few, **options}),
        "inference": lambda **options: InferenceAsService(TABLE, 0.1).solve(**{**few, **options}),
        "sharing": lambda **options: ADMMSharing([X], Y).solve(**{**few, **options}),
        "consensus": lambda **options: RecycledADMM(PATH, SHARDS).solve(**{**few, **options}),
        "sparse": lambda **options: ISTDP(X, Y).solve(**{**few, **options}),
    }
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_iter": 2}
    private: dict[str, Callable[..., Any]] = {
        "sharing": lambda **options: ADMMSharing([X], Y).solve_private(**{**budget, "row_bound": 1.0, **options}),
        "consensus": lambda **options: RecycledADMM(PATH, SHARDS).solve_private(**{**budget, **options}),
        "sparse": lambda **options: ISTDP(X, Y, allow_constant=True).solve_private(**{**budget, **options}),
    }
    posed: dict[str, Callable[..., Any]] = {
        "funnel": lambda **options: PrivacyFunnel(TABLE, **options),
        "inference": lambda **options: InferenceAsService(TABLE, **{"beta": 0.1, **options}),
        "sharing": lambda **options: ADMMSharing([X], Y, **options),
        "consensus": lambda **options: RecycledADMM(PATH, SHARDS, **options),
        "sparse": lambda **options: ISTDP(X, Y, **options),
    }
    shared = [
        "method",
        "engine",
        "starts",
        "seed",
        "tol",
        "max_iter",
        "init",
        "solver",
        "n_jobs",
        "callback",
        "time_limit",
        "isolate",
        "oversize",
    ]
    spent = ["epsilon", "delta", "adjacency", "noise_seed", "method", "max_iter"]
    own = {
        "funnel": "rate rate_unit size_y",
        "inference": "beta divergence size_u floor",
        "sharing": "loss penalty lam sets weights",
        "consensus": "loss penalty reg C",
        "sparse": "loss penalty intercept allow_constant",
    }
    more = {"sharing": "clip rho row_bound", "consensus": "alpha eta growth row_bound init", "sparse": "clip step"}
    beside = {
        "funnel": "accelerate gap",
        "inference": "rho inner step",
        "sharing": "rho accelerate",
        "consensus": "eta growth eta_cap gamma variant",
        "sparse": "step",
    }

    return {
        **{f"{name}.solve": (f, shared + beside[name].split()) for name, f in clear.items()},
        **{f"{name}.solve_private": (f, spent + more[name].split()) for name, f in private.items()},
        **{name: (f, own[name].split()) for name, f in posed.items()},
    }


def calls() -> dict[str, Callable[[Any], Any]]:
    few: dict[str, Any] = {"starts": 1, "max_iter": 2}

    def given(function: Callable[..., Any], option: str) -> Callable[[Any], Any]:
        return lambda value: function(**{option: value})

    found = {f"{name} {one}": given(f, one) for name, (f, options) in usual_calls().items() for one in options}
    return found | {
        "joint": cpv.JointTable.from_array,
        "counts": cpv.JointTable.from_counts,
        "a count": lambda value: cpv.JointTable.from_counts([[1, value], [2, 3]]),
        "funnel table": PrivacyFunnel,
        "inference table": lambda value: InferenceAsService(value, 0.1),
        "rows": lambda value: ISTDP(value, Y),
        "labels": lambda value: ISTDP(X, value),
        "an entry": lambda value: ISTDP([[1.0, value], [2.0, 3.0]], [1, -1]),
        "a label": lambda value: ISTDP([[1.0, 2.0], [2.0, 4.0]], [1, value]),
        "parts": lambda value: ADMMSharing(value, Y),
        "a part": lambda value: ADMMSharing([value], Y),
        "graph": lambda value: RecycledADMM(value, SHARDS),
        "shards": lambda value: RecycledADMM(PATH, value),
        "a shard": lambda value: RecycledADMM(PATH, [SHARDS[0], value]),
        "a node's rows": lambda value: RecycledADMM(PATH, [SHARDS[0], (value, Y[6:])]),
        "a node's labels": lambda value: RecycledADMM(PATH, [SHARDS[0], (X[6:], value)]),
        "epsilon of a constraint": constraints.local_differential_privacy,
        "curve": lambda value: PrivacyFunnel(TABLE).curve(value, **few, method="aem"),
        "constrain name": lambda value: PrivacyFunnel(TABLE).constrain(value, lambda mechanism: mechanism >= 0),
        "constrain": lambda value: PrivacyFunnel(TABLE).constrain("a", value),
        "load": cpv.load,
        "Mechanism.load": cpv.Mechanism.load,
    }


def fate(call: Callable[[Any], Any], value: Any) -> tuple[str, str]:
    """(how a call ended, what is wrong with that; "" where it answers, or raises what it may)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call(value)
    except CvxprivError as error:
        said = str(error)
        shown = said and len(said) <= LONGEST_MESSAGE and "\x1b" not in said
        return "refused", "" if shown else f"message {said[:80]!r}"
    except Exception as error:
        return "failed", f"{type(error).__name__}: {str(error)[:80]}"
    objective = getattr(found, "objective", getattr(found, "leakage", 0.0))
    return "answered", "" if np.isfinite(objective) else f"answer {objective}"


def pairs() -> Iterator[tuple[str, str, str]]:
    given, made = values(), calls()
    for name, kind in itertools.product(made, given):
        if not (name.endswith("callback") and kind == "class"):  # what a callback raises is its caller's
            yield name, kind, fate(made[name], given[kind])[1]


def test_hostile_options_raise_typed_errors_with_messages_that_can_be_shown() -> None:
    given, made = values(), calls()
    every = list(itertools.product(made, given))
    chosen = np.random.default_rng(0).choice(len(every), FAST, replace=False)
    wrong = {
        (name, kind): said for name, kind in (every[k] for k in chosen) if (said := fate(made[name], given[kind])[1])
    }
    assert wrong == {}


@pytest.mark.slow
def test_every_hostile_value_in_every_argument(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(pairs())
    with capsys.disabled():
        sys.stdout.write(f"\n{len(found):,} hostile options\n")
    assert {(name, kind): said for name, kind, said in found if said} == {}


def mixed(count: int, seed: int) -> tuple[Counter[str], dict[str, str]]:
    """(how many calls with one to three odd options ended how, and what was wrong with which)."""
    rng, usual, ends, wrong = np.random.default_rng(seed), usual_calls(), Counter[str](), {}
    given, likely = {**values(), **ODD}, list(ODD)[:12]
    turns = [name for name in usual for _ in range(1 if name == DEAR else SHARE)]
    for _ in range(count):
        name = str(rng.choice(turns))
        function, options = usual[name]
        chosen = {
            str(one): str(rng.choice(likely if rng.random() < 0.6 else list(given)))
            for one in rng.choice(options, rng.integers(1, 4), replace=False)
        }
        if chosen.get("callback") != "class":
            odd = {option: given[kind] for option, kind in chosen.items()}
            ended, said = fate(lambda odd, function=function: function(**odd), odd)
            ends[ended] += 1
            if said:
                wrong[f"{name} {chosen}"] = said
    return ends, wrong


def test_mixed_odd_options_raise_typed_errors_or_are_answered() -> None:
    ends, wrong = mixed(FAST, 0)
    assert wrong == {}
    assert min(ends["answered"], ends["refused"]) > FAST / 50


def test_an_array_in_any_option_is_refused_or_answered() -> None:
    for name, (function, options) in usual_calls().items():
        for option in options:
            assert fate(lambda value, f=function, one=option: f(**{one: value}), X)[1] == "", (name, option)


@pytest.mark.slow
def test_many_mixed_odd_options(capsys: pytest.CaptureFixture[str]) -> None:
    ends, wrong = mixed(MANY, 1)
    with capsys.disabled():
        sys.stdout.write(f"\n{MANY:,} calls with odd options: {dict(ends)}\n")
    assert wrong == {}
