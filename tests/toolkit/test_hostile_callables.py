"""Every public callable, with values of any kind in each argument: a typed error, an answer, and never another error.

The callables are found by walking the package; each has a usual call, whose arguments are replaced one at a time.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import resource
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv import constraints, datasets, models, penalties
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM
from tests.toolkit.hostile_values import fault, values

FAST = 100
"""How many calls `make test` tries; the slow tests try all."""
PARTS = 20
Usual = tuple[tuple[Any, ...], dict[str, Any]]
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"s": list("aabb") * 6, "x": list("uvwu") * 6, "z": RNG.uniform(size=24)})
ROWS, LABELS = RNG.uniform(-0.5, 0.5, size=(24, 2)), np.tile([-1.0, 1.0], 12)
FEW: dict[str, Any] = {"starts": 1, "max_iter": 2}
#: Classes that the toolkit makes and hands out, and classes of errors.
HANDED_OUT = (
    *("Accounting", "AlternationRun", "Audit", "Case", "ConvexConcaveRun", "CrossCheck", "Decoded", "Disclosure"),
    *("Formulations", "History", "PrivacyWarning", "NoGuaranteeWarning", "Residuals", "Verdict", "Verification"),
    *("Context", "Block", "Declaration", "Prepared", "Array", "Values", "Constraint"),
)
#: They run what they are given, or fetch it.
LEFT_OUT = ("data", "neighbour", "callback", "progress", "n_jobs", "scheduler", "backend", "folder")


def problem() -> cp.Problem:
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [x <= 0.5])


def solved() -> cp.Problem:
    found = problem()
    found.solve(solver="CLARABEL")
    return found


def product() -> cp.Problem:
    w, h = cp.Variable((2, 1), nonneg=True, name="w"), cp.Variable((1, 2), nonneg=True, name="h")
    return cp.Problem(cp.Minimize(cp.sum_squares(np.ones((2, 2)) - w @ h)))


def table() -> cpv.JointTable:
    return cpv.JointTable.from_frame(FRAME, ["s"], ["x"])


def mechanism() -> cpv.Mechanism:
    return cpv.Mechanism(np.full((3, 2), 0.5), table().public, private_columns=["s"])


def step() -> cpv.Update:
    return cpv.Update("a", lambda view: {"a": view["a"]}, frozenset("a"), frozenset("a"))


def block_at_a_state() -> tuple[Any, Any]:
    funnel = PrivacyFunnel(table(), 0.5)
    return funnel.blocks()["u"], funnel.solve(method="aem", **FEW).state


@cache
def usual_calls() -> dict[str, tuple[Callable[[], Any], Usual]]:
    """Return, for each public name, how it is got and a call of it."""

    def call(*args: Any, **options: Any) -> Usual:
        return args, options

    two = [0.5, 0.5]
    found = {
        "Alphabet": call(("s",), (("a",), ("b",))),
        "Below": call("a", 1.0),
        "Budget": call(1.0, 1e-6),
        "Checked": call(),
        "ClosedForm": call(),
        "DCP": call(),
        "Draw": call("a", lambda view, noise: view, frozenset("a"), frozenset("a"), lambda view: ()),
        "Encoding": call(cpv.Encoding.of(FRAME, ["z"], ranges={"z": (0.0, 1.0)}).columns),
        "FDivergence": call("mine", lambda t: t * np.log(t)),
        "Invariant": call("a", lambda a, b: a, 1.0),
        "JointTable": call(table().probabilities, table().private, table().public),
        "Known": call(np.array(two), np.array(two), np.eye(2)),
        "Loop": call(step(), cpv.Below("a", 1.0), 3, lambda view: {}),
        "Mechanism": call(mechanism().matrix, table().public),
        "Parallel": call([step()]),
        "Public": call(step(), frozenset("a")),
        "PublicSchema": call(),
        "Recipe": call(),
        "Sweep": call([step()]),
        "Tolerances": call(),
        "Update": call("a", lambda view: view, frozenset("a"), frozenset("a")),
        "alternate": call(product(), max_iter=2),
        "assert_solvers_agree": call(problem(), ("CLARABEL",)),
        "audit": call(lambda data: float(np.sum(data)), [0], [1], delta=1e-3, runs=20),
        "case_of_block": call(*block_at_a_state()),
        "compare_formulations": call({"one": problem()}, ("CLARABEL",)),
        "convex_concave": call(problem(), max_iter=2),
        "crosscheck": call(problem(), ("CLARABEL",)),
        "decode": call("missing"),
        "disclosure": call(table(), mechanism().matrix, 5),
        "divergence": call("le-cam"),
        "load": call("missing"),
        "plot_curve": call(pd.DataFrame({"utility": [0.0, 1.0], "leakage": [0.0, 1.0]})),
        "plot_history": call(pd.DataFrame({"start": [0], "iteration": [1], "objective": [0.0], "kkt": [1.0]})),
        "plot_mechanism": call(mechanism().matrix, table().public),
        "prepare": call(FRAME),
        "private_scores": call(LABELS, LABELS, epsilon=1.0, delta=1e-6),
        "private_table": call(table(), 1.0, domain={"s": ["a", "b"], "x": ["u", "v", "w"]}),
        "proximal_step": call(solved()),
        "residuals": call(solved()),
        "run": call(step(), {"a": np.ones(1)}, cpv.Context(cpv.DCP())),
        "save_figure": call(cpv.plot_mechanism(mechanism().matrix, table().public), "figure.png"),
        "scores_of": call(LABELS, LABELS),
        "sweep": call(PrivacyFunnel, table(), rate=[0.5], max_iter=2, method="aem"),
        "verify": call("le-cam", solvers=("CLARABEL",)),
    }
    rooms = {
        constraints: {
            "bayes_vulnerability": call(0.9),
            "couples_rows": call(constraints.floor(0.1), (2, 2)),
            "expected_distortion": call(np.ones((3, 3)), 0.5),
            "f_information": call("le-cam", 0.1),
            "fixed": call([(0, 1, 0.5)]),
            "floor": call(0.01),
            "forbidden": call([(0, 1)]),
            "from_document": call({"constraint": "floor"}),
            "group_fairness": call(0.1),
            "local_differential_privacy": call(1.0),
            "local_information_privacy": call(1.0),
            "maximal_leakage": call(0.5),
            "metric_differential_privacy": call(1.0, np.ones((3, 3))),
            "monotone": call(),
            "output_marginal": call(two),
            "parse": call("ldp=1"),
            "pointwise_leakage": call(1.0),
            "renyi_differential_privacy": call(2.0, 1.0),
            "symmetric": call([1, 0], [1, 0]),
            "to_document": call(constraints.floor(0.1)),
            "total_variation_to_prior": call(0.1),
        },
        penalties: {
            "Box": call(),
            "CappedL1": call(0.1),
            "ElasticNet": call(),
            "GroupLasso": call([[0, 1]]),
            "L1": call(),
            "L2": call(),
            "MCP": call(0.1),
            "SCAD": call(0.1),
            "Within": call(penalties.L1(), penalties.Box()),
            "convex_penalty": call("l1"),
            "loss_named": call("logistic"),
            "penalty_named": call("l1"),
            "require_penalty": call(penalties.L1()),
        },
        datasets: {"joint_table": call("heart-failure"), "load_table": call("heart-failure")},
    }
    calls = {name: (getattr_later(cpv, name), usual) for name, usual in found.items()}
    for room, inside in rooms.items():
        label = room.__name__.rpartition(".")[2]
        calls |= {f"{label}.{name}": (getattr_later(room, name), usual) for name, usual in inside.items()}
    calls |= {
        "models.PrivacyFunnel": (lambda: PrivacyFunnel, call(table(), 0.5)),
        "models.InferenceAsService": (lambda: InferenceAsService, call(table(), 0.1)),
        "models.ADMMSharing": (lambda: ADMMSharing, call([ROWS], LABELS)),
        "models.RecycledADMM": (lambda: RecycledADMM, call(nx.path_graph(2), shards())),
        "models.ISTDP": (lambda: ISTDP, call(ROWS, LABELS)),
    }
    return calls | methods()


def getattr_later(holder: Any, name: str) -> Callable[[], Any]:
    return lambda: getattr(holder, name)


def shards() -> list[Any]:
    return [(ROWS[:12], LABELS[:12]), (ROWS[12:], LABELS[12:])]


def methods() -> dict[str, tuple[Callable[[], Any], Usual]]:
    """Return the public methods of what users hold; of an argument without a default one that is often wrong."""
    two = [0.5, 0.5]
    schema = cpv.PublicSchema(classes=("no", "yes"), ranges=(0.0, 1.0), columns=2, rows=24)
    encoding = cpv.Encoding.of(FRAME, ["z", "x"], ranges={"z": (0, 1)}, categories={"x": list("uvw")})
    held: dict[str, tuple[Callable[[], Any], dict[str, Usual]]] = {
        "table": (table, {"from_frame": ((FRAME, ["s"], ["x"]), {}), "from_csv": (("t.csv", ["s"], ["x"]), {})}),
        "alphabet": (lambda: table().private, {"from_frame": ((FRAME, ["s", "x"]), {}), "index": ((["a"],), {})}),
        "divergence": (lambda: cpv.divergence("le-cam"), {"between": ((two, two), {}), "terms": ((two, two), {})}),
        "mechanism": (mechanism, {"release": ((FRAME,), {}), "bundle": ((FRAME, "bundle"), {})}),
        "recipe": (lambda: cpv.prepare(FRAME, rare={"x": 2}).recipe, {"apply": ((FRAME,), {})}),
        "schema": (lambda: schema, {"labels": ((["no", "yes"], 2), {"margin": True})}),
        "encoding": (lambda: encoding, {"encode": ((FRAME,), {}), "of": ((FRAME, ["z"]), {})}),
        "budget": (lambda: cpv.Budget(1.0, 1e-6), {}),
        "funnel": (lambda: PrivacyFunnel(table(), 0.5), {"curve": ((2,), {**FEW, "method": "aem"})}),
        "inference": (lambda: InferenceAsService(table(), 0.1), {"curve": ((2,), FEW)}),
        "sharing": (lambda: ADMMSharing([ROWS], LABELS), {}),
        "consensus": (lambda: RecycledADMM(nx.path_graph(2), shards()), {}),
        "sparse": (lambda: ISTDP(ROWS, LABELS), {"path": ((2,), {})}),
    }
    #: The options of these have tests of their own; the others do long work, whatever they are given.
    apart = {"solve", "solve_private", "on_rows", "example_cases", "bound", "beta_critical", "perfect_privacy"}
    found = {}
    for label, (make, usual) in held.items():
        holder = make()
        for name, own in inspect.getmembers(type(holder), callable):
            if not name.startswith("_") and not inspect.isclass(own) and name not in apart:
                found[f"{label}.{name}"] = (bound(make, name), usual.get(name, required(getattr(holder, name))))
    return found


def bound(make: Callable[[], Any], name: str) -> Callable[[], Any]:
    return lambda: getattr(make(), name)


def required(function: Any) -> Usual:
    """Return a call that gives each argument without a default: one that is often right, by its annotation."""
    texts = {"str": "x", "int": 1, "float": 0.5, "PathLike": "missing", "pd.DataFrame": FRAME, "Constraint": np.sign}
    parameters = inspect.signature(function).parameters.values()
    alone = [one for one in parameters if one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD,)]
    return tuple(texts.get(str(one.annotation), ["x"]) for one in alone), {}


@cache
def calls() -> tuple[tuple[str, str, str], ...]:
    """Return all calls: the callable's name, the argument's, and the value's."""
    given = list(values())
    found = []
    for name, (get, _) in usual_calls().items():
        for one in inspect.signature(get()).parameters.values():
            if one.kind is not one.VAR_KEYWORD and one.name not in LEFT_OUT:
                found += [(name, one.name, kind) for kind in given]
    found.remove(("audit", "mechanism", "class"))  # it is called, and what it raises is its own
    return tuple(found)


