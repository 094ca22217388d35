"""Scorers of your own, by name: functions that are declared to be scorers. Light, as it is imported with germane."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar, overload

from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score

Result = Score | float
ScoringFunction = Callable[[Exchange], "Result | Awaitable[Result]"]
Function = TypeVar("Function", bound=Callable[..., Any])

BUILT_IN = frozenset(
    {
        "answer_quality",
        "answer_relevancy",
        "combined_relevancy",
        "context_coverage",
        "context_relevance",
        "context_similarity",
        "direct_relevancy",
        "faithfulness",
        "guarded_relevancy",
        "intent_match",
        "noncommittal",
        "question_answer_similarity",
        "question_coverage",
    }
)
"""Names of germane's own scorers, which no other score may bear. Here, so that a process that captures need not import
them."""
INPUTS = frozenset({"question", "answer", "contexts"})
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function that is a scorer, and what is said of it."""

    function: ScoringFunction
    name: str
    requires: frozenset[str]
    range: tuple[float, float]
    version: str

    @property
    def origin(self) -> str:
        """Where the function is from, as its module and it are named there."""
        return f"{getattr(self.function, '__module__', '')}.{qualified_name(self.function)}"


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
def scorer(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    requires: Iterable[str] = ("question", "answer"),
    range: tuple[float, float] = (0.0, 1.0),  # noqa: A002
    version: str = "1",
) -> Function | Callable[[Function], Function]:
    """Make a function of an exchange a scorer: ``@germane.scorer``, or with arguments ``@germane.scorer(...)``.

    ::

        @germane.scorer(requires={"answer"})
        def brevity(exchange: germane.Exchange) -> float:
            return 1 / (1 + len(exchange.answer.split()) / 100)

    It stays the function that it was, and can be named in the setting ``scorers`` and in :func:`germane.evaluate`. It
    returns a number, or a :class:`germane.Score` where there is more to say. A plain function is called in a thread,
    an ``async`` one on the event loop. What it raises is a failed score with the reason ``scorer_error``.

    Args:
        name: Under which its scores are kept; by default the function's.
        requires: Of ``question``, ``answer`` and ``contexts`` those without which an exchange is skipped.
        range: Least and greatest value, both included and within -1 to 1; any other value is a failed score,
            ``out_of_range``. Higher is better.
        version: Change it when the same exchange may get another value: the scores before and after are not averaged.

    Raises:
        UsageError: it is no such function, or the name, the requirements or the range cannot be.
    """

    def register(function: Function) -> Function:
        declaration = declare(function, name=name, requires=requires, range=range, version=version)
        _keep(declaration)
        return function

    return register if function is None else register(function)


def declare(
    function: Any,
    *,
    name: str | None = None,
    requires: Iterable[str] = ("question", "answer"),
    range: tuple[float, float] = (0.0, 1.0),  # noqa: A002
    version: str = "1",
) -> Declaration:
    """Return what is said of a function, without keeping it.

    Raises:
        UsageError: as :func:`scorer`.
    """
    _check_function(function)
    return Declaration(
        function=function,
        name=_checked_name(getattr(function, "__name__", "") if name is None else name),
        requires=checked_inputs(requires),
        range=checked_range(range),
        version=str(version),
    )


def declared(name: str) -> Declaration | None:
    """Return what was declared under a name."""
    return _declarations.get(name)


def declaration_of(function: object) -> Declaration | None:
    """Return what was declared of a function; of one declared under several names the first."""
    return next((each for each in _declarations.values() if each.function == function), None)


def names() -> list[str]:
    """Return the names of all declared functions, in the order of their declaration."""
    return list(_declarations)


def qualified_name(function: object) -> str:
    """Return a function's name with those of the classes and functions around it."""
    return getattr(function, "__qualname__", type(function).__qualname__)


def takes_an_exchange(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with one argument; True where Python cannot tell."""
    try:
        inspect.signature(function).bind(object())
    except TypeError:
        return False
    except ValueError:  # a function written in C without a signature
        return True
    return True


def checked_inputs(requires: Iterable[str]) -> frozenset[str]:
    """Return what a scorer requires as a set.

    Raises:
        UsageError: something in it is none of :data:`INPUTS`.
    """
    found = frozenset({requires} if isinstance(requires, str) else requires)
    if unknown := sorted(map(str, found - INPUTS)):
        raise UsageError(f"requires knows question, answer and contexts, and no {', '.join(unknown)}")
    return found


def checked_range(limits: Any) -> tuple[float, float]:
    """Return least and greatest value.

    Raises:
        UsageError: they are not two numbers within -1 to 1, the less one first.
    """
    is_pair = isinstance(limits, (tuple, list)) and len(limits) == 2
    if not is_pair or not all(isinstance(limit, Real) and math.isfinite(limit) for limit in limits):
        raise UsageError(f"range must be two numbers, the least and the greatest value, not {limits!r:.100}")
    least, greatest = limits
    if not -1 <= least < greatest <= 1:
        raise UsageError(f"range must go from less to more within -1 to 1, as means do, not from {least} to {greatest}")
    return float(least), float(greatest)


_declarations: dict[str, Declaration] = {}


def _keep(declaration: Declaration) -> None:
    """Register it. The same function, declared once more by a reloaded module or a notebook's cell, takes its place."""
    known = _declarations.get(declaration.name)
    if known is not None and known.origin != declaration.origin:
        raise UsageError(
            f"there is a scorer {declaration.name!r} already, {known.origin}; give {declaration.origin} another name"
        )
    _declarations[declaration.name] = declaration


def _check_function(function: Any) -> None:
    if not callable(function) or inspect.isclass(function):
        raise UsageError(f"{function!r:.100} is not a function of an exchange")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{qualified_name(function)} yields values; a scorer returns one")
    if not takes_an_exchange(function):
        raise UsageError(f"{qualified_name(function)} cannot be called with one argument, the exchange")


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{name!r:.100} cannot be a scorer's name: letters, digits and any of _ . - make one")
    if name in BUILT_IN:
        raise UsageError(f"{name!r} is a scorer of germane's own; give yours another name")
    return name
