"""Tests of `germane trend`."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each
from tests.cli.conftest import write
from tests.cli.test_alerts import an_alert

from germane.annotation import Marker
from germane.baseline import Baseline, RouteBaseline
from germane.cli.core.output import Terminal, fit, wrap
from germane.cli.core.trend_chart import ChartAnnotation, ChartLayout, draw_groups, draw_trend, format_legend
from germane.storage import BaselineKey, Bucket, TrackingStore

Call = Callable[..., Any]
HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def bucket(hours: int, mean: float, n: int = 30, **given: Any) -> Bucket:
    """Return the bucket that begins the given number of hours before noon."""
    low, high = max(-1.0, mean - 0.1), min(1.0, mean + 0.1)
    defaults: dict[str, Any] = {"deviation": 0.1, "low_share": 0.0, "noncommittal_share": 0.0, "fingerprint": "f1"}
    place = {"start": NOON - hours * HOUR, "n": n, "mean": mean, "interval": (low, high)}
    return Bucket(**{**defaults, **place, **given})


def picture(hours: int = 6, baseline: float | None = None, **terminal: Any) -> ChartLayout:
    """Return the chart of the last hours before noon."""
    since = NOON - hours * HOUR
    return ChartLayout(terminal=Terminal(**terminal), since=since, until=NOON, bucket=HOUR, baseline=baseline)


def test_the_mean_is_drawn_in_the_column_of_its_value() -> None:
    """The mean, both ends of the interval and the baseline match the axis from 0 to 1."""
    shown = picture(1, baseline=0.9)
    axis, line = draw_trend(shown, [bucket(1, 0.5)], [])
    left, last = len("Nov 20 11:00  "), shown.plot_width - 1

    assert line.startswith("Nov 20 11:00  ")
    assert line.index("*") == left + round(0.5 * last)
    assert (line.index("|"), line.rindex("|", 0, left + last)) == (left + round(0.4 * last), left + round(0.6 * last))
    assert line.index(":", left) == left + round(0.9 * last)
    assert axis.rstrip().endswith("1")
    assert len(axis.rstrip()) - 1 == left + last
    assert line.endswith("0.50  0.40-0.60  n 30")


def test_means_of_few_scores_are_drawn_as_hollow_points() -> None:
    """The row shows no mean and no interval."""
    _, line = draw_trend(picture(1), [bucket(1, 0.5, n=19)], [])

    assert "o" in line.partition("not")[0]
    assert "*" not in line
    assert "|" not in line
    assert line.endswith("not enough data (n=19)")


def test_gaps_without_scores_are_shown_in_the_trend() -> None:
    """A bucket without scores is labeled. Many consecutive empty buckets share a line."""
    few = list(draw_trend(picture(4), [bucket(4, 0.9), bucket(1, 0.9)], []))
    many = list(draw_trend(picture(30), [bucket(30, 0.9), bucket(1, 0.9)], []))
    ended = list(draw_trend(picture(30), [bucket(30, 0.9)], []))

    assert [line.endswith("no scores") for line in few] == [False, False, True, True, False]
    assert [line.rpartition("  ")[2] for line in many[2:3]] == ["no scores until Nov 20 11:00"]
    assert len(many) == 4
    assert ended[-1].endswith("no scores since")


def test_markers_and_alerts_are_printed_after_their_bucket() -> None:
    """Events precede the next bucket."""
    notes = [ChartAnnotation(NOON - 2.5 * HOUR, "mark v42"), ChartAnnotation(NOON, "mark just now")]
    lines = list(draw_trend(picture(4), [bucket(hours, 0.9) for hours in (4, 3, 2, 1)], notes))

    assert [line[:12] for line in lines[1:]] == [
        "Nov 20 08:00",
        "Nov 20 09:00",
        "Nov 20 09:30",
        "Nov 20 10:00",
        "Nov 20 11:00",
        "Nov 20 12:00",
    ]
    assert lines[3].endswith("> mark v42")


def test_a_judge_change_is_shown_and_scores_are_not_averaged_across_it() -> None:
    """If a bucket has two fingerprints, each gets its own line."""
    buckets = [bucket(2, 0.9), bucket(2, 0.4, fingerprint="f2", judge_changed=True), bucket(1, 0.4, fingerprint="f2")]

    lines = list(draw_trend(picture(2), buckets, []))

    assert len(lines) == 5
    assert "judge changed to f2: not comparable" in lines[2]
    assert lines[3].startswith(" " * 12)


def test_trend_groups_are_sorted_by_their_latest_mean() -> None:
    """A digit shows the tenths of a mean, o means few scores, and a dot means no scores."""
    high = [bucket(3, 0.93, group="ask"), bucket(1, 0.88, group="ask")]
    low = [bucket(3, 0.93, group="search"), bucket(2, 0.3, n=3, group="search"), bucket(1, 0.41, group="search")]

    first, second = draw_groups(picture(3), [*high, *low])

    assert (first.split()[0], first.split()[1], first.split()[2]) == ("search", "9o4", "0.41")
    assert (second.split()[0], second.split()[1], second.split()[2]) == ("ask", "9.8", "0.88")


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 48), st.floats(-1, 1), st.integers(2, 10**7)), max_size=20),
    st.integers(60, 120),
    st.booleans(),
    st.none() | st.floats(0, 1),
)
def test_no_line_is_wider_than_the_terminal(
    content: list[tuple[int, float, int]], width: int, fancy: bool, baseline: float | None
) -> None:
    """This applies to any means, counts and names. Plain lines are ASCII."""
    found = sorted([bucket(*one, group="\u5e97" * 80) for one in content], key=lambda one: one.start)
    unique = list({one.start: one for one in found}.values())
    shown = picture(48, baseline=baseline, width=width, has_unicode=fancy)

    notes = [ChartAnnotation(NOON, "\U0001f600" * 300)]
    keys = [*format_legend(shown, is_grouped=True), *format_legend(shown, is_grouped=False)]
    for line in [*draw_trend(shown, unique, notes), *draw_groups(shown, unique), *keys]:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
        assert fit(plain, width).rstrip() == plain.rstrip()
        assert fancy or re.sub("[\U0001f600\u5e97]", "", line).isascii()


def test_wide_characters_in_trends_take_two_columns() -> None:
    """Names are truncated by columns, not by characters."""
    assert fit("\u5e97\u8217", 6) == "\u5e97\u8217  "
    assert fit("\u5e97" * 10, 10) == "\u5e97\u5e97\u5e97 ..."
    assert wrap("\u5e97" * 10, 8) == ["\u5e97" * 4, "\u5e97" * 4, "\u5e97" * 2]


def test_trend_json_equals_the_values_in_the_store(call: Call, store: TrackingStore) -> None:
    """The output contains the buckets, the markers, and the baseline if there is one."""
    write(store, [0.9] * 25 + [0.3] * 5)
    now = datetime.now(UTC)
    store.trends.add_markers([Marker(id="m1", name="v42", service="shop", at=now - timedelta(minutes=5))])
    learned = Baseline(
        service="shop", scorer="answer_relevancy", fingerprint="f1", since=now - 14 * 24 * HOUR, until=now, n=900,
        mean=0.75, deviation=0.2, scores_per_day=60, committed_per_day=60, routes={"ask": _route(0.7)},
    )  # fmt: skip
    store.baselines.replace_baseline(BaselineKey("shop", "answer_relevancy", "f1"), "imported", learned, (None, None))

    content = call("trend", "--json", "--bucket", "1d", "--since", "2d").content
    of_route = call("trend", "answer_relevancy", "--route", "ask", "--json").content

    (only,) = content["buckets"]
    assert (content["scorer"], content["service"], content["bucket_seconds"]) == ("answer_relevancy", "shop", 86_400.0)
    assert only["mean"] == pytest.approx(0.8, abs=1e-9)
    assert (only["n"], only["has_min_samples"], only["fingerprint"], only["group"]) == (30, True, "f1", None)
    assert only["coverage"]["seen"] == 30
    assert [mark["name"] for mark in content["markers"]] == ["v42"]
    assert (content["baseline"], of_route["baseline"]) == (0.75, 0.7)
    assert call("trend", "--by", "route", "--json").content["buckets"][0]["group"] == "ask"


def test_trend_weeks_start_on_monday_in_the_configured_time_zone(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Monday, 00:30 in Auckland is Sunday in UTC."""
    monkeypatch.setenv("GERMANE_TIMEZONE", "Pacific/Auckland")
    zone = ZoneInfo("Pacific/Auckland")
    today = datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday() + 7)
    for at in (monday - timedelta(minutes=30), monday + timedelta(minutes=30)):
        write(store, [0.9] * 25, started_at=at.astimezone(UTC))

    since = (monday - timedelta(days=3)).isoformat()
    buckets = call("trend", "--json", "--bucket", "7d", "--since", since).content["buckets"]
    assert [datetime.fromisoformat(one["start"]) for one in buckets] == [monday - timedelta(days=7), monday]
    out = call("trend", "--bucket", "7d", "--since", since).out
    assert f"\n{monday:%b %d}  " in out
    assert re.search(r"since \w+ \d\d 00:00 NZ[SD]T, per ", out)


