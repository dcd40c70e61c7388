"""``--certify``: the proof of a mechanism's bound is checked before it is written, and a run without one is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from cvxpriv.cli.terminal import Terminal
from cvxpriv.reports.facts import Facts
from cvxpriv.runs.mechanism_run import MechanismRun


def certify_option(command: Any) -> Any:
    """Give a command ``--certify``."""
    text = (
        "Derive the certificate again in exact arithmetic before it is written, and exit with 3 unless it proves the "
        "mechanism to be within --gap of the best possible one."
    )
    return click.option("--certify", is_flag=True, help=text)(command)


def proved(terminal: Terminal, run: MechanismRun[Any, Any], facts: Facts) -> Facts:
    """Return the facts of a run with what the check of its certificate found.

    Raises DataError: The certificate does not prove what it claims.
    """
    bound: Any = getattr(run, "bound", None)
    certificate = getattr(bound, "certificate", None)
    if certificate is None:
        missing = "nothing is proved of this mechanism: leave method, engine and starts as they are, or --certify out"
        if bound is not None:
            missing = "the checker of certificates does not know the constraints that are part of the bound"
    else:
        with terminal.phase("deriving the certificate again in exact arithmetic"):
            certificate.verify()
        missing = f"the gap is not proved: {bound.reason}; raise --time-limit or --gap" if bound.reason else ""
        if bound.ignored:
            missing = f"the certificate leaves out {', '.join(bound.ignored)}: no proof with that is known"
    if missing:
        return replace(facts, unmet=facts.unmet or missing, messages=[*facts.messages, f"Not certified: {missing}."])
    return replace(facts, messages=[*facts.messages, "The certificate was derived again in exact arithmetic."])
