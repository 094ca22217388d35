"""Charts: bounds, gaps, labels and escaping."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.insights.charts.figure import histogram_figure, trend_figure
from germane.insights.charts.histogram import bar_shares, histogram_svg
from germane.insights.charts.point import (
    ChartMarker,
    Dot,
    Level,
    Point,
    Split,
    chart_points,
    merge_points,
    split_by_fingerprint,
)
from germane.insights.charts.svg import axis_ticks, place_labels, text_width
from germane.insights.charts.trend import TrendChart, draw_marks, shared_scale, sparkline_svg, trend_svg
from germane.storage import Bucket

SINCE = datetime(2026, 11, 13, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=7)
SIX = timedelta(hours=6)
SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert(1)</script>\" onload='x' & \x00\x1b \ud800 \u202egnp.\u2066 ]]> {{ 7 * 7 }}"
ZONES = st.sampled_from([None, ZoneInfo("UTC"), ZoneInfo("Europe/Berlin"), ZoneInfo("Pacific/Chatham")])


def point(number: int, mean: float = 0.8, n: int = 30, *, judge_changed: bool = False, fingerprint: str = "f") -> Point:
    """Return the scores of bucket ``number`` of the window."""
    ends = (max(-1.0, mean - 0.1), min(1.0, mean + 0.1))
    return Point(SINCE + number * SIX, mean, *ends, n, n >= 20, judge_changed, fingerprint)


def week_chart(points: Sequence[Point], **more: Any) -> TrendChart:
    """Return the chart of a week."""
    return TrendChart(points=points, since=SINCE, until=UNTIL, bucket=SIX, title="Relevancy", name="trend", **more)


def draw_week(points: Sequence[Point], width: int = 1100, **more: Any) -> ET.Element:
    """Return the chart of a week, parsed as XML."""
    return ET.fromstring(trend_svg(week_chart(points, **more), width=width))


def of_class(picture: ET.Element, name: str) -> list[ET.Element]:
    """Return the elements with a class."""
    return [one for one in picture.iter() if name in one.get("class", "").split()]


def corners(path: str) -> list[tuple[float, float]]:
    """Return the points of a path of the commands M, m, L, H, V, v and Z."""
    x = y = 0.0
    found = []
    for command, values in re.findall(r"([MmLHVvZ])([-+\d. ]*)", path):
        numbers = [float(value) for value in re.findall(r"[-+]?[\d.]+", values)]
        if command in "ML":
            x, y = numbers
        elif command == "m":
            x, y = x + numbers[0], y + numbers[1]
        elif command == "H":
            (x,) = numbers
        elif command != "Z":
            y = numbers[0] + (y if command == "v" else 0)
        found.append((x, y))
    return found


def steps(picture: ET.Element, css_class: str = "line") -> list[str]:
    """Return the steps, each with its riser, or the areas, as parts of the paths, without the letter of the move."""
    paths = [one.get("d", "") for one in of_class(picture, css_class)]
    parts = [re.findall("M[^M]+" if "Z" in path else "(?:M[^MVH]+)?(?:V[^H]+)?H[^MVH]+", path) for path in paths]
    return [part.removeprefix("M") for found in parts for part in found]


def grid_heights(picture: ET.Element) -> list[float]:
    """Return the heights of the horizontal lines, from the top."""
    (grid,) = of_class(picture, "grid")
    return sorted(float(y) for y in re.findall(r"M\S+ ([\d.]+)H", grid.get("d", "")))


@st.composite
def weeks(draw: st.DrawFn) -> list[Point]:
    """Generate the buckets of a week, with gaps, different fingerprints and missing intervals."""
    found = []
    for number in draw(st.lists(st.integers(-3, 31), max_size=35)):
        mean, n = draw(st.floats(-1, 1)), draw(st.integers(1, 10**9))
        known = draw(st.booleans())
        low, high = draw(st.floats(-1, mean)), draw(st.floats(mean, 1))
        begins, fingerprint = draw(st.booleans()), draw(st.sampled_from("abc"))
        ends = (low, high) if known else (None, None)
        found.append(Point(SINCE + number * SIX, mean, *ends, n, n >= 20, begins, fingerprint))
    return found


MARKS = st.lists(
    st.builds(
        ChartMarker,
        st.timedeltas(timedelta(days=-3), timedelta(days=12)).map(lambda passed: SINCE + passed),
        st.text(max_size=60),
        st.sampled_from(["alert", "deploy", "judge"]),
    ),
    max_size=12,
)


def assert_inside(picture: ET.Element) -> None:
    """Assert that every coordinate is finite and inside the view box."""
    _, _, width, height = map(float, picture.get("viewBox", "").split())
    limits = {"x": width, "x1": width, "x2": width, "cx": width, "y": height, "y1": height, "y2": height, "cy": height}
    for one in picture.iter():
        for name, most in limits.items():
            assert 0 <= float(one.get(name, 0)) <= most
        assert float(one.get("x", 0)) + float(one.get("width", 0)) <= width or one is picture
        assert float(one.get("y", 0)) + float(one.get("height", 0)) <= height or one is picture
        assert float(one.get("width", 1)) >= 0
        assert float(one.get("height", 1)) >= 0
        assert all(0 <= x <= width and 0 <= y <= height for x, y in corners(one.get("d", "")))


MOMENTS = st.timedeltas(timedelta(days=-3), timedelta(days=12)).map(lambda passed: SINCE + passed)
DOTS = st.lists(st.builds(Dot, MOMENTS, st.floats(-1, 1), st.booleans(), st.booleans()), max_size=30)
LEVELS = st.none() | st.builds(Level, st.just("before"), st.floats(-1, 1), st.integers(1, 10**9))
SPLITS = st.none() | st.builds(
    Split,
    at=MOMENTS,
    interval=st.none() | st.tuples(MOMENTS, MOMENTS).map(lambda pair: (min(pair), max(pair))),
    before=LEVELS,
    since=LEVELS,
    is_worse=st.booleans(),
)


@given(n=st.integers(1, 999_000_000), width=st.sampled_from([358, 1100]))
def test_the_largest_number_of_scores_is_never_cut_off(n: int, width: int) -> None:
    """It has two to four characters, for which there is space next to the bars of the smallest chart."""
    (label,) = [text for text in draw_week([point(3, n=n)], width).itertext() if text.startswith("\u2264")]

    assert re.fullmatch(r"\u2264\d+(\.\d)?[kM]?", label)


@given(
    points=weeks(),
    markers=MARKS,
    baseline=st.none() | st.floats(-1, 1),
    dots=DOTS,
    has_dots=st.booleans(),
    split=SPLITS,
    zone=ZONES,
    width=st.sampled_from([420, 1100]),
)
def test_a_chart_stays_inside_its_view_box(points: list[Point], width: int, **more: Any) -> None:
    """For all scores, markers, baselines, splits and zones, coordinates are finite and the XML is well-formed."""
    picture = draw_week(points, width=width, **more)
    assert_inside(picture)
    data = json.loads(picture.get("data-points", ""))
    assert all(math.isfinite(value) for row in data for value in row if value is not None)


@given(points=weeks(), baseline=st.none() | st.floats(-1, 1))
def test_a_small_chart_stays_inside_its_view_box(points: list[Point], baseline: float | None) -> None:
    """The same rule applies to small charts."""
    chart = week_chart(points, baseline=baseline)
    assert_inside(ET.fromstring(sparkline_svg(chart, scale=shared_scale([chart]))))


@given(
    now=st.lists(st.floats(0, 1e9), min_size=100, max_size=100),
    before=st.just([]) | st.lists(st.floats(0, 1e9), min_size=100, max_size=100),
)
def test_a_histogram_stays_inside_its_view_box(now: list[float], before: list[float]) -> None:
    """The same rule applies to histograms, even empty ones; shares add up to 1."""
    assert_inside(ET.fromstring(histogram_svg(now, before, title="Spread")))
    assert sum(bar_shares(now)) == pytest.approx(1 if any(now) else 0, abs=1e-9)


def test_a_bucket_without_scores_interrupts_the_steps() -> None:
    """Adjacent steps are connected by a vertical line, which no gap has."""
    picture = draw_week([point(one) for one in (0, 1, 2, 5, 6)])
    assert ["V" in one for one in steps(picture)] == [False, True, True, False, True]
    assert len(steps(picture, "band")) == 5


def test_steps_extend_over_their_buckets() -> None:
    """A step is as wide as its bucket, or as the buckets that were merged, and at the height of the mean."""
    merged = replace(point(4), end=SINCE + 12 * SIX)
    (first, second) = (corners("M" + one) for one in steps(draw_week([point(0), merged])))
    width = second[1][0] - second[0][0]
    assert width == pytest.approx(8 * (first[1][0] - first[0][0]), abs=1)
    assert first[0][1] == first[1][1] == second[1][1]


def test_fingerprints_are_drawn_as_separate_steps() -> None:
    """A new fingerprint starts new steps, with a marker for the change, and the earlier ones are dimmed."""
    points = [point(one, fingerprint="old") for one in range(4)]
    points += [point(one, fingerprint="new", judge_changed=one == 4) for one in range(4, 8)]
    picture = draw_week(points)
    assert ["V" in one for one in steps(picture)] == [False, True, True, True] * 2
    earlier = [one for one in picture if one.get("class") == "earlier"]
    assert len(earlier) == 1
    assert len(steps(earlier[0])) == 4
    assert [one.text for one in picture.iter(f"{SVG}text") if one.get("class") == "judge"] == ["judge changed"]


def test_two_fingerprints_in_one_bucket_are_drawn_as_two_lines() -> None:
    """Each line has its own point."""
    points = [point(0, 0.4, fingerprint="old"), point(1, 0.4, fingerprint="old")]
    points += [point(1, 0.9, fingerprint="new", judge_changed=True), point(2, 0.9, fingerprint="new")]
    assert [[one.mean for one in series] for series in split_by_fingerprint(points)] == [[0.4, 0.4], [0.9, 0.9]]


def test_the_line_of_points_without_fingerprints_is_split_at_judge_changes() -> None:
    """Points without fingerprints, as in a report, are split only by ``begins``."""
    points = [replace(point(one), fingerprint="", judge_changed=one == 2) for one in range(4)]
    assert [len(one) for one in split_by_fingerprint(points)] == [2, 2]


def test_points_with_few_scores_are_drawn_differently() -> None:
    """With fewer than 20 scores, the step is dashed and its band is pale; an unknown interval is not drawn."""
    picture = draw_week([point(0), point(1), point(2, n=19), replace(point(3), low=None, high=None)])
    assert [len(steps(picture, name)) for name in ("line", "band", "thin")] == [4, 3, 2]


def test_the_score_axis_of_a_chart_is_fixed() -> None:
    """The axis spans 0 to 1, and extends below 0 only for a negative mean, which the description mentions."""
    of_high, of_negative = draw_week([point(0, 0.99)]), draw_week([point(0, -0.2)])
    assert _levels(of_high) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert _levels(of_negative) == ["\u22121", "\u22120.5", "0", "0.5", "1"]
    assert "from -1 to 1" in (of_negative.find(f"{SVG}desc").text or "")


def _levels(picture: ET.Element) -> list[str]:
    groups = [one for one in picture.iter(f"{SVG}g") if one.get("text-anchor") == "end"]
    found = [one.text or "" for group in groups for one in group]
    return [one for one in found if re.fullmatch("[\u2212\\d.]+", one)]


def test_a_mean_is_drawn_at_its_value() -> None:
    """A mean of 0.5 is halfway between the lines at 0.4 and 0.6, and the crosshair data agrees."""
    picture = draw_week([point(0, 0.5)])
    heights = grid_heights(picture)
    dot = corners(of_class(picture, "line")[0].get("d", ""))[0][1]
    assert dot == pytest.approx((heights[2] + heights[3]) / 2, abs=0.11)
    assert json.loads(picture.get("data-points", ""))[0][2] == 0.5
    *_, top, bottom, floor = map(float, picture.get("data-plot", "").split(","))
    assert dot == pytest.approx(bottom - (bottom - top) * (0.5 - floor) / (1 - floor), abs=0.11)


def test_marker_labels_in_a_chart_are_links() -> None:
    """An image must not contain links, so a chart with links is a group. Targets keep their prefix."""
    linked = ChartMarker(SINCE + 8 * SIX, "v42", href="/compare?since=1")
    picture = draw_week([point(3)], markers=[linked, ChartMarker(SINCE + 20 * SIX, "v43")], root="/germane")
    plain = draw_week([point(3)], markers=[replace(linked, href="")])

    assert [link.get("href") for link in picture.iter(f"{SVG}a")] == ["/germane/compare?since=1"]
    assert [picture.get("role"), plain.get("role")] == ["group", "img"]
    assert not list(plain.iter(f"{SVG}a"))


def test_alerts_get_marker_labels_before_judge_changes_and_these_before_deployments() -> None:
    """If only some labels fit, the most important markers have them, and among equal ones the newest."""
    at = SINCE + 8 * SIX
    kinds = ["deploy", "judge", "alert"]
    crowd = [ChartMarker(at + timedelta(hours=hour), f"{kind} {hour}", kind) for hour in range(3) for kind in kinds]
    labels = [one.text or "" for one in draw_week([point(3)], markers=crowd).iter(f"{SVG}text")]
    shown = [label for label in labels if label.partition(" ")[0] in kinds]

    importance = sorted(crowd, key=lambda marker: (-kinds.index(marker.kind), -marker.at.timestamp()))
    assert 0 < len(shown) < len(crowd)
    assert shown == [marker.label for marker in importance][: len(shown)]


def test_values_of_the_dropped_route_are_in_the_chart_data_and_the_legend() -> None:
    """Each row of the data has the route's mean and n in the same bucket; few scores are explained in the legend."""
    failing = [point(3, 0.3, n=7), point(9, 0.2)]
    chart = draw_week([point(3), point(4)], failing=failing, failing_name=NASTY)
    figure = trend_figure(
        TrendChart(
            points=[point(3)],
            failing=failing,
            failing_name=NASTY,
            since=SINCE,
            until=UNTIL,
            bucket=SIX,
            title="t",
            name="n",
        )
    )

    assert [row[6:] for row in json.loads(chart.get("data-points", ""))] == [[0.3, 7], []]
    assert "<script>" in chart.get("data-failing", "")
    assert "<script>" not in figure
    assert "n below 20" in figure


