"""The window that a URL selects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request
from tests.cases import each

from germane.dashboard.web.preferences import parse_view_params
from germane.insights import BUCKETS, InsightContext, ViewParams
from germane.insights.context import MIN_CHART_POINTS, SCORES_PER_POINT
from germane.settings import Settings
from germane.storage import TrackingStore

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
WEEK = timedelta(days=7)
END = datetime(2026, 11, 18, tzinfo=UTC)


@each(
    ("query", "span", "since", "until"),
    [
        ("", "7d", NOW - WEEK, NOW),
        ("window=24h", "24h", NOW - timedelta(days=1), NOW),
        ("since=2026-11-18", "", END, NOW),
        ("since=2026-11-17&until=2026-11-18", "", END - timedelta(days=1), END),
        ("until=2026-11-18", "", END - WEEK, END),
        ("window=24h&until=2026-11-18", "", END - timedelta(days=1), END),
    ],
)
def test_the_url_selects_the_window_of_a_page(
    store: TrackingStore, query: str, span: str, since: datetime, until: datetime
) -> None:
    """The start or the end is enough."""
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": []}
    context = InsightContext(store=store, settings=Settings(), now=lambda: NOW)
    found = parse_view_params(Request(scope), context)
    assert (found.window, found.since, found.until) == (span, since, until)


@each("query", ["since=2026-11-20&until=2026-11-18", "since=2027-01-01", "since=2026-11-20T10:30"])
def test_an_empty_window_is_an_error(store: TrackingStore, query: str) -> None:
    """A window is also empty if its ends are reversed or its start is in the future."""
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": []}
    context = InsightContext(store=store, settings=Settings(), now=lambda: NOW)

    with pytest.raises(HTTPException, match="The window is empty"):
        parse_view_params(Request(scope), context)


@each(("cookie", "expected"), [("", "Asia/Tokyo"), ("Europe/Berlin", "Europe/Berlin")])
def test_the_time_zone_comes_from_the_browser_or_the_settings(store: TrackingStore, cookie: str, expected: str) -> None:
    """The first page is requested before the browser has sent its timezone."""
    headers = [(b"cookie", f"germane_zone={cookie}".encode())] if cookie else []
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    context = InsightContext(store=store, settings=Settings(timezone="Asia/Tokyo"), now=lambda: NOW)

    assert str(parse_view_params(Request(scope), context).zone) == expected


@given(
    n=st.integers(0, 1_000_000),
    hours=st.floats(1, 2400),
    counted=st.floats(1, 2400),
    chosen=st.none() | st.sampled_from(list(BUCKETS.values())),
)
def test_buckets_are_as_short_as_the_number_of_scores_allows(
    n: int, hours: float, counted: float, chosen: timedelta | None
) -> None:
    """A shorter bucket would have too few scores or too many points, and a chosen bucket is kept."""
    window, period = timedelta(hours=hours), timedelta(hours=counted)
    view = ViewParams(window="", since=NOW - window, until=NOW, chosen_bucket=chosen)
    bucket = view.bucket_for(n, period)

    if chosen is not None:
        assert bucket == chosen
        return
    assert bucket in BUCKETS.values()
    assert view.bucket <= bucket
    assert bucket == view.bucket or window / bucket >= MIN_CHART_POINTS
    for shorter in BUCKETS.values():
        if n and view.bucket <= shorter < bucket:
            assert n * (shorter / period) < SCORES_PER_POINT
