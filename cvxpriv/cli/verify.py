"""`cvxpriv verify`: check the assumptions of the models on a divergence, with the worst points."""

from __future__ import annotations

from dataclasses import asdict

import click

from cvxpriv.cli.options import DIVERGENCE, NAMES, output_options
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import ModelError

REFUTED = 1
"""Exit code when a check fails; bad input is 2."""


@click.command(
    epilog="Exit codes: 0 when no check fails, 1 when one does, 2 for bad input.",
)
@click.argument("divergence", metavar=DIVERGENCE)
@click.option(
    "--floor",
    type=float,
    metavar="NUMBER",
    default=1e-3,
    show_default=True,
    help="The checked ratios t = q/p lie from the floor to 1/floor.",
)
@click.option("--solvers", type=NAMES, help="Solvers of the block.  [default: every installed solver]")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random points.")
@output_options
@click.pass_obj
def verify(terminal: Terminal, divergence: str, floor: float, solvers: tuple[str, ...] | None, seed: int) -> int:
    """Check that a divergence satisfies the assumptions that the models make about it.

    \b
    verify jensen-shannon         a name, such as le-cam or alpha:2
    verify 't*log(t)'             a formula in t = q/p, on one line
    verify my_divergence.py:mine  an FDivergence of yours, or a function
                                  that takes nothing and returns one

    \b
    holds           and the largest error that was met, and where
    fails           with the worst point and the remedy
    not applicable  with what follows from it
    """
    from cvxpriv.divergences.registry import divergence_or_text
    from cvxpriv.runs.verification import verify as verification_of
    from cvxpriv.solvers.place import solvers_silent

    if not 0.0 < floor < 1.0:
        raise ModelError(f"--floor={floor:g}: give a number between 0 and 1, such as 0.001")
    target = divergence_or_text(divergence)
    with terminal.phase("verifying"), solvers_silent():
        found = verification_of(target, (floor, 1.0 / floor), solvers=solvers, seed=seed)
    checks = [asdict(one) for one in found.findings]
    document = {"subject": found.subject, "about": list(found.about), "passed": found.passed, "checks": checks}
    terminal.result({"command": f"verify {divergence}", **document})
    terminal.say(str(found))
    return 0 if found.passed else REFUTED