def test_charts_on_one_page_have_unique_ids() -> None:
    """Two charts on a page do not share the ids of their titles and descriptions."""
    both = trend_figure(
        TrendChart(points=[point(0)], since=SINCE, until=UNTIL, bucket=SIX, title="Relevancy", name="a b<c")
    )
    ids = re.findall(r' id="([^"]+)"', both)
    assert len(ids) == len(set(ids))
    for named in re.findall(r'aria-labelledby="([^"]+)"', both):
        assert set(named.split()) <= set(ids)
    assert both.count('role="img"') == 2
    assert "preserveAspectRatio" not in both


def test_hostile_names_are_escaped_in_charts() -> None:
    """Hostile route and marker names are text."""
    trend = TrendChart(
        points=[point(0)],
        since=SINCE,
        until=UNTIL,
        bucket=SIX,
        title=NASTY,
        name=NASTY,
        markers=[ChartMarker(SINCE + SIX, NASTY, "deploy", f"/alerts/{NASTY}")],
        baseline=0.5,
        baseline_name=NASTY,
    )
    figure = trend_figure(trend)
    found = ET.fromstring(figure)
    assert "<script" not in figure
    assert not [one for one in found.iter() if one.tag.endswith("script") or "onload" in one.attrib]
    assert not re.search("[\x00\x1b\ud800\u202e\u2066]", figure)


