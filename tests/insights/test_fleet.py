"""The read model of all services: shared reference periods and the grid of routes."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import migrated_file
from tests.insights.incidents import write
from tests.insights.situations import (
    FELL,
    NOW,
    STEADY,
    comparisons,
    drop_alert,
    estimate,
    make_situation,
    plain_text,
    service_scores,
)

from germane.alert import ScoreLevel
from germane.insights.charts import Split
from germane.insights.context import WINDOWS, InsightContext, ViewParams
from germane.insights.fleet import load_fleet, share_periods
from germane.insights.grid import MAX_CELLS, MAX_ROWS, GridRoute, build_grid, grid_length, grid_rows
from germane.insights.score_chart import draw_score_chart
from germane.insights.situation import ComparisonPeriod, Situation
from germane.insights.verdict import build_verdict
from germane.insights.wording import verdict_sentence
from germane.settings import load_settings
from germane.storage import Bucket, TrackingStore

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOURS = st.integers(0, 24 * 60)


def of_service(name: str, *given: Any, **more: Any) -> Situation:
    """Return the situation of one of several services."""
    situation = make_situation(*given, **more)
    compared = situation.comparisons
    if compared is not None:
        compared = replace(compared, routes=[replace(line, service=name) for line in compared.routes])
    return replace(situation, service=name, is_named=True, comparisons=compared)


def test_the_verdict_on_several_services_names_the_service_of_the_largest_drop() -> None:
    """It counts the routes of all services, and its links select the service."""
    verdict = build_verdict(of_service("shop", STEADY), of_service("billing", FELL))
    sentence = verdict_sentence(verdict)

    assert plain_text(sentence).startswith(
        "1 of 4 routes got worse: relevancy fell on docs-search of billing. Last 24 h"
    )
    assert [piece.href for piece in sentence if piece.href] == [
        "/r/docs-search?service=billing",
        "/answers?window=24h&sort=lowest&route=docs-search&service=billing",
    ]


def test_routes_of_several_services_with_the_same_name_are_counted_separately() -> None:
    """The largest drop comes first."""
    worse = {"docs-search": ((0.9, 803), (0.3, 57))}

    verdict = build_verdict(of_service("shop", FELL), of_service("billing", worse))

    assert verdict.places == (("billing", "docs-search"), ("shop", "docs-search"))
    assert plain_text(verdict_sentence(verdict)).startswith(
        "2 of 3 routes got worse: relevancy fell most on docs-search of billing."
    )


def test_a_verdict_lists_services_that_cannot_be_judged() -> None:
    """A quiet service does not hide that another one has no scores."""
    silent = of_service("billing", {}, None, comparisons=None)
    few = of_service("mail", {"ask": ((0.8, 400), (0.1, 7))}, (0.1, 7))

    quiet = build_verdict(of_service("shop", STEADY), silent, few)
    none = build_verdict(silent, few)

    assert (quiet.state, quiet.tone) == ("unchanged", "")
    assert plain_text(verdict_sentence(quiet)).endswith(
        "not judged: mail (not enough data), billing (no answer in the last 24 h)."
    )
    assert plain_text(verdict_sentence(none)) == (
        "mail: Not enough data in the last 24 h (n=7, need 20); not judged: billing (no answer in the last 24 h)."
    )


def test_a_verdict_counts_services_that_dropped_as_a_whole() -> None:
    """They are no routes, and a larger drop on a route of another service does not hide them."""
    level = {"shifts": (), "current": ScoreLevel(mean=0.6, n=90), "baseline": ScoreLevel(mean=0.7, n=90)}
    mail, shop = (
        of_service(name, {}, None, alerts=[drop_alert(id=name, labels={"service": name}, **level)])
        for name in ("mail", "shop")
    )

    wholes = plain_text(verdict_sentence(build_verdict(mail, shop)))
    both = plain_text(verdict_sentence(build_verdict(mail, of_service("billing", FELL), shop)))

    assert wholes.startswith("Relevancy fell on the service mail as a whole. Since about 19 Nov 05:30: 0.60 (n=90)")
    assert "; also on the service shop as a whole. " in wholes
    assert both.startswith("1 of 2 routes got worse: relevancy fell most on docs-search of billing.")
    assert "; also on the service mail as a whole, the service shop as a whole. " in both


def test_a_sentence_names_other_places_that_changed_and_counts_the_rest() -> None:
    """Each is a link, and several alerts are one link."""
    six = {f"route-{number}": ((0.9, 400), (0.2 + number / 20, 80)) for number in range(6)}
    labels = {"service": "shop", "scorer": "answer_relevancy"}
    alerts = [drop_alert(id=name, labels={**labels, "route": name}) for name in ("route-1", "route-2")]

    sentence = verdict_sentence(build_verdict(of_service("shop", six, alerts=alerts), of_service("mail", STEADY)))

    text = plain_text(sentence)
    assert "6 of 8 routes got worse: relevancy fell most on route-0 of shop." in text
    assert "; also on route-1 of shop, route-2 of shop, route-3 of shop and 2 more" in text
    assert text.endswith("See the worst answers or the 2 alerts")
    assert "/r/route-3?service=shop" in [piece.href for piece in sentence]
    assert sentence[-1].href == "/alerts"


def test_routes_of_a_service_that_is_not_judged_do_not_have_too_few_answers() -> None:
    """The reason is stated for the service, and may be another one, such as a new judge."""
    judged = make_situation({**STEADY, "rare": ((0.8, 400), (0.8, 7))})
    another = of_service("mail", {}, comparisons=comparisons(STEADY, new="f2"), current=service_scores((0.8, 90), "f2"))

    text = plain_text(verdict_sentence(build_verdict(replace(judged, service="shop", is_named=True), another)))

    assert text.startswith("No clear change on any of 2 routes of shop in the last 24 h: 0.80")
    assert text.endswith("; 1 of 5 routes had too few answers to compare; not judged: mail (the judge changed).")


def test_a_recent_drop_is_stated_over_the_hours_that_show_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A longer period, in which it is significant too, would mix it with the good answers before."""
    url = f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"
    ages = [(index + 0.5) * DAY / 400 for index in reversed(range(1200))]
    levels = [(0.3 if age < 1.5 * HOUR else 0.7) + index % 5 / 10 - 0.2 for index, age in enumerate(ages)]
    with closing(TrackingStore(url, clock=lambda: NOW)) as store:
        write(store, Random(1), [("shop", "ask", NOW - age, level) for age, level in zip(ages, levels, strict=True)])
        context = InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW)
        verdict = load_fleet(context, view_of(DAY), NOW).verdict

    (drop,) = verdict.movements
    assert drop.levels[1] is not None
    assert drop.levels[1].mean < 0.5


