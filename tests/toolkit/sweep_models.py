"""Models of a few lines that a sweep's tests use: a drawn number, one that fails, one that kills its worker."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from cvxpriv.reports.facts import Fact, Facts
from cvxpriv.runs.options import Option, declared


class Drawn:
    """The run: a number that seed, data and weight decide."""

    def __init__(self, value: float) -> None:
        self.facts = Facts("drawn", facts=[Fact("objective", value), Fact("gap", float("inf"))], converged=True)

    def document(self) -> dict[str, Any]:
        return {"value": self.facts["objective"].value}


class Lottery:
    """Draw numbers; some weights fail, some pauses end the worker."""

    @declared
    def __init__(self, table: Any, weight: Annotated[float, Option("A weight.", above=0.0)] = 1.0) -> None:
        self.table, self.weight = np.asarray(table), weight

    @declared
    def solve(
        self,
        seed: int = 0,
        pause: Annotated[float, Option("Seconds.", low=0.0)] = 0.0,
        trace: str = "",
        deadly: bool = False,
    ) -> Drawn:
        if trace:
            with Path(trace).open("a", encoding="utf-8") as file:
                file.write(f"{self.weight}\n")
        time.sleep(pause)
        if deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.weight == 13.0:
            raise ArithmeticError("13 is no weight")
        draws = np.random.default_rng(seed).normal(size=(200, 200))
        return Drawn(float(self.weight * (draws @ draws).sum() + self.table.sum()))
