"""Errors for unknown keyword arguments of public functions, which name the fix."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from germane.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")


def explain_unknown_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a :class:`UsageError` for unknown keyword arguments.

    The error suggests a similar name, or else ``attributes``, if the function has that parameter.
    """
    names = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.POSITIONAL_ONLY
    ]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in names:
                raise UsageError(_describe_unknown(function.__name__, name, names))
        return function(*args, **kwargs)

    return call


def _describe_unknown(function: str, name: str, names: list[str]) -> str:
    problem = f"{function}() has no argument {name!r}"
    if close := get_close_matches(name, names, n=1, cutoff=0.75):
        return f"{problem}; did you mean {close[0]!r}?"
    if "attributes" not in names:
        return f"{problem}; it has these: {', '.join(names)}"
    if function == "observe":
        return (
            f"{problem}; record a value of each call with attributes={{{name!r}: selector}}, or in the handler with "
            f"germane.set_attribute({name!r}, value)"
        )
    return f"{problem}; record it with attributes={{{name!r}: value}}"