def test_an_alert_from_before_the_window_is_shown_with_its_onset(call: Call, store: TrackingStore) -> None:
    """The alert is placed at the start of the window."""
    write(store, [0.9] * 30)
    onset = datetime.now(UTC) - timedelta(days=3)
    an_alert(store, onset=onset)

    out = call("trend", "--since", "1d").out

    assert f"alert since {onset:%b %d %H:%M}: " in out


def _route(mean: float) -> RouteBaseline:
    names = ("deviation", "committed_mean", "committed_deviation", "zero_rate", "committed_wander", "zero_wander")
    counts = {"n": 900, "committed": 900, "scores_per_day": 60.0, "committed_per_day": 60.0}
    return RouteBaseline(mean=mean, **dict.fromkeys(names, 0.1), **counts)  # type: ignore[arg-type]  # counts are numbers


def test_an_empty_trend_reports_that_there_are_no_scores(call: Call, database: str) -> None:
    """This applies to an empty database and to an unknown scorer."""
    assert call("trend").out.startswith("No scores since ")
    assert call("trend", "nonsense", "--by", "route").out.endswith(" UTC, scorer nonsense, by route.\n")
    assert call("trend", "--json").content["buckets"] == []


@each(
    ("arguments", "code", "message"),
    [
        (("--bucket", "5s"), 2, "--bucket is too short"),
        (("--bucket", "x"), 2, "is not a duration"),
        (("--by", "colour"), 1, "unknown dimension 'colour'"),
    ],
)
def test_invalid_trend_options_are_reported(
    call: Call, store: TrackingStore, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """The usual exit codes apply, and there is no traceback."""
    write(store, [0.9])

    ended = call("trend", *arguments)

    assert (ended.code, message in ended.err) == (code, True)


def test_captured_names_in_trends_are_sanitized(call: Call, store: TrackingStore) -> None:
    """Escapes, right-to-left, wide and very long names do not affect the terminal."""
    hostile = "\x1b[2J\u202e\u5e97\U0001f600" + "x" * 100_000
    write(store, [0.9] * 25, route=hostile)
    store.trends.add_markers([Marker(id="m1", name=hostile[:500], service="shop", at=datetime.now(UTC))])

    for arguments in ((), ("--by", "route"), ("--route", hostile)):
        ended = call("trend", *arguments)
        assert ended.code == 0
        assert "\x1b" not in ended.out
        assert "\u202e" not in ended.out
        assert len(ended.out) < 6_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "fancy"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"PYTHONIOENCODING": "latin-1"}, False)],
)
def test_the_trend_chart_uses_ascii_without_utf8_or_color(
    database: str, store: TrackingStore, environment: dict[str, str], variables: dict[str, str], fancy: bool
) -> None:
    """A UTF-8 terminal gets lines and colors. NO_COLOR, dumb terminals and other encodings get ASCII."""
    write(store, [0.9] * 25)
    usual = {"GERMANE_DATABASE": database, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"}
    ours, follower = pty.openpty()
    with open(ours, "rb", buffering=0) as screen:  # noqa: PTH123 - a file descriptor
        ended = subprocess.Popen(
            [sys.executable, "-m", "germane", "trend", "--bucket", "1d"],
            env={**environment, **usual, **variables},
            stdout=follower,
        )
        os.close(follower)
        shown = _all(screen)
        assert ended.wait(60) == 0

    assert ("\u25cf" in shown, "\x1b[" in shown) == (fancy, fancy)
    assert fancy or shown.isascii()


def _all(screen: Any) -> str:
    """Return everything that was written. Reading from a closed terminal ends with an error."""
    parts: list[bytes] = []
    while True:
        try:
            part = screen.read(65_536)
        except OSError:
            part = b""
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


def test_a_single_score_has_no_interval_and_some_scorers_find_no_refusals(call: Call, store: TrackingStore) -> None:
    """Both are null in the JSON, as its schema says."""
    write(store, [0.5], scorer="faithfulness", started_at=datetime.now(UTC))
    (bucket,) = call("trend", "faithfulness", "--json").content["buckets"]
    assert (bucket["n"], bucket["interval"], bucket["noncommittal_share"]) == (1, None, None)
