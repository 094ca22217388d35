"""Registry of user-defined scorers: functions decorated with ``@germane.scorer``.

``import germane`` imports this module, so it must not import the scorers.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar, overload

from germane.arguments import explain_unknown_arguments
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score

BUILTIN_SCORER_NAMES = tuple(
    sorted(module.name for module in iter_modules([str(Path(__file__).parent / "scorers" / "metrics")]))
)
"""Names of the built-in scorers, that is, of the modules in ``germane.scorers.metrics``. A user-defined scorer with one
of these names is ignored."""
EXCHANGE_INPUTS = frozenset({"question", "answer", "contexts"})
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,99}", re.ASCII)

Result = Score | float
ScoringFunction = Callable[[Exchange], "Result | Awaitable[Result]"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ScorerDeclaration:
    """A scoring function and its options."""

    function: ScoringFunction
    name: str
    requires: frozenset[str]
    range: tuple[float, float]
    version: str

    @property
    def origin(self) -> str:
        """The function's module and qualified name."""
        return f"{getattr(self.function, '__module__', '')}.{qualified_name(self.function)}"


@dataclass(frozen=True, slots=True)
class NameConflict:
    """A user-defined scorer that is ignored because a built-in scorer has the same name."""

    name: str
    origin: str
    """Location of the user-defined scorer: its function, or its package and entry point."""

    def __str__(self) -> str:
        return (
            f"the scorer {self.origin} has the same name as the built-in scorer {self.name!r} "
            f"(germane.scorers.metrics.{self.name}), which is used instead; rename your scorer"
        )


_declarations: dict[str, ScorerDeclaration] = {}
_conflicts: dict[NameConflict, None] = {}


@overload
def scorer(function: Function, /) -> Function: ...
@overload
def scorer(
    *,
    name: str | None = None,
    requires: Iterable[str] = ("question", "answer"),
    range: tuple[float, float] = (0.0, 1.0),
    version: str = "1",
) -> Callable[[Function], Function]: ...
@explain_unknown_arguments
def scorer(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    requires: Iterable[str] = ("question", "answer"),
    range: tuple[float, float] = (0.0, 1.0),  # noqa: A002
    version: str = "1",
) -> Function | Callable[[Function], Function]:
    """Register a scoring function. Use it as ``@germane.scorer``, or as ``@germane.scorer(...)`` with options.

    ::

        @germane.scorer(requires={"answer"})
        def brevity(exchange: germane.Exchange) -> float:
            return 1 / (1 + len(exchange.answer.split()) / 100)

    The decorator returns the function unchanged. The ``scorers`` setting and :func:`germane.evaluate` accept its name.
    The function takes an exchange and returns a number, or a :class:`germane.Score` with more information. Plain
    functions run in a thread, ``async`` functions on the event loop. An exception becomes a failed score with the
    reason ``scorer_error``.

    If a built-in scorer has the same name, the built-in one is used; :func:`germane.start` and ``germane doctor``
    report the conflict.

    Args:
        name: Name under which the scores are stored. Defaults to the function's name.
        requires: The inputs that the scorer needs, out of ``question``, ``answer`` and ``contexts``. Exchanges that
            lack one of them are skipped.
        range: Minimum and maximum value, both inclusive and from -1 to 1. Higher is better. A value outside the range
            becomes a failed score with the reason ``out_of_range``.
        version: Version of the scorer. Change it when the same exchange may get a different value. Scores of different
            versions are not averaged.

    Raises:
        UsageError: The function, name, inputs or range are invalid, or another scorer has this name.
    """

    def register(function: Function) -> Function:
        declaration = build_declaration(function, name=name, requires=requires, range=range, version=version)
        if declaration.name in BUILTIN_SCORER_NAMES:
            _conflicts[NameConflict(declaration.name, declaration.origin)] = None
            return function
        existing = _declarations.get(declaration.name)
        # Reloading a module or rerunning a notebook cell declares the same function again.
        if existing is not None and existing.origin != declaration.origin:
            raise UsageError(
                f"scorer {declaration.name!r} is already defined by {existing.origin}; rename {declaration.origin}"
            )
        _declarations[declaration.name] = declaration
        return function

    return register if function is None else register(function)


def build_declaration(
    function: Any,
    *,
    name: str | None = None,
    requires: Iterable[str] = ("question", "answer"),
    range: tuple[float, float] = (0.0, 1.0),  # noqa: A002
    version: str = "1",
) -> ScorerDeclaration:
    """Validate a function and its options without registering it. Raise a usage error if they are invalid."""
    if not callable(function) or inspect.isclass(function):
        raise UsageError(f"a scorer must be a function that takes an exchange, not {function!r:.100}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{qualified_name(function)} is a generator, but a scorer must return one value")
    if not accepts_one_argument(function):
        raise UsageError(f"{qualified_name(function)} cannot be called with one argument, the exchange")
    scorer_name = getattr(function, "__name__", "") if name is None else name
    if not isinstance(scorer_name, str) or not _NAME.fullmatch(scorer_name):
        raise UsageError(f"invalid scorer name {scorer_name!r:.100}: use letters, digits, and any of _ . -")
    return ScorerDeclaration(
        function=function,
        name=scorer_name,
        requires=validate_requires(requires),
        range=validate_range(range),
        version=str(version),
    )


def find_declaration(name: str) -> ScorerDeclaration | None:
    """Return the declaration with this name, if any."""
    return _declarations.get(name)


def declaration_of_function(function: object) -> ScorerDeclaration | None:
    """Return the declaration of a function, if any. If it is declared under several names, return the first one."""
    return next((declaration for declaration in _declarations.values() if declaration.function == function), None)


def declared_names() -> list[str]:
    """Return the names of all declared functions in order of declaration."""
    return list(_declarations)


def declared_name_conflicts() -> list[NameConflict]:
    """Return the user-defined scorers that are ignored because a built-in scorer has the same name."""
    return list(_conflicts)


def qualified_name(function: object) -> str:
    """Return a function's name, including enclosing classes and functions."""
    return getattr(function, "__qualname__", type(function).__qualname__)


def accepts_one_argument(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with one argument; True if it has no signature."""
    try:
        inspect.signature(function).bind(object())
    except TypeError:
        return False
    except ValueError:  # a function written in C without a signature
        return True
    return True


def validate_requires(requires: Iterable[str]) -> frozenset[str]:
    """Return the required inputs as a set. Raise a usage error if one is not in :data:`EXCHANGE_INPUTS`."""
    inputs = frozenset({requires} if isinstance(requires, str) else requires)
    if unknown := sorted(map(str, inputs - EXCHANGE_INPUTS)):
        raise UsageError(f"requires must be any of question, answer and contexts, not {', '.join(unknown)}")
    return inputs


def validate_range(limits: Any) -> tuple[float, float]:
    """Return minimum and maximum as floats. Raise a usage error unless they increase, and are from -1 to 1."""
    is_pair = isinstance(limits, (tuple, list)) and len(limits) == 2
    if not is_pair or not all(isinstance(limit, Real) and math.isfinite(limit) for limit in limits):
        raise UsageError(f"range must be two numbers, the minimum and the maximum, not {limits!r:.100}")
    minimum, maximum = limits
    if not -1 <= minimum < maximum <= 1:
        raise UsageError(f"range must be increasing and from -1 to 1, not {minimum} to {maximum}")
    return float(minimum), float(maximum)