def faults(chosen: Iterator[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    usual, given, found = usual_calls(), values(), {}
    for name, argument, kind in chosen:
        get, (args, options) = usual[name]
        value, function = iter([1, 2]) if kind == "iterator" else given[kind], get()
        places = list(inspect.signature(function).parameters)
        place = places.index(argument)
        if inspect.signature(function).parameters[argument].kind is inspect.Parameter.VAR_POSITIONAL:
            said = fault(lambda f=function, a=(*args[:place], value), o=options: f(*a, **o))
        elif place < len(args):
            said = fault(lambda f=function, a=(*args[:place], value, *args[place + 1 :]), o=options: f(*a, **o))
        else:
            said = fault(lambda f=function, a=args, o={**options, argument: value}: f(*a, **o))
        if said:
            found[name, argument, kind] = said
    return found


def test_every_public_callable_has_a_usual_call() -> None:
    named = set(usual_calls()) | set(HANDED_OUT)
    public = {name for name in dir(cpv) if callable(getattr(cpv, name)) and not name.startswith("_")}
    errors = {
        name for name in public if inspect.isclass(getattr(cpv, name)) and issubclass(getattr(cpv, name), Exception)
    }
    assert public - errors - named == set()
    assert {f"constraints.{name}" for name in constraints.__all__ if name[0].islower()} - {"constraints.names"} <= named
    assert {f"models.{name}" for name in models.available()} <= named


@pytest.mark.filterwarnings("ignore")
def test_hostile_arguments_raise_typed_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = np.random.default_rng(1).choice(len(calls()), FAST, replace=False)
    assert faults(calls()[place] for place in chosen) == {}


def counts() -> list[tuple[str, str, str]]:
    """Return the calls with a far too large number in an argument that takes a whole one."""
    usual, found = usual_calls(), []
    for name, argument, kind in calls():
        if kind in ("billion", "longest"):
            told = inspect.signature(usual[name][0]()).parameters[argument].annotation
            found += [(name, argument, kind)] * ("int" in re.findall(r"\w+", str(told)) or told is int)
    return found


def faults_of_sizes(chosen: list[tuple[str, str, str]]) -> list[str]:
    """Call in a process that gets 2 GiB more and no more; also what takes long, or all of that, is a fault."""
    reader, writer = os.pipe()
    if (process := os.fork()) == 0:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**31, used + 2**31))
        resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
        said = []
        for call in chosen:
            begun = time.process_time()
            said += [f"{call}: {one}" for one in faults(iter([call])).values()]
            said += [f"{call}: takes long"] * (time.process_time() - begun > 5.0)
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    assert os.waitpid(process, 0)[1] == 0
    return list(json.loads(text))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", [6, pytest.param(10**6, marks=pytest.mark.slow)])
def test_counts_beyond_what_can_finish_end_at_once_and_fill_no_memory(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = counts()
    places = np.random.default_rng(4).permutation(len(found))[:number]
    assert faults_of_sizes([found[place] for place in places]) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_hostile_value_in_every_argument_of_every_callable(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert faults(iter(calls()[part::PARTS])) == {}
