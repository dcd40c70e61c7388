"""The constraints of a certificate as costs of columns, for checkers that stand beside this file.

A column is x = P(Y|u), with a ratio r_y = x(y)/p(y) for each input. Constraints bound sums over outputs,
sum_u p(u) m(x_u) <= B, of convex costs m, or ask something of each column. A cell of a file has numbers from which
follow v and e with v.x - mu.m(x) <= e for all columns that obey the constraints: at prices mu >= 0 a line less e stands
in place of the costs. v = sum_w u_w T_w with ratios T_w.x = p(u|w)/p(u), of inputs or of private symbols. With
K >= e^epsilon and u+ = max(u, 0):
  local_differential_privacy  r in [m, K m]; e = max(0, sum_y u_y + (K - 1) u+_y), as m <= 1
  pointwise_leakage, local_information_privacy  T.x in [0, K], [1/K, K]; e is the largest u.T.x in that box
  maximal_leakage    mu max_y r_y; e = (sum_y u+_y - mu)+ times the largest r
  total_variation_to_prior  mu_y |r_y - 1| / 2; u_y is cut to mu_y / 2 and e = sum_y u_y
  f_information      mu sum_w p(w) H(T_w.x), u_w = mu p(w) t_w and e = mu sum_w p(w) H*(t_w) for any t
  bayes_vulnerability, group_fairness, and by pairs (y, y') of inputs metric_differential_privacy (r_y - K r_y' <= 0),
  local_differential_privacy with a delta (mu (r_y - K r_y')+): u is a mixture of their lines, e = 0
  renyi_differential_privacy  mu times tangents at r_y = e^w_y to r_y^a r_y'^(1 - a) or r_y ln(r_y / r_y'); e = 0"""
# ruff: noqa: B905, E701
# fmt: off

import math
import sys
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

if __package__:
    from cvxpriv.bounds import check_service_certificate as plain
else:
    sys.path.insert(0, str(Path(__file__).parent))
    import check_service_certificate as plain  # type: ignore[import-not-found, no-redef]

ONE, SHORT = plain.ONE, plain.SHORT
PRIVATE = ("pointwise_leakage", "local_information_privacy", "f_information", "bayes_vulnerability", "group_fairness")
MOST_OUTPUTS, STEEP = 1000, math.log(1e6)  # the latter: of ratios at which tangents of a Renyi divergence are taken
Row = list[Fraction]
need = plain.need

def read(document: Any, joint: Any, p: Row) -> tuple[list["Cost"], Fraction, list[Any]]:
    """The costs, mu.B, and of each sort of outputs the file's cells, what no column may hold, and what y costs."""
    constraints, held, cells = [document.get(key) for key in ("constraints", "mu", "cells")]
    need(all(isinstance(part, list) and part for part in (constraints, held, cells)), "constraints, mu or cells lack")
    need(len(held) == len(constraints) and {type(one) for one in constraints} == {dict}, "a constraint is no object")
    mu = [short(one) if one else [] for one in held]
    need(all(v >= 0 for one in mu for v in one), "mu is negative")
    costs = [Cost(one, joint, p, prices) for one, prices in zip(constraints, mu)]
    by_name = [cost for cost in costs if cost.outputs]
    widths = {cost.outputs for cost in by_name}
    need(len(widths) <= 1 and max([1, *widths]) <= MOST_OUTPUTS, "the number of outputs differs, or is too large")
    named = list(dict.fromkeys([tuple([tuple(cost.named[y]) for cost in by_name]) for y in range(max([1, *widths]))]))
    need(len(cells) == len(named), f"cells have to be given for {len(named)} sorts of outputs")
    need({type(some) for some in cells} == {list}, "cells are no list")
    banned = [[y for y, column in enumerate(zip(*every)) if None in column] for every in named]
    more = [[sum([(v or 0) * cost.scale for v, cost in zip(column, by_name)]) for column in zip(*every)] or [0] * len(p)
            for every in named]
    return costs, sum([cost.paid for cost in costs], Fraction(0)), list(zip(map(iter, cells), banned, more))