def test_a_drop_on_a_route_with_few_answers_is_stated_over_up_to_two_days(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In a day, it has fewer than 20 answers. Another route has enough."""
    url = f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"
    rows = [("shop", "ask", index * DAY / 100, 0.7 + index % 5 / 50) for index in range(700)]
    rows += [
        ("shop", "rare", (index + 0.5) * DAY / 14, (0.1 if index < 26 else 0.8) + index % 5 / 50)
        for index in range(140)
    ]
    with closing(TrackingStore(url, clock=lambda: NOW)) as store:
        oldest_first = sorted(rows, key=lambda row: -row[2])
        write(store, Random(1), [(service, route, NOW - age, level) for service, route, age, level in oldest_first])
        context = InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW)
        verdict = load_fleet(context, view_of(DAY), NOW).verdict

    assert verdict.places == (("shop", "rare"),)
    assert verdict.movements[0].levels[1] is not None
    assert 20 <= verdict.movements[0].levels[1].n <= 28


def test_means_of_several_services_are_never_averaged() -> None:
    """Without a change, the sentence states no mean, because there is no common one."""
    verdict = build_verdict(of_service("shop", STEADY), of_service("billing", STEADY))

    assert plain_text(verdict_sentence(verdict)) == "No clear change on any of 4 routes in the last 24 h."
    assert verdict.change is None


def test_the_change_of_a_verdict_is_that_of_the_route_it_names() -> None:
    """So the tile below the verdict never contradicts it."""
    change = build_verdict(make_situation(FELL, alerts=[drop_alert()])).change

    assert change is not None
    assert change.route == "docs-search"
    assert change.drop > 0.2


def test_a_chart_writes_no_level_of_another_judge_beside_the_newest() -> None:
    """The difference of the two levels would be that of the judges."""
    parts = [bucket(NOW - 5 * HOUR, 0.8, 30, "f1")], [bucket(NOW - HOUR, 0.5, 30, "f2")]
    trends = SimpleNamespace(steps_by_scorer=lambda since, scorer, **_: {scorer: parts[since >= NOW - 2 * HOUR]})
    store: Any = SimpleNamespace(trends=trends)
    place = {"scorer": "answer_relevancy", "service": "shop", "route": "ask"}

    drawn = draw_score_chart(
        store, view_of(DAY), place, sample=([], True), split=Split(at=NOW - 2 * HOUR), title="Scores", name="chart"
    )

    assert "since 0.50 (n=30)" in drawn
    assert "before 0.80" not in drawn


@given(st.lists(st.tuples(HOURS, st.integers(1, 24 * 60)), max_size=40))
def test_shared_periods_are_within_each_period_and_at_least_half_as_long(drawn: list[tuple[int, int]]) -> None:
    """Each period belongs to exactly one group."""
    periods = {
        index: ComparisonPeriod(since=NOW + start * HOUR, until=NOW + (start + length) * HOUR)
        for index, (start, length) in enumerate(drawn)
    }

    groups = share_periods(periods)

    assert sorted(index for _, members in groups for index in members) == sorted(periods)
    for (since, until), members in groups:
        for index in members:
            assert periods[index].since <= since < until <= periods[index].until
            assert until - since >= (periods[index].until - periods[index].since) / 2


def test_periods_that_differ_by_hours_are_shared() -> None:
    """The number of queries does not grow with the number of services."""
    periods = {index: ComparisonPeriod(since=NOW - 8 * DAY + index * HOUR, until=NOW - 2 * DAY) for index in range(50)}

    assert len(share_periods(periods)) == 1


def view_of(length: timedelta, zone: str = "UTC") -> ViewParams:
    """Return a view of the time until now."""
    return ViewParams(window="", since=NOW - length, until=NOW, zone=ZoneInfo(zone))


def bucket(start: datetime, mean: float, n: int, fingerprint: str = "f1") -> Bucket:
    """Return the scores in one cell."""
    return Bucket(start=start, fingerprint=fingerprint, **estimate(mean, n))


def row(*buckets: Bucket, level: float | None = 0.8) -> GridRoute:
    """Return a route with these scores."""
    return GridRoute(service="shop", route="ask", dropped=False, level=level, fingerprint="f1", buckets=buckets)


def test_a_cell_shows_the_difference_from_the_usual_level_with_its_sign() -> None:
    """Cells without scores are empty, and cells with few scores or without a level look different."""
    midnight = NOW.replace(hour=0, minute=0)
    given = [
        bucket(midnight - 3 * DAY, 0.8, 40),
        bucket(midnight - 2 * DAY, 0.55, 40),
        bucket(midnight - DAY, 0.99, 7),
        bucket(midnight, 0.5, 40, "f2"),
    ]

    grid = build_grid(view_of(4 * DAY), [row(*given), row(given[1], level=None)], hidden=3)

    first, second = grid.rows
    assert [start.day for start in grid.columns] == [16, 17, 18, 19, 20]
    assert [cell and (cell.style, cell.text) for cell in first.cells] == [
        None,
        ("e", ".00"),
        ("d2", "\u2212.25"),
        ("u2 f", "+.19"),
        ("e", ".50"),
    ]
    assert second.cells[2] is not None
    assert (second.cells[2].style, second.cells[2].text) == ("e", ".55")
    assert (grid.hidden, grid.unit) == (3, "day")


@given(
    st.sampled_from([*WINDOWS.values(), 3 * HOUR, 40 * HOUR, 400 * DAY]),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
)
def test_the_cells_of_a_row_cover_the_window_without_gaps(length: timedelta, zone: str) -> None:
    """Each link leads to exactly the answers of its cell."""
    view = view_of(length, zone)
    starts = build_grid(view, [row()], 0).columns
    filled = [bucket(start.astimezone(UTC), 0.5, 30) for start in starts]

    cells = [cell for cell in build_grid(view, [row(*filled)], 0).rows[0].cells if cell is not None]

    assert (cells[0].since, cells[-1].until) == (view.since, view.until)
    assert all(one.until == other.since for one, other in pairwise(cells))
    for cell in cells:
        ends = dict(part.split("=") for part in cell.query.split("&"))
        assert {name: datetime.fromisoformat(end) for name, end in ends.items()} == {
            "since": cell.since.replace(microsecond=0),
            "until": cell.until.replace(microsecond=0),
        }
    assert len(cells) * grid_rows(view) <= MAX_CELLS + grid_rows(view)
    assert grid_rows(view) <= MAX_ROWS
    assert grid_length(view) == HOUR or grid_length(view) % DAY == timedelta()
