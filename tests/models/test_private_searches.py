"""Private fits with random options on random neighbours: whatever a fit says or writes follows from its releases.

Each release is replaced by its noise alone, without what it hides. Then an object, a file, a page, a text, a message, a
warning or an error that differs between neighbours by one bit was read off the rows. The ledger gives the guarantee
back, and that is within the epsilon that was asked for.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from cvxpriv_models import VerticalLogisticRegression
from cvxpriv_models.admm_sharing import labels

from cvxpriv.errors import CvxprivError
from cvxpriv.privacy import BallNoise, GaussianNoise, Noise, account_ledger
from cvxpriv.reports.document import document_of
from cvxpriv.reports.page import render
from cvxpriv.reports.text import text_of

from .private_searches import ANY, KINDS, Case, Table
from .taken_apart import Rule, parts_of

FAST, MANY = 16, 1600
"""How many fits `make test` tries, each on neighbours, and the slow test."""
#: What stays with a party and no guarantee covers, what a clock or a provenance gives, and the random name of a run.
APART: Rule = dict.fromkeys(("hidden", "seconds", "problem", "time", "origin", "run"), lambda _: None)


@pytest.fixture(autouse=True)
def _noise_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def gaussian(self: GaussianNoise, query: Any, noise: Noise) -> Any:
        return self.step * noise.rounded_normals(self.scale / self.step, self.size).astype(float)

    def ball(self: BallNoise, query: Any, noise: Noise) -> Any:
        return self.step * noise.rounded_ball(1.0 / (self.rate * self.step), self.size).astype(float)

    def flipping(epsilon: float) -> Any:
        def coins(view: Any, noise: Noise) -> Any:
            flips = noise.coins(epsilon, view[labels.LABELS].size).reshape(view[labels.LABELS].shape)
            return {labels.LABELS: np.where(flips, 1.0, -1.0)}

        return dataclasses.replace(flip(epsilon), fn=coins)

    flip = labels.flipping
    monkeypatch.setattr(GaussianNoise, "release", gaussian)
    monkeypatch.setattr(BallNoise, "release", ball)
    monkeypatch.setattr(labels, "flipping", flipping)
    monkeypatch.chdir(tmp_path)


def outputs(found: Any) -> Iterator[tuple[str, Any]]:
    """Everything that a fit leaves, by name: what an object holds, of a run its file, its page and its texts too."""
    if hasattr(found, "get_params"):
        own = ("coef_", "intercept_") if isinstance(found, VerticalLogisticRegression) else ()  # its parties keep them
        yield from parts_of({name: one for name, one in vars(found).items() if name not in own}, APART, "estimator")
        yield "repr", repr(found)
        return
    for one in found:
        if hasattr(one, "accounting"):
            one.save("run.json")
            written = json.loads(Path("run.json").read_text())
            yield from parts_of(one, APART, "fitted")
            yield from parts_of({name: part for name, part in written.items() if name != "sha256"}, APART, "file")
            facts = one.facts
            yield "shown", (text_of(facts), render(facts), document_of(facts), repr(one), one._repr_html_())
        elif hasattr(one, "problem"):
            yield "model", repr(one) if one.problem.schema is not None else ""
        else:
            yield from parts_of(one, APART, "crossed")


def told(case: Case, table: Table) -> tuple[dict[str, Any], Any]:
    """(everything that a fit says and leaves, and the fit)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = case.fit(*table)
            said = dict(outputs(found))
        except Exception as error:
            found, said = error, {"error": f"{type(error).__name__}: {error}"}
    return {"warnings": [f"{one.category.__name__}: {one.message}" for one in caught], **said}, found


def miscounted(case: Case, found: Any) -> str:
    """Return how a guarantee and its ledger contradict each other; "" where they do not."""
    if hasattr(found, "get_params"):
        spent = getattr(found, "accounting_", None)
        return "" if spent is None or spent.epsilon <= case.epsilon * (1.0 + 1e-6) else f"spent {spent.epsilon}"
    (run,) = (one for one in found if hasattr(one, "accounting"))
    spent = run.accounting
    again = account_ledger(run.ledger, spent.delta or None, neighbours=spent.neighbours)
    right = again.epsilon == spent.epsilon <= case.epsilon * (1.0 + 1e-6)  # found by bisection
    return "" if right else f"spent {spent.epsilon}, by the ledger {again.epsilon}"


def fault(case: Case) -> tuple[str, str]:
    """(how a case ended, what is wrong with it; "" where nothing is)."""
    (first, found), *others = [told(case, table) for table in case.tables]
    ended = "refused" if isinstance(found, Exception) else "answered"
    if ended == "refused" and not isinstance(found, (CvxprivError, ValueError)):
        return ended, f"untyped {first['error']}"
    for other, _ in others:
        for name in {"error": "", **first, **other}:
            if first.get(name) != other.get(name):
                return ended, f"{name} differs: {first.get(name)!r:.300} and {other.get(name)!r:.300}"
    return ended, "" if ended == "refused" else miscounted(case, found)


def search(count: int, seed: int, kinds: Any = KINDS) -> tuple[Counter[str], dict[str, str]]:
    """(how many fits ended how, and what was wrong with which)."""
    ends: Counter[str] = Counter()
    wrong = {}
    for number in range(count):
        case = kinds[number % len(kinds)](np.random.default_rng([seed, number]))
        ended, said = fault(case)
        ends[f"{case.name} {ended}"] += 1
        if said:
            wrong[f"{seed}, {number}, {case.name}, {case.options}"] = said
    return ends, wrong


def test_random_private_fits_tell_nothing_but_their_releases() -> None:
    ends, wrong = search(FAST, 0)
    assert wrong == {}
    assert sum(many for name, many in ends.items() if name.endswith("answered")) > FAST / 2


@pytest.mark.slow
def test_many_random_private_fits_tell_nothing_but_their_releases(capsys: pytest.CaptureFixture[str]) -> None:
    ends, wrong = search(MANY, 1)
    with capsys.disabled():
        sys.stdout.write(f"\n{MANY:,} private fits on neighbours: {dict(ends)}\n")
    assert wrong == {}
    assert all(ends[f"{name} answered"] > 0 for name in {one.rsplit(" ", 1)[0] for one in ends})


#: Fits that were refused for one row and not for another, or warned of one.
ENDED = (4, 961)


def test_whether_a_fit_of_any_size_ends_tells_nothing() -> None:
    assert search(2, 2, ANY)[1] == {}
    odd = {one: fault(ANY[one % 2](np.random.default_rng([3, one])))[1] for one in ENDED}
    assert not any(odd.values()), odd


@pytest.mark.slow
def test_whether_many_fits_of_any_size_end_tells_nothing() -> None:
    assert search(1500, 3, ANY)[1] == {}
