"""Selectors: how a user names the question, the answer and the rest inside what a handler takes and returns."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from germane.errors import UsageError

Selector = str | Callable[..., Any]
"""A dotted path (``body.query``, ``choices.0.text``), or a callable with one parameter or none."""
Reader = Callable[[Any], Any]


@dataclass(frozen=True)
class Call:
    """One call of a decorated handler, as selectors see it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    signature: inspect.Signature | None = field(default=None, repr=False)
    """That of the function, where it is known already: finding it out takes time."""

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """What was passed, by parameter name, defaults filled in."""
        bound = (self.signature or inspect.signature(self.function)).bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        return bound.arguments


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function; None for a built-in that does not say."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def reader(selector: Selector) -> Reader:
    """Turn a selector into a function of one value.

    Raises:
        UsageError: it is neither a path nor a callable.
    """
    if isinstance(selector, str):
        return _path_reader(selector)
    if not callable(selector):
        raise UsageError(f"a selector is a dotted path or a callable, not {type(selector).__name__}")
    return selector if _takes_a_value(selector) else lambda _value: selector()


def argument_reader(selector: Selector) -> Reader:
    """The same for what is read from a :class:`Call`: a path begins with the name of an argument."""
    read = reader(selector)
    return (lambda call: read(call.arguments)) if isinstance(selector, str) else read


def _path_reader(path: str) -> Reader:
    steps = path.split(".")
    if not all(steps):
        raise UsageError(f"{path!r} is not a dotted path: a part of it is empty")

    def read(value: Any) -> Any:
        for step in steps:
            try:
                value = _step(value, step)
            except (AttributeError, LookupError, TypeError):
                raise UsageError(f"{path!r} does not fit: {type(value).__name__} has no {step!r}") from None
        return value

    return read


def _step(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value[name]
    if isinstance(value, Sequence) and name.lstrip("-").isdigit():
        return value[int(name)]
    return getattr(value, name)


def _takes_a_value(function: Callable[..., Any]) -> bool:
    signature = signature_of(function)
    if signature is None:
        return True
    return any(p.kind not in {p.KEYWORD_ONLY, p.VAR_KEYWORD} for p in signature.parameters.values())


def chunk_reader(selector: Selector) -> Reader:
    """The same for one chunk of a stream: a path looks into a chunk of text as JSON."""
    read = reader(selector)
    if not isinstance(selector, str):
        return read
    return lambda chunk: read(json.loads(chunk) if isinstance(chunk, str | bytes) else chunk)
