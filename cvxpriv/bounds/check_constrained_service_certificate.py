"""Check a certificate of inference as a service under constraints with the standard library alone: python FILE c.json

check_costs.py and check_service_certificate.py have to stand beside it. Claim: every P(U|Y) that satisfies the file's
constraints has I(S;U) - beta E[f(p(u)/p(u|y))] <= bound. U mixes columns x = P(Y|u), and check_costs.py says what
constraints ask of them. For any mu >= 0 no mixture is worth more than alpha.P_Y + mu.B + the largest price, a column's
worth - alpha.x - mu.m(x). The file cuts cells of s = P(S|Y) x as check_service_certificate.py does, and has in each the
numbers of v and e: so the price is at most that with c - v in place of c, + e.
Outputs on which a distortion d_u.x or forbidden cells depend are taken one by one."""
# ruff: noqa: B905, E701
# fmt: off

import sys
from functools import partial
from pathlib import Path
from typing import Any

if __package__:
    from cvxpriv.bounds import check_costs as by_costs, check_service_certificate as plain
else:
    sys.path.insert(0, str(Path(__file__).parent))
    import check_costs as by_costs  # type: ignore[import-not-found, no-redef]
    import check_service_certificate as plain  # type: ignore[import-not-found, no-redef]

KIND = "inference as a service under constraints"
SCHEMA, VERSION = plain.SCHEMA, plain.VERSION
NOTHING = -(1 << 120)  # c of a forbidden cell, in units
need = plain.need

def check(document: Any, table: Any = None, most_cells: int = plain.MOST_CELLS) -> Any:
    """Return a certificate's bound, and the value of its mechanism, derived again; or raise ValueError."""
    return plain.check(document, table, most_cells, KIND, prove)

def prove(document: Any, joint: Any, merged: Any, p: Any, alpha: Any, *proving: Any) -> None:
    beta, star, claim, most = proving  # the claim is proved, or ValueError is raised
    costs, paid, sorts = by_costs.read(document, joint, p)
    for some, banned, more in sorts:
        price, taken = [a + v for a, v in zip(alpha, more)], partial(told, some, costs, banned)
        plain.prove(merged, p, price, beta, star, claim - paid + by_costs.dot(more, p), most, taken)

def told(cells: Any, costs: Any, banned: list[int], c: list[int]) -> tuple[int, list[int], float, int]:
    """Return what the file says of the next cell: a cut, or n and numbers for every constraint; see plain.prove."""
    part: Any = next(cells, None)
    if type(part) is int: return part, c, 0.0, 0
    need(isinstance(part, list) and len(part) == len(costs) + 1, "a cell has to have n and numbers for each constraint")
    c, more = by_costs.weakened(costs, part[1:], c)
    for y in banned: c[y] = NOTHING
    return -1, c, float(plain.matrix([[part[0]]], 1, True)[0][0]), more

if __name__ == "__main__":
    sys.exit(plain.main(sys.argv[1:], check, " that satisfies the constraints"))
