"""The options of a receiver that determine which texts are stored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from germane import sanitize
from germane.exchange import Redact
from germane.recognizers import Recognizer
from germane.settings import Settings


def describe_options(
    settings: Settings, redact: Redact | None, redact_name: str, recognizers: Sequence[Recognizer]
) -> str:
    """Return a line that is the same in all processes that store the same texts of a span.

    It names the options for people, and ends with a fingerprint. If the file changes that defines the redaction, the
    fingerprint does, too.
    """
    redaction, source = "no redaction", b""
    if redact is not None:
        redaction, source = redact_name or _name(redact), _source(redact)
    decisive = settings.capture, settings.max_text_length, redaction, source, [_name(each) for each in recognizers]
    names = f"capture {settings.capture}, {redaction}"
    names += f", {sanitize.count_noun(len(recognizers), 'recognizer')}" if recognizers else ""
    return f"{names}, {sha256(repr(decisive).encode()).hexdigest()[:12]}"


def _definition(function: Callable[..., Any]) -> Any:
    """Return the function or class that defines a callable."""
    while isinstance(function, partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)


def _name(function: Callable[..., Any]) -> str:
    definition = _definition(function)
    return f"{definition.__module__}.{definition.__qualname__}"


def _source(function: Callable[..., Any]) -> bytes:
    """Return the content of the file that defines a function, if there is one."""
    file = getattr(sys.modules.get(_definition(function).__module__), "__file__", None) or ""
    return Path(file).read_bytes() if Path(file).is_file() else b""
