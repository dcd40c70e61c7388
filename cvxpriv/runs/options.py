"""Options: each parameter of a model is declared once, in the signature of the method that takes it.

A parameter's annotation carries its `Option`: help, unit, range, choices. `declared` checks the values at the door
and completes the docstring; `options_of` reads the signature for the command line. The options that all models share
stand in `cvxpriv.runs.shared_options`.

>>> from typing import Annotated
>>> Rate = Annotated[float, Option("Utility that the output must carry.", unit="nats", above=0.0)]
>>> @declared
... def design(table: list[float], rate: Rate = 0.8) -> float:
...     return rate
>>> design([1.0], rate=-1.0)
Traceback (most recent call last):
...
cvxpriv.errors.ModelError: rate=-1.0 is not a finite number > 0
>>> [(one.name, one.option.unit, one.default) for one in options_of(design)]
[('rate', 'nats', 0.8)]
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from numbers import Integral, Real
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from cvxpriv.errors import CvxprivError, ModelError, PrivacyError, shown, suggest
from cvxpriv.runs.docstrings import with_parameters

Declared = TypeVar("Declared", bound=Callable[..., Any])

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""


@dataclass(frozen=True)
class Option:
    """The declaration of a parameter, beside its name, type and default.

    A second `Option` on an annotation completes the first: ``Annotated[Starts, Option(usual="30")]``.

    Attributes
    ----------
    help : str
        One sentence on the effect of the parameter.
    unit : str
    kind : str
        The type in words, where that of the annotation is long, such as "array".
    low, high : float, optional
        The least and the greatest value.
    above, below : float, optional
        Bounds that the value must not reach.
    choices : tuple of str
        The allowed texts, where the value is a text.
    usual : str
        The meaning of None.
    private : bool
        A `PrivacyError` refuses a wrong value.
    flag : str
        The name on the command line, where it differs from the parameter's, such as ``--jobs``.
    metavar : str
        The placeholder for the value in the command line's help.
    read : callable, optional
        Makes the value from a text of the command line.
    many : bool
        The option may be repeated on the command line, for a tuple of values.
    hidden : bool
        The command line does not offer the option.
    """

    help: str = ""
    unit: str = ""
    kind: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    usual: str = ""
    private: bool = False
    flag: str = ""
    metavar: str = ""
    read: Callable[[str], Any] | None = None
    many: bool = False
    hidden: bool = False

    def completed(self, other: Option) -> Option:
        """Return this option completed by the fields that another one sets."""
        empty = Option()
        chosen = {field.name: getattr(other, field.name) for field in fields(Option)}
        return replace(self, **{name: value for name, value in chosen.items() if value != getattr(empty, name)})

    @property
    def range(self) -> str:
        """The range in signs, such as ``> 0 and <= 1``; empty where there is none."""
        bounds = ((">=", self.low), (">", self.above), ("<=", self.high), ("<", self.below))
        return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    def within(self, number: float) -> bool:
        """Return whether a number is in the range."""
        return (
            (self.low is None or number >= self.low)
            and (self.above is None or number > self.above)
            and (self.high is None or number <= self.high)
            and (self.below is None or number < self.below)
        )


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, with its declaration.

    `kinds`: The types that the value may have, including None's.
    `default`: The default; `REQUIRED` where there is none.
    """

    name: str
    option: Option
    kinds: tuple[Any, ...]
    default: Any

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @cached_property
    def scalar(self) -> type | None:
        """The required scalar type, one of bool, int, float and str; None where the value may be something else."""
        known = [kind for kind in (bool, int, float, str) if kind in self.kinds]
        others = [kind for kind in self.kinds if kind not in (bool, int, float, str, type(None))]
        return known[-1] if known and not others else None

    @property
    def described(self) -> str:
        """The entry of a docstring: the help, the unit, the range, the choices, and the meaning of None."""
        option = self.option
        parts = [option.help.rstrip(".") + (f", in {option.unit}" if option.unit else "")]
        if option.choices:
            parts.append(f"One of {', '.join(option.choices)}")
        if option.range:
            parts.append(option.range[0].upper() + option.range[1:])
        if option.usual:
            parts.append(f"None: {option.usual}")
        return ". ".join(parts) + "."

    @property
    def signature(self) -> str:
        """The line above that entry: the type and the default."""
        names = [getattr(kind, "__name__", str(kind)) for kind in self.kinds if kind is not type(None)]
        kind = self.option.kind or " or ".join("callable" if name == "Callable" else name for name in names)
        if self.default is REQUIRED:
            return kind
        return f"{kind}, optional" if self.default is None else f"{kind}, default {self.default!r}"

    def check(self, value: Any) -> None:
        """Refuse a value that is out of range.

        Raises ModelError, or PrivacyError for a private option.
        """
        if value is None and type(None) in self.kinds:
            return
        if self.option.choices and isinstance(value, str):
            if value not in self.option.choices:
                raise self._refused(f"{shown(value)} is not known: {suggest(value, self.option.choices)}")
            return
        wanted = self._wanted(value)
        if wanted:
            raise self._refused(f"{shown(value)} is not {wanted}")

    def _wanted(self, value: Any) -> str:
        """Return the requirement that a value misses; an empty text where it misses none."""
        kind, option = self.scalar, self.option
        if kind is bool:
            return "" if isinstance(value, bool) else "True or False"
        if kind is str:
            return "" if isinstance(value, str) else "a text"
        if kind is int:
            fits = isinstance(value, Integral) and not isinstance(value, bool) and option.within(int(value))
            return "" if fits else f"a whole number {option.range}".rstrip()
        if kind is float:
            from cvxpriv.numerics.arguments import finite_double  # numpy comes with it, and help needs no value

            number = finite_double(value) if isinstance(value, Real) else math.nan
            fits = math.isfinite(number) and option.within(number)
            return "" if fits else f"a finite number {option.range}".rstrip()
        return ""

    def _refused(self, reason: str) -> CvxprivError:
        kind = PrivacyError if self.option.private else ModelError
        return kind(f"{self.name}={reason}")


