"""Formatting of numbers, times, names and captured text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from tests.cases import each

from germane.insights.formatting import (
    format_age,
    format_bytes,
    format_interval,
    format_number,
    format_percent,
    format_run_time,
    format_seconds,
    format_signed,
    format_timestamp,
    highlight_redactions,
    humanize,
    route_path,
    shorten,
    visible,
)

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)


@each(("value", "text"), [(0.694, "0.69"), (None, "\u2013"), (-0.004, "0.00"), (-0.31, "\u22120.31"), (1.0, "1.00")])
def test_scores_are_formatted_with_two_decimals(value: float | None, text: str) -> None:
    """Numbers have a true minus sign, no negative zero, and a dash for unknown values."""
    assert format_number(value) == text


def test_changes_are_formatted_with_a_sign() -> None:
    """A change of zero has no sign."""
    assert [format_signed(one) for one in (0.031, -0.1, 0.001, None)] == ["+0.03", "\u22120.10", "0.00", "\u2013"]


def test_intervals_with_negative_bounds_are_formatted_with_a_word() -> None:
    """A word replaces a dash that could be read as a minus."""
    assert format_interval((0.64, 0.75)) == "0.64\u20130.75"
    assert format_interval((-0.1, 0.2)) == "\u22120.10 to 0.20"
    assert format_interval(None) == "unknown"


def test_small_shares_are_formatted_without_rounding_to_zero() -> None:
    """Shares near 0 and 1 have an extra digit."""
    assert [format_percent(one) for one in (0.0, 0.004, 0.12, 0.996, 1.0)] == [
        "0%",
        "0.4%",
        "12%",
        "99.6%",
        "100%",
    ]


@each(
    ("form", "below", "at"),
    [
        (format_bytes, (999, "999 B"), (1_000, "1.0 kB")),
        (format_bytes, (99_900, "99.9 kB"), (100_000, "100 kB")),
        (format_bytes, (999_000_000_000, "999 GB"), (1_000_000_000_000, "1.0 TB")),
        (format_run_time, (0.999, "999 ms"), (0.9995, "1.0 s")),
        (format_run_time, (119.9, "119.9 s"), (120, "0:02:00")),
        (format_seconds, (59, "59 s"), (60, "1 min")),
        (format_seconds, (7_199, "120 min"), (7_200, "2 h")),
        (format_seconds, (172_799, "48 h"), (172_800, "2.0 d")),
        (format_percent, (0.0999, "10.0%"), (0.1, "10%")),
        (format_percent, (0.9, "90%"), (0.901, "90.1%")),
        (format_percent, (0.999, "99.9%"), (1.0, "100%")),
        (format_percent, (0.0, "0%"), (0.001, "0.1%")),
        (format_number, (999_999.0, "999999.00"), (1_000_000.0, "1e+06")),
    ],
)
def test_each_unit_ends_where_the_next_one_begins(
    form: Callable[[float], str], below: tuple[float, str], at: tuple[float, str]
) -> None:
    """No value has more digits than its unit allows."""
    assert (form(below[0]), form(at[0])) == (below[1], at[1])


def test_ages_are_formatted_as_short_relative_times() -> None:
    """Times in the future are relative too."""
    passed = [timedelta(seconds=40), timedelta(minutes=3), timedelta(hours=47), timedelta(days=12), timedelta(hours=-2)]
    assert [format_age(NOW - one, NOW) for one in passed] == ["40 s ago", "3 min ago", "47 h ago", "12 d ago", "in 2 h"]
    limits = [timedelta(seconds=59.9), timedelta(minutes=1), timedelta(minutes=59.9), timedelta(hours=1)]
    assert [format_age(NOW - one, NOW) for one in limits] == ["59 s ago", "1 min ago", "59 min ago", "1 h ago"]
    assert format_age(NOW - timedelta(days=2), NOW) == "2 d ago"
    assert format_age(NOW, NOW) == "now"


def test_exact_times_are_formatted_with_the_time_zone() -> None:
    """An exact time has seconds and a time zone."""
    assert format_timestamp(NOW).startswith("2026-11-20 ")
    assert len(format_timestamp(NOW).split()) == 3


def test_underscores_in_names_are_replaced_by_spaces() -> None:
    """Underscores become spaces."""
    assert humanize("answer_relevancy") == "Answer relevancy"
    assert humanize("_") == "_"


@given(text=st.text(max_size=2_000), limit=st.integers(2, 300))
def test_shortened_text_fits_on_one_line(text: str, limit: int) -> None:
    """The text never exceeds the limit, and ends with an ellipsis if it was truncated."""
    line = shorten(text, limit)
    assert len(line) <= limit
    assert len(line.split("\n")) == 1
    assert line.endswith("\u2026") or line == " ".join(text.split())


def test_invisible_text_has_a_visible_placeholder() -> None:
    """A link that consists of spaces or zero-width characters would be invisible."""
    assert [visible(one) for one in (" ", "\u200b\u2066\u00a0", "", None)] == ["(blank)"] * 4
    assert visible("a", "nothing") == "a"


def test_redacted_parts_of_a_text_are_highlighted() -> None:
    """All other text is escaped."""
    found = highlight_redactions("<b>call</b> [REDACTED] or ****, [see the docs]")
    assert isinstance(found, Markup)
    assert found.count("<mark") == 2
    assert "&lt;b&gt;call&lt;/b&gt;" in found
    assert "[see the docs]" in found.split("</mark>")[-1]


@given(text=st.text(max_size=300))
def test_captured_text_is_never_rendered_as_markup(text: str) -> None:
    """Without the highlights, the output contains no tags."""
    bare = (
        highlight_redactions(text)
        .replace('<mark class="redacted" title="redacted before it was kept">', "")
        .replace("</mark>", "")
    )
    assert "<" not in bare
    assert Markup(bare).unescape() == text


@given(name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_every_route_name_has_a_url_path(name: str) -> None:
    """The path is one segment and decodes to the name."""
    path = route_path(name)
    if path.startswith("/r/?name="):
        assert name in {".", ".."}
    else:
        assert unquote(path.removeprefix("/r/")) == name
        assert "/" not in path.removeprefix("/r/")
        assert "?" not in path
