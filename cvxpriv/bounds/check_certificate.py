"""Check a certificate with the standard library alone: python check_certificate.py certificate.json [table.json]

Claim: every P(Y|X) with I(X;Y) >= R has I(S;Y) >= bound. For any nu and any lam >= 0, with A = P(S|X) and
phi(pi) = -H(A pi) + lam H(pi) - nu.pi over posteriors, I(S;Y) >= H(S) + nu.P_X - lam (H(X) - R) + min phi. So phi has
to be >= -eps, eps being what the rest exceeds the claim by. Corners of the simplex are looked at one by one. For
lam >= 1 they are all, as H(A pi) <= H(pi) + sum_i pi_i H(A e_i). Else phi is concave where A pi is fixed: a minimum
that is no corner is a local one inside a face of 2 to |S| symbols. Faces are cut into simplices; one is done if
  (V) at its corners a tangent of -(1 - lam) H(A pi) plus the rest of phi, concave as H(X|S) is, is >= -eps; or
  (P) phi bends down along some e_i - e_j everywhere in it: it holds no local minimum.
The file's numbers are exact rationals. Integers count units of 2^-64, and are rounded against the claim."""
# ruff: noqa: B905, E701, T201
# fmt: off

import hashlib
import json
import math
import sys
from fractions import Fraction
from itertools import combinations
from typing import Any

SCHEMA, VERSION, KIND = "cvxpriv certificate", 1, "privacy funnel"
BITS, ONE, SHORT = 64, 1 << 64, 1 << 44  # multipliers are rounded to the denominator SHORT first: any serve
LOG_ERROR = 128  # units by which log may be off
TANGENTS, MOST_CELLS = 8, 20_000_000  # tangents tried on a simplex before it is cut

Row = list[Fraction]
Matrix = list[Row]
Corner = tuple[list[int], list[int], int, list[float], list[float], float]  # pi, A pi, the chord's value; as floats

def check(document: Any, table: Any = None, most_cells: int = MOST_CELLS) -> dict[str, float]:
    """Return a certificate's bound, and its mechanism's leakage and utility, derived again; or raise ValueError."""
    joint, p_x, mechanism, nu, (lam, rate, claim) = read(document, table, [SCHEMA, VERSION, KIND])
    if claim > 0:  # I(S;Y) >= 0 needs no proof
        groups = document.get("groups", list(range(len(joint))))  # Y tells no more of groups than of S
        need(type(groups) is list and [type(g) for g in groups] == [int] * len(joint), "groups has to have |S| numbers")
        parts = [[row for row, g in zip(joint, groups) if g == name] for name in sorted(set(groups))]
        prove([sums(part) for part in parts], p_x, nu, lam, rate, claim, most_cells)
    leakage, utility = measures(joint, p_x, mechanism)
    return {"bound": float(claim), "leakage": leakage, "utility": utility, "rate": float(rate)}

def read(document: Any, table: Any, known: list[Any]) -> tuple[Matrix, Row, Matrix, Row, tuple[Fraction, ...]]:
    """P(S, X), P(X), the mechanism, nu, and (lam, rate, claim)."""
    need(isinstance(document, dict), "this is no certificate")
    head, rows = [document.get(key) for key in ("schema", "version", "kind")], document.get("table", table)
    need(head == known, f"it is of {head}, and {known} is known")
    joint = matrix(rows)
    need(document.get("table_sha256") == table_hash(rows), "the table is not the certificate's: its SHA-256 differs")
    total = sum(map(sum, joint), Fraction(0))
    joint = [[entry / total for entry in row] for row in joint]
    need(min(p_x := sums(joint)) > 0, "a symbol of X has no mass")
    nu = [Fraction(round(v * SHORT), SHORT) for v in matrix([document.get("nu")], len(p_x), signed=True)[0]]
    lam, rate, claim = matrix([[document.get(key) for key in ("lam", "rate", "bound")]], 3, signed=True)[0]
    mechanism = matrix(document.get("mechanism"))
    need(len(mechanism) == len(p_x) and all(map(any, mechanism)), "mechanism has to have a row for each symbol of X")
    return joint, p_x, mechanism, nu, (Fraction(round(lam * SHORT), SHORT), rate, claim)

def need(true: bool, complaint: str) -> None:
    if not true: raise ValueError(complaint)

def sums(rows: Matrix) -> Row:
    return [sum(column, Fraction(0)) for column in zip(*rows)]

def matrix(rows: Any, width: int = 0, signed: bool = False) -> Matrix:
    need(isinstance(rows, list) and bool(rows) and all(isinstance(row, list) and row for row in rows), "no matrix")
    need(all(len(row) == (width or len(rows[0])) for row in rows), "a row of numbers has a wrong length")
    need(all(type(v) in (int, float) and abs(v) < 1e300 for row in rows for v in row), "an entry is no number")
    need(signed or (min(map(min, rows)) >= 0 and any(map(any, rows))), "probabilities are negative or all zero")
    return [[Fraction(v) for v in row] for row in rows]

