"""Tables as people have them: encodings, separators, text, Parquet, and what cannot be read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cvxpriv.errors import DataError
from cvxpriv.reports import text
from cvxpriv.reports.text import write_table
from cvxpriv.tables import workbooks
from cvxpriv.tables.encodings import DetectedWarning
from cvxpriv.tables.frames import read_table

ROWS = {"Straße": ["Höhe", "Ufer"], "cm": ["1", "2"]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("between", [",", ";", "\t", "|"])
def test_encoding_and_separator_are_found(tmp_path: Path, encoding: str, between: str) -> None:
    file = tmp_path / "rows.csv"
    lines = [between.join(ROWS), *map(between.join, zip(*ROWS.values(), strict=True))]
    file.write_bytes("\r\n".join(lines).encode(encoding))
    assert read_table(file).to_dict("list") == ROWS


def test_latin_1_is_read_with_a_warning_or_without_one_when_named(tmp_path: Path, recwarn: Any) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes("Straße;cm\nHöhe;1\nUfer;2\n".encode("latin-1"))
    assert read_table(file, encoding="latin-1").to_dict("list") == ROWS
    assert not recwarn.list
    with pytest.warns(DetectedWarning, match="no UTF-8 and was read as cp1252"):
        assert read_table(file).to_dict("list") == ROWS
    with pytest.raises(DataError, match="is no utf-8 .*another encoding="):
        read_table(file, encoding="utf-8")
    with pytest.raises(DataError, match="encoding='klingon' is unknown"):
        read_table(file, encoding="klingon")


def test_a_usual_separator_stays_and_one_column_is_a_table(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text('name;x,"y;z"\na;1,2\n')
    assert list(read_table(file)) == ["name;x", "y;z"]
    file.write_text("name;height\na;170,5\n")
    assert read_table(file).to_dict("list") == {"name": ["a"], "height": ["170.5"]}  # a decimal comma
    file.write_text("age\n1\n2\n")
    assert read_table(file)["age"].to_list() == ["1", "2"]


@pytest.mark.parametrize("suffix", [".xlsx", ".parquet"])
def test_spreadsheets_and_parquet_go_out_and_come_back(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip(text.BINARY[suffix])
    frame = pd.DataFrame({"name": ["Höhe", None, "?"], "n": [1, 2, 3], "x": [0.5, 1.5, 2.0]})
    path = write_table(tmp_path / f"rows{suffix}", frame)
    back = read_table(path)
    assert back["n"].to_list() == [1, 2, 3]
    assert back["x"].to_list() == [0.5, 1.5, 2.0]
    assert back["name"].isna().to_list() == [False, True, False]
    assert read_table(path, missing=["?"])["name"].isna().to_list() == [False, True, True]
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=f"no {suffix} file that can be read"):
        read_table(path)


def test_a_workbook_runs_no_formula_of_a_cell(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = write_table(tmp_path / "rows.xlsx", pd.DataFrame({"x": ["=1+1"]}))
    assert read_table(path)["x"].to_list() == ["'=1+1"]


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of what a file may hold that are reached in no time."""
    monkeypatch.setattr(workbooks, "MAX_BYTES", 2**20)
    monkeypatch.setattr(workbooks, "MOST_ROWS", 2**10)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize(("corner", "said"), [("XFD999", "more than .* GiB"), ("A9999999999", "1,024 rows")])
def test_a_cell_in_the_last_corner_fills_no_memory(tmp_path: Path, corner: str, said: str) -> None:
    pytest.importorskip("openpyxl")
    whole = write_table(tmp_path / "rows.xlsx", pd.DataFrame({"x": ["a"], "y": ["b"]}))
    path, row = tmp_path / "corner.xlsx", corner.lstrip("XFDA")
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as made:
        for info in source.infolist():
            cell = f'<row r="{row}"><c r="{corner}"><v>1</v></c></row></sheetData>'.encode()
            made.writestr(info, source.read(info).replace(b"</sheetData>", cell))
    with pytest.raises(DataError, match=said):
        read_table(path)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize(("cell", "rows"), [("a", 2**18), ("a" * 2**12, 2**9)])
