"""Check a certificate of inference as a service with the standard library alone: python FILE certificate.json

Claim: every P(U|Y) has I(S;U) - beta E[f(p(u)/p(u|y))] <= bound. With A = P(S|Y), U mixes columns x = P(Y|u) to P_Y,
worth KL(A x || P_S) - beta sum_y p(y) H(x(y)/p(y)) each, where H(r) = r f(1/r) plus a multiple of r - 1. For any alpha
no mixture is worth more than alpha.P_Y + the largest price, a column's worth - alpha.x. Cells cover all s = A x. On a
cell KL lies below sum_a B_a(s) K_a, B the barycentric coordinates, K_a >= KL at corner a. So with
c_y = sum_a B_a(A_y) K_a - alpha_y and any n a price in it is at most n + beta sum_y p(y) H*((c_y - n) / beta), where
H*(t) = max of t r - H(r) over r <= 1 / p(y) is at most r H'(r) - H(r) + (t - H'(r))+ / p(y) for any r. Of an f that is
not in FORMS the file has points of H*, bounded from above, and chords between. The proof is for any such f.
Floats look for r and n; the file's numbers are exact rationals, and integers, which count units of 2^-64, decide."""
# ruff: noqa: B905, E701, RUF007, T201
# fmt: off

import hashlib
import json
import math
import sys
from bisect import bisect_right
from fractions import Fraction
from itertools import combinations
from typing import Any

SCHEMA, VERSION, KIND = "cvxpriv certificate", 1, "inference as a service"
BITS, ONE, SHORT = 64, 1 << 64, 1 << 44  # alpha is rounded to the denominator SHORT first: any alpha serves
LOG_ERROR, ERROR = 128, 1000  # units by which log may be off, and a slope or a value of FORMS
GRID, MOST_CELLS, LEAST = 1 << 24, 20_000_000, 256  # corners of the first cell; r below LEAST units counts as LEAST
Matrix = list[list[Fraction]]
def check(document: Any, table: Any = None, most_cells: int = MOST_CELLS, kind: str = KIND, by: Any = None) -> Any:
    """Return a certificate's bound, and the value of its mechanism, derived again; or raise ValueError."""
    need(isinstance(document, dict), "this is no certificate")
    head, rows = [document.get(key) for key in ("schema", "version", "kind")], document.get("table", table)
    need(head == [SCHEMA, VERSION, kind], f"it is of {head}, and {[SCHEMA, VERSION, kind]} is known")
    joint = matrix(rows)
    need(document.get("table_sha256") == table_hash(rows), "the table is not the certificate's: its SHA-256 differs")
    total = sum(map(sum, joint), Fraction(0))
    joint = [[entry / total for entry in row] for row in joint]
    p_y = sums(zip(*joint))
    alpha = [Fraction(round(v * SHORT), SHORT) for v in matrix([document.get("alpha")], len(p_y), signed=True)[0]]
    beta, claim = matrix([[document.get(key) for key in ("beta", "bound")]], 2, signed=True)[0]
    need(min(p_y) > 1e-15 and 1e-12 < beta < 1e12 > max(map(abs, alpha)), "P(Y), beta or alpha is out of range")
    form, points = FORMS.get(str(document.get("divergence"))), document.get("conjugate")
    need(form is not None or points is not None, "f is not known here, and the file has no points of its H*")
    star = formula(*form or ()) if points is None else chords(matrix(points, 2, signed=True))
    groups = document.get("groups") or list(range(len(joint)))
    need(type(groups) is list and [type(g) for g in groups] == [int] * len(joint), "groups has to have |S| numbers")
    merged = [sums(zip(*[row for row, g in zip(joint, groups) if g == name])) for name in sorted(set(groups))]
    lost = information(joint)[1] - information(merged)[0] if len(merged) < len(joint) else 0  # I(S;U|T) <= I(S;Y|T)
    given = (list(filter(any, merged)), p_y, alpha, beta, star, claim - Fraction(max(lost, 0), ONE), most_cells)
    by(document, joint, *given) if by else prove(*given)
    value = worth(joint, p_y, matrix(document.get("mechanism")), beta, form) if points is None else math.nan
    return {"bound": float(claim), "value": value, "beta": float(beta), "divergence": document.get("divergence")}

