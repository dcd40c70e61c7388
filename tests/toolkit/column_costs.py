"""What constraints cost columns, by formulas of their own: the truth that certificates are held against."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from cvxpriv.divergences import divergence
from cvxpriv.numerics.arrays import Array

ROUNDED = 1.0 + 1e-9  # a mechanism's own columns touch their constraints
AT_ZERO = {"le-cam": 0.5, "hellinger": 1.0, "mutual-information": 0.0}  # r f(1/r) at r = 0
NAMED = ("expected_distortion", "forbidden")


def column_costs(one: dict[str, Any], x: Array, table: Array) -> tuple[Array, list[float], Array]:
    """What columns cost, (n, k), the sums' upper ends, and which columns may be used; a table's columns are inputs."""
    p, p_s, kind = table.sum(axis=0), table.sum(axis=1), one["kind"]
    size, pairs = len(p), list(itertools.permutations(range(len(p)), 2))
    r, s = x / p, x @ (table / p).T / p_s
    ratio, prior = (r, p) if one.get("of") == "input" else (s, p_s)
    some, end = np.ones(len(x), dtype=bool), float(one.get("bound", 0.0))
    high = math.exp(min(one.get("epsilon", 0.0), 700.0)) * ROUNDED
    none = np.zeros((len(x), 0))
    if kind == "local_differential_privacy" and one.get("delta", 0.0):
        over = np.stack([np.maximum(r[:, i] - high * r[:, j], 0.0) for i, j in pairs], axis=1)
        return over, [one["delta"]] * len(pairs), some
    if kind == "local_differential_privacy":
        return none, [], r.max(axis=1) <= high * r.min(axis=1)
    if kind == "metric_differential_privacy":
        factor = np.exp(np.minimum(one["epsilon"] * np.array(one["distance"]), 700.0)) * ROUNDED
        return none, [], np.all([r[:, i] <= factor[i, j] * r[:, j] for i, j in pairs], axis=0)
    if kind == "renyi_differential_privacy":
        a, both = one["order"], [(r[:, i], np.maximum(r[:, j], 1e-12)) for i, j in pairs]
        if a >= 1.0:  # a zero costs without end; of 1e13 in its place, a solver's weight of -1e-13 would pay others
            some = r.min(axis=1) > 0.0
        if a == 1.0:
            told = np.stack([u * np.log(np.maximum(u, 1e-300) / v) for u, v in both], axis=1)
            return told, [one["epsilon"]] * len(pairs), some
        sign = 1.0 if a > 1.0 else -1.0
        end = sign * math.exp(min((a - 1.0) * one["epsilon"], 700.0))
        return np.stack([sign * u**a * v ** (1.0 - a) for u, v in both], axis=1), [end] * len(pairs), some
    if kind == "pointwise_leakage":
        return none, [], ratio.max(axis=1) <= high
    if kind == "local_information_privacy":
        return none, [], (ratio.max(axis=1) <= high) & (ratio.min(axis=1) * high >= 1.0)
    if kind == "f_information":
        with np.errstate(divide="ignore", invalid="ignore"):
            f = ratio * divergence(one["f"]).f(1.0 / np.maximum(ratio, 1e-12))
        return (np.where(ratio > 0.0, f, AT_ZERO[one["f"]]) @ prior)[:, None], [end], some
    if kind == "bayes_vulnerability":
        gain = np.eye(len(prior)) if one.get("gain") is None else np.array(one["gain"])
        return ((ratio * prior) @ gain.T).max(axis=1, keepdims=True), [end], some
    if kind == "group_fairness":
        if one.get("groups") is not None:
            each = np.array([np.where(np.array(one["groups"]) == g, p, 0.0) for g in sorted(set(one["groups"]))])
            s = r @ (each / each.sum(axis=1, keepdims=True)).T
        apart = [0.5 * np.abs(s[:, i] - s[:, j]) for i, j in itertools.combinations(range(s.shape[1]), 2)]
        return np.stack(apart, axis=1), [end] * len(apart), some
    if kind == "maximal_leakage":
        return r.max(axis=1, keepdims=True), [math.exp(min(end, 700.0))], some
    assert kind == "total_variation_to_prior"
    apart = 0.5 * np.abs(r - 1.0)
    return (apart @ p[:, None], [end], some) if one["average"] else (apart, [end] * size, some)


def summed(every: list[dict[str, Any]], x: Array, table: Array, outputs: int) -> tuple[Array, Array, list[float]]:
    """The numbers of the columns that may be used, output by output where they have names, rows of sums, their ends."""
    rest = [column_costs(one, x, table) for one in every if one["kind"] not in NAMED]
    named = [one for one in every if one["kind"] in NAMED]
    times = outputs if named else 1
    some = np.tile(np.all([np.ones(len(x), dtype=bool), *(ok for *_, ok in rest)], axis=0), times)
    rows = [np.tile(row, (times, 1)) for row, *_ in rest] + [np.zeros((times * len(x), 0))]
    ends = [end for _, upper, _ in rest for end in upper]
    for one in named:
        d = np.zeros((x.shape[1], outputs))
        if one["kind"] == "forbidden":
            d[tuple(np.array(one["cells"]).T)] = 1.0
            some &= (x @ d).T.ravel() == 0.0
        else:
            rows.append((x @ np.array(one["distortion"])).T.ravel()[:, None])
            ends.append(one["bound"])
    kept = np.flatnonzero(some)
    return kept % len(x), np.hstack(rows)[kept].T, ends


def grid(size: int, steps: int) -> Array:
    """Columns on a grid of the simplex, (n, size)."""
    return np.array([v for v in itertools.product(range(steps + 1), repeat=size) if sum(v) == steps]) / steps
