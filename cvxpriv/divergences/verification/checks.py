"""The checks of an f-divergence, in the order of the table."""

from __future__ import annotations

from cvxpriv.divergences.definition import FDivergence
from cvxpriv.divergences.verification import agreement, curve, dcp_form, derivatives, inequalities, limits
from cvxpriv.divergences.verification.findings import Check, Verification, run_checks
from cvxpriv.divergences.verification.setting import MODERATE, DivergenceSetting, moderate

FINITE, CONVEX, DCP, FREE = "f is finite", "f is convex", "expression is DCP", "constraints exclude nothing"

CHECKS: tuple[Check[DivergenceSetting], ...] = (
    Check(FINITE, curve.finite),
    Check("f(1) = 0", curve.zero_at_one, needs=(FINITE,)),
    Check(CONVEX, curve.convex, needs=(FINITE,)),
    Check("(a) f is strictly convex", curve.strictly_convex, needs=(CONVEX,)),
    Check("(b) f' is Lipschitz", curve.lipschitz, needs=(FINITE,)),
    Check("f' is right", derivatives.first, needs=(FINITE,)),
    Check("f'' is right", derivatives.second, needs=(FINITE,)),
    Check("partials are right", derivatives.partials, needs=(FINITE,)),
    Check("limit of f at 0", limits.at_zero, needs=(CONVEX,)),
    Check("limit of f(t)/t at infinity", limits.at_infinity, needs=(CONVEX,)),
    Check("divergence is not negative", inequalities.nonnegative, needs=(FINITE,)),
    Check("data processing", inequalities.data_processing, needs=(FINITE,)),
    Check(DCP, dcp_form.dcp),
    Check("expression is DPP", dcp_form.dpp, needs=(DCP,)),
    Check(FREE, dcp_form.unrestricted, needs=(FINITE, DCP)),
    Check("expression is sum p f(q/p)", dcp_form.value, needs=(FINITE, DCP)),
    Check("the same in variables", dcp_form.fixed_variables, needs=(FINITE, DCP)),
    Check("expression is homogeneous", dcp_form.homogeneous, needs=(FINITE, DCP), barred_by=(FREE,)),
    Check("auxiliary is right", dcp_form.auxiliary, needs=(FINITE, DCP)),
    Check("solvers find the optimum", agreement.solvers_agree, needs=(CONVEX,), barred_by=(DCP,)),
)


def verify_divergence(
    f: FDivergence, interval: tuple[float, float], solvers: tuple[str, ...] | None, seed: int
) -> Verification:
    """Return the verification of a divergence: see `cvxpriv.divergences.verification.verify`."""
    low, high = moderate(f, interval)
    setting = DivergenceSetting(f, (low, high), solvers, seed)
    formula = f": f(t) = {f.formula}" if f.formula else ""
    subject = f"{f.name}{formula}, t = q/p in [{low:g}, {high:g}]"
    notes = [
        f"f is larger than {MODERATE:g} {where} t = {new:.6g}: it is checked up to there"
        for new, old, where in ((low, interval[0], "below"), (high, interval[1], "above"))
        if new != old
    ]
    return Verification(subject, run_checks(CHECKS, setting), (*f.notes, *notes))
