"""What `germane trend` draws."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.conftest import write
from tests.cli.test_alerts import an_alert

from germane.annotation import Mark
from germane.baseline import Baseline, RouteBaseline
from germane.cli.core.terminal import Terminal, fitted, wrapped
from germane.cli.render.trend_chart import Note, Picture, by_group, legend, over_time
from germane.storage import Bucket, Key, Store

Call = Callable[..., Any]
HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def bucket(hours: int, mean: float, n: int = 30, **given: Any) -> Bucket:
    """Return the bucket that begins so many hours before noon."""
    low, high = max(-1.0, mean - 0.1), min(1.0, mean + 0.1)
    defaults: dict[str, Any] = {"deviation": 0.1, "low_share": 0.0, "noncommittal_share": 0.0, "fingerprint": "f1"}
    place = {"start": NOON - hours * HOUR, "n": n, "mean": mean, "interval": (low, high)}
    return Bucket(**{**defaults, **place, **given})


def picture(hours: int = 6, baseline: float | None = None, **terminal: Any) -> Picture:
    """Return what the last hours before noon are drawn in."""
    since = NOON - hours * HOUR
    return Picture(terminal=Terminal(**terminal), since=since, until=NOON, bucket=HOUR, baseline=baseline)


def test_a_mean_stands_where_the_scale_says() -> None:
    """Column by column: mean, both ends of the interval and the baseline lie on the axis from 0 to 1."""
    shown = picture(1, baseline=0.9)
    axis, line = over_time(shown, [bucket(1, 0.5)], [])
    left, last = len("Nov 20 11:00  "), shown.plot - 1

    assert line.startswith("Nov 20 11:00  ")
    assert line.index("*") == left + round(0.5 * last)
    assert (line.index("|"), line.rindex("|", 0, left + last)) == (left + round(0.4 * last), left + round(0.6 * last))
    assert line.index(":", left) == left + round(0.9 * last)
    assert axis.rstrip().endswith("1")
    assert len(axis.rstrip()) - 1 == left + last
    assert line.endswith("0.50  0.40-0.60  n 30")


def test_few_scores_are_hollow() -> None:
    """They are no mean that anybody should act on: no number is given, and no interval drawn."""
    _, line = over_time(picture(1), [bucket(1, 0.5, n=19)], [])

    assert "o" in line.partition("not")[0]
    assert "*" not in line
    assert "|" not in line
    assert line.endswith("not enough data (n=19)")


def test_gaps_stay_gaps() -> None:
    """A stretch without a score is said to have none; many of them share a line."""
    few = list(over_time(picture(4), [bucket(4, 0.9), bucket(1, 0.9)], []))
    many = list(over_time(picture(30), [bucket(30, 0.9), bucket(1, 0.9)], []))
    ended = list(over_time(picture(30), [bucket(30, 0.9)], []))

    assert [line.endswith("no score") for line in few] == [False, False, True, True, False]
    assert [line.rpartition("  ")[2] for line in many[2:3]] == ["no score until Nov 20 11:00"]
    assert len(many) == 4
    assert ended[-1].endswith("no score since")


def test_what_happened_stands_where_it_was() -> None:
    """After the stretch in which it was, and before the next one."""
    notes = [Note(NOON - 2.5 * HOUR, "mark v42"), Note(NOON, "mark just now")]
    lines = list(over_time(picture(4), [bucket(hours, 0.9) for hours in (4, 3, 2, 1)], notes))

    assert [line[:12] for line in lines[1:]] == [
        "Nov 20 08:00",
        "Nov 20 09:00",
        "Nov 20 09:30",
        "Nov 20 10:00",
        "Nov 20 11:00",
        "Nov 20 12:00",
    ]
    assert lines[3].endswith("> mark v42")


def test_another_judge_is_told_and_not_averaged() -> None:
    """Two fingerprints of one stretch have a line each."""
    buckets = [bucket(2, 0.9), bucket(2, 0.4, fingerprint="f2", begins=True), bucket(1, 0.4, fingerprint="f2")]

    lines = list(over_time(picture(2), buckets, []))

    assert len(lines) == 5
    assert "the judge changed to f2: not comparable" in lines[2]
    assert lines[3].startswith(" " * 12)


def test_groups_have_a_line_each_the_lowest_first() -> None:
    """A digit for tenths of a mean, o for few scores, a dot for none; the latest mean that counts beside it."""
    high = [bucket(3, 0.93, group="ask"), bucket(1, 0.88, group="ask")]
    low = [bucket(3, 0.93, group="search"), bucket(2, 0.3, n=3, group="search"), bucket(1, 0.41, group="search")]

    first, second = by_group(picture(3), [*high, *low])

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
    """Whatever the means, counts and names are; plain lines are ASCII."""
    found = sorted([bucket(*one, group="\u5e97" * 80) for one in content], key=lambda one: one.start)
    unique = list({one.start: one for one in found}.values())
    shown = picture(48, baseline=baseline, width=width, fancy=fancy)

    notes = [Note(NOON, "\U0001f600" * 300)]
    keys = [*legend(shown, groups=True), *legend(shown, groups=False)]
    for line in [*over_time(shown, unique, notes), *by_group(shown, unique), *keys]:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
        assert fitted(plain, width).rstrip() == plain.rstrip()
        assert fancy or re.sub("[\U0001f600\u5e97]", "", line).isascii()


def test_wide_letters_take_two_columns() -> None:
    """Names are cut by columns, not by letters."""
    assert fitted("\u5e97\u8217", 6) == "\u5e97\u8217  "
    assert fitted("\u5e97" * 10, 10) == "\u5e97\u5e97\u5e97 ..."
    assert wrapped("\u5e97" * 10, 8) == ["\u5e97" * 4, "\u5e97" * 4, "\u5e97" * 2]


def test_json_has_the_numbers_of_the_store(call: Call, store: Store) -> None:
    """Bucket by bucket what `Store.trend` returns, with marks, and a baseline where one is in force."""
    write(store, [0.9] * 25 + [0.3] * 5)
    now = datetime.now(UTC)
    store.add_marks([Mark(id="m1", name="v42", service="shop", at=now - timedelta(minutes=5))])
    learned = Baseline(
        service="shop", scorer="answer_relevancy", fingerprint="f1", since=now - 14 * 24 * HOUR, until=now, n=900,
        mean=0.75, deviation=0.2, scores_per_day=60, committed_per_day=60, routes={"ask": _route(0.7)},
    )  # fmt: skip
    store.supersede(Key("shop", "answer_relevancy", "f1"), "imported", learned, (None, None))

    content = call("trend", "--json", "--bucket", "1d", "--since", "2d").content
    of_route = call("trend", "answer_relevancy", "--route", "ask", "--json").content

    (only,) = content["buckets"]
    assert (content["scorer"], content["service"], content["bucket_seconds"]) == ("answer_relevancy", "shop", 86_400.0)
    assert only["mean"] == pytest.approx(0.8, abs=1e-9)
    assert (only["n"], only["enough"], only["fingerprint"], only["group"]) == (30, True, "f1", None)
    assert only["coverage"]["seen"] == 30
    assert [mark["name"] for mark in content["marks"]] == ["v42"]
    assert (content["baseline"], of_route["baseline"]) == (0.75, 0.7)
    assert call("trend", "--by", "route", "--json").content["buckets"][0]["group"] == "ask"


def test_an_alert_that_began_earlier_says_when(call: Call, store: Store) -> None:
    """It stands where the picture begins, which is not where it began."""
    write(store, [0.9] * 30)
    onset = datetime.now(UTC) - timedelta(days=3)
    an_alert(store, onset=onset)

    out = call("trend", "--since", "1d").out

    assert f"alert, since {onset:%b %d %H:%M}: " in out


def _route(mean: float) -> RouteBaseline:
    names = ("deviation", "committed_mean", "committed_deviation", "zero_rate", "committed_wander", "zero_wander")
    counts = {"n": 900, "committed": 900, "scores_per_day": 60.0, "committed_per_day": 60.0}
    return RouteBaseline(mean=mean, **dict.fromkeys(names, 0.1), **counts)  # type: ignore[arg-type]  # counts are numbers


def test_nothing_to_draw_is_said(call: Call, database: str) -> None:
    """In an empty database, and of a scorer that nobody has."""
    assert call("trend").out.startswith("No scores since ")
    assert call("trend", "nonsense", "--by", "route").out.endswith(" UTC, by nonsense, by route.\n")
    assert call("trend", "--json").content["buckets"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--bucket", "5s"), 2, "--bucket is too short"),
        (("--bucket", "x"), 2, "no span"),
        (("--by", "colour"), 1, "there is no dimension 'colour'"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    call: Call, store: Store, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """With the usual exit codes, and without a traceback."""
    write(store, [0.9])

    ended = call("trend", *arguments)

    assert (ended.code, said in ended.err) == (code, True)


def test_names_from_outside_cannot_trick_a_terminal(call: Call, store: Store) -> None:
    """Routes and marks with escapes, letters from the right, 100 kB and wide letters."""
    hostile = "\x1b[2J\u202e\u5e97\U0001f600" + "x" * 100_000
    write(store, [0.9] * 25, route=hostile)
    store.add_marks([Mark(id="m1", name=hostile[:500], service="shop", at=datetime.now(UTC))])

    for arguments in ((), ("--by", "route"), ("--route", hostile)):
        ended = call("trend", *arguments)
        assert ended.code == 0
        assert "\x1b" not in ended.out
        assert "\u202e" not in ended.out
        assert len(ended.out) < 6_000


@pytest.mark.parametrize(
    ("variables", "fancy"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"PYTHONIOENCODING": "latin-1"}, False)],
)
def test_it_is_drawn_for_those_who_can_see_it(
    database: str, store: Store, environment: dict[str, str], variables: dict[str, str], fancy: bool
) -> None:
    """A terminal that knows UTF-8 gets lines and colours; NO_COLOR, a dumb one and another encoding get ASCII."""
    write(store, [0.9] * 25)
    usual = {"GERMANE_DATABASE": database, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"}
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as screen:  # noqa: PTH123 - a descriptor
        ended = subprocess.Popen(
            [sys.executable, "-m", "germane", "trend", "--bucket", "1d"],
            env={**environment, **usual, **variables},
            stdout=theirs,
        )
        os.close(theirs)
        shown = _all(screen)
        assert ended.wait(60) == 0

    assert ("\u25cf" in shown, "\x1b[" in shown) == (fancy, fancy)
    assert fancy or shown.isascii()


def _all(screen: Any) -> str:
    """Return all that was written; a terminal that is closed ends with an error."""
    parts: list[bytes] = []
    while True:
        try:
            part = screen.read(65_536)
        except OSError:
            part = b""
        if not part:
            return b"".join(parts).decode()
        parts.append(part)