def need(true: bool, complaint: str) -> None:
    if not true: raise ValueError(complaint)

def matrix(rows: Any, width: int = 0, signed: bool = False) -> Matrix:
    need(isinstance(rows, list) and bool(rows) and all(isinstance(row, list) and row for row in rows), "no matrix")
    need(all(len(row) == (width or len(rows[0])) for row in rows), "a row of numbers has a wrong length")
    need(all(type(v) in (int, float) and abs(v) < 1e300 for row in rows for v in row), "an entry is no number")
    need(signed or (min(map(min, rows)) >= 0 and any(map(any, rows))), "probabilities are negative or all zero")
    return [[Fraction(v) for v in row] for row in rows]

def table_hash(table: Any) -> str:  # of its numbers in hexadecimal form, commas between them, a line for each row
    return hashlib.sha256("\n".join(",".join(float(v).hex() for v in row) for row in table).encode()).hexdigest()

def atanh(top: int, bottom: int) -> int:  # ln((bottom + top) / (bottom - top)) in units, for values up to 1/3
    z = (top << 80) // bottom
    return sum([int((z ** (2 * k + 1)) >> (160 * k)) // (2 * k + 1) for k in range(35)]) >> 15
LN2, LN_STEPS = atanh(1, 3), [-atanh(256 - j, 256 + j) for j in range(129, 257)]  # ln(j / 256)
def log(x: int) -> int:
    """ln(x / ONE) in units, within LOG_ERROR of them, for 0 < x < 2^64 ONE."""
    shift = x.bit_length() - BITS
    m = x >> shift if shift > 0 else x << -shift  # x / ONE = 2^shift m / ONE with m in [ONE / 2, ONE)
    j = (m >> (BITS - 8)) + 1
    z = (((j << (BITS - 8)) - m) << BITS) // ((j << (BITS - 8)) + m)
    square = (z * z) >> BITS
    series = ONE + square // 3 + ((square * square) >> BITS) // 5 + ((square * square * square) >> (2 * BITS)) // 7
    return shift * LN2 + LN_STEPS[j - 129] - 2 * ((z * series) >> BITS)

def sums(rows: Any) -> list[Fraction]:
    return [sum(row, Fraction(0)) for row in rows]

def units(values: Any) -> list[int]:
    return [(v.numerator << BITS) // v.denominator for v in values]

def information(joint: Matrix) -> tuple[int, int]:  # bounds of I(rows; columns): x log x is off by 200 and log's error
    every = [units(p) for p in (sums(joint), sums(zip(*joint)), [x for row in joint for x in row])]
    rows, columns, cells = [-sum([(x * log(x)) >> BITS for x in p if x]) for p in every]
    slack = sum(map(len, every)) * (LOG_ERROR + 200)
    return rows + columns - cells - slack, rows + columns - cells + slack

# A first z in floats at t; in units H'(r) and r H'(r) - H(r); whether H(0) is finite. r = z^2 for Hellinger, else z.
FORMS: dict[str, Any] = {
    "mutual-information": (lambda t: math.exp(min(t, 500)), log, lambda z: z - ONE, True),
    "reverse-kl": (lambda t: 1 / max(1 - t, 1e-99), lambda z: ONE - ONE * ONE // z, log, False),
    "jensen-shannon": (lambda t: 1 / max(2 * math.exp(min(-t, 500)) - 1, 1e-99), lambda z: log(z) - log((ONE + z) >> 1),
                       lambda z: log((ONE + z) >> 1), True),
    "hellinger": (lambda t: 1 / max(1 - t, 1e-99), lambda z: ONE - ONE * ONE // z, lambda z: z - ONE, True),
    "le-cam": (lambda t: 2 / math.sqrt(max(1 - 2 * t, 1e-99)) - 1, lambda z: (ONE >> 1) - 2 * ONE**3 // (ONE + z) ** 2,
               lambda z: (3 * z + ONE) * (z - ONE) * ONE // (2 * (ONE + z) ** 2), True),
    "chi-square": (lambda t: 1 + t / 2, lambda z: 2 * (z - ONE), lambda z: (z * z >> BITS) - ONE, True),
    "neyman": (lambda t: 1 / math.sqrt(max(1 - t, 1e-99)), lambda z: ONE - ONE**3 // z**2,
               lambda z: 2 * ONE - 2 * ONE**2 // z, False)}

def formula(first: Any, slope: Any, value: Any, finite: bool) -> Any:
    """About H*'(t) in floats, and H*(t) of a known f, from an r with H'(r) >= t; or over r <= most, from any r."""
    power = 2 if first is FORMS["hellinger"][0] else 1  # r = z^power
    def bound(t: int, most: int) -> int:
        top = most * ONE if power == 1 else math.isqrt(most * ONE * ONE)
        z, step = max(min(int(first(t / ONE) * (1 + 2.0**-51) * ONE), top), LEAST), 1
        while slope(z) - ERROR < t and z < top: z, step = z + ((z >> 52) + 1) * step, 2 * step
        return int(value(z)) + ERROR + max(t + ERROR - int(slope(z)), 0) * most
    return (lambda t: max(first(t), 0.0) ** power), bound

def chords(points: Matrix) -> Any:
    """The same below the chords of the file's points; beyond the last of them the slope is at most r <= 1 / p(y)."""
    ts, hs = units(t for t, _ in points), [1 + math.ceil(h * ONE) for _, h in points]
    need(len(ts) > 1 and all(a < b for a, b in zip(ts, ts[1:])), "the points of H* do not rise")
    def bound(t: int, most: int) -> int:
        k = bisect_right(ts, t)
        if 0 < k < len(ts): return hs[k] - (hs[k] - hs[k - 1]) * (ts[k] - t) // (ts[k] - ts[k - 1])
        return hs[-1] + (t - ts[-1]) * most if k else hs[0]
    slopes = [0.0] + [(h - g) / (t - s) for s, t, g, h in zip(ts, ts[1:], hs, hs[1:])]
    return (lambda t: slopes[min(bisect_right(ts, t * ONE), len(slopes) - 1)]), bound

def prove(joint: Matrix, p_y: Any, alpha: Any, beta: Fraction, star: Any, claim: Any, most: int, told: Any = 0) -> None:
    """Raise ValueError unless alpha proves the claim: cut cells until no price in any of them exceeds eps.

    told(c) is what a file says of the next cell: the pair to cut or -1, another c, n, and what the price is above."""
    eps = math.floor((claim - sum([v * p for v, p in zip(alpha, p_y)])) * ONE)
    scale = math.lcm(*[entry.denominator for row in joint for entry in row])
    need(all(units(sums(joint))), "a symbol of S has hardly any mass")
    lows = [max(math.floor(min(x / p for x, p in zip(row, p_y)) * GRID) - 1, 0) for row in joint]
    whole, room, (ratio, bound) = [int(p * scale) for p in p_y], GRID - sum(lows), star
    rows = [[GRID * int(x * scale) - low * w for x, w in zip(row, whole)] for row, low in zip(joint, lows)]
    widths = [room * w for w in whole]  # B_a(A_y) is row a over these; in the first cell, where s >= lows / GRID
    known, logs = list(zip(units(alpha), units(p_y), [math.ceil(1 / p) for p in p_y])), [*map(log, units(sums(joint)))]
    floats, b, turn = [float(p) for p in p_y], float(beta), max(5e3 * (ratio(1e-4) - ratio(-1e-4)), 0.1)  # H*''(0)
    def height(s: list[int]) -> int:  # KL(s || P_S), rounded up
        return 1 + (sum([x * (log(x) - q + 3 * LOG_ERROR) for x, q in zip(s, logs) if x]) >> BITS)
    def level(c: list[float], n: float) -> float:  # n at which the columns' x sum to 1, nearly
        low, high = max([v - 2 * b / p for v, p in zip(c, floats)]), max(c)
        for k in range(80):
            n = n if low < n < high else (low + high) / 2
            total = sum([p * ratio((v - n) / b) for v, p in zip(c, floats)])
            low, high = (n, high) if total > 1 else (low, n)
            if abs(total - 1) < 1e-6: return n
            n = n + b * math.log(total) / turn if total > 0 and k < 9 else low
        return high
    def price(c: list[int], n: int) -> int:
        total = 0
        for v, (_, p, r) in zip(c, known):
            h = bound(-((n - v) * beta.denominator // beta.numerator), r)
            total += (p + (h > 0)) * h
        return n + 2 - (-(total * beta.numerator // beta.denominator) >> BITS)
    corners = [[(low + room * (i == k)) << (BITS - 24) for i, low in enumerate(lows)] for k in range(len(lows))]
    stack, pairs, cells = [(corners, list(map(height, corners)), rows, 0.0)], list(combinations(range(len(lows)), 2)), 0
    while stack:
        corners, heights, rows, n = stack.pop()
        mixed, cells = [-sum([k * x for k, x in zip(heights, column)]) for column in zip(*rows)], cells + 1
        c = [1 - a - (v // w) for v, w, (a, *_) in zip(mixed, widths, known)]
        cut, c, n, more = told(c) if told else (-1, c, level([v / ONE for v in c], n), 0)
        if cut < 0 and price(c, int(n * ONE)) + more <= eps: continue
        going = pairs and cells < most and len(pairs) > cut > -2 + bool(told)
        need(bool(going), f"no proof that no price exceeds {eps / ONE:.3g}")
        halved = [(i, j, [(x + y) >> 1 for x, y in zip(corners[i], corners[j])]) for i, j in pairs]
        falls = [heights[i] + heights[j] - 2 * height(middle) for i, j, middle in halved]
        i, j, middle = halved[falls.index(max(falls)) if cut < 0 else cut]
        need(not any((x + y) & 1 for x, y in zip(corners[i], corners[j])), "cells are too small")
        for g, h in ((i, j), (j, i)):  # s = w_g v_g + w_h v_h = 2 w_g middle + (w_h - w_g) v_h
            new, tops, halves = corners[:], heights[:], rows[:]
            new[g], tops[g] = middle, height(middle)
            halves[g], halves[h] = [2 * x for x in rows[g]], [y - x for x, y in zip(rows[g], rows[h])]
            stack.append((new, tops, halves, n))

def worth(joint: Matrix, p_y: list[Fraction], mechanism: Matrix, beta: Fraction, form: Any) -> float:  # a lower bound
    need(len(mechanism) == len(p_y) and all(map(any, mechanism)), "mechanism has to have a row for each symbol of Y")
    outputs = [w for w in zip(*[[v / sum(row) for v in row] for row in mechanism]) if any(w)]
    leaked, posterior = 0, [[sum([x * v for x, v in zip(row, w)]) for w in outputs] for row in joint]
    for w, q in zip(outputs, sums(zip(*posterior))):
        for p, r in zip(p_y, units([v / q for v in w])):
            z = max(math.isqrt(r << BITS) if form is FORMS["hellinger"] else r, LEAST)
            h = r * form[1](z) // ONE - form[2](z) + 100 * ERROR if form[3] or r >= LEAST else ONE << 100
            leaked += -(-h * p * q // 1)
    return float((information(posterior)[0] - leaked * beta) / ONE)

def main(paths: list[str], check: Any = check, such: str = "") -> int:  # 0 if the claim is proved, 1 if it is not
    try:
        need(1 <= len(paths) <= 2, str(__doc__).splitlines()[0])
        found = check(*[json.load(open(path, encoding="utf-8")) for path in paths])  # noqa: SIM115
    except (OSError, ValueError, RecursionError) as problem:
        print(f"not proved: {problem}")
        return 1
    print("proved: with f of {divergence} and beta = {beta:.12g} no mechanism{such} is worth more than {bound:.12g}, "
          "and the file's at least {value:.12g} (nan: of f only points of H* are known).".format(**found, such=such))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
