"""ISTDP without noise: how fast Algorithm 1 converges, by the rule for its step and with Newton steps on the support.

    python examples/papers/istdp_convergence.py --out out/
    python examples/papers/istdp_convergence.py --fast

MCP at .3 and .1 lambda_max, alpha = 3, squared loss, 500 x 1000 correlated columns. "As printed" takes the length of
step 1.2, which is the square of one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cvxpriv_models.istdp import gist
from drawn import save
from ias_case import arguments, draw, legend_below, panels
from istdp_case import correlated
from verdicts import Verdict

from cvxpriv.models import ISTDP
from cvxpriv.penalties import MCP
from cvxpriv.reports.pictures import styled

VERDICTS = (
    Verdict(
        "Steps of Barzilai and Borwein (no figure)",
        "agrees",
        shows="They are fast.",
        found=(
            "To a residual of 1e-10 at .3 lambda_max on 500 x 1000: BB1 17 passes, alternating 29, the length as "
            "printed 107, BB2 122. At .1: 35, 39, 82, 123. With Newton steps on the support 1 and 5 passes do, each "
            "with Newton steps that are not counted here."
        ),
        why=(
            "The printed length is the product of BB1 and BB2; columns of deviation 1 flatter it, as its unit is "
            "that of a squared length."
        ),
        pictures=("istdp_convergence.png",),
    ),
)

PRINTED = "as printed"
#: BB1 BB2 = dtheta'dtheta / dg'dg, what step 1.2 prints. The product has no such rule: it stands in the place of bb1.
RULES = {**gist.STEPS, "bb1": lambda first, second, passes: first * second}
SHARES = (0.3, 0.1)
#: Smaller residuals are drawn here: below it rounding speaks, not the method.
FLOOR = 1e-12


@styled
def figure(out: Path, fast: bool) -> None:
    """Draw the KKT residual over the passes."""
    x, y, _ = correlated(200 if fast else 500, 100 if fast else 1000)
    model = ISTDP(x, y, loss="squared", penalty=MCP(1.0))
    drawing, axes = panels([f"lambda = {share:g} lambda_max" for share in SHARES], height=3.6)
    limit = 60 if fast else 400
    rules = gist.STEPS
    for panel, share in zip(axes, SHARES, strict=True):
        posed = model.with_penalty(MCP(share * model.lambda_max, 3.0))
        options = {rule: {"step": rule, "accelerate": "none"} for rule in rules}
        options[PRINTED] = {"step": "bb1", "accelerate": "none"}
        options["bb1, Newton on the support"] = {"step": "bb1", "accelerate": "newton"}
        lines = {}
        for name, chosen in options.items():
            gist.STEPS = RULES if name == PRINTED else rules
            history = posed.solve(max_iter=limit, tol=1e-10, **chosen).history
            residual = history["kkt"].dropna().to_numpy()
            lines[name] = (np.arange(1, len(residual) + 1), np.maximum(residual, FLOOR))
            print(f"{share:g} lambda_max, {name}: {len(residual)} passes, KKT residual {residual[-1]:.1e}")
        draw(panel, lines)
        for line in panel.lines:  # its end, without which a line of one pass is not seen
            line.set(marker="o", markevery=[-1])
        panel.set_yscale("log")
        panel.set_xscale("log")
        panel.set_xlabel("pass")
        panel.set_ylabel(f"KKT residual, at least {FLOOR:g}")
    legend_below(drawing, axes[0])
    print(save(drawing, out / "istdp_convergence.png"))


if __name__ == "__main__":
    chosen = arguments(__doc__)
    figure(chosen.out, chosen.fast)