def test_a_column_of_one_text_fills_no_memory(tmp_path: Path, cell: str, rows: int) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"s": [cell] * rows}), tmp_path / "rows.parquet")
    assert (tmp_path / "rows.parquet").stat().st_size < 2**16
    with pytest.raises(DataError, match="more than .* GiB"):
        read_table(tmp_path / "rows.parquet")


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}])
def test_cells_of_several_values_are_refused(tmp_path: Path, cell: object) -> None:
    pytest.importorskip("pyarrow")
    pd.DataFrame({"s": [cell]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="column 's' holds a (list|struct).*: a cell is a text or a number"):
        read_table(tmp_path / "rows.parquet")


@pytest.mark.parametrize("suffix", [".xlsx", ".parquet"])
def test_a_package_that_is_not_there_is_named(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "find_spec", lambda name: None)
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(b"PK")
    for act in (lambda: read_table(path), lambda: write_table(path, pd.DataFrame({"x": [1]}))):
        with pytest.raises(DataError, match=rf'needs {text.BINARY[suffix]}: pip install "cvxpriv\[tables\]"'):
            act()


def test_a_file_of_another_kind_is_written_by_nobody(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ends in neither of \.csv, \.tsv, \.tab, \.xlsx, \.parquet"):
        write_table(tmp_path / "rows.ods", pd.DataFrame({"x": [1]}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        (["sex,income", 'm,"22,122"', 'f,"1,140,253"'], ["22122", "1140253"]),
        (["sex,income", 'm,"1,557.73"', "f,990.5"], ["1557.73", "990.5"]),
        (["height;income", "172,5;1.557,73", "166,8;990,5"], ["1557.73", "990.5"]),
        (["height;income", "172,5;1.557", "166,8;-"], ["1557", "-"]),  # the heights say what a point is here
        (["sex;income", "m;1,500", "f;2,250"], ["1,500", "2,250"]),  # decimals or thousands: nothing tells
        (["sex;income", "m;1.500", "f;2.250"], ["1.500", "2.250"]),
        (["sex;income", "m;22\u202f122,5", "f;1'990"], ["22122.5", "1990"]),
        (["sex;day", "m;01.02.2024", "f;10.11.2023"], ["01.02.2024", "10.11.2023"]),
    ],
)
@pytest.mark.filterwarnings("ignore::cvxpriv.tables.encodings.DetectedWarning")
def test_thousands_and_decimals_are_told_apart_where_the_file_tells(
    tmp_path: Path, lines: list[str], read: list[str]
) -> None:
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    assert read_table(tmp_path / "people.csv").iloc[:, 1].tolist() == read


def test_a_comma_before_three_digits_beside_decimal_commas_is_pointed_out(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("bmi;income\n24,9;3,450\n30,1;2,900\n")
    with pytest.warns(DetectedWarning, match=r"'3,450' of 'income' is read as 3\.450, .* take the commas out"):
        assert read_table(file)["income"].tolist() == ["3.450", "2.900"]
    for other in ("3,45", "0,450", "3450"):  # nothing but a decimal comma, or none
        file.write_text(f"bmi;income\n24,9;{other}\n")
        read_table(file)


@pytest.mark.parametrize(
    ("lines", "columns", "cells"),
    [
        (["# units: years", "# by the registry; 2024", "", "age;sex", "34;F"], ["age", "sex"], ["34", "F"]),
        (["Patients of 2024,,", "", "age,sex,ill", "34,F,1"], ["age", "sex", "ill"], ["34", "F", "1"]),
        (["Patients of 2024", "age,sex", '34,"F\nM"'], ["age", "sex"], ["34", "F\nM"]),
        (
            ["Ward 3;;;;", "By: Dr A; 2024;;;", "age;sex;ill;dead;kg", "3;F;1;0;9"],
            ["age", "sex", "ill", "dead", "kg"],
            ["3", "F", "1", "0", "9"],
        ),
        (["Patients, adults, 2024", "age;sex;ill", "34;F;1"], ["age", "sex", "ill"], ["34", "F", "1"]),
        (["#id,age", "1,34"], ["#id", "age"], ["1", "34"]),
        (["# name,city", "bob,rome"], ["# name", "city"], ["bob", "rome"]),
        (["remark", "34"], ["remark"], ["34"]),
        ([",age,sex,sex,", "0,34,F,F,"], ["column 1", "age", "sex"], ["0", "34", "F"]),
        (["age,sex,sex", "34,F,M"], ["age", "sex", "sex"], ["34", "F", "M"]),
    ],
)
def test_what_stands_above_a_header_is_left_out_and_a_doubled_column_is_one(
    tmp_path: Path, lines: list[str], columns: list[str], cells: list[str]
) -> None:
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    frame = read_table(tmp_path / "people.csv")
    assert list(frame.columns) == columns
    assert frame.iloc[0].tolist() == cells
    assert len(frame) == 1


TWO_LINES = [
    "Date;Temperature;;Sky",
    ";max (C);min (C);",
    "1.5.2024;9,5;2,0;sun",
    "2.5.2024;8,5;1,0;sun",
    "3.5.2024;;-1,0;",
]


def test_a_header_of_two_lines_is_made_one_and_a_row_is_none(tmp_path: Path) -> None:
    file = tmp_path / "weather.csv"
    file.write_text("\n".join(TWO_LINES), encoding="utf-8")
    with pytest.warns(DetectedWarning, match=r"two lines.*'Temperature max \(C\)'"):
        frame = read_table(file)
    assert list(frame) == ["Date", "Temperature max (C)", "Temperature min (C)", "Sky"]
    assert frame["Temperature max (C)"].tolist()[:2] == ["9.5", "8.5"]
    assert len(read_table(file, decimal=",")) == 4  # each row by itself
    for row in (";unknown;-;", ";max (C);min (C);sun", ";9,0;min (C);", "first;max (C);4;", "2 May;max (C);min (C);"):
        file.write_text("\n".join([TWO_LINES[0], row, *TWO_LINES[2:]]), encoding="utf-8")
        assert len(read_table(file)) == 4, row


@pytest.mark.parametrize("last", ["Total", "Summe:", "MEAN"])
def test_a_row_of_totals_is_told(tmp_path: Path, last: str) -> None:
    (tmp_path / "rows.csv").write_text(f"ward,beds\nA,3\nB,4\n{last},7\n", encoding="utf-8")
    with pytest.warns(DetectedWarning, match="counts as a record"):
        assert len(read_table(tmp_path / "rows.csv")) == 3


def test_a_sheet_has_titles_and_two_lines_of_names_as_a_text_has(tmp_path: Path) -> None:
    rows = [["Wards of 2024", *[None] * 3], [None] * 4, ["ward", "beds", None, None], [None, "men", "women", None]]
    pd.DataFrame([*rows, ["A", 3, 4, None], ["B", 5, 6, None]]).to_excel(tmp_path / "a.xlsx", header=False, index=False)
    with pytest.warns(DetectedWarning, match="two lines"):
        frame = read_table(tmp_path / "a.xlsx")
    assert frame.to_dict("list") == {"ward": ["A", "B"], "beds men": [3, 5], "beds women": [4, 6]}


@pytest.mark.parametrize(
    ("decimal", "read"),
    [
        (",", ["1.500", "2250.5", "-3.5 %", "\u20ac 1200", "A12,5"]),
        (".", ["1500", "2.250,5", "-3,5 %", "\u20ac 1.200", "A12,5"]),
        ("none", ["1,500", "2.250,5", "-3,5 %", "\u20ac 1.200", "A12,5"]),
    ],
)
def test_a_named_decimal_point_reads_each_cell_by_itself(tmp_path: Path, decimal: str, read: list[str]) -> None:
    lines = ["sex;income", "m;1,500", "f;2.250,5", "m;-3,5 %", "f;\u20ac 1.200", "m;A12,5"]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    assert read_table(tmp_path / "people.csv", decimal=decimal)["income"].tolist() == read
    one = ["\n".join([lines[0], line]) for line in lines[1:]]
    for alone, cell in zip(one, read, strict=True):
        (tmp_path / "one.csv").write_text(alone, encoding="utf-8")
        assert read_table(tmp_path / "one.csv", decimal=decimal)["income"].tolist() == [cell]
    with pytest.raises(DataError, match="decimal=';'"):
        read_table(tmp_path / "one.csv", decimal=";")


def test_taken_out_separators_are_told_and_one_at_the_end_of_lines_makes_no_column(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text('sex,count,\nm,"3,837",\nf,41,\n', encoding="utf-8")
    with pytest.warns(DetectedWarning, match="taken out of count: '3,837' of 'count' is read as 3837"):
        frame = read_table(tmp_path / "cells.csv")
    assert list(frame.columns) == ["sex", "count"]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("top", ["", "# made by hand\n"])
def test_a_separator_behind_each_row_and_not_behind_the_header_makes_no_column(
    tmp_path: Path, mark: str, top: str
) -> None:
    lines = ["age;job", *(f"{20 + row};{'clerk' if row % 3 else ''};" for row in range(40))]
    (tmp_path / "rows.csv").write_text(top + "\n".join(lines).replace(";", mark) + "\n")
    frame = read_table(tmp_path / "rows.csv")
    assert list(frame) == ["age", "job"]
    assert frame["age"].to_list() == [str(20 + row) for row in range(40)]
    assert int(frame["job"].isna().sum()) == 14
