"""Matrices of numbers from text files."""

import re

from cvxpriv.errors import DataError
from cvxpriv.reports.files import read_text


def read_matrix(path: str) -> list[list[float]]:
    """Return a matrix from a file: one row a line, numbers separated by commas, semicolons, tabs or blanks.

    Raises DataError: The file cannot be read, or does not hold a matrix.
    """
    lines = [(number, line) for number, line in enumerate(read_text(path).splitlines(), start=1) if line.strip()]
    matrix: list[list[float]] = []
    for number, line in lines:
        try:
            row = [float(entry) for entry in re.split(r"\s*[,;]\s*|\s+", line.strip())]
        except ValueError:
            raise DataError(
                f"path={path!r}, line {number}: {line.strip()!r} is no row of numbers; write one row of the "
                "matrix a line, without headings"
            ) from None
        if matrix and len(row) != len(matrix[0]):
            raise DataError(f"path={path!r}, line {number}: {len(row)} numbers, {len(matrix[0])} in the first row")
        matrix.append(row)
    return matrix
