"""Mutants that mean the same as the code, or that change only speed: each with the reason that no test can tell.

Key: the module; then the function (empty at the top of the module), and a pattern that fits the line as the mutant has
it. What a mutant puts in place of something stands there in parentheses.
"""

from __future__ import annotations

__all__ = ["EQUIVALENT"]

BRACKET = "an end of the bracket of a root: whatever holds the root between its ends gives the same root"
PRECISE = "how far a root is followed: what is left is far below the margin by which it is then moved"
TOUCHED = "the two sides differ where two doubles are equal, and there both give the same"

CHOICE = "how a cut is chosen: whichever is, what it shows is judged on other runs"

WORST = "an allowance for the worst: on every table that a test can make the entropies' own allowance covers it"

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "cvxpriv_models.istdp.centring": {
        ("", r"MOST_ENTRIES = .*\(100000001\)"): "one entry more than a limit of memory",
        ("largest", r"found >= edge"): TOUCHED,
        ("moments_sensitivity", r"\(1[57]\)"): "an allowance for a dozen operations",
        ("resolves", r"< RESOLVED"): TOUCHED,
    },
    "cvxpriv_models.istdp.clipping": {
        ("", r"^BLOCK = "): "the bound of the rounding follows the size of the blocks",
        ("row_blocks", r"\(2\)"): "no row, or one, is one block",
        ("sum_error", r"\(1[57]\)"): "an allowance for a dozen operations",
    },
    "cvxpriv_models.istdp.objective_perturbation": {
        ("spend", r"lam < least"): "where lam is the least, its determinant is half of epsilon by the other rule too",
    },
    "cvxpriv_models.admm_sharing.mechanism": {
        ("clipped", r"size >= self.clip"): TOUCHED,
        ("of_clips", r"sum_rounding\((\(samples\)|samples \+ \(1[57]\))\)"): "an allowance for a dozen operations",
    },
    "cvxpriv.privacy.gaussian": {
        ("", r"^LEAST_MU, MOST_MU"): BRACKET,
        ("", r"^NARROW = "): "from 0.5 to 2 the integral and the difference of tails are both right to 1e-11",
        ("", r"^FAR = \((70|17.5)"): "out there one tail is 1 to the last digit, and the other path says so too",
        ("", r"^LEAST = "): "a number that only has to be positive: delta is 0 in doubles there",
        ("", r"^NODES, .*\((15|17)\)"): "fifteen nodes integrate a width of 1 to rounding as well as sixteen",
        ("_root_epsilon", r"gaussian_delta\(0.0, mu\) < delta"): TOUCHED,
        ("_root_epsilon", r"^most = "): BRACKET,
        ("_root_epsilon", r"\((2e-15|5e-16)\)"): PRECISE,
        ("_root_mu.excess", r"-\((2000000|500000)"): "stands for minus infinity: the root is far from there",
        ("_root_mu", r"\((2e-14|5e-15)\)"): PRECISE,
        ("_log_deltas", r"mu < NARROW"): "at mu = 1 both paths are right to 1e-11",
        ("_log_deltas", r"near >= -FAR"): TOUCHED,
        ("_log_deltas", r"ratios\[narrow, None\] - 0.5"): "the nodes lie symmetrically about 0, as do their weights",
    },
    "cvxpriv.privacy.budget": {
        ("covering_mu", r"epsilon <(= 1.0| \((2.0|0.5)\))"): "both forms are right to 1e-13 from 0.5 to 2",
    },
    "cvxpriv.privacy.accounting": {
        (
            "",
            r"2 \*\* 13|\(2\)\*\*14|\(3\)\*\*1[48]|2\*\*\((19|17|15|13)\)",
        ): "a grid of other fineness: its bound is a bound",
        ("", r"^ADDITIONS = "): "how long it may take: a coarser grid bounds too",
        ("coin_losses", r"max\(\(ADDITIONS\)"): "how long it may take: a coarser grid bounds too",
        ("optimal_epsilon", r"mu\) < wanted"): TOUCHED,
        ("optimal_epsilon", r"mu\) > wanted"): TOUCHED,
        ("optimal_epsilon", r"[xr]tol=\("): PRECISE,
        ("mu_beside", r"_coins\(epsilons, \((2.0|0.5)\)\)"): "only whether it is 0 counts",
        ("mu_beside", r"^least = "): BRACKET,
        ("mu_beside", r"excess\((least|most)\) >= 0.0"): "where the bracket's end is the root to the last double",
        ("mu_beside", r"[xr]tol=\("): PRECISE,
        (
            "zcdp_epsilon",
            r"\(40.0\)",
        ): "orders beyond e^20, and nearer to 1 than e^-20, are never the best",
        ("zcdp_epsilon", r"\"xatol\": \("): "the bound is flat at its least: 1e-10 there is 1e-20 here",
        ("_delta", r"losses >= epsilon"): "where a loss is epsilon its share is 0",
    },
    "cvxpriv.privacy.audit": {
        ("", r"^CUTS = "): CHOICE,
        ("audit", r"side\[half:\] >= cut"): "a cut lies between two releases: none stands on it",
        ("_best_cut", r"(first|second) >= cut"): "a cut lies between two releases: none stands on it",
        ("_direction", r"^floor = "): "a spread so small stands for none",
        ("_limits", r"hits == \(1\)"): "one hit, or none, shows no epsilon above 0",
        ("_limits", r"^high = \(2.0\)"): "a bound above 1 of a probability gives no epsilon above 0 either",
        ("_log_ratio", r"q >= 0.0"): "no upper limit of a probability is 0",
        ("refutes", r">= epsilon"): TOUCHED,
    },
    "cvxpriv_models.privacy_funnel.closed_form": {
        ("", r"^_RAISED = "): "a factor that is divided out again: it only keeps products off the subnormal numbers",
        ("iteration", r"^ahead = "): "where the search for a root begins",
        ("iteration", r"lam_before"): "where the search for a root begins",
        ("", r"^_LOW_MASS"): "from e^20 above the floor a column does not feel it to nine digits",
        ("iteration", r"<= _LOW_MASS"): TOUCHED,
    },
    "cvxpriv.kkt.conic.bounds": {
        ("variable_bounds", r"- 0\.0"): "a sum with 0 copies an array, and so does a difference",
        ("variable_bounds", r"a >= 0"): "no entry is 0 here: they were left out",
    },
    "cvxpriv.certify.verdicts": {("judge", r"residual < tolerances"): TOUCHED},
    "cvxpriv.bounds.check_certificate": {
        ("", r"^BITS, ONE, SHORT = 64, 1 << 64, .*\(4[35]\)"): "the bound holds for any multipliers, rounded as may be",
        ("", r"^LOG_ERROR = \((129|256)\)"): "a larger allowance",
        ("", r"^TANGENTS, "): "how long it may take",
        ("log", r"// 7$"): "the last term of the series is below one unit",
        ("log", r"j = \(m >> BITS - 8\)$"): "the series around the next lower point, as near",
        ("check", r"claim >= 0"): "I(S;Y) >= 0 holds, with and without multipliers",
        ("above", r"mean <= wanted|min\(bounds\) > goal|lowest > wanted|sum\(rational\) < ONE"): TOUCHED,
        (
            "above",
            r"^length = .*\((mean|0.49|1.96)\)",
        ): "which tangent is tried next: integers decide, in as few simplices",
        ("above", r"^rational = .*\([02]\)"): "a symbol without mass at every corner: its logarithm is taken 0 times",
        ("above", r"\((2e-300|5e-301)\)"): "a number that only has to be positive",
        ("cover", r"range\(\(1\), "): "a face of one symbol is a corner, and those are looked at before",
        ("matrix", r"\((5e\+299|2e\+300)\)"): "no number of use is so large",
        ("measures", r"^slack = |\((leaked|told)\)|leaked - slack|told \+ slack"): WORST,
        ("prove", r"eps >= \(1\)|eps > 0"): TOUCHED,
        ("prove", r"lam > 0"): "without a price of the rate no claim above 0 is proved",
        ("cover", r"cells > most_cells"): "how long it may take",
    },
    "cvxpriv.bounds.check_costed_certificate": {
        ("proved", r"default=\(1\)"): "where no symbol may stand in any column, any bound holds",
        ("least", r"min\(t\) > \(1\)"): "a code word of 64 bits, or none: its length is known either way",
        ("least", r"^room = "): WORST,
        ("least", r"math.ceil\(by_costs.dot"): WORST,
        ("least.corner", r"\(\(plain.log\(v\)\)\)|\* \(plain.log\(v\)\)"): WORST,
    },
    "cvxpriv.bounds.check_constrained_service_certificate": {
        ("", r"sys.path.insert\(\(1\)"): "where in the path the folder of a copied checker stands",
    },
    "cvxpriv.kkt.conic.certificates": {
        (
            "",
            r"^(PROOF|ROOM) = ",
        ): "how near counts as exact, and how much as room: what is found is far on either side",
        ("", r"^TOLERANCES = "): "what a solver is asked for: only the check of its answer is believed",
        ("ray", r"-\((2.0|0.5)\)"): "how long a ray is: it is scaled to strength one before it is judged",
    },
    "cvxpriv.privacy.ledger": {
        (
            "_groups",
            r"entries\}\)\)? or|touches for entry in entries\}\)",
        ): "what touches everyone alone is the least group",
        ("_accounted", r"np.zeros\(\(2\)\)"): "two releases of mu 0 cost as little as one",
    },
}
