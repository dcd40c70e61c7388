"""What each script says of the paper's figure that it draws: a `VERDICTS` of these stands in every script."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

KINDS = ("agrees", "agrees in part", "the paper is wrong", "not reproducible")


@dataclass(frozen=True)
class Verdict:
    """One figure or table of a paper, or a claim that the paper has no figure for.

    Parameters
    ----------
    figure : str
        Its name in the paper, and its subject.
    kind : str
        One of `KINDS`.
    shows, found, why : str
        What the paper shows; what is found here; why they differ, or what to know of it. Markdown.
    pictures : tuple of str
        Names of the files that are drawn.
    """

    figure: str
    kind: str
    shows: str
    found: str
    why: str = ""
    pictures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} of {self.figure!r} is no verdict: choose one of {', '.join(KINDS)}")

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON keeps them."""
        return {**asdict(self), "pictures": list(self.pictures)}
