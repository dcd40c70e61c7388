"""The tasks of a sweep: the product of the grid's values, each with a key and a seed of its own."""

import inspect
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from cvxpriv.errors import ModelError, PrivacyError, shown, suggest
from cvxpriv.numerics.arguments import few
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.document import plain_data
from cvxpriv.runs.options import Parameter, options_of
from cvxpriv.runs.sweep_checkpoint import digest

OWN = ("seed", "n_jobs", "progress", "callback", "budget")
"""Options of a solve that the sweep sets itself."""
MOST_TASKS = 100_000
"""The most tasks of a sweep, whose rows stay in memory and in the checkpoint."""
SEEDS = 2**48
"""Number of different seeds; every one of them is exact as a double."""


@dataclass(frozen=True)
class Choice:
    """An option of the grid with its values.

    `posing`: Whether the constructor takes it; else the solve does.
    """

    name: str
    values: tuple[Any, ...]
    posing: bool


@dataclass(frozen=True)
class Task:
    """One fit of a sweep.

    `table`: The name of its data; empty where the sweep has one data set without a name.
    `settings`: The options of the grid at their values of this task, as JSON holds them.
    `posing`, `solving`: The arguments of the constructor, and of the solve.
    `key`: The hash of model, name of the data, settings and the sweep's seed; with warm starts, of the values before
    this one too.
    `seed`: The task's own seed, which follows from the key alone.
    `chain`: The same for the tasks that start from one another; the key, without warm starts.
    """

    table: str
    settings: Mapping[str, Any]
    posing: Mapping[str, Any]
    solving: Mapping[str, Any]
    key: str
    seed: int
    chain: str


def choices_of(model: type[Any], grid: Mapping[str, Any], *, private: bool) -> list[Choice]:
    """Check a grid by the signatures of a model, before any work.

    `grid`: The values by option; one that is no list, tuple, range, array or series stands for itself.
    `private`: Whether the options are those of `solve_private`.
    Raises ModelError: An option is not known, has no value or the same one twice, or a value is out of range.
    PrivacyError: An option of `solve_private` in a sweep that is not private.
    """
    solve = getattr(model, "solve_private" if private else "solve", None)
    if not isinstance(model, type) or solve is None:
        remedy = ": leave budget out, or name a learner" if private else ""
        raise ModelError(f"model={shown(model)} is no class with a {'solve_private' if private else 'solve'}{remedy}")
    posed, solved = _keywords(model.__init__), _keywords(solve)
    declared = {one.name: one for one in (*options_of(solve), *options_of(model.__init__))}
    needed = set(needed_data(model))
    found = []
    for name, given in grid.items():
        if name in OWN:
            raise ModelError(f"{name} is set by the sweep for every task: leave it out of the grid")
        if name in needed or name not in (*posed, *solved):
            _refuse(model, name, [one for one in (*posed, *solved) if one not in needed and one not in OWN], private)
        values = tuple(_checked(declared.get(name), name, value) for value in _listed(name, given))
        found.append(Choice(name, values, name in posed))
    return found