def options_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a function that an `Option` declares, in order, or a dataclass's fields.

    A class's own fields come before those that it inherits.
    """
    found = []
    hints = get_type_hints(function, include_extras=True) if isinstance(function, type) else {}
    for name, parameter in inspect.signature(function).parameters.items():
        if "pd." in str(parameter.annotation):
            continue  # a table is no option, and naming its type would import pandas
        kinds, option = _taken_apart(hints[name] if name in hints else _evaluated(parameter.annotation, function))
        if option is not None:
            found.append(Parameter(name, option, kinds, parameter.default))
    if isinstance(function, type):
        written = [vars(base).get("__annotations__", {}) for base in function.__mro__]
        found.sort(key=lambda one: next(depth for depth, names in enumerate(written) if one.name in names))
    return tuple(found)


def declared(function: Declared) -> Declared:
    """Check a function's arguments by their declarations, and add the declared ones to its docstring.

    On a class: complete the docstring by the parameters of `__init__`, which is declared itself.

    Raises ModelError, or PrivacyError for a private option: When the function is called: a value is out of range.
    """
    if isinstance(function, type):
        function.__doc__ = _documented(function.__doc__, options_of(function.__init__))  # type: ignore[misc]
        return cast(Declared, function)
    from cvxpriv.numerics.doors import door

    parameters = {parameter.name: parameter for parameter in options_of(function)}
    signature, opened = inspect.signature(function), door(function)

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given: Mapping[str, Any] = signature.bind(*args, **kwargs).arguments
        for name, value in given.items():
            if name in parameters:
                parameters[name].check(value)
        return opened(*args, **kwargs)

    checked.__doc__ = _documented(function.__doc__, tuple(parameters.values()))
    return cast(Declared, checked)


def _documented(doc: str | None, parameters: tuple[Parameter, ...]) -> str:
    entries = {one.name: (one.signature, one.described) for one in parameters}
    return with_parameters(doc or "", entries)


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return an annotation as an object; its names must be known where the function is defined."""
    if not isinstance(annotation, str):
        return annotation
    return eval(annotation, inspect.unwrap(function).__globals__)  # the module's own text, as `typing` evaluates it


def _taken_apart(annotation: Any) -> tuple[tuple[Any, ...], Option | None]:
    """Return the types of an annotation, and its options as one."""
    option: Option | None = None
    kinds: list[Any] = []
    for part in _parts(annotation):
        if isinstance(part, Option):
            option = part if option is None else option.completed(part)
        elif part not in kinds:
            kinds.append(part)
    return tuple(kinds), option


def _parts(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _parts(inner)
        yield from metadata
    elif get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _parts(member)
    else:
        yield annotation
