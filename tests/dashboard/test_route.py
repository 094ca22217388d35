"""The page of one route."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import Week
from tests.dashboard.hostile import ROUTES, hostile
from tests.dashboard.seeding import NOW, SEARCH, SERVICE

from germane.insights.context import InsightContext, ViewParams
from germane.insights.formatting import route_path
from germane.insights.route import RouteInsight, load_route
from germane.settings import load_settings
from germane.storage import TrackingStore

DAYS = timedelta(days=7)
VIEW = ViewParams(window="7d", since=NOW - DAYS, until=NOW)


def reading(store: TrackingStore, route: str = SEARCH, view: ViewParams = VIEW) -> RouteInsight:
    """Return what the page of a route shows."""
    found = load_route(
        InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW), view, route
    )
    assert found is not None
    return found


def test_each_metric_has_a_chart_of_its_own(page: TestClient) -> None:
    """All scorers of the route over time, each by its own name, that on show first; every mean with n and interval."""
    text = page.get("/r/docs-search").text
    titles = re.findall(r'<h2 id="scorer-\d-title">([^<]+)</h2>\s*<p><span class="mean"><b>[\d.]+</b> '
                        r'<span class="ci">95 % interval [\d.]+\u2013[\d.]+, n=\d+</span>', text)  # fmt: skip
    assert titles == ["Answer relevancy", "Context relevance", "Faithfulness"]
    assert text.count("data-points=") == 6
    assert len(set(re.findall(r' id="([^"]+)"', text))) == len(re.findall(r' id="([^"]+)"', text))


def test_the_numbers_are_those_of_the_summary(week: Week) -> None:
    """Page and :meth:`Store.summary` give one mean, one interval and one count for one window."""
    shown = reading(week.store)
    known = {
        one.scorer: one
        for one in week.store.trends.summary(since=VIEW.since, until=VIEW.until, histograms=False)
        if one.route == SEARCH and one.newest
    }
    assert {one.scorer for one in shown.lines} == set(known)
    for line in shown.lines:
        same = known[line.scorer]
        assert line.summary.mean == pytest.approx(same.mean, abs=1e-9)
        assert line.summary.interval == pytest.approx(same.interval, abs=1e-9)
        assert (line.summary.n, line.summary.coverage) == (same.n, same.coverage)


def test_the_baseline_is_that_of_the_route(week: Week) -> None:
    """What a drop is found by is what the page compares with, with the days that it was learned from."""
    first = reading(week.store).first
    assert first is not None
    assert first.baseline is not None
    (version,) = [one for one in week.store.baselines.list_versions() if one.status == "active" and one.baseline]
    assert version.baseline is not None
    assert first.baseline.mean == version.baseline.routes[SEARCH].mean
    assert first.change == pytest.approx(first.summary.mean - first.baseline.mean, abs=1e-9)
    assert "baseline 2, 13 Nov to 18 Nov" in first.chart


def test_a_drop_shows_in_model_and_prompt(week: Week) -> None:
    """The route is broken down by what ``trend_by`` names; each line has its own n."""
    shown = reading(week.store)
    assert [one.name for one in shown.breakdowns] == ["model", "prompt_version"]
    assert shown.first is not None
    for part in shown.breakdowns:
        assert sum(one.n for one in part.means) == shown.first.summary.n


def test_what_was_not_scored_is_told_with_its_reason(week: Week, page: TestClient) -> None:
    """Counts of all answers: scored, waiting, failed and skipped add up to those seen; and by which rule they came."""
    for one in reading(week.store).coverage:
        assert one.seen == one.scored + one.pending + sum(one.failed.values()) + sum(one.skipped.values())
    text = page.get("/r/docs-search").text
    assert re.search(r"\d+ skipped: not sampled", text)
    assert re.search(r"<b>\d+</b> of \d+<small>8\d % drawn</small>", text)


def test_the_worst_answers_lead_to_their_pages(week: Week, page: TestClient) -> None:
    """A few refusals, which say so and have no written question, then the lowest of the others."""
    shown = reading(week.store)
    values = [one.score.value for one in shown.worst]
    assert values == [0.0] * 3 + [one for one in sorted(week.seeded.values(route=SEARCH)) if one > 0][:7]
    assert all(one.reads_like is None for one in shown.worst if one.score.label == "noncommittal")
    text = page.get("/r/docs-search").text
    assert all(f'href="/a/{one.exchange.id}' in text for one in shown.worst)
    assert 'class="tag bad"' in text


def test_alerts_and_marks_are_on_the_line_and_in_a_list(week: Week, page: TestClient) -> None:
    """What happened to the route or to its service, with links to the alerts."""
    shown = reading(week.store)
    assert week.seeded.open_alert in {one.id for one in shown.alerts}
    assert {one.name for one in shown.markers} == {"index v42", "prompt 7"}
    text = page.get("/r/docs-search").text
    assert f'href="/alerts/{week.seeded.open_alert}"' in text
    assert re.search(r'<text class="alert"[^>]*>alert: drop</text>', text)
    assert re.search(r'<text class="deploy"[^>]*>index v42</text>', text)


def test_another_scorer_can_be_chosen(page: TestClient) -> None:
    """The address says whose scores come first."""
    text = page.get("/r/docs-search?scorer=faithfulness&window=24h").text
    assert re.findall(r'<h2 id="scorer-\d-title">([^<]+)', text)[0] == "Faithfulness"
    assert '<option value="faithfulness" selected>' in text


def test_a_route_that_nobody_knows_is_not_found(page: TestClient) -> None:
    """The page says so, and which routes there are; the name is text."""
    found = page.get("/r/%3Cscript%3Ealert(1)%3C/script%3E", headers={"accept": "text/html"})
    assert found.status_code == 404
    assert "<script>alert" not in found.text
    assert 'href="/r/docs-search"' in found.text


def test_a_window_without_scores_says_so(page: TestClient) -> None:
    """A route that is known has a page also of a time in which nothing was asked."""
    found = page.get("/r/docs-search?since=2026-01-01&until=2026-01-02")
    assert found.status_code == 200
    assert "No scores in this window." in found.text


def test_a_name_may_hold_anything(week: Week, page: TestClient) -> None:
    """Slashes, dots, quotes, percent signs, tags and letters that turn the line around: each name has its page."""
    hostile(week.store, NOW)
    for name in ROUTES:
        found = page.get(route_path(name))
        assert found.status_code == 200, name
        assert "<b>angle" not in found.text
        for link in re.findall(r'(?:href|action)="([^"]*)"', found.text):
            assert link.startswith(("/", "#")), link
            assert not link.startswith("//"), link


def test_few_scores_are_not_enough_data(week: Week, page: TestClient) -> None:
    """Under 20 scores there is no mean to go by."""
    hostile(week.store, NOW)
    text = page.get(route_path(ROUTES[0])).text
    assert re.search(r"not enough data \(n=\d+, need 20\)", text)


def test_services_that_share_a_name_are_told_apart(week: Week, page: TestClient) -> None:
    """A service is shown by itself, and only one that is asked for."""
    assert page.get(f"/r/docs-search?service={SERVICE}").text.count("data-points=") == 6
    assert page.get("/r/docs-search?service=nobody").text.count("data-points=") == 0
