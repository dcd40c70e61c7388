"""Which modules are mutated, and which tests belong to each."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GROUPS", "Group", "Target"]


@dataclass(frozen=True)
class Target:
    """A module, the functions of it that count (all where none is named), and its tests beside its doctests."""

    module: str
    tests: tuple[str, ...]
    functions: frozenset[str] = frozenset()
    doctests: bool = True

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
                    "tests/models/test_sharing_sensitivity.py",
                    "tests/models/test_adversarial_neighbours.py::TestSharing",
                    "tests/models/test_sharing_private.py::test_bounds_of_any_size_give_a_finite_sensitivity",
                ),
                frozenset({"shrinkage", "row", "column", "cell"}),
            ),
            Target(
                "cvxpriv_models.recycled_admm.spending",
                (
                    "tests/models/test_consensus_spending.py",
                    "tests/models/test_adversarial_neighbours.py::TestConsensus",
                ),
            ),
            Target(
                "cvxpriv_models.istdp.output_perturbation",
                (
                    "tests/models/test_sparse_sensitivity.py",
                    "tests/models/test_adversarial_neighbours.py::TestMinimiser",
                ),
                frozenset({"minimiser_sensitivity", "require_bounded_slope", "_modulus"}),
            ),
            Target(
                "cvxpriv_models.istdp.objective_perturbation",
                ("tests/models/test_private_scales.py",),
                frozenset({"spend"}),
            ),
            Target(
                "cvxpriv_models.istdp.private_options",
                (
                    "tests/models/test_private_scales.py",
                    "tests/models/test_public_schema.py::test_a_count_with_noise_is_in_the_ledger_and_within_the_budget",
                ),
                frozenset({"counted_rows", "public_divisor"}),
            ),
            Target(
                "cvxpriv_models.admm_sharing.labels",
                ("tests/models/test_private_scales.py",),
                frozenset({"flip_probability"}),
            ),
            Target(
                "cvxpriv_models.admm_sharing.sensitivity",
                ("tests/models/test_private_scales.py",),
                frozenset({"corollary_1", "parties_touched"}),
            ),
            Target("cvxpriv_models.istdp.centring", ("tests/models/test_istdp_centring.py",)),
            Target(
                "cvxpriv_models.istdp.clipping",
                tuple(
                    f"tests/models/test_istdp_private.py::test_{name}"
                    for name in (
                        "the_clipped_average_is_that_of_rows_clipped_one_by_one",
                        "without_a_row_to_clip_the_average_is_the_gradient",
                        "a_row_of_zeros_has_no_limit_and_no_gradient",
                        "a_row_at_the_ends_of_the_doubles_counts_no_more_than_the_clip",
                        "no_random_neighbour_moves_the_average_further_than_the_sensitivity",
                        "a_public_divisor_takes_the_place_of_n",
                        "thousands_of_rows_and_none_are_summed_in_blocks",
                        "a_row_s_weighted_gradient_is_clipped",
                        "a_sensitivity_allows_for_the_rounding_of_two_sums_and_little_more",
                    )
                ),
            ),
            Target(
                "cvxpriv_models.istdp.private_descent",
                ("tests/models/test_istdp_centring.py",),
                frozenset({"select", "columns", "spread_out", "require_support"}),
            ),
            Target(
                "cvxpriv.privacy.private_tables",
                ("tests/toolkit/test_private_tables.py",),
                frozenset({"release_of", "_sensitivity", "_planned", "_drawn"}),
            ),
            Target(
                "cvxpriv.learning.scores",
                ("tests/toolkit/test_scores.py", "tests/toolkit/test_budget.py"),
                frozenset({"private_scores", "_sums"}),
            ),
            Target(
                "cvxpriv_models.admm_sharing.mechanism",
                (
                    "tests/models/test_sharing_sensitivity.py",
                    "tests/models/test_adversarial_neighbours.py::TestSharing",
                ),
                frozenset({"entry", "clipped", "sensitivity", "of_clips", "of_the_step"}),
            ),
            Target(
                "cvxpriv_models.recycled_admm.private_settings",
                ("tests/models/test_consensus_spending.py", "tests/models/test_private_scales.py"),
                frozenset({"noise", "releases_of", "_inside", "_rates_within", "_output"}),
            ),
            Target("cvxpriv.privacy.noise", ("tests/toolkit/test_grid.py", "tests/toolkit/test_privacy.py")),
            Target("cvxpriv.numerics.rounding", ("tests/toolkit/test_rounding.py",)),
            Target("cvxpriv.privacy.grid", ("tests/toolkit/test_grid.py::TestGrid",)),
        ),
        none_may_survive=True,
    ),
    "accounting": Group(
        (
            Target("cvxpriv.privacy.gaussian", ("tests/toolkit/test_privacy.py", "tests/toolkit/test_composition.py")),
            Target(
                "cvxpriv.privacy.accounting", ("tests/toolkit/test_privacy.py", "tests/toolkit/test_composition.py")
            ),
            Target("cvxpriv.privacy.accounting", ("tests/toolkit/test_composition.py",)),
            Target("cvxpriv.privacy.ledger", ("tests/toolkit/test_composition.py",)),
            Target("cvxpriv.privacy.budget", ("tests/toolkit/test_budget.py",)),
        ),
        none_may_survive=True,
    ),
    "certificates": Group(
        (
            Target(
                "cvxpriv.kkt.conic.bounds",
                (
                    "tests/toolkit/test_cone_program.py::test_a_propagated_bound_is_never_inside_the_exact_one_and_hardly_outside",
                    "tests/toolkit/test_cone_program.py::test_bounds_of_rows_of_any_size_allow_for_their_rounding_and_hardly_more",
                    "tests/toolkit/test_cone_program.py::test_bounds_are_propagated_through_the_rows",
                ),
                frozenset({"variable_bounds"}),
            ),
            Target("cvxpriv.bounds.certificate", ("tests/toolkit/test_bounds_certificate.py",)),
            Target("cvxpriv.bounds.check_certificate", ("tests/toolkit/test_bounds_certificate.py",)),
            Target(
                "cvxpriv.bounds.check_constrained_certificate",
                ("tests/toolkit/test_bounds_constrained_certificate.py",),
            ),
            Target("cvxpriv.bounds.check_costed_certificate", ("tests/toolkit/test_bounds_costed_certificate.py",)),
            Target("cvxpriv.bounds.check_service_certificate", ("tests/toolkit/test_bounds_service_certificate.py",)),
            Target(
                "cvxpriv.bounds.check_constrained_service_certificate",
                ("tests/toolkit/test_bounds_constrained_service_certificate.py",),
            ),
            Target(
                "cvxpriv.bounds.check_costs",
                (
                    "tests/toolkit/test_bounds_constrained_certificate.py",
                    "tests/toolkit/test_bounds_constrained_service_certificate.py",
                ),
            ),
            Target(
                "cvxpriv.kkt.conic.certificates",
                tuple(
                    f"tests/toolkit/test_proofs.py::test_{name}"
                    for name in (
                        "a_certificate_of_infeasibility_is_measured_at_strength_one",
                        "a_certificate_that_is_nothing_once_it_is_projected_excludes_no_point",
                        "a_certificate_is_exact_where_half_of_its_strength_is_proved",
                        "single_rows_show_how_large_a_feasible_point_is",
                        "a_certificate_of_unboundedness_is_measured_at_strength_one",
                        "a_certificate_holds_up_to_a_millionth_unless_another_limit_is_named",
                        "an_infeasible_program_of_any_cone_has_a_certificate_and_no_room",
                        "an_unbounded_program_has_a_ray_and_room",
                        "a_program_with_a_finite_value_has_neither",
                        "what_has_no_certificate_gets_none",
                        "a_set_without_interior_has_no_room_and_one_with_equations_has",
                    )
                ),
            ),
        )
    ),
    "steps": Group(
        (
            Target(
                "cvxpriv_models.recycled_admm.options",
                (
                    "tests/models/test_adversarial_neighbours.py::TestConsensus",
                    "tests/models/test_consensus_solve.py::TestConvergence::test_recycled_admm_reaches_it_for_every_gamma",
                ),
                frozenset({"eta_table", "checked_gamma", "_table"}),
            ),
            Target(
                "cvxpriv_models.admm_sharing.schemes",
                ("tests/models/test_sharing_schemes.py::test_the_hold_of_a_party_is_just_large_enough_in_each_scheme",),
            ),
            Target(
                "cvxpriv_models.privacy_funnel.closed_form",
                ("tests/models/test_funnel_accelerated.py", "tests/models/test_funnel_closed_form.py"),
            ),
        )
    ),
    "sampling": Group((Target("cvxpriv.privacy.sampling", ("tests/toolkit/test_grid.py::TestSampling",)),)),
    "verdicts": Group(
        (
            Target("cvxpriv.solvers.chain", ("tests/toolkit/test_solvers.py",), frozenset({"solve"})),
            Target("cvxpriv.certify.verdicts", ("tests/toolkit/test_verdicts.py",)),
            Target(
                "cvxpriv.privacy.audit",
                (
                    "tests/models/test_adversarial_neighbours.py::"
                    "test_an_audit_charges_a_quarter_of_its_risk_to_each_of_four_limits",
                    "tests/toolkit/test_privacy.py",
                ),
            ),
        )
    ),
}
