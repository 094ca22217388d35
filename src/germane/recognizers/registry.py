"""Recognizers that applications and other packages register, which run before the built-in conventions."""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import entry_points
from typing import Final

from germane.errors import UsageError
from germane.recognizers.reading import Recognizer

ENTRY_POINT_GROUP: Final = "germane.recognizers"
_logger = logging.getLogger("germane")
_registered: dict[str, Recognizer] = {}


def recognizer(function: Recognizer) -> Recognizer:
    """Register a function that reads spans that germane does not recognize. Usable as a decorator.

    ::

        @germane.recognizer
        def read_shop_span(span):
            if span.scope == "shop" and span.name == "answer":
                return germane.SpanReading(
                    kind="workflow",
                    inputs=(("shop.question", span.attributes["shop.question"]),),
                    outputs=(("shop.answer", span.attributes["shop.answer"]),),
                )

    The function takes a :class:`~germane.recognizers.SpanData` and returns a
    :class:`~germane.recognizers.SpanReading`, or None for spans that it does not know. It is called in a background
    thread, for every span of every watched trace. Packages can register a recognizer under the entry point group
    ``germane.recognizers`` instead.

    Raises:
        UsageError: The object is not callable.
    """
    if not callable(function):
        raise UsageError(f"{function!r:.100} is not a function that takes a span")
    _registered[f"{function.__module__}.{getattr(function, '__qualname__', '')}"] = function
    return function


def registered_recognizers() -> tuple[Recognizer, ...]:
    """Return the registered recognizers, then those of installed packages. Packages that fail to load are logged and
    skipped.
    """
    return (*_registered.values(), *_installed_recognizers())


@cache
def _installed_recognizers() -> tuple[Recognizer, ...]:
    found = []
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            found.append(entry_point.load())
        except (ImportError, AttributeError) as error:
            _logger.warning("the recognizer %s cannot be loaded (%s)", entry_point.name, type(error).__name__)
    return tuple(found)
