"""Embedded real tables: aggregate counts without records. ``data/SOURCES.md`` lists their sources.

>>> adult().shape, heart_failure().shape
((10, 160), (4, 16))
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from cvxpriv.errors import DataError, suggest
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.joint import JointTable

PAPER_SMOOTHING = 1e-3
"""PF, section IV-B: "normalized after adding a perturbation of 1e-3 to each entry"."""


@dataclass(frozen=True)
class Source:
    """An embedded table: its file, and its private and public columns in PF, section IV-B."""

    file: str
    private: tuple[str, ...]
    public: tuple[str, ...]
    title: str


SOURCES = {
    "heart-failure": Source(
        file="heart_failure_counts.csv",
        private=("sex", "death"),
        public=("anaemia", "high_blood_pressure", "diabetes", "smoking"),
        title="Heart failure clinical records (UCI; Chicco and Jurman 2020)",
    ),
    "adult": Source(
        file="adult_counts.csv",
        private=("age", "income"),
        public=("age", "sex", "education_num"),
        title="Adult (UCI; Becker and Kohavi 1996)",
    ),
}
"""The embedded tables by name."""


@door
def load_table(name: str) -> pd.DataFrame:
    """Return an embedded table as a frame of counts: one row per cell, the number of people in the column ``count``.

    Parameters
    ----------
    name : {"heart-failure", "adult"}

    Raises
    ------
    DataError
        Unknown name.

    Examples
    --------
    >>> load_table("heart-failure")["count"].sum()
    np.int64(299)
    """
    source = _source(name)
    with (resources.files("cvxpriv.tables.datasets") / "data" / source.file).open(encoding="utf-8") as file:
        frame: pd.DataFrame = pd.read_csv(file)
    return frame


@door
def joint_table(name: str, smoothing: float = PAPER_SMOOTHING, smoothing_on: str = "counts") -> JointTable:
    """Return an embedded table as PF, section IV-B, uses it: `heart_failure` or `adult` by name.

    Parameters
    ----------
    name : {"heart-failure", "adult"}
    smoothing, smoothing_on
        As for `JointTable.from_counts`. With ``smoothing=0`` only the cells that occur are kept.

    Raises
    ------
    DataError
        Unknown name, or a wrong smoothing.
    """
    source = _source(name)
    return JointTable.from_frame(
        load_table(name),
        private=source.private,
        public=source.public,
        count="count",
        smoothing=smoothing,
        smoothing_on=smoothing_on,
        keep_unseen=smoothing > 0,
        allow_overlap=True,
    )


@door
def heart_failure(smoothing: float = PAPER_SMOOTHING, smoothing_on: str = "counts") -> JointTable:
    """Return 299 patients: S = sex, death; X = anaemia, high blood pressure, diabetes, smoking; 4 x 16.

    The default is the paper's perturbation of 1e-3, read as an addition to each count: it keeps every cell possible and
    hardly moves the measures. ``smoothing_on="probabilities"`` is the other reading, ``smoothing=0`` the bare counts.

    Raises
    ------
    DataError
        A wrong smoothing.

    Examples
    --------
    >>> heart_failure().private.columns
    ('sex', 'death')
    """
    return joint_table("heart-failure", smoothing, smoothing_on)


@door
def adult(smoothing: float = PAPER_SMOOTHING, smoothing_on: str = "counts") -> JointTable:
    """Return 32,561 people: S = age, income; X = age, sex, education_num; 10 x 160.

    Age is private and public, as in the paper.

    The default is the paper's perturbation of 1e-3, read as an addition to each count. Added to the probabilities
    (``smoothing_on="probabilities"``) it weighs 1.6 against 1: most of that table is then the uniform distribution.

    Raises
    ------
    DataError
        A wrong smoothing.

    Examples
    --------
    >>> adult().public.label(10)
    '17-25, Female, 11'
    """
    return joint_table("adult", smoothing, smoothing_on)


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise DataError(f"name={name!r} is no embedded table: {suggest(name, SOURCES)}")
    return SOURCES[name]