def table_hash(table: Any) -> str:
    """SHA-256 of a table: its numbers in hexadecimal form, commas between them, a line for each row."""
    return hashlib.sha256("\n".join(",".join(float(v).hex() for v in row) for row in table).encode()).hexdigest()

def atanh(top: int, bottom: int) -> int:
    """ln((bottom + top) / (bottom - top)) in units, by its series."""
    z = (top << 80) // bottom
    term, total, k = z, z, 3
    while term:
        term = (term * ((z * z) >> 80)) >> 80
        total, k = total + term // k, k + 2
    return total >> 15

LN2, LN_STEPS = atanh(1, 3), [-atanh(256 - j, 256 + j) for j in range(1, 257)]  # ln(j / 256)

def log(x: int) -> int:
    """ln(x / ONE) in units, within LOG_ERROR of them, for 0 < x <= ONE."""
    shift = x.bit_length() - BITS
    m = x >> 1 if shift > 0 else x << -shift  # x / ONE = 2^shift m / ONE with m in [ONE / 2, ONE)
    j = (m >> (BITS - 8)) + 1
    z = (((j << (BITS - 8)) - m) << BITS) // ((j << (BITS - 8)) + m)
    square = (z * z) >> BITS
    series = ONE + square // 3 + ((square * square) >> BITS) // 5 + ((square * square * square) >> (2 * BITS)) // 7
    return shift * LN2 + LN_STEPS[j - 1] - 2 * ((z * series) >> BITS)