def tasks_of(
    model: type[Any],
    tables: Collection[str],
    choices: Sequence[Choice],
    seeds: Sequence[int],
    along: str | None = None,
) -> list[Task]:
    """Return the tasks in the order of tables, then of the grid's options, the last of which changes fastest.

    `along`: The option along whose values each task starts from the answer before.
    Raises ModelError: There are more than `MOST_TASKS`; a value of the grid has no content that can be compared, or
    stands there twice.
    """
    counts = [len(choice.values) for choice in choices]
    if (several := len(tables) * len(seeds) * math.prod(counts)) > MOST_TASKS:
        raise ModelError(
            f"the grid has {several:,} tasks, more than {MOST_TASKS:,}: take fewer values, tables or seeds"
        )
    named = f"{model.__module__}.{model.__qualname__}"
    tasks: dict[str, Task] = {}
    plain, before = set(), dict[str, str]()
    for table, seed, values in product(tables, seeds, product(*(choice.values for choice in choices))):
        chosen = dict(zip((choice.name for choice in choices), values, strict=True))
        key = chain = digest([named, table, dict(sorted(chosen.items())), seed])
        if key in plain:
            raise ModelError(f"the grid has {_told(chosen)} twice: name each value once")
        plain.add(key)
        if along is not None:
            others = {name: value for name, value in sorted(chosen.items()) if name != along}
            chain = digest([named, table, others, seed, along])
            key = before[chain] = digest([before.get(chain, chain), chosen[along]])
        posing = {one.name: chosen[one.name] for one in choices if one.posing}
        solving = {one.name: chosen[one.name] for one in choices if not one.posing}
        settings = {name: _labelled(value) for name, value in chosen.items()}
        if len(seeds) > 1:
            settings["seed"] = seed
        tasks[key] = Task(table, settings, posing, solving, key, int(key, 16) % SEEDS, chain)
    return list(tasks.values())


def require_along(model: type[Any], along: str | None, choices: Sequence[Choice]) -> None:
    """Raise ModelError where a model has no warm start, or the grid has no such option, or starts of its own."""
    if along is None:
        return
    names = [choice.name for choice in choices]
    if not hasattr(model, "init_of"):
        other = ", and call its curve()" if hasattr(model, "curve") else ""
        raise ModelError(f"warm_along={shown(along)}: {model.__name__} has no warm start: leave it out{other}")
    if along not in names:
        raise ModelError(f"warm_along={shown(along)} is no option of the grid: {suggest(str(along), names)}")
    if "init" in names:
        raise ModelError("init stands in the grid, and warm_along sets it: leave one out")


def positional_data(model: type[Any], data: Any) -> tuple[Any, ...]:
    """Return the data as the arguments of a model's constructor: one, or as many as it needs."""
    needed = needed_data(model)
    if len(needed) == 1:
        return (data,)
    if not isinstance(data, (tuple, list)) or len(data) != len(needed):
        raise ModelError(f"data={type(data).__name__} for {model.__name__}: pass the tuple ({', '.join(needed)})")
    return tuple(data)


def needed_data(model: type[Any]) -> list[str]:
    """Return the names of the constructor's data: its parameters without a default."""
    parameters = list(inspect.signature(model.__init__).parameters.values())[1:]
    return [one.name for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]


def _keywords(function: Callable[..., Any]) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]


def _refuse(model: type[Any], name: str, known: list[str], private: bool) -> None:
    spends = getattr(model, "solve_private", None)
    if not private and spends is not None and name in _keywords(spends):
        raise PrivacyError(
            f"{name} is an option of {model.__name__}.solve_private, and each private fit costs: pass budget=, the "
            "file of a Budget that all fits of the sweep spend from"
        )
    raise ModelError(f"{name} is no option of {model.__name__}: {suggest(name, known)}")


def _listed(name: str, given: Any) -> list[Any]:
    several = isinstance(given, (list, tuple, range, np.ndarray, pd.Series, pd.Index))
    values = few(name, given, MOST_TASKS) if several else [given]
    if not values:
        raise ModelError(f"{name}={shown(given)} has no value: give at least one, or leave it out")
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _checked(parameter: Parameter | None, name: str, value: Any) -> Any:
    if parameter is not None:
        parameter.check(value)
        if parameter.scalar is float and isinstance(value, int):
            value = float(value)
    try:
        digest(value)
    except ModelError as error:
        raise ModelError(f"{name}={shown(value)}: {error}") from error
    return value


def _labelled(value: Any) -> Any:
    """Return a value as JSON holds it, or as a message quotes it where JSON cannot."""
    plain = plain_data(value)
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError):
        return shown(value)
    return plain


def _told(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in chosen.items()) or "one task"
