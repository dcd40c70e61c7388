"""Google's dp-accounting on the same releases: its bounds are never below the exact composition, and close to it."""

from __future__ import annotations

import pytest

from cvxpriv.privacy import Release, account_ledger


@pytest.mark.parametrize(("mu", "releases", "delta"), [(0.2, 20, 1e-5), (1.0, 1, 1e-6), (0.05, 500, 1e-6)])
def test_the_peers_accountants_bound_the_exact_composition_from_above(mu: float, releases: int, delta: float) -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1.0 / mu), releases)
    ours = account_ledger([Release(mu=mu)] * releases, delta, neighbours="one row")
    exact, zcdp = ours.claims[:2]
    by_loss_distribution = PLDAccountant().compose(event).get_epsilon(delta)
    by_renyi = RdpAccountant().compose(event).get_epsilon(delta)
    # The loss distribution is discretised upwards by 1e-4 a release.
    assert exact.epsilon - 1e-9 <= by_loss_distribution <= exact.epsilon + 1e-4 * releases
    # The peer takes the best of a list of orders, we the best order.
    assert exact.epsilon < zcdp.epsilon <= by_renyi + 1e-9
    assert by_renyi <= zcdp.epsilon * 1.01
