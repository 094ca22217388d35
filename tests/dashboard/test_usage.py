"""Response times and judge costs on the route page and on the page for all routes."""

from __future__ import annotations

import html
import math
import re
from datetime import timedelta

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import NOW, SEARCH, add_second_service

from germane.insights import InsightContext, ViewParams
from germane.insights.usage import Usage, load_usage
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.storage.trends import usage

RELEVANCY = "answer_relevancy"


def table_of(page: str, part: str) -> list[list[str]]:
    """Return the values in a chart's table, newest first."""
    panel = page[page.index(f'id="{part}"') :]
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", panel[: panel.index("</figure>")])
    return [re.findall("<td>([^<]+)</td>", row) for row in rows]


def test_route_page_shows_the_durations_and_costs_of_the_route(page: TestClient, week: Week) -> None:
    """The counts add up to the answers and scores in the window, and the values are theirs."""
    text = page.get(f"/r/{SEARCH}?bucket=7d").text
    answers = [
        one for one in week.seeded.exchanges if one.route == SEARCH and one.started_at >= NOW - timedelta(days=7)
    ]
    scores = [
        score
        for exchange, score in week.seeded.scores
        if exchange.route == SEARCH and score.scorer == RELEVANCY and score.cost is not None
    ]
    durations, costs = table_of(text, "durations"), table_of(text, "costs")

    assert sum(int(row[-1]) for row in durations) == len(answers)
    assert sum(int(row[-1]) for row in costs) == len(scores)
    spent = sum(float(row[0].removeprefix("$")) for row in costs)
    assert spent == pytest.approx(math.fsum(score.cost or 0.0 for score in scores), abs=1e-5)
    assert load_shown(week.store, SEARCH).usd == pytest.approx(spent, abs=1e-5)


def load_shown(store: TrackingStore, route: str | None) -> Usage:
    """Load the data that a page shows."""
    context = InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW)
    view = ViewParams(window="7d", since=NOW - timedelta(days=7), until=NOW)
    return load_usage(context, view, scorer=RELEVANCY, route=route, service=None)


def test_usage_charts_link_to_the_slowest_and_most_expensive_answers(page: TestClient) -> None:
    """The lists are sorted accordingly, also the lists of the answers in one bucket."""
    for path in (f"/r/{SEARCH}", "/usage"):
        text = page.get(path).text
        for part, sort in (("durations", "slowest"), ("costs", "highest_cost")):
            panel = text[text.index(f'id="{part}"') :]
            links = [
                html.unescape(link) for link in re.findall(r'href="(/answers[^"]+)"', panel.split("</section>")[0])
            ]
            assert len(links) >= 8
            assert all(f"sort={sort}" in link and "scorer=answer_relevancy" in link for link in links)
            assert all(("route=" in link) == (path != "/usage") for link in links)
            assert page.get(links[0]).status_code == page.get(links[-1]).status_code == 200


def test_the_usage_page_for_all_routes_covers_one_service(own_seeded: TrackingStore) -> None:
    """As everywhere, services are not mixed."""
    others = add_second_service(own_seeded)
    with open_dashboard(own_seeded) as client:
        first = table_of(client.get("/usage?bucket=7d").text, "durations")
        second = table_of(client.get("/usage?bucket=7d&service=mobile").text, "durations")

    assert sum(int(row[-1]) for row in second) == len(others)
    assert sum(int(row[-1].replace(",", "")) for row in first) > 1_000


@BOTH
def test_a_truncated_usage_chart_states_how_far_back_it_goes(
    page: TestClient, week: Week, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The buckets become shorter, so that they fit the part that was read."""
    monkeypatch.setattr(usage, "MAX_EXCHANGES_READ", 200)
    monkeypatch.setattr(usage, "MAX_SCORES_READ", 2)
    text = page.get("/usage").text

    assert re.search(r"Only the newest (1\d\d|200) answers, since <time", text)
    assert "n answers per 1 h" in text
    assert "There are too many scores for this bucket length." in text


def test_a_window_without_scores_has_no_usage_charts(store: TrackingStore) -> None:
    """The page states this, and that a longer window may have some."""
    add_second_service(store)
    with open_dashboard(store) as client:
        text = client.get("/usage").text
    assert "Judge cost" in text
    with open_dashboard(store) as client:
        text = client.get("/usage?since=2026-11-01&until=2026-11-02").text
    assert "No scores in this window." in text
