"""Which modules are mutated, and which tests belong to each.

A change that leaves the meaning as it was, such as a looser iteration limit, is named in `equal` with its expression
before and after; everything else has to be noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["GROUPS", "Group", "Target"]


@dataclass(frozen=True)
class Target:
    """A module, the functions of it that count (all where none is named), and its tests."""

    module: str
    tests: tuple[str, ...]
    functions: frozenset[str] = frozenset()
    equal: frozenset[tuple[str, str]] = field(default_factory=frozenset)

    @property
    def path(self) -> str:
        """Of the module's file, from the root of the repository."""
        folder = "models/" if self.module.startswith("cvxpriv_models") else ""
        return f"{folder}{self.module.replace('.', '/')}.py"


@dataclass(frozen=True)
class Group:
    """Targets of one kind; in some kinds no mutant may survive."""

    targets: tuple[Target, ...]
    none_may_survive: bool = False


GROUPS = {
    "sensitivities": Group(
        (
            Target(
                "cvxpriv_models.admm_sharing.sensitivity",
                (
                    "tests/models/test_adversarial_neighbours.py",
                    "tests/models/test_sharing_private.py",
                    "tests/errata/test_admm_sharing_private.py",
                ),
            ),
            Target(
                "cvxpriv_models.recycled_admm.spending",
                (
                    "tests/models/test_adversarial_neighbours.py",
                    "tests/models/test_consensus_private.py",
                    "tests/errata/test_recycled_admm_private.py",
                ),
                frozenset({"gradient_move", "output_move", "objective_epsilon"}),
            ),
            Target(
                "cvxpriv_models.istdp.output_perturbation",
                ("tests/models/test_adversarial_neighbours.py", "tests/models/test_istdp_baselines.py"),
                frozenset({"minimiser_sensitivity"}),
            ),
            Target("cvxpriv.privacy.grid", ("tests/toolkit/test_grid.py",)),
        ),
        none_may_survive=True,
    ),
    "accounting": Group(
        (
            Target("cvxpriv.privacy.gaussian", ("tests/toolkit/test_privacy.py", "tests/toolkit/test_composition.py")),
            Target(
                "cvxpriv.privacy.accounting", ("tests/toolkit/test_privacy.py", "tests/toolkit/test_composition.py")
            ),
            Target("cvxpriv.privacy.composition", ("tests/toolkit/test_composition.py",)),
            Target("cvxpriv.privacy.ledger", ("tests/toolkit/test_composition.py",)),
        ),
        none_may_survive=True,
    ),
}
