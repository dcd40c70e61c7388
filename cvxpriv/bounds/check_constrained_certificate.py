"""Check a certificate under constraints with the standard library alone: python FILE certificate.json [table.json]

check_certificate.py has to stand beside it. Claim: every P(Y|X) with I(X;Y) >= R that satisfies the file's constraints
has I(S;Y) >= bound. The constraints ask that each posterior P(X|y) is a mixture V w of certain generators, the columns
of V, and that sums over outputs stay below upper ends, to which output y adds row.w times its probability. For any nu,
lam >= 0 and mu >= 0, with A = P(S|X) and phi(w) = -H(A V w) + lam H(V w) - (V' nu - mu.rows).w,
I(S;Y) >= H(S) + nu.P_X - lam (H(X) - R) - mu.upper + min phi. Where A V w is fixed, phi is concave in w: its least
value is at a generator, or a local minimum on a face of 2 to |S| of them. For lam >= 1 it is at a generator, as
H(X) - H(S) = H(X|S) - H(S|X) is concave in P(X). Faces are cut and tested as check_certificate.py does it.
Generators, with K >= e^epsilon, p = P(X), and T running through the nonempty sets of symbols:
  ratio   p times K on T and 1 elsewhere, scaled      P(y|x) <= K P(y|x'): P(y|x) / min is a mixture of such corners
  peak    p times K on T, one symbol more fills up    p(x) / K or 0 <= P(x|y) <= K p(x): the corners of this polytope
  told    the simplex, cut by half spaces             P(s) / K or 0 <= P(s|y) <= K P(s): the corners of this polytope
  sets    p given T                                   max_x P(y|x) = max of P(x|y) / p(x), and that is linear on chains
  moved   p, the mass of T handed to one of the rest  P(x|y) - p(x), whose parts above and below zero are linear then
Else the generators are the symbols. Outputs on which a distortion or a forbidden cell depends are taken one by one."""
# ruff: noqa: B905, E701
# fmt: off

import math
import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

if __package__:
    from cvxpriv.bounds import check_certificate as plain
else:
    sys.path.insert(0, str(Path(__file__).parent))
    import check_certificate as plain  # type: ignore[import-not-found, no-redef]

KIND = "privacy funnel under constraints"
SCHEMA, VERSION, ONE, SHORT, BITS = plain.SCHEMA, plain.VERSION, plain.ONE, plain.SHORT, plain.BITS
SHAPES = {"local_differential_privacy": "ratio", "pointwise_leakage": "peak", "local_information_privacy": "peak",
          "maximal_leakage": "sets", "total_variation_to_prior": "moved"}
KINDS, RATIOS = (*SHAPES, "expected_distortion", "forbidden"), tuple(SHAPES)[:3]
MOST_OUTPUTS, MOST_CORNERS, MOST_SYMBOLS = 1000, 260, 10  # the latter of X, where generators come from all sets of them
Row = list[Fraction]
Matrix = list[Row]
Column = tuple[Row, Row, Fraction]  # a generator v, A v, its costs
Corner = tuple[list[int], list[int], int, list[float], list[float], float, list[int]]  # plain's, and V w
need = plain.need

def check(document: Any, table: Any = None, most_cells: int = plain.MOST_CELLS) -> dict[str, float]:
    """Re-derive a certificate's bound; return it with what its mechanism leaks and tells, or raise ValueError."""
    joint, p_x, mechanism, nu, (lam, rate, claim) = plain.read(document, table, [SCHEMA, VERSION, KIND])
    if claim > 0:
        spread, classes, upper = asked(document.get("constraints"), p_x, joint)
        held = document.get("mu")
        mu = [Fraction(round(v * SHORT), SHORT) for v in (plain.matrix([held], len(upper), True)[0] if upper else [])]
        need(lam >= 0 and min(mu, default=0) >= 0, "lam or mu is negative")
        h_s = plain.entropy(plain.units([sum(row, Fraction(0)) for row in joint]))[0]
        rest = Fraction(h_s, ONE) - lam * (Fraction(plain.entropy(plain.units(p_x))[1], ONE) - rate)
        eps = math.floor((rest + dot(nu, p_x) - dot(mu, upper) - claim) * ONE)
        need(eps >= 0, f"the claim exceeds what nu, lam and mu give by {-eps / ONE:.3g}")
        a = [[entry / p for entry, p in zip(row, p_x)] for row in joint]
        for rows, allowed in classes:
            some = [(v, [dot(row, v) for row in a], dot(nu, v) - dot(mu, [row[g] for row in rows]))
                    for g, v in enumerate(spread) if g in allowed]
            prove(some, lam, eps, most_cells)
    leakage, utility = plain.measures(joint, p_x, mechanism)
    return {"bound": float(claim), "leakage": leakage, "utility": utility, "rate": float(rate)}

def dot(x: Row, y: Row) -> Fraction:
    return sum((v * w for v, w in zip(x, y)), Fraction(0))

def number(one: Any, key: str) -> Fraction:
    return plain.matrix([[one.get(key)]], 1, True)[0][0]