def weakened(costs: list["Cost"], held: list[Any], c: list[int]) -> tuple[list[int], int]:
    """Return c less lines that stand in place of the costs, and what these may lack, rounded up."""
    c, more = c[:], Fraction(0)
    for cost, numbers in zip(costs, held):
        u, e = cost.weaken(short(numbers, cost.size)) if cost.size else ([], Fraction(0))
        more += e
        for w, row in zip(u, cost.ratios):
            if w:
                for y, t in row: c[y] -= math.floor(w * t * ONE)
    return c, math.ceil(more * ONE)

def dot(x: Any, y: Any) -> Fraction:
    return sum((v * w for v, w in zip(x, y)), Fraction(0))

def short(row: Any, size: int = 0) -> Row:
    return [Fraction(round(v * SHORT), SHORT) for v in plain.matrix([row], size, True)[0]]

def above(x: Fraction) -> Fraction:
    """A number that is at least e^x, and a little more."""
    need(-40 <= x <= 40, "a number is out of range")
    large = int(math.exp(x) * (1 + 2.0**-40) * ONE) + 1000
    need(plain.log(large) - plain.LOG_ERROR >= math.ceil(x * ONE), "the exponential function is wrong here")
    return Fraction(large, ONE)

class Cost:
    """One constraint: what its sums cost, `paid` = mu.B, and how numbers of the file weaken it.

    `ratios`: T_w as pairs (y, T_wy). `size`: Numbers in a cell. `named`: By output d, None where forbidden."""

    def __init__(self, one: Any, joint: Any, p: Row, mu: Row) -> None:
        self.kind, self.p, self.prior, self.mu, self.outputs, self.paid = one.get("kind"), p, p, mu, 0, Fraction(0)
        self.named: Any = []
        size, groups, self.pairs, prices = len(p), one.get("groups"), list(permutations(range(len(p)), 2)), 1
        def number(key: str) -> Fraction: return plain.matrix([[one.get(key)]], 1, True)[0][0]
        self.ratios, self.order, self.scale = [[(y, 1 / w)] for y, w in enumerate(p)], Fraction(1), Fraction(0)
        if self.kind in PRIVATE and one.get("of") != "input":
            self.prior, seen = plain.sums(joint), [[x / w for x, w in zip(row, p)] for row in joint]
            if groups is not None:
                need(isinstance(groups, list) and [type(g) for g in groups] == [int] * size, "groups are not |Y|")
                seen = [[Fraction(g == name) for g in groups] for name in sorted(set(groups))]
                self.prior = [dot(row, p) for row in seen]
            self.ratios = [[(y, x / w) for y, x in enumerate(row) if x] for row, w in zip(seen, self.prior) if w]
            self.prior = [w for w in self.prior if w]
        self.size = len(self.prior)
        if self.kind in ("local_differential_privacy", "pointwise_leakage", "local_information_privacy"):
            self.high, prices = above(number("epsilon")), 0
            self.low = Fraction(self.kind == "local_information_privacy") / self.high
            if self.kind == "local_differential_privacy" and one.get("delta", 0) != 0:
                self.kind, self.factor, prices = "pairs", [self.high] * len(self.pairs), len(self.pairs)
                self.size, self.paid = prices, sum(mu, Fraction(0)) * number("delta")
        elif self.kind == "metric_differential_privacy":
            far = plain.matrix(one.get("distance"), size)
            need(len(far) == size, "distance has to be square")
            self.factor = [above(number("epsilon") * far[y][z]) for y, z in self.pairs]
            self.kind, self.size, prices = "pairs", len(self.pairs), 0
        elif self.kind == "renyi_differential_privacy":
            self.order, prices = number("order"), len(self.pairs)
            need(self.order > 0, "the order is not above 0")
            ends = (-STEEP, STEEP) if self.order <= 1 else (-40 / self.order, STEEP / self.order)
            self.ends = [Fraction(v) for v in ends]
            gap = (self.order - 1) * number("epsilon")
            end = number("epsilon") if self.order == 1 else above(gap) if self.order > 1 else -1 / above(-gap)
            self.paid = sum(mu, Fraction(0)) * end
        elif self.kind == "maximal_leakage":
            self.paid = sum(mu, Fraction(0)) * min(above(min(number("bound"), Fraction(40))), Fraction(size))
        elif self.kind in ("total_variation_to_prior", "f_information", "bayes_vulnerability", "group_fairness"):
            if self.kind == "total_variation_to_prior":
                self.mean, prices = one.get("average") is True, 1 if one.get("average") is True else size
            elif self.kind == "f_information":
                need(str(one.get("f")) in plain.FORMS, "f of a constraint is not known here")
                self.star = plain.formula(*plain.FORMS[str(one["f"])])[1]
            elif self.kind == "bayes_vulnerability":
                eye = [[int(i == j) for j in range(self.size)] for i in range(self.size)]
                self.gain = plain.matrix(eye if one.get("gain") is None else one["gain"], self.size, True)
                self.size = len(self.gain)
            else:
                self.pairs = list(combinations(range(self.size), 2))
                self.size = prices = len(self.pairs)
            self.paid = sum(mu, Fraction(0)) * number("bound")
        elif self.kind == "expected_distortion":
            by_output = list(zip(*plain.matrix(one.get("distortion"), signed=True)))
            need(len(by_output[0]) == size and len(mu) == 1, "distortion has to have a row for each symbol of Y")
            self.size, self.outputs, self.named = 0, len(by_output), by_output
            self.scale, self.paid = mu[0], mu[0] * number("bound")
        else:
            need(self.kind == "forbidden", f"a constraint of kind {self.kind} is not known")
            banned, self.outputs, self.size = plain.matrix(one.get("cells"), 2, True), int(number("outputs")), 0
            need(0 < self.outputs <= MOST_OUTPUTS, "outputs are too many")
            self.named = [[None if [y, u] in banned else Fraction(0) for y in range(size)] for u in range(self.outputs)]
        need(len(mu) == prices * (self.kind != "forbidden"), f"{self.kind} has to have {prices} multipliers")

    def weaken(self, w: Row) -> tuple[Row, Fraction]:
        """Return u and e with sum_w u_w T_w.x - mu.m(x) <= e for all columns that obey the constraint."""
        mu, nothing = self.mu, Fraction(0)
        over = [max(v, nothing) for v in w]
        if self.kind == "local_differential_privacy":
            return w, max(nothing, sum(w, nothing) + (self.high - 1) * sum(over, nothing))
        if self.kind in ("pointwise_leakage", "local_information_privacy"):
            return w, sum([self.high * v if v > 0 else self.low * v for v in w], nothing)
        if self.kind == "maximal_leakage":
            return w, max(nothing, sum(over, nothing) - mu[0]) / min(self.p)
        if self.kind == "total_variation_to_prior":
            ends = [mu[0] * q / 2 for q in self.p] if self.mean else [m / 2 for m in mu]
            cut = [max(min(v, end), -end) for v, end in zip(w, ends)]
            return cut, sum(cut, nothing)
        if self.kind == "f_information":
            e = [q * self.star(math.ceil(t * ONE), math.ceil(1 / q)) / ONE for t, q in zip(w, self.prior)]
            return [mu[0] * q * t for q, t in zip(self.prior, w)], mu[0] * sum(e, nothing)
        if self.kind == "bayes_vulnerability":
            need(any(over) or not mu[0], "a mixture of guesses has no weight")
            shares = [mu[0] * v / (sum(over) or 1) for v in over]
            return [q * dot(shares, column) for q, column in zip(self.prior, zip(*self.gain))], nothing
        u = [nothing] * len(self.ratios)
        for k, (y, z) in enumerate(self.pairs):
            if self.kind == "group_fairness":
                first = max(min(w[k], mu[k]), -mu[k]) / 2
                second = -first
            elif self.kind == "pairs":
                first = min(over[k], mu[k]) if mu else over[k]
                second = -first * self.factor[k]
            else:  # a tangent where r_y / r_y' = e^v
                a, v = self.order, max(min(w[y] - w[z], self.ends[1]), self.ends[0])
                if a == 1:
                    first, second = mu[k] * (v + 1), -mu[k] * above(v)
                else:
                    first = mu[k] * a * (1 / above(-(a - 1) * v) if a > 1 else -above((1 - a) * -v))
                    second = -mu[k] * abs(a - 1) * above(a * v)
            u[y], u[z] = u[y] + first, u[z] + second
        return u, nothing
