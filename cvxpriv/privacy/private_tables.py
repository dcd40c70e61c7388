"""Tables whose counts get noise first: everything computed from them is then differentially private.

**Theorem.** Let c be the counts on a public domain, and z real noise, independent in each cell. As c is whole,
c + round(z) = round(c + z): a function of c + z. Replacing one record moves two cells by one (sensitivity 2 in the sum
of sizes, sqrt 2 in Euclidean length), adding or removing one moves one cell (1 and 1). So

- Laplace noise of scale sensitivity/epsilon is epsilon-private, without a delta;
- Gaussian noise of standard deviation sensitivity/mu is mu-Gaussian private, with the largest mu that
  (epsilon, delta) allows.

The rounded noise is drawn exactly (`sampling`). What follows reads the noisy counts alone: cutting at zero and the
right total (`cvxpriv.tables.protection`), the mechanism, its figures, its curve and its page.

Which cells exist is information as well. The domain is therefore named by the caller, who knows it from a codebook.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from cvxpriv.errors import DataError, PrivacyError, shown, suggest
from cvxpriv.numerics.arguments import is_number
from cvxpriv.numerics.doors import door
from cvxpriv.privacy.budget import Budget, Plan
from cvxpriv.privacy.gaussian import gaussian_mu
from cvxpriv.privacy.ledger import Release
from cvxpriv.privacy.noise import Noise, noise_source
from cvxpriv.privacy.sampling import rounded_balls
from cvxpriv.reports.files import PathLike
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.noisy_counts import nearest_shares, whole_counts
from cvxpriv.tables.protection import ADJACENCIES, Protection
from cvxpriv.tables.public_domain import on_domain
from cvxpriv.tables.recipe import MISSING, Recipe
from cvxpriv.tables.steps import Bins, First, Kept, Merge, Step

Domain = Mapping[str, Sequence[object]] | Literal["table"]
"""The values of each column; "table" takes those that occur, and says by that that they are public."""
LEAST = 1e-9
"""Least epsilon of a table: below it counts are noise alone, of more digits than doubles have."""
EVEN = 0.5
"""Records added to each cell where a public symbol has kept none: a mechanism needs some of each."""


@door
def private_table(
    table: JointTable,
    epsilon: float,
    delta: float = 0.0,
    *,
    domain: Domain | None = None,
    adjacency: str = "replace-one",
    budget: Budget | PathLike | None = None,
    noise_seed: int | None = None,
) -> JointTable:
    """Return a table with noise in its counts, from which everything that is computed is differentially private.

    Parameters
    ----------
    table : JointTable
        A table with counts, and without smoothing. Prepare its rows with ``public_recipe=True``: other recipes are
        refused by what the records are. That there is a record, and none outside the domain, is taken for public.
    epsilon : float
        > 0.
    delta : float
        In [0, 1). 0 takes Laplace noise, anything else Gaussian noise.
    domain : mapping of str to sequence, or "table"
        All values of each column of either side, known without looking at the records; columns in classes of public
        edges may be left out, and None serves where all are. "table": the values that occur in the table are public,
        and the domain is every combination of them on each side.
    adjacency : {"replace-one", "add-remove"}
        The change that makes a neighbour. With the first the number of records is public.
    budget : Budget or path, optional
        A budget to spend from, before any noise is drawn.
    noise_seed : int, optional
        Seed of the noise, for tests. By default it comes from the operating system's secure random source.

    Returns
    -------
    JointTable
        The table over the whole domain, with `protection`. Its counts are whole, >= 0, and sum to the number of
        records, with "add-remove" to an estimate of it.

    Raises
    ------
    PrivacyError
        No domain, a table that hides its counts, or a budget that is out of range or does not hold the release.
    DataError
        An unknown adjacency, a record outside the domain, or a column without values.

    Examples
    --------
    >>> table = JointTable.from_counts([[40, 10], [10, 40]], ["no", "yes"], ["0", "1"])
    >>> noisy = private_table(table, 1.0, domain={"S": ["no", "yes"], "X": [0, 1, 2]})
    >>> noisy.shape, noisy.records, noisy.protection.noise
    ((2, 3), 100, 'Laplace noise of scale 2, rounded to whole records')
    """
    table = _with_public_names(table)
    counts, whole = _checked(table, adjacency), _full_domain(domain, table)
    release, protection = _planned(epsilon, delta, adjacency, noise_seed)
    counts, private, public = on_domain(counts, table.private, table.public, whole)
    Plan((release,), "a table of counts", adjacency).spend(budget)
    noise = noise_source(noise_seed)
    noisy = counts + _drawn(noise, protection, counts.size).reshape(counts.shape)
    total = int(counts.sum()) if adjacency == "replace-one" else max(int(noisy.sum()), 1)
    released = whole_counts(nearest_shares(noisy.astype(np.float64), float(total)), total)
    smoothing = 0.0 if released.any(axis=0).all() else EVEN
    made = JointTable.from_counts(released, private, public, smoothing=smoothing)
    return replace(made, recipe=table.recipe, protection=replace(protection, noisy_counts=noisy.sum(axis=0).tolist()))


def release_of(protection: Protection) -> Release:
    """Return the ledger's entry of a protected table.

    >>> release_of(Protection(1.0, 0.0, "replace-one", 2.0)).epsilon
    1.0
    """
    if protection.delta:
        return Release(mu=_sensitivity(protection.adjacency, gaussian=True) / protection.scale, step="table")
    return Release(epsilon=protection.epsilon, step="table")


def _sensitivity(adjacency: str, gaussian: bool) -> float:
    cells = 2.0 if adjacency == "replace-one" else 1.0
    return math.sqrt(cells) if gaussian else cells


def _planned(epsilon: float, delta: float, adjacency: str, noise_seed: int | None) -> tuple[Release, Protection]:
    if not is_number(epsilon) or not 0.0 < epsilon < math.inf:
        raise PrivacyError(f"epsilon={shown(epsilon)} is no budget: pass a finite number > 0, for example 1.0")
    if epsilon < LEAST:
        raise PrivacyError(f"epsilon={epsilon:g} leaves noise alone: pass at least {LEAST:g}, for example 1.0")
    if not is_number(delta) or not 0.0 <= delta < 1.0:
        raise PrivacyError(f"delta={delta!r} is not in [0, 1): pass a number far below 1/n, for example 1e-6, or 0")
    sensitivity = _sensitivity(adjacency, bool(delta))
    scale = sensitivity / (gaussian_mu(epsilon, delta) if delta else epsilon)
    # The next double up: rounding of the quotient never flatters the guarantee.
    scale = math.nextafter(scale, math.inf)
    protection = Protection(float(epsilon), float(delta), adjacency, scale, noise_seed is None)
    return release_of(protection), protection


def _drawn(noise: Noise, protection: Protection, cells: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    if protection.delta:
        return noise.rounded_normals(protection.scale, cells)
    return rounded_balls(noise.words, protection.scale, cells, 1).ravel()


def _checked(table: JointTable, adjacency: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    if adjacency not in ADJACENCIES:
        raise DataError(f"adjacency={adjacency!r}: {suggest(str(adjacency), ADJACENCIES)}")
    if table.protection is not None:
        raise PrivacyError("the table has noise already, and more would cost again: give the table of the records")
    _require_public_recipe(table, adjacency)
    if table.smoothing != "none":
        raise DataError(f"the table is smoothed ({table.smoothing}): give the bare counts; noise fills the cells")
    if table.counts is None:
        raise PrivacyError(
            "the table holds probabilities without counts, and what one record changes in them is not known: make it "
            "with JointTable.from_counts, from_frame or from_csv"
        )
    return table.counts


def _require_public_recipe(table: JointTable, adjacency: str) -> None:
    """Refuse a preparation that was read off the records, or that makes their number private."""
    recipe = table.recipe
    if recipe is None:
        return
    for step in recipe.steps:
        if isinstance(step, Kept) or (isinstance(step, Bins) and step.from_data):
            raise PrivacyError(
                f"column {step.column!r} was prepared by what its records are ({step.description}), and no noise "
                "covers that: give public edges, or name the values to merge"
            )
    if recipe.missing == "drop" and adjacency == "replace-one":
        raise PrivacyError(
            "rows with a missing value are dropped, so that the number of records tells of them: make a missing value "
            'a symbol, or adjacency="add-remove"'
        )


def _full_domain(domain: Domain | None, table: JointTable) -> Mapping[str, Sequence[object]] | None:
    """Return the values of each column; those of a column in classes of public edges are the classes.

    Raises PrivacyError: A column is left whose values only the records tell.
    """
    if domain == "table":
        return None
    if domain is not None and not isinstance(domain, Mapping):
        raise DataError(f'domain={domain!r}: give the values of each column, or "table"')
    recipe, columns = table.recipe or Recipe(), (*table.private.columns, *table.public.columns)
    absent = (MISSING,) if recipe.missing == "symbol" else ()
    once = Counter(step.column for step in recipe.steps)
    classes = {
        step.column: (*step.labels, *absent)
        for step in recipe.steps
        if isinstance(step, Bins) and once[step.column] == 1 and step.column in columns
    }
    whole: dict[str, Sequence[object]] = {**classes, **(domain or {})}
    if unknown := [str(column) for column in columns if column not in whole]:
        first = [step.column for step in recipe.steps if isinstance(step, First) and step.column in unknown]
        raise PrivacyError(
            f"domain names no value of column {', '.join(map(repr, unknown))}, and which cells occur tells of the "
            "records: give all that it may have, "
            + ", ".join(f"domain={{{column!r}: [...]}}" for column in unknown[:3])
            + (f" (for {first[0]!r} all first characters that are possible, seen or not)" if first else "")
            + ', classes of public edges, or domain="table" where the values that occur are public'
        )
    return whole


def _with_public_names(table: JointTable) -> JointTable:
    """Return a table whose classes are named by their edges alone.

    Classes of whole numbers have shorter names (26 to 32), and one number with a fraction renames them: names would
    tell whether there is such a record.
    """
    if table.recipe is None:
        return table
    names: dict[str, dict[str, str]] = {}
    steps: list[Step] = []
    for step in table.recipe.steps:
        if isinstance(step, Bins) and step.whole:
            named = replace(step, whole=False)
            names[step.column] = dict(zip(step.labels, named.labels, strict=True))
            step = named
        elif isinstance(step, Merge) and step.column in names:
            step = replace(step, values=tuple(names[step.column].get(value, value) for value in step.values))
        steps.append(step)
    sides = [
        Alphabet(
            side.columns,
            tuple(
                tuple(names.get(column, {}).get(value, value) for column, value in zip(side.columns, row, strict=True))
                for row in side.symbols
            ),
        )
        for side in (table.private, table.public)
    ]
    recipe = replace(table.recipe, steps=tuple(steps))
    return replace(table, private=sides[0], public=sides[1], recipe=recipe)
