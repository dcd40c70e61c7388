"""The noise in a table's counts, and its guarantee for everything that is computed from them."""

from dataclasses import dataclass

import numpy as np

from cvxpriv.errors import DataError, suggest
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.formatting import at_most

ADJACENCIES = {
    "replace-one": "one record is replaced by another; the number of records is public",
    "add-remove": "one record is added or taken away; the number of records is private",
}
"""The neighbour relations of a table of counts, in words."""
PRIVATE = "private: do not publish; apply it at home"
"""The sentence about everything that is computed from counts without noise."""


@dataclass(frozen=True)
class Protection:
    """The noise in every cell of a table, and what it guarantees of everything computed from that table.

    `epsilon`, `delta`: The guarantee. Without a delta the noise is Laplace, else Gaussian.
    `adjacency`: One of `ADJACENCIES`.
    `scale`: Scale of the Laplace noise, or standard deviation of the Gaussian noise, in records.
    `noisy_counts`: Noisy counts of the symbols of X, before they were cut at zero: as public as all that follows.
    `secure`: Whether the noise came from the operating system's secure randomness.
    Raises DataError: An unknown adjacency.

    >>> Protection(1.0, 0.0, "replace-one", 2.0).sentence
    'differentially private (epsilon=1, neighbours: replace-one): may be published'
    """

    epsilon: float
    delta: float
    adjacency: str
    scale: float
    secure: bool = True
    noisy_counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "noisy_counts", tuple(self.noisy_counts))
        if self.adjacency not in ADJACENCIES:
            raise DataError(f"adjacency={self.adjacency!r}: {suggest(str(self.adjacency), ADJACENCIES)}")

    @property
    def noise(self) -> str:
        """The noise in words.

        >>> Protection(1.0, 0.0, "replace-one", 2.0).noise
        'Laplace noise of scale 2, rounded to whole records'
        """
        kind = "Gaussian noise of standard deviation" if self.delta else "Laplace noise of scale"
        return f"{kind} {self.scale:.4g}, rounded to whole records"

    @property
    def sentence(self) -> str:
        """The sentence that says whether results of the table may be published."""
        delta = f", delta={at_most(self.delta)}" if self.delta else ""
        seeded = "" if self.secure else " while the seed of its noise is secret"
        return (
            f"differentially private (epsilon={at_most(self.epsilon)}{delta}, neighbours: {self.adjacency}): "
            f"may be published{seeded}"
        )

    @property
    def provenance(self) -> dict[str, str | float]:
        """The lines of provenance that say by which guarantee results of the table may be published."""
        return {
            "publish": self.sentence,
            "table_epsilon": self.epsilon,
            "table_delta": self.delta,
            "table_adjacency": self.adjacency,
            "table_noise": self.noise,
        }

    def simulated(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Return noise of the same law from a generator, to study its effect; it is not for a release."""
        drawn = rng.normal(0.0, self.scale, shape) if self.delta else rng.laplace(0.0, self.scale, shape)
        return np.asarray(np.rint(drawn))