@given(wanted=st.lists(st.tuples(st.floats(36, 1014), st.text(min_size=1, max_size=40)), max_size=12))
def test_marker_labels_in_a_chart_do_not_overlap(wanted: list[tuple[float, str]]) -> None:
    """Every label that is shown fits, and no other marker's line crosses it."""
    found = [
        (x, one) for (x, _), one in zip(wanted, place_labels(wanted, 36, 1098, rows=3, size=15), strict=True) if one
    ]
    spans = []
    for x, one in found:
        width = text_width(one.text, 15)
        begin = one.x if one.anchor == "start" else one.x - width
        assert begin >= 36 - 1e-9
        assert begin + width <= 1098 + 1e-9
        spans.append((x, one.row, begin, begin + width))
    for x, row, begin, end in spans:
        others = [one for one in spans if one != (x, row, begin, end)]
        assert not any(begin < other[3] and other[2] < end for other in others if other[1] == row)
        assert not any(begin < other[0] < end for other in others if other[1] <= row)


@given(
    since=st.timedeltas(timedelta(days=-20_000), timedelta(days=300_000)).map(lambda passed: SINCE + passed),
    length=st.timedeltas(timedelta(minutes=1), timedelta(days=30_000)),
    zone=ZONES,
)
def test_the_time_axis_has_a_few_ordered_ticks(since: datetime, length: timedelta, zone: ZoneInfo | None) -> None:
    """In every window, the ticks are inside it and in order, and their labels fit."""
    found = [one.at for one in axis_ticks(since, since + length, zone, 12)]
    assert found == sorted(found)
    assert all(since <= one <= since + length for one in found)
    assert len(found) <= 14


