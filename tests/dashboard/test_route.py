"""The page for one route."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import ROUTES, write_hostile_exchanges
from tests.dashboard.page_client import open_dashboard, write_alert
from tests.dashboard.seeding import NOW, SEARCH, SERVICE, add_second_service
from tests.insights.incidents import write

from germane.insights.context import InsightContext, ViewParams
from germane.insights.formatting import route_path
from germane.insights.route import SMALL_CHART_POINTS, RouteInsight, load_route
from germane.settings import load_settings
from germane.storage import TrackingStore

SCORERS = ("answer_relevancy", "context_relevance")
DAYS = timedelta(days=7)
VIEW = ViewParams(window="7d", since=NOW - DAYS, until=NOW)


def load_shown(store: TrackingStore, route: str = SEARCH, view: ViewParams = VIEW) -> RouteInsight:
    """Load the data that a route's page shows."""
    found = load_route(
        InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW), view, route
    )
    assert found is not None
    return found


def test_breakdowns_that_would_read_too_many_scores_wait_for_the_rollups(
    week: Week, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the worker has rolled up a dimension, only routes with few scores are broken down by it."""
    monkeypatch.setattr("germane.insights.route.MAX_SCORES_READ", 1)
    assert [one.name for one in load_shown(week.store).breakdowns] == list(week.store.trends.list_rolled_dimensions())


def test_each_scorer_of_a_route_has_its_own_chart(page: TestClient) -> None:
    """The selected scorer is first, and every mean has n and an interval."""
    text = page.get("/r/docs-search").text
    titles = re.findall(((((("<h2 id=\"scorer-\\d-title\">([^<]+)</h2>\\s*<p><span class=\"mean\"><b>[\\d.]+</b> "
"<span class=\"ci\">95% interval [\\d.]+\\u2013[\\d.]+, n=\\d+</span>"))))), text)  # fmt: skip
    assert titles == ["Answer relevancy", "Context relevance", "Faithfulness"]
    assert text.count("data-points=") == 3
    assert text.count("data-plot=") == 4
    assert len(set(re.findall(r' id="([^"]+)"', text))) == len(re.findall(r' id="([^"]+)"', text))


def test_three_scorers_share_the_points_and_marks_of_a_page(page: TestClient) -> None:
    """The selected scorer has a large chart, the others small ones, so that the page stays small."""
    text = page.get("/r/ask").text
    tables = re.findall(r'<details class="twin">(.*?)</details>', text, re.DOTALL)
    rows = [table.count("<tr>") - 1 for table in tables]

    assert re.findall(r'class="(wide|narrow|half)"', text) == ["wide", "narrow", "half", "half", "half", "half"]
    assert rows[0] > SMALL_CHART_POINTS
    assert max(rows[1:5]) <= SMALL_CHART_POINTS + 1
    assert all(len(path) < 3_000 for path in re.findall(r'<path class="dots[^>]*>', text))
    assert len(text.encode()) < 70_000


def test_a_chosen_bucket_length_applies_to_all_charts(page: TestClient) -> None:
    """The visitor wants these points, however many there are."""
    text = page.get("/r/ask?bucket=12h").text

    tables = re.findall(r'<details class="twin">(.*?)</details>', text, re.DOTALL)
    assert all(table.count("<tr>") - 1 in {14, 15} for table in tables[:5])  # a bucket with few scores is merged


def test_means_on_the_route_page_equal_the_store_summary(week: Week) -> None:
    """The page and :meth:`Store.summary` have the same mean, interval and count for the same window."""
    shown = load_shown(week.store)
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


def test_the_change_of_a_route_is_measured_from_its_baseline(week: Week) -> None:
    """The page uses the drop rule's baseline, and shows the days from which it was learned."""
    first = load_shown(week.store).first
    assert first is not None
    assert first.baseline is not None
    (version,) = [
        one for one in week.store.baselines.list_versions() if one.status == "active" and not one.is_provisional
    ]
    assert version.baseline is not None
    assert first.baseline.mean == version.baseline.routes[SEARCH].mean
    assert first.change == pytest.approx(first.summary.mean - first.baseline.mean, abs=1e-9)
    assert "baseline 2, 13 Nov to 18 Nov" in first.chart


def verdict_of(text: str) -> str:
    """Return the sentence of a page's verdict, without the links that follow it."""
    found = re.search(r'<div class="verdict[^"]*" role="status"><p>(.*?)</p>', text, re.DOTALL)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", found[1])).strip()


@each("selection", ["", "?window=24h", "?window=30d", "?since=2026-11-16T00:00&until=2026-11-19T12:00"])
def test_the_route_page_shows_the_overview_verdict(page: TestClient, selection: str) -> None:
    """The linked page has the same sentence, selection and color, and its tiles cover the same 24 hours."""
    overview = page.get(f"/{selection}").text
    link = re.search(r'<div class="verdict bad".*?<a class="route" href="([^"]+)"', overview, re.DOTALL)
    assert link is not None
    route = page.get(link[1].replace("&amp;", "&")).text

    _, _, about_route = verdict_of(overview).partition("got worse: ")
    assert verdict_of(route).lower() == about_route.lower()
    assert 'class="verdict bad"' in route
    mean = re.search(r"Last 24 h: ([\d.]+) \((95% interval [\d.\u2013]+, n=\d+)", verdict_of(route))
    assert mean is not None
    assert f"<b>{mean[1]}</b><small>{mean[2]}</small>" in route
    change = re.search(r'<div class="tile bad"><dt>Change, 24 h</dt><dd>.*?</dd>', route, re.DOTALL)
    assert change is not None
    assert re.search(r"▼ \u2212[\d.]+.*95% interval \u2212[\d.]+ to \u2212[\d.]+", change[0], re.DOTALL)
    for part in re.findall(r"[?&](?:since|until|window)=[^&]*", selection):
        assert part.lstrip("?&").replace(":", "%3A") in link[1]


def test_an_unchanged_route_is_reported_as_unchanged(page: TestClient) -> None:
    """The verdict says so even if another route of the service fell."""
    text = page.get("/r/ask").text
    assert verdict_of(text).startswith("No clear change")
    assert 'class="verdict good"' in text
    assert 'class="tile bad"' not in text


def test_the_route_page_reports_a_day_without_answers(own_week: Week) -> None:
    """Such a day is not a problem if other routes have answers, and the charts still show the window."""
    later = NOW + timedelta(hours=30)
    own_week.store.exchanges.add([replace(own_week.seeded.exchanges[0], id="f" * 32, route=SEARCH, started_at=later)])
    context = InsightContext(store=own_week.store, settings=load_settings(database="sqlite://"), now=lambda: later)
    found = load_route(context, ViewParams(window="7d", since=later - DAYS, until=later), "ask")
    assert found is not None
    assert found.verdict is not None
    assert (found.verdict.state, found.verdict.tone) == ("silent", "")
    assert found.lines


def test_breakdowns_of_a_route_show_model_and_prompt_version(week: Week) -> None:
    """The ``breakdowns`` setting selects them, and each line has its own n."""
    shown = load_shown(week.store)
    assert [one.name for one in shown.breakdowns] == ["model", "prompt_version"]
    assert shown.first is not None
    for part in shown.breakdowns:
        assert sum(one.n for one in part.means) == shown.first.summary.n


def test_unscored_answers_of_a_route_are_counted_by_reason(week: Week, page: TestClient) -> None:
    """Scored, waiting, failed and skipped answers add up to those seen, and the sampling rule is shown."""
    for one in load_shown(week.store).coverage:
        assert one.seen == one.scored + one.pending + sum(one.failed.values()) + sum(one.skipped.values())
    text = page.get("/r/docs-search").text
    assert re.search(r"\d+ skipped: not sampled", text)
    assert re.search(r"<b>\d+</b> of \d+<small>\d\d% sampled</small>", text)


def test_worst_answers_of_a_route_link_to_their_pages(week: Week, page: TestClient) -> None:
    """Refusals come first, without a generated question, and then the lowest scores."""
    shown = load_shown(week.store)
    values = [one.score.value for one in shown.worst]
    assert values == [0.0] * 3 + [one for one in sorted(week.seeded.values(route=SEARCH)) if one > 0][:7]
    assert all(one.reads_like is None for one in shown.worst if one.score.label == "noncommittal")
    text = page.get("/r/docs-search").text
    assert all(f'href="/a/{one.exchange.id}' in text for one in shown.worst)
    assert 'class="tag bad"' in text


def test_alerts_and_markers_of_a_route_are_listed_in_order_of_time(page: TestClient) -> None:
    """They are sorted by time, newest first, and the page belongs to the overview."""
    text = page.get("/r/docs-search").text
    times = re.findall(r'data-label="Time"[^>]*><time datetime="([^"]+)"', text)

    assert len(times) >= 3
    assert times == sorted(times, reverse=True)
    for address in ("/r/docs-search", "/compare", "/usage"):
        assert re.search(r'<a href="/[^a-z"]*" aria-current="true">Overview', page.get(address).text), address


def test_date_fields_name_the_time_zone(page: TestClient, week: Week) -> None:
    """The fields of a form contain no time zone, so their labels do."""
    page.cookies.set("germane_zone", "Asia/Kolkata")
    assert "From (IST) <input" in page.get("/").text
    assert "Later, from (IST)<input" in page.get("/compare").text
    assert "or until (IST) <input" in page.get(f"/alerts/{week.seeded.open_alert}").text


def test_alerts_and_markers_of_a_route_are_shown_in_the_chart_and_in_a_list(week: Week, page: TestClient) -> None:
    """Alerts and markers concern the route or its service, and alerts link to their pages."""
    shown = load_shown(week.store)
    assert week.seeded.open_alert in {one.id for one in shown.alerts}
    assert {one.name for one in shown.markers} == {"index v42", "prompt 7"}
    text = page.get("/r/docs-search").text
    assert f'href="/alerts/{week.seeded.open_alert}"' in text
    assert re.search(r'<text class="alert"[^>]*>alert: drop</text>', text)
    assert re.search(r'<text class="deploy"[^>]*>index v42</text>', text)


def test_the_url_selects_the_scorer_of_the_route_page(page: TestClient) -> None:
    """The selected scorer comes first."""
    text = page.get("/r/docs-search?scorer=faithfulness&window=24h").text
    assert re.findall(r'<h2 id="scorer-\d-title">([^<]+)', text)[0] == "Faithfulness"
    assert '<option value="faithfulness" selected>' in text


def test_an_unknown_route_gets_status_404(page: TestClient) -> None:
    """The page lists the known routes, and the name is escaped."""
    found = page.get("/r/%3Cscript%3Ealert(1)%3C/script%3E", headers={"accept": "text/html"})
    assert found.status_code == 404
    assert "<script>alert" not in found.text
    assert 'href="/r/docs-search"' in found.text


def test_a_window_without_scores_is_reported_on_the_route_page(page: TestClient) -> None:
    """A known route has a page for any window."""
    found = page.get("/r/docs-search?since=2026-01-01&until=2026-01-02")
    assert found.status_code == 200
    assert 'class="empty"' in found.text


@BOTH
def test_routes_can_have_any_name(own_week: Week, own_page: TestClient) -> None:
    """Names with slashes, dots, quotes, percent signs, tags or bidirectional letters each have a page."""
    write_hostile_exchanges(own_week.store, NOW)
    for name in ROUTES:
        found = own_page.get(route_path(name))
        assert found.status_code == 200, name
        assert "<b>angle" not in found.text
        for link in re.findall(r'(?:href|action)="([^"]*)"', found.text):
            assert link.startswith(("/", "#")), link
            assert not link.startswith("//"), link


def test_a_route_with_few_scores_is_shown_as_not_enough_data(own_week: Week, own_page: TestClient) -> None:
    """With fewer than 20 scores, no mean is shown."""
    write_hostile_exchanges(own_week.store, NOW)
    text = own_page.get(route_path(ROUTES[0])).text
    assert re.search(r"not enough data \(n=\d+, need 20\)", text)


def test_refusals_are_not_shown_as_zero_if_no_scorer_detects_them(page: TestClient) -> None:
    """The page states that they are not measured."""
    measured = re.compile(r"refusals (not measured|\d+\u00a0?\s?%)")

    shown = {scorer: measured.findall(page.get(f"/r/docs-search?scorer={scorer}").text) for scorer in SCORERS}

    assert shown["context_relevance"] == ["not measured"]
    assert shown["answer_relevancy"] != ["not measured"]


def test_routes_with_the_same_name_in_two_services_are_shown_separately(own_week: Week, own_page: TestClient) -> None:
    """A page shows only the service that the URL selects."""
    add_second_service(own_week.store)
    assert own_page.get(f"/r/ask?service={SERVICE}").text.count("data-points=") == 3
    assert own_page.get("/r/ask?service=mobile").text.count("data-points=") == 1
    assert own_page.get("/r/docs-search?service=mobile").text.count("data-points=") == 0


def test_every_link_to_a_route_selects_its_service(store: TrackingStore) -> None:
    """Without it, the page of a route whose name another service uses may be about that service."""
    scores = [
        (service, "ask", NOW - timedelta(hours=2 * age), 0.7) for age in range(80, 0, -1) for service in ("a", "b")
    ]
    write(store, Random(1), scores)
    exchange = store.answers.worst(scorer="answer_relevancy", since=None, service="b", limit=1)[0].exchange
    labels = {"service": "b", "scorer": "answer_relevancy", "route": "ask"}
    write_alert(store, "drop", labels=labels, exchange_ids=(exchange.id,))
    comparison = "/compare?service=b&since=2026-11-17T10:30"
    expected = {path: {"a", "b"} for path in ("/", "/answers", "/worker")}
    expected |= {path: {"b"} for path in (comparison, f"/a/{exchange.id}", "/alerts/drop")}

    with open_dashboard(store) as client:
        links = {path: re.findall(r'href="/r/ask([^"]*)"', client.get(path).text) for path in expected}

    services = {path: {link.partition("service=")[2][:1] for link in found} for path, found in links.items()}
    assert services == expected


def test_a_drop_that_has_recovered_is_no_change_in_a_direction(store: TrackingStore) -> None:
    """The verdict says that the alert is still open."""
    write(store, Random(1), [("a", "ask", NOW - timedelta(hours=age), 0.7) for age in range(170, 0, -1)])
    labels = {"service": "a", "scorer": "answer_relevancy", "route": "ask"}
    write_alert(store, "drop", labels=labels, state="recovering")

    with open_dashboard(store) as client:
        text = client.get("/").text

    assert "the alert is still open but recovering" in text
    assert "<b>0.00</b>" in text
