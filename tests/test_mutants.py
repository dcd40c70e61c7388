"""The mutants that `make mutate` makes: each target has some, no explanation is stale, a planted one takes effect."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tests.mutants.__main__ import mutants_to_notice
from tests.mutants.changes import mutants_of
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.planting import plant
from tests.mutants.targets import GROUPS, Target

TARGETS = {target.module: target for group in GROUPS.values() for target in group.targets}
SOURCE = """
LIMIT = 3.0

class Box:
    @property
    def half(self):
        return LIMIT / 2.0

def double(x):
    return 2.0 * x
"""


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.module)
def test_each_target_has_mutants_and_each_explanation_fits_one(target: Target) -> None:
    assert mutants_to_notice(target)


def test_only_targets_have_explanations() -> None:
    assert set(EQUIVALENT) <= set(TARGETS)


def test_a_planted_mutant_reaches_those_that_imported_it_before(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("planted")
    module.__file__ = "planted.py"
    exec(SOURCE, vars(module))
    user = ModuleType("user")
    user.double, user.box, user.LIMIT = module.double, module.Box(), module.LIMIT  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "user", user)
    found = {(one.function, one.after) for one in mutants_of(SOURCE)}
    assert {("double", "2.0 / x"), ("double", "x"), ("half", "LIMIT * 2.0"), ("", "6.0")} <= found
    plant(module, SOURCE.replace("2.0 * x", "5.0 * x").replace("/ 2.0", "* 2.0").replace("3.0", "4.0"))
    assert (user.double(1.0), user.box.half, user.LIMIT) == (5.0, 8.0, 4.0)  # type: ignore[attr-defined]
