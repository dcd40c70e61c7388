"""Options are declared once, in a signature: checked from it, described from it, read from it."""

from __future__ import annotations

import inspect
from typing import Annotated

import numpy as np
import pytest

from cvxpriv.blocks.engines import DCP
from cvxpriv.errors import ModelError, PrivacyError
from cvxpriv.numerics.arguments import require_callback
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.docstrings import with_parameters
from cvxpriv.runs.options import REQUIRED, Option, declared, options_of

Rate = Annotated[float, Option("Utility asked for.", unit="nats", above=0.0)]
Unit = Annotated[str, Option("Unit of the rate.", choices=("fraction", "nats", "bits"))]


class Model:
    """A model."""

    @declared
    def __init__(self, table: list[float], rate: Rate = 0.8, *, unit: Unit = "fraction") -> None:
        self.table, self.rate, self.unit = table, rate, unit

    @declared
    def solve(
        self,
        *,
        engine: shared.Engine = "closed_form",
        starts: Annotated[shared.Starts, Option(usual="30")] = None,
        seed: shared.Seed = 0,
        tol: Annotated[shared.Tol, Option(unit="nats")] = 1e-7,
        init: shared.Init = None,
        n_jobs: shared.NJobs = 1,
        progress: shared.Progress = False,
    ) -> tuple[object, ...]:
        """Solve.

        Parameters
        ----------
        tol
            The model's own words.

        Returns
        -------
        tuple
        """
        return engine, starts, seed, tol

    @declared
    def solve_private(self, *, epsilon: shared.Epsilon, delta: shared.Delta | None = None) -> float:
        return epsilon


MODEL = Model([1.0])


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("starts", 0, "a whole number >= 1"),
        ("starts", True, "a whole number >= 1"),
        ("starts", 2.0, "a whole number >= 1"),
        ("seed", -1, "a whole number >= 0"),
        ("seed", None, "a whole number >= 0"),
        ("tol", 0.0, "a finite number > 0"),
        ("tol", np.nan, "a finite number > 0"),
        ("tol", np.inf, "a finite number > 0"),
        ("tol", "1", "a finite number > 0"),
        ("progress", 1, "True or False"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(name: str, value: object, wanted: str) -> None:
    with pytest.raises(ModelError) as refused:
        MODEL.solve(**{name: value})  # type: ignore[arg-type]
    assert str(refused.value) == f"{name}={value!r} is not {wanted}"


def test_values_in_range_pass_and_none_stands_for_the_usual() -> None:
    assert MODEL.solve(starts=np.int64(3), seed=7, tol=np.float64(0.1)) == ("closed_form", 3, 7, 0.1)
    assert MODEL.solve(starts=None)[1] is None
    assert isinstance(MODEL.solve(engine=DCP())[0], DCP)


def test_an_unknown_choice_is_told_its_nearest() -> None:
    with pytest.raises(ModelError, match="engine='closedform' is not known: did you mean 'closed_form'"):
        MODEL.solve(engine="closedform")
    with pytest.raises(ModelError, match="unit='nat' is not known: did you mean 'nats'"):
        Model([1.0], unit="nat")


def test_a_positional_value_is_checked_too() -> None:
    with pytest.raises(ModelError, match="rate=0 is not a finite number > 0"):
        Model([1.0], 0)


def test_a_private_option_is_refused_by_a_privacy_error() -> None:
    with pytest.raises(PrivacyError, match="epsilon=-1 is not a finite number > 0"):
        MODEL.solve_private(epsilon=-1)
    with pytest.raises(PrivacyError, match="delta=1.0 is not a finite number > 0 and < 1"):
        MODEL.solve_private(epsilon=1.0, delta=1.0)


def test_an_unknown_name_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="stats"):
        MODEL.solve(stats=3)  # type: ignore[call-arg]


def test_the_signature_is_that_of_the_function() -> None:
    assert list(inspect.signature(Model.solve).parameters)[:3] == ["self", "engine", "starts"]


def test_options_are_read_in_the_order_of_the_signature() -> None:
    found = options_of(Model.solve)
    assert [one.name for one in found] == ["engine", "starts", "seed", "tol", "init", "n_jobs", "progress"]
    by_name = {one.name: one for one in found}
    assert by_name["starts"].option.usual == "30"
    assert by_name["starts"].option.help == "Number of starts. The best run is returned."
    assert by_name["tol"].option.unit == "nats"
    assert by_name["n_jobs"].flag == "--jobs"
    assert (by_name["starts"].scalar, by_name["tol"].scalar, by_name["engine"].scalar) == (int, float, None)
    assert [one.default for one in options_of(Model.solve_private)] == [REQUIRED, None]
    assert [one.name for one in options_of(Model.__init__)] == ["rate", "unit"]


def test_the_docstring_describes_what_it_did_not() -> None:
    doc = inspect.getdoc(Model.solve)
    assert doc is not None
    assert doc.count("\ntol\n") == 1
    assert "The model's own words." in doc
    assert "starts : int, optional\n    Number of starts. The best run is returned. >= 1. None: 30." in doc
    assert doc.index("progress : bool") < doc.index("Returns\n-------")
    assert "init : array, optional" in doc


def test_a_class_describes_the_parameters_of_its_init() -> None:
    @declared
    class Documented:
        """A model.

        Parameters
        ----------
        table : list
            Data.
        """

        @declared
        def __init__(self, table: list[float], rate: Rate = 0.8) -> None:
            pass

    assert inspect.getdoc(Documented).splitlines()[-2:] == [
        "rate : float, default 0.8",
        "    Utility asked for, in nats. > 0.",
    ]


def test_a_docstring_without_sections_or_without_text_gets_one() -> None:
    entry = {"a": ("int", "A number.")}
    assert with_parameters("", entry) == "Parameters\n----------\na : int\n    A number."
    assert with_parameters("Do it.\n\nNotes\n-----\nNone.", entry) == (
        "Do it.\n\nParameters\n----------\na : int\n    A number.\n\nNotes\n-----\nNone."
    )
    assert with_parameters("Do it.\n\nParameters\n----------\na, b : int\n    Two.", entry).count("a") == 3


@pytest.mark.parametrize(("callback", "n_jobs"), [(3, 1), (print, 2)])
def test_a_callback_is_a_function_in_this_process(callback: object, n_jobs: int) -> None:
    with pytest.raises(ModelError, match="pass a function, and n_jobs=1"):
        require_callback(callback, n_jobs)
