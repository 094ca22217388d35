"""The ``Retry-After`` header of HTTP responses."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

MAX_RETRY_AFTER: Final = 86_400.0
"""Longest delay that is respected, in seconds."""


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the delay that a server requested, in seconds and at most one day; None if it did not request one.

    The names of the headers are lowercase, or the mapping ignores case.
    """
    # OpenAI's client has the same order of precedence, and sleeps for the first value that it finds.
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            return min(max(0.0, float(headers[name]) * unit), MAX_RETRY_AFTER)

    from email.utils import parsedate_to_datetime

    try:  # a date, compared with the server's own clock if the server tells it
        until = parsedate_to_datetime(headers["retry-after"])
        sent = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return min(max(0.0, (until - sent).total_seconds()), MAX_RETRY_AFTER)
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
