"""Check a certificate under convex constraints with the standard library alone: python FILE c.json [table.json]

check_certificate.py, check_costs.py and check_service_certificate.py have to stand beside it. Claim: every P(Y|X) with
I(X;Y) >= R that satisfies the file's constraints has I(S;Y) >= bound. Y mixes columns x = P(X|y), and check_costs.py
says what constraints ask of them: sums over outputs of costs m(x) are at most B. For any nu, lam >= 0 and mu >= 0, with
A = P(S|X) and phi(x) = -H(A x) + lam H(x) - nu.x + mu.m(x),
I(S;Y) >= H(S) + nu.P_X - lam (H(X) - R) - mu.B + min phi. The file cuts the simplex into cells, and has in each of them
the numbers of v and e, v.x - mu.m(x) <= e, and a distribution t of S: -H(A x) >= sum_s (A x)_s log t_s, as no code is
shorter than the best. What is left, b.x + lam H(x) - e, is concave, so that it is least at a corner of the cell.
A cut is [i, j, share]: corners i and j leave the cell in turn for a point between them, whose coordinates are rounded
down. After D cuts a column is up to D units above its place in a cell, in each coordinate: D (sum |b| + lam |X|) units
allow for it, as x log(1/x) falls by no more than x rises.
Outputs on which a distortion or forbidden cells depend are taken one by one."""
# ruff: noqa: B905
# fmt: off

import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

if __package__:
    from cvxpriv.bounds import check_certificate as plain, check_costs as by_costs
else:
    sys.path.insert(0, str(Path(__file__).parent))
    import check_certificate as plain  # type: ignore[import-not-found, no-redef]
    import check_costs as by_costs  # type: ignore[import-not-found, no-redef]

KIND = "privacy funnel under convex constraints"
SCHEMA, VERSION, ONE, BITS = plain.SCHEMA, plain.VERSION, plain.ONE, plain.BITS
Corner = tuple[list[int], int]  # x, lam H(x) rounded down
need = plain.need

def check(document: Any, table: Any = None) -> dict[str, float]:
    """Return a certificate's bound, and its mechanism's leakage and utility, derived again; or raise ValueError."""
    joint, p_x, mechanism, nu, (lam, rate, claim) = plain.read(document, table, [SCHEMA, VERSION, KIND])
    if claim > 0:
        short = claim - proved(document, joint, p_x, nu, lam, rate)
        need(short <= 0, f"the claim exceeds what the multipliers and cells prove by {float(short):.3g}")
    leakage, utility = plain.measures(joint, p_x, mechanism)
    return {"bound": float(claim), "leakage": leakage, "utility": utility, "rate": float(rate)}

def proved(document: Any, joint: Any, p_x: Any, nu: Any, lam: Fraction, rate: Fraction) -> Fraction:
    """The largest claim that a file's multipliers and cells prove."""
    need(lam >= 0, "lam is negative")
    costs, paid, sorts = by_costs.read(document, joint, p_x)
    h_s, h_x = plain.entropy(plain.units([sum(row) for row in joint]))[0], plain.entropy(plain.units(p_x))[1]
    rest = Fraction(h_s, ONE) + by_costs.dot(nu, p_x) - lam * (Fraction(h_x, ONE) - rate) - paid
    seen, low = [[x / p for x, p in zip(row, p_x)] for row in joint], []
    for cells, banned, more in sorts:
        c = [math.ceil((v - m) * ONE) for v, m in zip(nu, more)]
        some = [y for y in range(len(p_x)) if y not in banned]
        low += [least(cells, some, seen, c, int(lam * ONE), costs)] if some else []
    return rest + Fraction(min(low, default=0), ONE)

def least(cells: Any, some: list[int], seen: Any, c: list[int], lam: int, costs: Any) -> int:
    """Units that phi is nowhere below, over columns of some symbols: the file's cells are followed, root first."""
    def corner(x: list[int]) -> Corner:
        return x, lam * sum([-(v * (plain.log(v) + plain.LOG_ERROR)) >> BITS for v in x if v]) >> BITS

    size, low = len(c), ONE << BITS
    stack = [([corner([ONE * (i == y) for i in range(size)]) for y in some], 0)]
    while stack:
        corners, depth = stack.pop()
        part: Any = next(cells, None)
        need(isinstance(part, list) and bool(part), "a cell has to be a cut, or t and numbers for each constraint")
        if isinstance(part[0], list):
            need(len(part) == len(costs) + 1, "a cell has to have t and numbers for each constraint")
            t = plain.units(plain.matrix([part[0]], len(seen))[0])
            need(min(t) > 0 and sum(t) <= ONE, "t is no distribution")
            left, more = by_costs.weakened(costs, part[1:], c)
            logs = [plain.log(v) - plain.LOG_ERROR for v in t]
            b = [math.floor(by_costs.dot(logs, column)) - v for column, v in zip(zip(*seen), left)]
            room = depth * (sum([abs(b[y]) for y in some]) // ONE + 1 + size * (lam // ONE + 1))
            values = [(sum([v * w for v, w in zip(b, x)]) >> BITS) + kept for x, kept in corners]
            low = min(low, min(values) - more - room)
            continue
        need(len(part) == 3, "a cut has to be two corners and a share")
        (i, j), share = part[:2], int(plain.matrix([[part[2]]])[0][0] * ONE)
        need({type(i), type(j)} == {int} and 0 <= min(i, j) < max(i, j) < len(corners), "a cut is outside of its cell")
        need(share <= ONE, "a share of a cut is above 1")
        (x, _), (y, _) = corners[i], corners[j]
        middle = corner([((ONE - share) * v + share * w) >> BITS for v, w in zip(x, y)])
        stack += [([*corners[:k], middle, *corners[k + 1 :]], depth + 1) for k in (i, j)]
    return low

if __name__ == "__main__":
    sys.exit(plain.main(sys.argv[1:], check, " that satisfies the constraints"))
