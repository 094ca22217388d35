"""Selectors: paths and callables that extract questions, answers and contexts from arguments and return values."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from inspect import getattr_static, isasyncgenfunction, iscoroutinefunction
from typing import Any

from germane.errors import UsageError

Selector = str | Callable[..., Any]
"""A dotted path (``body.query``, ``choices.0.text``), or a callable with one parameter or none."""
ValueReader = Callable[[Any], Any]


@dataclass(frozen=True)
class Call:
    """A call of an observed handler, as passed to selectors."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    signature: inspect.Signature | None = field(default=None, repr=False)
    """The function's signature, if already known. Inspecting a function takes time."""

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by parameter name, with defaults applied."""
        bound = (self.signature or inspect.signature(self.function)).bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        return bound.arguments


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return a function's signature, or None for a built-in function without one."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def unwrap_partial(function: Any) -> Any:
    """Return the function inside nested :func:`functools.partial` objects."""
    while isinstance(function, partial):
        function = function.func
    return function


def is_async(function: Any) -> bool:
    """Return whether calling a function or callable object returns a coroutine or an asynchronous generator."""
    function = unwrap_partial(function)
    candidates = (function, getattr_static(type(function), "__call__", None))
    return any(check(candidate) for check in (iscoroutinefunction, isasyncgenfunction) for candidate in candidates)


def value_reader(selector: Selector) -> ValueReader:
    """Compile a path or a callable into a function of one value. Raise a usage error for any other selector."""
    if not isinstance(selector, str):
        if not callable(selector):
            raise UsageError(f"a selector must be a dotted path or a callable, not {type(selector).__name__}")
        if is_async(selector):
            raise UsageError(
                f"a selector must not be async, because its result is needed immediately: {selector!r:.100}"
            )
        signature = signature_of(selector)
        takes_a_value = signature is None or any(
            parameter.kind not in {parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD}
            for parameter in signature.parameters.values()
        )
        return selector if takes_a_value else lambda _value: selector()
    steps = selector.split(".")
    if not all(steps):
        raise UsageError(f"{selector!r} is not a valid dotted path: a part is empty")

    def read(value: Any) -> Any:
        for step in steps:
            try:
                if isinstance(value, Mapping):
                    if step not in value:  # a defaultdict would insert the key
                        raise KeyError(step)
                    value = value[step]
                elif isinstance(value, Sequence) and step.lstrip("-").isdigit():
                    value = value[int(step)]
                else:
                    value = getattr(value, step)
            except (AttributeError, LookupError, TypeError, ValueError):
                raise UsageError(f"{selector!r} does not match: {type(value).__name__} has no {step!r}") from None
        return value

    return read


def argument_reader(selector: Selector) -> ValueReader:
    """Compile a selector into a function of a :class:`Call`. A path begins with an argument's name."""
    read = value_reader(selector)
    return (lambda call: read(call.arguments)) if isinstance(selector, str) else read


def chunk_reader(selector: Selector) -> ValueReader:
    """Compile a selector into a function that reads a value from a stream chunk. Paths are applied to parsed JSON."""
    read = value_reader(selector)
    if not isinstance(selector, str):
        return read
    return lambda chunk: read(json.loads(chunk) if isinstance(chunk, str | bytes) else chunk)