@each(
    ("length", "labels"),
    [
        (timedelta(hours=1), ["1 Jan", "00:15", "00:30", "00:45", "01:00"]),
        (timedelta(hours=6), ["1 Jan", "01:00", "02:00", "03:00", "04:00", "05:00", "06:00"]),
        (timedelta(days=2), ["1 Jan", "12:00", "2 Jan", "12:00", "3 Jan"]),
        (timedelta(days=6), ["1 Jan", "2 Jan", "3 Jan", "4 Jan", "5 Jan", "6 Jan", "7 Jan"]),
        (timedelta(weeks=6), ["5 Jan", "12 Jan", "19 Jan", "26 Jan", "2 Feb", "9 Feb"]),
        (timedelta(days=180), ["Jan 2026", "Feb 2026", "Mar 2026", "Apr 2026", "May 2026", "Jun 2026"]),
        (timedelta(days=2160), ["Jan 2026", "Jan 2027", "Jan 2028", "Jan 2029", "Jan 2030", "Jan 2031"]),
    ],
)
def test_the_ticks_of_the_time_axis_are_at_round_times(length: timedelta, labels: list[str]) -> None:
    """A window is divided into minutes, hours, days, weeks from Monday, months or years, whichever fit."""
    since = datetime(2026, 1, 1, tzinfo=UTC)

    assert [tick.label for tick in axis_ticks(since, since + length, UTC, 6)] == labels