def power(x: Fraction) -> Fraction:
    """A number that is at least e^x, x >= 0, and a little more."""
    need(0 <= x <= 40, "a constraint's number is out of range")
    small = int(math.exp(-x) * (1 - 2.0**-40) * ONE)
    need(plain.log(small) + plain.LOG_ERROR <= math.floor(-x * ONE), "the exponential function is wrong here")
    return Fraction(ONE, small)

def asked(constraints: Any, p: Row, joint: Matrix) -> tuple[Matrix, list[tuple[Matrix, list[int]]], Row]:
    """Generators; for each class of outputs, its rows of sums and the generators that it may use; the upper ends."""
    need(isinstance(constraints, list) and bool(constraints), "constraints are missing")
    need(all(isinstance(one, dict) for one in constraints), "a constraint is no object")
    of = {kind: [one for one in constraints if one.get("kind") == kind] for kind in KINDS}
    need(sum(map(len, of.values())) == len(constraints), "a constraint is of no known kind")
    shapes = {"told" if one.get("of") == "private" else SHAPES[kind] for kind in SHAPES for one in of[kind]}
    need(shapes <= {"ratio", "sets"} or len(shapes) == 1, "these constraints are not known together")
    shape = min(shapes, default="")  # ratio serves maximal leakage too
    need(shape in ("", "told") or len(p) <= MOST_SYMBOLS, f"generators are known for up to {MOST_SYMBOLS} symbols of X")
    powers = [(kind, power(number(one, "epsilon"))) for kind in RATIOS for one in of[kind]]  # rounded outwards
    most = min((ratio for _, ratio in powers), default=Fraction(1))
    least = max((1 / ratio for kind, ratio in powers if kind == RATIOS[2]), default=Fraction(0))
    spread = told(joint, most, least) if shape == "told" else generators(shape, p, most, least)
    rows, upper = Matrix(), Row()
    for one in of["maximal_leakage"]:
        rows.append([max(x / y for x, y in zip(v, p)) for v in spread])
        upper.append(min(power(number(one, "bound")), Fraction(len(p))))
    for one in of["total_variation_to_prior"]:
        apart = [[abs(v[i] - y) / 2 for v in spread] for i, y in enumerate(p)]
        each = [plain.sums(apart)] if one.get("average") is True else [[x / y for x in r] for r, y in zip(apart, p)]
        rows, upper = rows + each, upper + [number(one, "bound")] * len(each)
    named = [plain.matrix(one.get("distortion"), signed=True) for one in of["expected_distortion"]]
    widths = {len(d[0]) for d in named} | {int(number(one, "outputs")) for one in of["forbidden"]}
    need(all(len(d) == len(p) for d in named) and len(widths) <= 1, "the number of symbols or of outputs differs")
    upper = upper + [number(one, "bound") for one in of["expected_distortion"]]
    cells = [(x, y) for one in of["forbidden"] for x, y in plain.matrix(one.get("cells"), 2, True)]
    outputs, classes = range(min(widths, default=1)), []
    need(len(outputs) <= MOST_OUTPUTS, f"outputs are told apart up to {MOST_OUTPUTS} of them")
    need({x for x, _ in cells} <= set(range(len(p))) and {y for _, y in cells} <= set(outputs), "a cell is outside")
    for y in outputs:
        empty = [int(x) for x, banned in cells if banned == y]
        allowed = [g for g, v in enumerate(spread) if not any(v[x] for x in empty)]
        one = (rows + [[dot([line[y] for line in d], v) for v in spread] for d in named], allowed)
        if one not in classes: classes.append(one)
    return spread, classes, upper

def told(joint: Matrix, most: Fraction, least: Fraction) -> Matrix:
    """The corners of {pi : least P(s) <= P(s|y) <= most P(s)}, each half space cutting what the others left."""
    p, size = plain.sums(joint), len(joint[0])
    found = faces = [[Fraction(i == j) for i in range(size)] for j in range(size)]
    for row in joint:
        q, above = sum(row, Fraction(0)), [x / y for x, y in zip(row, p)]
        faces = [*faces, [most * q - x for x in above], *([[x - least * q for x in above]] if least else [])]
    for done in range(size, len(faces)):
        side = [dot(faces[done], v) for v in found]
        touched = [{k for k in range(done) if not dot(faces[k], v)} for v in found]
        found, old = [v for v, x in zip(found, side) if x >= 0], found
        for i, j in ((i, j) for i, x in enumerate(side) for j, y in enumerate(side) if x > 0 > y):
            if sum(touched[i] & touched[j] <= one for one in touched) == 2:  # neighbours: no other does
                cut = [x * side[i] - y * side[j] for x, y in zip(old[j], old[i])]
                found.append([x / sum(cut) for x in cut])
        need(len(found) <= MOST_CORNERS, f"a limit of the leakage of S leaves more than {MOST_CORNERS} corners")
    return found

