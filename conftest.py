"""Of the two packages, only the modules with an example are collected."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a product module without an example: to collect it is to import it and to search each of its names."""
    product = collection_path.relative_to(ROOT).parts[:1] in [("cvxpriv",), ("models",)]
    if product and collection_path.suffix == ".py" and ">>> " not in collection_path.read_text(encoding="utf-8"):
        return True
    return None