def test_days_on_the_time_axis_follow_the_time_zone_of_the_visitor() -> None:
    """A day starts at local midnight, even on days when clocks change."""
    berlin = ZoneInfo("Europe/Berlin")
    found = axis_ticks(datetime(2026, 10, 23, 12, tzinfo=UTC), datetime(2026, 10, 27, 12, tzinfo=UTC), berlin, 6)
    assert [(one.at.astimezone(UTC).hour, one.label) for one in found] == [
        (22, "24 Oct"),
        (22, "25 Oct"),
        (23, "26 Oct"),
        (23, "27 Oct"),
    ]


def test_the_table_of_a_chart_shows_the_values_of_the_chart() -> None:
    """The table has one row per bucket, newest first, with time, mean, interval, n, and scored / seen."""
    first = replace(point(0, 0.5), seen=40, scored=30)
    trend = TrendChart(
        points=[first, point(1, n=7)], since=SINCE, until=UNTIL, bucket=SIX, title="R", name="r", zone=ZoneInfo("UTC")
    )
    rows = [["".join(cell.itertext()) for cell in row] for row in ET.fromstring(trend_figure(trend)).iter("tr")]
    assert rows[0] == ["From", "Mean", "95% interval", "n", "Scored / seen"]
    assert rows[1] == ["Fri 13 Nov 06:00 UTC", "0.80", "0.70\u20130.90", "7 (few)", "\u2013"]
    assert rows[2] == ["Fri 13 Nov 00:00 UTC", "0.50", "0.40\u20130.60", "30", "30 of 40"]


def dot_centers(picture: ET.Element, name: str) -> list[tuple[float, float]]:
    """Return the ends of the marks of dots."""
    return [center for one in of_class(picture, name) for center in corners(one.get("d", ""))]


def crowd(n: int, seed: int = 1) -> list[Dot]:
    """Return answers at random times, with all values, of which some are low and some refusals."""
    chance = random.Random(seed)
    values = [(chance.random(), chance.random()) for _ in range(n)]
    return [
        Dot(SINCE + (UNTIL - SINCE) * at, value, is_low=value < 0.5, is_refusal=value < 0.02) for at, value in values
    ]


@pytest.mark.parametrize("n", [0, 1, 50, 3_000, 100_000])
def test_a_chart_is_at_most_100_kb_for_any_number_of_answers(n: int) -> None:
    """Both pictures and the table of a figure together are small, and equal answers give an equal picture."""
    chart = week_chart([point(one) for one in range(28)], dots=crowd(n), has_dots=True, baseline=0.8)
    figure = trend_figure(chart)
    assert len(figure.encode()) < 100_000
    if n <= 3_000:
        assert figure == trend_figure(replace(chart, dots=chart.dots[::-1]))


