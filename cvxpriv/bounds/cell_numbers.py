"""Statements of constraints in certificates, and the numbers that a cell has for each cost of columns.

`check_costs.py` derives from the numbers a line that stands in place of the costs: weights of lines, slopes of an
f-information, logarithms of ratios for Renyi divergences.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.constraints.ready import ratio
from cvxpriv.divergences import divergence
from cvxpriv.numerics.arrays import Array, Flags

from .any_conjugate import conjugate_of
from .column_costs import INWARD
from .conjugates import closed_form
from .lines import Lines
from .service_certificate import KNOWN

#: Largest exponent of a ratio that the checker takes, and decimals of a number in a file.
LARGEST, DECIMALS = 40.0, 11
NO_F = "the checker knows no f but those built in without kinks"
NO_RATIO = "the checker takes no ratio above e^40"
#: Constraints on the ratios to the prior.
BOXES = ("local_information_privacy", "pointwise_leakage")


def stated(one: ReadyConstraint, forbidden: Flags | None, outputs: int) -> dict[str, Any] | str:
    """Return a constraint as a certificate states it, or why none can.

    `forbidden`, (inputs, |outputs|): The cells of all constraints that forbid some.
    """
    given = dict(one.parameters)
    if one.kind == "forbidden":
        assert forbidden is not None, "it is one of those that are counted"
        return {"kind": one.kind, "cells": np.argwhere(forbidden).tolist(), "outputs": outputs}
    if one.kind == "f_information" and given["of"] == "input" and given["f"] == "total-variation":
        return {"kind": "total_variation_to_prior", "bound": given["bound"], "average": True}
    if one.kind == "f_information":
        f = divergence(given["f"])
        if f.name not in KNOWN or closed_form(f) is None:
            return NO_F
        given["f"] = f.name
    steep = max(float(np.max(given.get("distance", 1.0))), abs(float(given.get("order", 1.0)) - 1.0))
    return NO_RATIO if float(given.get("epsilon", 0.0)) * steep > LARGEST else {"kind": one.kind, **given}


def of_lines(said: dict[str, Any], line: Lines, known: Known, weights: Array) -> Array:
    """Return the numbers of a cost from lines, (B, size), for weights of the lines, (B, `Lines.size`)."""
    kind, prior = said["kind"], known.prior
    if line.sort == "away":
        half = line.lines.shape[1]
        apart = weights[:, :half] - weights[:, half:]
        return 0.5 * apart if kind == "total_variation_to_prior" else apart
    if kind == "local_differential_privacy" and line.sort == "never":
        return np.asarray(prior * (weights @ line.lines.T))
    if kind == "metric_differential_privacy":  # a line is scaled: its larger coefficient is 1
        first = [y for y in range(len(prior)) for z in range(len(prior)) if y != z]
        return np.asarray(weights * line.lines[first, np.arange(len(first))] * prior[first])
    if kind in BOXES:
        high = float(ratio(said["epsilon"]))
        half = len(prior) if said.get("of") == "input" else int((known.p_s > 0.0).sum())
        sign = np.concatenate([np.full(half, 1.0 / high), np.full(line.lines.shape[1] - half, -1.0)])
        return np.asarray((weights * sign).reshape(len(weights), -1, half).sum(axis=1))
    if line.sort == "most" and not weights.any():  # a mixture of guesses has to have some weight
        return np.ones_like(weights)
    return weights


def of_information(said: dict[str, Any], known: Known) -> Callable[[Array], Array]:
    """Slopes of H at columns."""
    used = known.p_s > 0.0
    told = np.eye(len(known.prior)) if said["of"] == "input" else known.p_s_given_input[used]
    prior = told @ known.prior
    conjugate = conjugate_of(divergence(said["f"]), 1.0 / float(prior.min()))
    return lambda x: conjugate.slope(((1.0 - INWARD) * x + INWARD * known.prior) @ told.T / prior)


def of_renyi(known: Known) -> Callable[[Array], Array]:
    """Logarithms of ratios to the prior at columns: those of pairs are their differences."""
    return lambda x: np.log(np.maximum(x / known.prior, 1e-100))


def in_order(nodes: Sequence[Any]) -> list[Any]:
    """Return the entries of a tree, its root first: nodes are leaves, or a cut, of a tuple, and two later nodes.

    >>> in_order([("cut", 1, 2), ["left"], ["right"]])
    ['cut', ['right'], ['left']]
    """
    order, stack = list[Any](), [0]
    while stack:
        node = nodes[stack.pop()]
        order.append(node[0] if isinstance(node, tuple) else node)
        stack += list(node[1:]) if isinstance(node, tuple) else []
    return order
