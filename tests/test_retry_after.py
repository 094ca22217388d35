"""Parsing of ``Retry-After`` headers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from germane.retry_after import MAX_RETRY_AFTER, parse_retry_after


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("-3", 0.0),
        ("nan", 0.0),
        ("1e400", MAX_RETRY_AFTER),
        ("99999999", MAX_RETRY_AFTER),
        ("", None),
        ("soon", None),
        (f"1 Jan {'9' * 20} 0:0:0 +0", None),
        ("Thu, 01 Jan 1970 00:00:00 -0000", None),
    ],
)
def test_a_delay_is_limited_to_one_day_and_an_invalid_one_is_ignored(text: str, seconds: float | None) -> None:
    """A negative delay means that no wait is needed."""
    assert parse_retry_after({"retry-after": text}) == seconds


def test_a_response_without_the_header_requests_no_delay() -> None:
    """The date of the response does not matter then."""
    assert parse_retry_after({"date": "Thu, 01 Jan 1970 00:00:00 GMT"}) is None


def test_a_date_is_compared_with_the_clock_of_the_server() -> None:
    """The two clocks may differ."""
    headers = {"date": "Thu, 01 Jan 2026 00:00:00 GMT", "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}

    assert parse_retry_after(headers) == 30


def test_a_date_is_compared_with_the_local_clock_if_the_response_has_no_date() -> None:
    """A past date means that no wait is needed."""
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)

    assert parse_retry_after({"retry-after": in_an_hour}) == pytest.approx(3600, abs=60)
    assert parse_retry_after({"retry-after": "Sun, 01 Mar 2020 12:00:00 GMT"}) == 0


def test_a_delay_in_milliseconds_precedes_one_in_seconds() -> None:
    """Some judges send it, and OpenAI's client would sleep for that time."""
    assert parse_retry_after({"retry-after-ms": "2500", "retry-after": "9"}) == 2.5
    assert parse_retry_after({"retry-after-ms": "soon", "retry-after": "9"}) == 9