@given(places=st.lists(st.tuples(st.floats(40, 1000), st.floats(30, 240)), max_size=60), copies=st.integers(1, 40))
def test_every_answer_is_within_half_a_cell_of_a_mark(places: list[tuple[float, float]], copies: int) -> None:
    """However crowded, no answer is omitted: a mark covers its place, and the number of marks is limited."""
    crowded = [(40 + (x * 7 * (one + 1)) % 960, 30 + (y * 3 + one) % 210) for x, y in places for one in range(copies)]
    drawn = draw_marks(crowded, "dots low", 300)
    assert bool(drawn) == bool(crowded)
    if drawn:
        mark = ET.fromstring(drawn)
        size, ends = float(mark.get("stroke-width", "")), corners(mark.get("d", ""))
        lines = list(zip(ends[::2], ends[1::2], strict=True))
        assert len(lines) <= 300
        for x, y in crowded:
            assert any(
                abs(x - left) <= size / 2 + 0.1 and top - size / 2 - 0.1 <= y <= bottom + size / 2 + 0.1
                for (left, top), (_, bottom) in lines
            )


@given(dots=DOTS)
def test_every_low_answer_and_every_refusal_is_drawn(dots: list[Dot]) -> None:
    """Low answers in the window have marks of their own; refusals are at one height, below the axis of the scores."""
    dots = [dot for dot in dots if SINCE <= dot.at < UNTIL]
    picture = draw_week([point(3)], dots=dots, has_dots=True)
    axis = grid_heights(picture)[-1]
    refusals = dot_centers(picture, "refusal")
    low = dot_centers(picture, "low")
    assert len({y for _, y in refusals}) == any(dot.is_refusal for dot in dots)
    assert all(y > axis for _, y in refusals)
    assert all(y <= axis + 1 for _, y in low)
    for dot in dots:
        x = 36 + (1100 - 36 - 86) * ((dot.at - SINCE) / (UNTIL - SINCE))
        if dot.is_refusal or dot.is_low:
            assert any(abs(x - left) <= 1.1 for left, _ in (refusals if dot.is_refusal else low))


def test_refusals_do_not_change_the_axis() -> None:
    """Without a refusal there is no line for refusals, and a refusal does not extend the axis of the scores."""
    answers = [Dot(SINCE + SIX, 0.9), Dot(SINCE + 2 * SIX, -1.0, is_refusal=True)]
    both, plain = (draw_week([point(3)], dots=answers[:count], has_dots=True) for count in (2, 1))
    assert _levels(both) == _levels(plain)
    assert sum(one.get("d", "").count("m") for one in of_class(both, "dots")) == 2
    texts = ["refusals" in [one.text for one in each.iter(f"{SVG}text")] for each in (both, plain)]
    assert texts == [True, False]


def test_the_sides_of_a_split_are_shaded_and_named() -> None:
    """Each side has its mean and n; the interval of the moment is a soft edge between them."""
    at = SINCE + 20 * SIX
    split = Split(at=at, before=Level("before", 0.8, 300), since=Level("since", 0.5, 50), is_worse=True)
    sharp = draw_week([point(3)], split=split)
    soft = draw_week([point(3)], split=replace(split, interval=(at - 2 * SIX, at + SIX)))

    texts = [one.text for one in of_class(sharp, "level") if one.text]
    assert texts == ["before 0.80 (n=300)", "since 0.50 (n=50)"]
    assert "Before: 0.80 (n=300). Since: 0.50 (n=50)." in (sharp.find(f"{SVG}desc").text or "")
    (old, new) = of_class(sharp, "side")
    assert float(old.get("x", 0)) + float(old.get("width", 0)) == pytest.approx(float(new.get("x", 0)), abs=0.2)
    assert not list(sharp.iter(f"{SVG}linearGradient"))
    (edge,) = [one for one in soft.iter(f"{SVG}rect") if (one.get("fill") or "").startswith("url(#")]
    (gradient,) = soft.iter(f"{SVG}linearGradient")
    assert edge.get("fill") == f"url(#{gradient.get('id')})"
    assert float(edge.get("width", 0)) == pytest.approx(3 * 978 / 28, abs=0.2)
    assert "style" not in {name for one in soft.iter() for name in one.attrib}


