"""The findings of a verification: one row per check, its worst point, and its meaning for the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.formatting import number, paragraph, table

HOLDS, FAILS, NOT_APPLICABLE = "holds", "fails", "not applicable"

Setting = TypeVar("Setting")


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    `verdict`: {"holds", "fails", "not applicable"}.
    `meaning`: One sentence: the property that holds, or the problem and the remedy.
    `worst_value`: The largest error that the check met; NaN if it measures none.
    `worst_point`: The point of the largest error.
    `check`: Name of the check.
    """

    verdict: str
    meaning: str
    worst_value: float = float("nan")
    worst_point: Mapping[str, Any] = field(default_factory=dict)
    check: str = ""

    @property
    def where(self) -> str:
        """The worst point as text."""
        return ", ".join(f"{name} = {_short(value)}" for name, value in self.worst_point.items())


@dataclass(frozen=True)
class Check(Generic[Setting]):
    """One check with its preconditions.

    `name`: The property that is checked.
    `run`: Maps the setting of a verification to a finding, whose `check` may stay empty.
    `needs`: Names of earlier checks that must hold; where one does not, this one does not apply.
    `barred_by`: Names of earlier checks that must not fail.
    """

    name: str
    run: Callable[[Setting], Finding]
    needs: tuple[str, ...] = ()
    barred_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verification:
    """The checks of one object.

    Attributes
    ----------
    subject : str
        The object that was verified, and the interval.
    findings : tuple of Finding
        The findings in the order of the checks.
    about : tuple of str
        Facts known beforehand: of a typed divergence, how its convexity is known, and the parts of its DCP form.

    Examples
    --------
    >>> import cvxpriv as cpv
    >>> cpv.verify("total-variation").passed
    True
    """

    subject: str
    findings: tuple[Finding, ...]
    about: tuple[str, ...] = ()

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per check: check, verdict, worst_value, worst_point (text), meaning."""
        rows = [(one.check, one.verdict, one.worst_value, one.where, one.meaning) for one in self.findings]
        return pd.DataFrame(rows, columns=["check", "verdict", "worst_value", "worst_point", "meaning"])

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings that fail."""
        return tuple(one for one in self.findings if one.verdict == FAILS)

    @property
    def passed(self) -> bool:
        """Whether no check fails; a check that does not apply is not a failure."""
        return not self.failed

    @property
    def notes(self) -> tuple[str, ...]:
        """The meaning of each failure, then the reasons why checks do not apply, each reason once."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for verdict in (FAILS, NOT_APPLICABLE):
            for one in self.findings:
                if one.verdict == verdict:
                    reasons.setdefault((verdict, one.meaning), []).append(one.check)
        return tuple(f"{verdict}: {', '.join(checks)}: {meaning}" for (verdict, meaning), checks in reasons.items())

    @property
    def summary(self) -> str:
        """Number of checks that hold, fail and do not apply."""
        counts = {verdict: sum(one.verdict == verdict for one in self.findings) for verdict in (HOLDS, FAILS)}
        left = len(self.findings) - sum(counts.values())
        does = "do not apply" if left != 1 else "does not apply"
        return f"{counts[HOLDS]} of {len(self.findings)} checks hold, {counts[FAILS]} fail, {left} {does}"

    def raise_if_failed(self) -> None:
        """Raise if a check fails.

        Raises
        ------
        ModelError
            A check fails; the message names each one, its worst point, and the remedy.
        """
        if self.failed:
            raise ModelError(f"{self.subject}: " + "; ".join(_sentence(one) for one in self.failed))

    def __str__(self) -> str:
        rows = [[one.verdict, one.check, number(one.worst_value, 2), one.where] for one in self.findings]
        notes = [paragraph(note, indent="  - ", hanging="    ") for note in self.notes]
        body = table(["verdict", "check", "worst", "at"], rows, "llrl")
        about = [paragraph(note) for note in self.about]
        return "\n".join([self.subject, *about, "", body, "", *notes, *([""] if notes else []), self.summary])


def judged(
    errors: Array,
    tolerances: float | Array,
    point_of: Callable[[int], Mapping[str, Any]],
    good: str,
    bad: str | Callable[[int], str],
) -> Finding:
    """Return the finding of a check whose errors must stay within tolerances; NaN counts as the largest error.

    `errors`, (n,): Errors, not negative.
    `tolerances`: (n,).
    `point_of`: Maps the index of an error to the point where it arose.
    `good`, `bad`: Meaning of the check if it holds, and if it fails; `bad` may be a function of the worst error's
    index.
    """
    excess = np.nan_to_num(errors / tolerances, nan=np.inf)
    worst = int(np.argmax(excess))
    place = point_of(worst) if excess[worst] > 0.0 else {}
    if excess[worst] <= 1.0:
        return Finding(HOLDS, good, float(errors[worst]), place)
    return Finding(FAILS, bad if isinstance(bad, str) else bad(worst), float(errors[worst]), place)


def run_checks(checks: Sequence[Check[Setting]], setting: Setting) -> tuple[Finding, ...]:
    """Run the checks in order; an error of a user's function is a failed check, not an error of the verification."""
    found: dict[str, Finding] = {}
    for check in checks:
        found[check.name] = replace(_presupposed(check, found) or _run(check, setting), check=check.name)
    return tuple(found.values())


def _presupposed(check: Check[Setting], found: Mapping[str, Finding]) -> Finding | None:
    """Return the reason why a check does not apply after the earlier ones; None if it does."""
    for name in (*check.needs, *check.barred_by):
        earlier = found[name]
        if earlier.verdict == FAILS:
            return Finding(NOT_APPLICABLE, f"it presupposes that this holds: {name}")
        if earlier.verdict == NOT_APPLICABLE and name in check.needs:
            return Finding(NOT_APPLICABLE, earlier.meaning)
    return None


def _run(check: Check[Setting], setting: Setting) -> Finding:
    try:
        return check.run(setting)
    except (Exception, SystemExit) as error:  # the object's own functions may raise anything
        return Finding(FAILS, f"raised {type(error).__name__}: {' '.join(str(error).split())}")


def _sentence(finding: Finding) -> str:
    place = f" at {finding.where}" if finding.worst_point else ""
    return f"{finding.check} fails{place}: {finding.meaning}"


def _short(value: Any) -> str:
    if isinstance(value, (np.ndarray, Sequence)) and not isinstance(value, str):
        return "(" + ", ".join(f"{part:.3g}" for part in value) + ")"
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