def units(values: list[Fraction]) -> list[int]:
    return [(v.numerator << BITS) // v.denominator for v in values]

def entropy(probabilities: list[int]) -> tuple[int, int]:
    """Return lower and upper bounds of an entropy in units; its arguments may be off by three units."""
    total, slack = -sum([(x * log(x)) >> BITS for x in probabilities if x]), len(probabilities) * (LOG_ERROR + 200)
    return total - slack, total + slack

def prove(joint: Matrix, p_x: Row, nu: Row, lam: Fraction, rate: Fraction, claim: Fraction, most_cells: int) -> None:
    """Raise ValueError unless the multipliers prove the claim."""
    need(lam >= 0, "lam is negative")
    h_s, h_x = entropy(units([sum(row, Fraction(0)) for row in joint]))[0], entropy(units(p_x))[1]
    rest = Fraction(h_s, ONE) + sum(v * p for v, p in zip(nu, p_x)) - lam * (Fraction(h_x, ONE) - rate)
    eps = math.floor((rest - claim) * ONE)
    need(eps >= 0, f"the claim exceeds what nu and lam give by {-eps / ONE:.3g}")
    a = [[entry / p for entry, p in zip(row, p_x)] for row in joint]
    corners = [-entropy(units(list(column)))[1] - int(v * ONE) for column, v in zip(zip(*a), nu)]
    need(min(corners) >= -eps, "phi is below the claim at a corner")
    if lam < 1: cover(a, [int(v * ONE) for v in nu], int(lam * ONE), eps, most_cells)

def cover(a: Matrix, nu: list[int], lam: int, eps: int, most_cells: int) -> None:
    """Cut every face until all simplices are done, or raise ValueError."""
    size_x, cells, heights, small = len(nu), 0, {0: 0}, [units(row) for row in a]
    goal = 2000 * (len(a) + 2) - eps  # A pi is off by 3 units, times a logarithm of 45 at most; logarithms by 128

    def corner(face: tuple[int, ...], v: list[int], t: list[int]) -> Corner:
        for x in v:
            if x not in heights: heights[x] = -(x * (log(x) + LOG_ERROR)) >> BITS
        kept = sum([heights[x] for x in v]) + (sum([x * (log(x) - LOG_ERROR) for x in t if x]) >> BITS)
        q = ((lam * kept - sum([nu[i] * x for i, x in zip(face, v)])) >> BITS) - 1
        return v, t, q, [x / ONE for x in v], [x / ONE for x in t], q / ONE

    def bend(i: int, j: int) -> list[int]:  # (a_si - a_sj)^2, rounded up
        return [(((abs(r[i] - r[j]) + 1) ** 2) >> BITS) + 1 if x[i] != x[j] else 0 for r, x in zip(small, a)]

    bends = {(i, j): bend(i, j) for i, j in combinations(range(size_x), 2)}
    for size in range(2, min(len(a), size_x) + 1):
        pairs = list(combinations(range(size), 2))
        for face in combinations(range(size_x), size):
            on_face = [(i, j, bends[face[i], face[j]]) for i, j in pairs]
            start = [([ONE * (i == k) for i in range(size)], [row[face[k]] for row in small]) for k in range(size)]
            stack = [[corner(face, v, t) for v, t in start]]
            while stack:
                corners = stack.pop()
                cells += 1
                if bends_down(corners, on_face, lam) or above(corners, goal, ONE - lam): continue
                i, j = max(pairs, key=lambda pair: math.dist(corners[pair[0]][3], corners[pair[1]][3]))
                (v, t), (w, u) = corners[i][:2], corners[j][:2]
                if cells >= most_cells or any((x + y) & 1 for x, y in zip(v, w)): need(False, f"phi: {face} not proved")
                middle = corner(face, [(x + y) >> 1 for x, y in zip(v, w)], [(x + y) >> 1 for x, y in zip(t, u)])
                stack += [[*corners[:k], middle, *corners[k + 1 :]] for k in (i, j)]

def above(corners: list[Any], goal: int, bent: int) -> bool:
    """Test V: sum t log t >= sum t log c. Floats look for c by Frank and Wolfe's method, integers decide."""
    wanted, part, ts = goal / ONE, bent / ONE, [corner[4] for corner in corners]
    w = [1 / len(corners)] * len(corners)
    for _ in range(TANGENTS):
        c = [sum([x * y for x, y in zip(w, column)]) for column in zip(*ts)]
        logs = [math.log(max(x, 1e-300)) for x in c]
        values = [part * sum([x * y for x, y in zip(corner[4], logs)]) + corner[5] for corner in corners]
        lowest, mean = min(values), sum([x * y for x, y in zip(w, values)])
        if lowest >= wanted or mean < wanted: break
        k = values.index(lowest)
        curvature = part * sum([(x - y) ** 2 / y for x, y in zip(ts[k], c) if y])
        length = min(0.98, (mean - lowest) / curvature) if curvature else 0.0
        w = [(1 - length) * x + length * (i == k) for i, x in enumerate(w)]
    rational = [max(int(x * (1 - 1e-14) * ONE), 1) for x in c]
    logarithms = [log(x) for x in rational] if lowest >= wanted and sum(rational) <= ONE else []
    bounds = [(bent * sum([x * y for x, y in zip(t, logarithms)]) >> 2 * BITS) + q for _, t, q, *_ in corners]
    return bool(logarithms) and min(bounds) >= goal

def bends_down(corners: list[Corner], on_face: list[tuple[int, int, list[int]]], lam: int) -> bool:
    """Test P: sum_s (a_si - a_sj)^2 / t_s < lam (1 / pi_i + 1 / pi_j) for the least t and the largest pi."""
    lows = [min(column) for column in zip(*[c[1] for c in corners])]
    falls = [(lam << BITS) // max(column) for column in zip(*[c[0] for c in corners])]
    rises = [sum([(b << BITS) // low + 1 if low else ONE << 999 for b, low in zip(c, lows) if b]) for *_, c in on_face]
    return any(rise < falls[i] + falls[j] for rise, (i, j, _) in zip(rises, on_face))

def measures(joint: Matrix, p_x: list[Fraction], mechanism: Matrix) -> tuple[float, float]:
    """Return an upper bound of I(S;Y) and a lower bound of I(X;Y), in nats, with the mechanism's rows scaled to 1."""
    outputs = list(zip(*[units([v / total for v in row]) for row, total in zip(mechanism, map(sum, mechanism))]))
    private = [[sum([x * y for x, y in zip(units(row), w)]) >> BITS for w in outputs] for row in joint]
    public = [[(x * y) >> BITS for x, y in zip(units(p_x), w)] for w in outputs]
    h_y, h_s = entropy([sum(entries) for entries in public]), entropy(units([sum(row, Fraction(0)) for row in joint]))
    leaked = h_s[1] + h_y[1] - entropy([x for row in private for x in row])[0]
    told = entropy(units(p_x))[0] + h_y[0] - entropy([x for row in public for x in row])[1]
    slack = 100 * len(p_x) * len(outputs) * (1 + len(joint))  # sums over X are off by |X| units, times a logarithm
    return max(leaked + slack, 0) / ONE, max(told - slack, 0) / ONE

def main(paths: list[str], check: Any = check, such: str = "") -> int:
    """Return 0 if the claim is proved, 1 if it is not."""
    try:
        need(1 <= len(paths) <= 2, str(__doc__).splitlines()[0])
        found = check(*[json.load(open(path, encoding="utf-8")) for path in paths])  # noqa: SIM115
    except (OSError, ValueError, RecursionError) as problem:
        print(f"not proved: {problem}")
        return 1
    bound, leakage, utility, rate = [f"{found[key]:.12g}" for key in ("bound", "leakage", "utility", "rate")]
    print(f"proved: every mechanism with I(X;Y) >= {rate} nats{such} leaks at least {bound} nats.\n"
          f"The file's mechanism has I(X;Y) >= {utility} and leaks at most {leakage} nats.")
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