def test_small_charts_share_a_scale_that_fits_their_means() -> None:
    """The scale covers all means and baselines, in steps of 0.1; means of few scores are merged before."""
    charts = [week_chart([point(0, 0.62), point(1, 0.71)], baseline=0.8), week_chart([point(0, 0.89)])]
    assert shared_scale(charts) == (0.6, 0.9)
    assert shared_scale([week_chart([point(0, 0.99)])]) == (0.8, 1.0)
    assert shared_scale([week_chart([point(0, 0.0, n=1), point(1, 0.84)])]) == (0.7, 0.9)
    assert shared_scale([]) == (0.0, 1.0)
    levels = [_levels(ET.fromstring(sparkline_svg(chart, scale=(0.6, 0.9)))) for chart in charts]
    assert levels == [["0.6", "0.9"]] * 2


def test_a_small_chart_is_shaded_where_it_differs_from_the_baseline() -> None:
    """Steps above and below the baseline are shaded differently; without a baseline, nothing is shaded."""
    points = [point(0, 0.7), point(1, 0.9), point(2, 0.6)]
    chart = week_chart(points, baseline=0.8)
    picture = ET.fromstring(sparkline_svg(chart, scale=(0.6, 0.9)))
    assert [len(steps(picture, name)) for name in ("above", "below", "line")] == [1, 2, 3]
    plain = ET.fromstring(sparkline_svg(replace(chart, baseline=None), scale=(0.6, 0.9)))
    assert not of_class(plain, "area")


@given(points=weeks())
def test_merged_points_have_enough_scores_and_keep_the_sum(points: list[Point]) -> None:
    """Only the last point of a fingerprint may have few scores, and neither n nor the weighted sum changes."""
    merged = merge_points(points, SIX)
    assert sum(one.n for one in merged) == sum(one.n for one in points)
    total = math.fsum(one.n * one.mean for one in points)
    assert math.fsum(one.n * one.mean for one in merged) == pytest.approx(total, rel=1e-6, abs=1e-3)
    for series in "abc":
        own = [one for one in merged if one.fingerprint == series]
        assert all(one.n >= 20 for one in own[:-1])


def test_a_histogram_has_twenty_bars_and_a_table() -> None:
    """A hundred bins become twenty bars; the table shows the shares in the window and in the baseline."""
    now, before = [0.0] * 100, [0.0] * 100
    now[0], now[87], before[87] = 1.0, 3.0, 2.0
    rows = [
        ["".join(cell.itertext()) for cell in row]
        for row in ET.fromstring(histogram_figure(now, before, title="Spread", name="s")).iter("tr")
    ]
    assert rows[0] == ["Score", "now", "baseline"]
    assert rows[1] == ["0.00\u20130.05", "25%", "0%"]
    assert rows[18] == ["0.85\u20130.90", "75%", "100%"]


def test_a_histogram_without_a_baseline_has_no_outline() -> None:
    """Only bars for the window are drawn."""
    picture = ET.fromstring(histogram_svg([1.0] * 100, title="Spread"))
    assert not of_class(picture, "before")
    assert len(of_class(picture, "now")) == 20


def test_chart_points_equal_the_results_of_the_trend_query() -> None:
    """A bucket's mean, interval and n are drawn unchanged."""
    bucket = Bucket(
        n=25,
        mean=0.7,
        deviation=0.1,
        low_share=0,
        noncommittal_share=0,
        interval=(0.6, 0.8),
        start=SINCE,
        fingerprint="f",
    )
    (found,) = chart_points([bucket])
    assert (found.mean, found.low, found.high, found.n, found.has_min_samples) == (0.7, 0.6, 0.8, 25, True)


@given(numbers=st.sets(st.integers(0, 27), min_size=1))
def test_steps_contain_every_point_exactly_once(numbers: set[int]) -> None:
    """Gaps divide the steps without losing one."""
    drawn = steps(draw_week([point(one) for one in sorted(numbers)]))
    assert len(drawn) == len(numbers)
    gaps = sum(b - a > 1 for a, b in itertools.pairwise(sorted(numbers)))
    assert sum("V" not in one for one in drawn) == 1 + gaps