def generators(shape: str, p: Row, most: Fraction, least: Fraction = Fraction(0)) -> Matrix:
    size, found = len(p), [[Fraction(i == j) for i in range(len(p))] for j in range(len(p))]
    sets = [set(chosen) for count in range(1, size + 1) for chosen in combinations(range(size), count)] if shape else []
    if shape in ("ratio", "sets"):
        found = [[x * (most if i in t else shape == "ratio") for i, x in enumerate(p)] for t in sets]
    elif shape == "peak":
        full = [([(most if j in t else least) * x for j, x in enumerate(p)], t) for t in [set(), *sets]]
        left = [(v, i, sum(p) - sum(v) + v[i]) for v, t in full for i in range(size) if i not in t]
        found = [[*v[:i], rest, *v[i + 1:]] for v, i, rest in left if v[i] <= rest <= most * p[i]]
    elif shape == "moved":
        found = [[(x + sum((p[k] for k in t), Fraction(0)) * (j == i)) * (j not in t) for j, x in enumerate(p)]
                 for t in [set(), *sets] for i in range(size) if i not in t]
    return [list(v) for v in dict.fromkeys(tuple(x / sum(v) for x in v) for v in found)]

def prove(some: list[Column], lam: Fraction, eps: int, most_cells: int) -> None:
    """Raise ValueError unless phi >= -eps over the mixtures of some generators, each with its A V and its costs."""
    for pi, private, cost in some:
        kept = math.floor(lam * plain.entropy(plain.units(pi))[0])
        need(kept - plain.entropy(plain.units(private))[1] - math.ceil(cost * ONE) >= -eps, "phi is below the claim")
    if lam >= 1 or not some: return
    lam_units, cells, heights = int(lam * ONE), 0, {0: 0}
    spread = [list(row) for row in zip(*[plain.units(pi) for pi, _, _ in some])]
    a = [list(row) for row in zip(*[plain.units(private) for _, private, _ in some])]
    costs = [math.ceil(cost * ONE) for *_, cost in some]
    goal = 2000 * (len(a) + len(spread) + 2) - eps  # A V w and V w are off by 2 units, times a logarithm of 45

    def corner(face: tuple[int, ...], held: list[int], v: list[int]) -> Corner:
        t = [sum([x * row[g] for x, g in zip(v, face)]) >> BITS for row in a]
        pi = [sum([x * spread[i][g] for x, g in zip(v, face)]) >> BITS for i in held]
        for x in pi:
            if x not in heights: heights[x] = -(x * (plain.log(x) + plain.LOG_ERROR)) >> BITS
        told = sum([x * (plain.log(x) - plain.LOG_ERROR) for x in t if x]) >> BITS
        kept = lam_units * (sum([heights[x] for x in pi]) + told) - sum([costs[g] * x for g, x in zip(face, v)])
        return v, t, (kept >> BITS) - 1, [x / ONE for x in v], [x / ONE for x in t], (kept >> BITS) / ONE, pi

    def bend(one: Column, other: Column, held: list[int]) -> tuple[list[int], list[int]]:
        """Squares of the move from one generator to another: of A V w rounded up, of V w rounded down."""
        told = [math.ceil((x - y) ** 2 * ONE) for x, y in zip(one[1], other[1])]
        return told, [math.floor((one[0][i] - other[0][i]) ** 2 * ONE) for i in held]

    for size in range(2, min(len(a), len(some)) + 1):
        pairs = list(combinations(range(size), 2))
        for face in combinations(range(len(some)), size):
            held = [i for i, row in enumerate(spread) if any(row[g] for g in face)]
            bends = [bend(some[face[i]], some[face[j]], held) for i, j in pairs]
            stack = [[corner(face, held, [ONE * (i == k) for i in range(size)]) for k in range(size)]]
            while stack:
                corners = stack.pop()
                cells += 1
                if bends_down(corners, bends, lam_units) or plain.above(corners, goal, ONE - lam_units): continue
                i, j = max(pairs, key=lambda pair: math.dist(corners[pair[0]][3], corners[pair[1]][3]))
                v, w = corners[i][0], corners[j][0]
                if cells >= most_cells or any((x + y) & 1 for x, y in zip(v, w)): need(False, f"phi: {face} not proved")
                middle = corner(face, held, [(x + y) >> 1 for x, y in zip(v, w)])
                stack += [[*corners[:k], middle, *corners[k + 1 :]] for k in (i, j)]

def bends_down(corners: list[Corner], bends: list[tuple[list[int], list[int]]], lam: int) -> bool:
    """Whether phi bends down from one generator to another everywhere: the least A V w and the largest V w decide."""
    lows = [min(column) for column in zip(*[c[1] for c in corners])]
    highs = [max(column) + 2 for column in zip(*[c[6] for c in corners])]
    for told, kept in bends:
        rise = sum([(b << BITS) // low + 1 if low else ONE << 999 for b, low in zip(told, lows) if b])
        if rise < sum([lam * f // high for f, high in zip(kept, highs)]): return True
    return False

if __name__ == "__main__":
    sys.exit(plain.main(sys.argv[1:], check, " that satisfies the constraints"))
