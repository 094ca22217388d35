"""The overview: its values equal the store's, and missing values are labeled as missing."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.cli.conftest import an_exchange
from tests.conftest import migrated_file
from tests.dashboard.conftest import BOTH, HERE, Week
from tests.dashboard.hostile import SERVICE as HOSTILE
from tests.dashboard.hostile import TEXTS, write_hostile_exchanges
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import FINGERPRINTS, NOW, SERVICE, add_second_service
from tests.insights.incidents import write

from germane.baseline import Baseline
from germane.dashboard import create_app
from germane.insights.context import InsightContext, ViewParams
from germane.insights.formatting import format_interval, format_number, format_percent, format_signed
from germane.insights.overview import Overview, load_overview
from germane.insights.wording import verdict_sentence
from germane.score import Score
from germane.settings import load_settings
from germane.statistics import Comparison
from germane.storage import BaselineKey, SamplingDecision, TrackingStore
from germane.testing import engine_of

DAY = timedelta(days=1)
HALF = timedelta(minutes=30)
"""Time to the next whole hour. Reference periods consist of whole hours."""
RELEVANCY = "answer_relevancy"
Open = Callable[..., TestClient]


def words(page: str) -> str:
    """Return the text of a page on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def load_shown(store: TrackingStore, **given: Any) -> Overview:
    """Load the data that the page shows."""
    view = ViewParams(**{"window": "7d", "since": NOW - 7 * DAY, "until": NOW} | given)
    desk = InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW)
    return load_overview(desk, view)


@pytest.fixture
def open_pages() -> Iterator[Open]:
    """Open a store's pages at a given time and under a given prefix."""
    with ExitStack() as stack:

        def open_(store: TrackingStore, now: datetime = NOW, root: str = "", **settings: Any) -> TestClient:
            app = create_app(load_settings(database="sqlite://", **settings), store=store, now=lambda: now)
            client = TestClient(app, base_url="http://127.0.0.1", client=HERE, root_path=root, follow_redirects=False)
            return stack.enter_context(client)

        yield open_


def test_small_charts_have_the_buckets_of_the_main_chart_and_not_those_of_the_grid(week: Week) -> None:
    """Over seven days, the grid shows days, and the charts show six hours."""
    overview = load_shown(week.store)

    assert overview.bucket == timedelta(hours=6)
    assert all({one.start.hour for one in card.buckets} == {0, 6, 12, 18} for card in overview.cards)


def test_everything_below_the_chart_is_restricted_to_the_selected_range(page: TestClient, week: Week) -> None:
    """Cards and worst answers are those of the range, and a link leads to exactly its answers on the affected route."""
    since, until = NOW - timedelta(hours=28), NOW - timedelta(hours=20)
    query = {"since": since.isoformat(), "until": until.isoformat()}
    text = page.get("/", params=query).text
    inside = [
        exchange
        for exchange, score in week.seeded.scores
        if score.scorer == RELEVANCY and since <= exchange.started_at < until
    ]
    on_route = [exchange for exchange in inside if exchange.route == "docs-search"]
    (link, on_search), (_, total) = re.findall(
        r'href="(/answers[^"]+)">Show (?:the|all) (\d+) answers (?:on docs-search )?in this selection', text
    )
    assert (int(on_search), int(total)) == (len(on_route), len(inside))
    listed = page.get(html.unescape(link).replace("/answers?", "/answers.json?")).json()["answers"]
    assert {row["exchange_id"] for row in listed} == {exchange.id for exchange in on_route}
    worst = text[text.index('id="worst"') :]
    shown = set(re.findall(r'href="/a/(\w{32})', worst))
    assert shown
    assert shown <= {exchange.id for exchange in inside}
    assert "in the last 24 h" not in text[text.index('id="trend-panel"') :]
    assert "24 h" in text


def test_a_range_that_ends_before_the_drop_names_no_affected_route(week: Week) -> None:
    """A range that overlaps the baseline's period is not compared with it."""
    found = load_shown(week.store, window="", since=NOW - 4 * DAY, until=NOW - 3 * DAY)

    assert found.selected is not None
    assert (found.selected.route, found.selected.comparisons) == (None, [])
    assert not any(card.dropped or card.difference is not None for card in found.cards)
    assert found.verdict.state == "worse"


def test_a_service_without_scores_today_is_not_forgotten(store: TrackingStore) -> None:
    """Its scorer may differ from that of the services that have scores. The verdict names it as not judged."""
    for service, scorer, ago in (("shop", RELEVANCY, HALF), ("billing", "faithfulness", 3 * DAY)):
        made = an_exchange(started_at=NOW - ago, service=service)
        store.exchanges.add([made])
        store.sampling.assign_tasks([SamplingDecision(made.id, 1.0, "sampled")], {scorer: "f"})
        tasks = [
            task for claim in store.queue.claim_tasks("me", {scorer: "f"}, limit=1, lease=DAY) for task in claim.tasks
        ]
        store.queue.complete_tasks("me", [(task, Score(scorer=scorer, fingerprint="f", value=0.5)) for task in tasks])
    store.exchanges.add([an_exchange(started_at=NOW - HALF, service="billing")])

    fleet = load_shown(store).fleet

    assert [situation.service for situation, _ in fleet.verdict.unjudged] == ["billing"]
    assert {day.service: (day.scorer, day.scored_at) for day in fleet.days} == {
        "billing": ("faithfulness", NOW - 3 * DAY),
        "shop": (RELEVANCY, NOW - HALF),
    }


def test_the_verdict_names_the_dropped_route(page: TestClient, week: Week) -> None:
    """The verdict contains the onset, the alert, and the values in the report for the same window."""
    (now,) = [
        one
        for one in week.store.trends.summary(since=NOW - DAY)
        if (one.route, one.scorer) == ("docs-search", RELEVANCY)
    ]
    page.cookies.set("germane_zone", "UTC")
    found = words(page.get("/").text)
    verdict = load_shown(week.store, zone=UTC).verdict

    assert (verdict.state, verdict.routes) == ("worse", ("docs-search",))
    (movement,) = verdict.movements
    after = movement.levels[1]
    assert after is not None
    assert (after.mean, after.interval, after.n) == (now.mean, now.interval, now.n)
    assert all(piece.text.strip() in found for piece in verdict_sentence(verdict))
    assert f'href="/alerts/{week.seeded.open_alert}"' in page.get("/").text


def test_the_service_mean_is_weighted_by_inclusion_probability(week: Week) -> None:
    """Exchanges with errors are scored regardless of sampling, and have a weight of 1."""
    found = load_shown(week.store).fleet.days[0].current
    rows = [
        (score.value, 1.0 if exchange.error else 1 / 0.8)
        for exchange, score in week.seeded.scores
        if score.scorer == RELEVANCY and exchange.started_at >= NOW - DAY and score.value is not None
    ]
    weight = sum(one for _, one in rows)

    assert found is not None
    assert found.n == len(rows)
    assert found.mean == pytest.approx(sum(value * one for value, one in rows) / weight, abs=1e-9)
    assert found.low_share == pytest.approx(sum(one for value, one in rows if value < 0.5) / weight, abs=1e-9)


def test_tiles_show_the_values_of_the_read_model(page: TestClient, seeded: TrackingStore) -> None:
    """Tiles show means with interval and n, shares as percentages, and counts."""
    found = load_shown(seeded)
    (day,), change = found.fleet.days, found.verdict.movements[0].comparison
    current, second = day.current, day.second
    text = words(page.get("/").text)

    assert current is not None
    assert second is not None
    assert change is not None
    assert change.interval is not None
    coverage = current.coverage
    assert (
        f"Relevancy, 24 h: all routes {format_number(current.mean)} 95% interval {format_interval(current.interval)}, "
        f"n={current.n}" in text
    )
    assert (
        f"Faithfulness, 24 h: all routes {format_number(second.mean)} 95% interval {format_interval(second.interval)}, "
        f"n={second.n}" in text
    )
    assert (
        f"Change, 24 h: docs-search \u25bc {format_signed(change.difference)} "
        f"95% interval {format_interval(change.interval)}" in text
    )
    assert f"Low scores, 24 h: all routes {format_percent(current.low_share)} in the lowest band, n={current.n}" in text
    assert f"Scored, 24 h: all routes {coverage.scored} of {coverage.seen}" in text
    assert "Worker running" in text


def test_the_change_is_measured_from_the_stored_baseline(week: Week) -> None:
    """The page and ``germane baseline show`` show the same level."""
    found = load_shown(week.store)
    before = found.fleet.days[0].reference_period
    assert before is not None
    windows: dict[str, Any] = {"since": NOW - DAY, "until": NOW, "before": (before.since, before.until)}

    expected = week.store.trends.compare(**windows, service=SERVICE, scorer=RELEVANCY)
    (kept,) = [
        one.baseline
        for one in week.store.baselines.list_versions()
        if one.status == "active" and not one.is_provisional
    ]

    assert (before.baseline, before.until) == (2, NOW - 2 * DAY + HALF)
    assert kept is not None
    assert found.fleet.days[0].reference is not None
    assert (found.fleet.days[0].reference.mean, found.fleet.days[0].reference.n) == (kept.mean, kept.n)
    assert found.fleet.situations[0].change is not None
    assert found.fleet.situations[0].change.finding == expected.services[0].finding
    assert found.fleet.situations[0].change.before is not None
    assert found.fleet.situations[0].change.before.mean == pytest.approx(kept.mean, abs=1e-9)
    for one, other in zip(sorted(_lines(found), key=lambda one: one.route or ""), expected.routes, strict=True):
        assert (one.route, one.finding, one.after) == (other.route, other.finding, other.after)
        level = kept.routes[one.route or ""]
        assert one.before is not None
        assert one.after is not None
        assert (one.before.mean, one.before.n) == (level.mean, level.n)
        assert one.difference == pytest.approx(one.after.mean - level.mean, abs=1e-9)


def _lines(found: Overview) -> list[Comparison]:
    return [card.comparison for card in found.cards if card.comparison is not None]


def test_the_dropped_route_comes_first_and_cards_link_to_their_routes(page: TestClient) -> None:
    """A name with a slash is a single path segment."""
    found = re.findall(r'class="small( bad)?" href="([^"]*)"', page.get("/").text)

    assert found[0] == (" bad", "/r/docs-search")
    assert {href for _, href in found} == {"/r/docs-search", "/r/ask", "/r/support%2Feu"}
    assert all(tone == "" for tone, _ in found[1:])


def test_the_overview_lists_the_worst_answers(page: TestClient, week: Week) -> None:
    """Refusals first, then the lowest scores with their generated question; each links to its answer."""
    text = page.get("/").text
    table = text[text.index('id="worst"') :]
    shown = re.findall(r'href="/a/([0-9a-f]{32})\?window=24h" data-drawer', table)
    by_id = {
        exchange.id: score
        for exchange, score in week.seeded.scores
        if score.scorer == RELEVANCY and exchange.started_at >= NOW - DAY
    }
    committed = sorted(score.value or 0.0 for score in by_id.values() if score.label != "noncommittal")
    found = [by_id[one] for one in shown]

    assert len(shown) == 10
    assert [one.label for one in found[:3]] == ["noncommittal"] * 3
    assert [one.value for one in found[3:]] == committed[:7]
    assert table.count(">refusal</span>") == 3
    for one in found[3:]:
        least = min(one.details["questions"], key=lambda row: row["similarity"])
        assert html.escape(least["text"], quote=True) in table.replace("&#39;", "&#x27;")


def test_generated_questions_are_shown_only_for_relevancy(page: TestClient) -> None:
    """Other scorers have no generated questions, and their means are never titled relevancy."""
    found = words(page.get("/?scorer=faithfulness").text)

    assert "Reads like an answer to" in words(page.get("/").text)
    assert "Reads like an answer to" not in found
    assert "Faithfulness, 24 h: all routes" in found
    assert "Relevancy fell" not in found


@pytest.mark.slow
def test_the_window_setting_changes_only_the_trend(seeded: TrackingStore) -> None:
    """Tiles that say 24 h always cover the last 24 hours."""
    week, month = load_shown(seeded), load_shown(seeded, window="30d", since=NOW - 30 * DAY)

    assert (week.fleet.days[0].current, week.worst, week.verdict.state, week.verdict.routes) == (
        month.fleet.days[0].current,
        month.worst,
        month.verdict.state,
        month.verdict.routes,
    )
    assert len(week.buckets) > len(month.buckets)
    assert sum(one.n for one in week.buckets) == sum(one.n for one in month.buckets)


def test_the_trend_chart_shows_deploys_and_alerts(seeded: TrackingStore) -> None:
    """Markers in the window are drawn, and alerts link to their page."""
    found = load_shown(seeded)
    short = load_shown(seeded, window="24h", since=NOW - DAY)

    assert [one.label for one in found.markers] == ["prompt 7", "index v42", "alert: drop on docs-search"]
    assert [one.kind for one in found.markers] == ["deploy", "deploy", "alert"]
    assert found.markers[2].href.startswith("/alerts/")
    assert not short.markers


def test_without_a_selected_service_the_overview_covers_all_services(
    open_pages: Open, own_seeded: TrackingStore
) -> None:
    """The verdict names the service, the grid has rows of all services, and a service in the URL narrows both."""
    add_second_service(own_seeded)
    page = open_pages(own_seeded)

    first, other = page.get("/").text, page.get("/?service=mobile").text

    assert "<h1>All services</h1>" in first
    assert "1 of 4 routes got worse: relevancy fell on docs-search of handbook. Last 24 h" in words(first)
    assert 'href="/?service=mobile">mobile</a>' in first
    assert 'href="/r/docs-search?service=handbook"' in first
    rows = re.findall(r'<th scope="row"><a href="/r/([^"?]*)\?service=(\w+)"', first)
    assert rows[0] == ("docs-search", "handbook")
    assert set(rows) == {(route, "handbook") for route in ("docs-search", "ask", "support%2Feu")} | {("ask", "mobile")}
    assert "<h1>mobile</h1>" in other
    assert 'href="/r/docs-search' not in other
    assert "got worse:" not in words(other)
    assert "Also open: Answer relevancy" in words(other)
    assert "Also open" not in words(first)


@pytest.mark.parametrize(
    "path", ["/", "/answers", "/compare", "/usage", "/r/ask", "/r/docs-search", "/alerts", "/worker"]
)
def test_a_page_that_shows_one_service_selects_it_in_its_menu(
    open_pages: Open, own_seeded: TrackingStore, path: str
) -> None:
    """Only pages about all services offer all services."""
    add_second_service(own_seeded)
    text = open_pages(own_seeded).get(path).text

    menu = re.search(r'<select name="service" aria-label="Service">(.*?)</select>', text, re.DOTALL)

    shown = re.search(r'<p class="note">service (\w+)', text)
    if menu is not None and shown is not None:
        assert re.findall(r'value="(\w*)" selected', menu[1]) == [shown[1]]
        assert "All services" not in menu[1]
    elif menu is not None:
        assert " selected" not in menu[1]
    assert (menu is not None) == (path in {"/", "/compare", "/usage", "/r/ask"})


@pytest.mark.parametrize("window", ["24h", "7d"])
def test_a_cell_of_the_grid_links_to_exactly_its_answers(page: TestClient, window: str) -> None:
    """The row of the route that got worse is the first one, and its lower cells are hatched and have a sign."""
    grid = page.get(f"/?window={window}").text.split('id="grid"')[1].split("</section>")[0]
    first = grid.split("<tbody>")[1].split("<tr")[1]
    cells = re.findall(r'<td class="([^"]*)"><a href="([^"]+)" title="n=(\d+)">([^<]*)', first)

    assert ">docs-search</a>" in first
    assert any(style.startswith(("d2", "d3")) and text.startswith("\u2212.") for style, _, _, text in cells)
    for _, link, count, _ in cells[-3:]:
        path, _, query = html.unescape(link).partition("?")
        found = page.get(f"{path}.json?{query}&refusals=show").json()
        assert len(found["answers"]) == int(count)


def test_the_route_that_fell_is_drawn_in_the_main_chart(page: TestClient) -> None:
    """Its line has its own color and is named in the legend; each row of the table links to its answers."""
    text = page.get("/").text
    chart = text.split('id="trend-panel"')[1].split("</section>")[0]

    assert chart.count('<g class="failing">') == 3
    assert re.search(r'class="failing"[^/]*/[^/]*/g></svg>docs-search</span>', chart)
    links = [html.unescape(link) for link in re.findall(r'<th scope="row"><a href="([^"]+)"', chart)]
    counts = re.findall(r"</th><td[^>]*>[^<]*</td><td[^>]*>[^<]*</td><td[^>]*>(\d+)", chart)
    assert len(links) == len(counts) > 20
    for link, count in list(zip(links, counts, strict=True))[:3]:
        path, _, query = link.partition("?")
        found = page.get(f"{path}.json?{query}&refusals=show").json()
        assert len(found["answers"]) == int(count)


@each("zone", ["", "Asia/Tokyo"])
def test_the_range_form_takes_local_times(page: TestClient, zone: str) -> None:
    """The form returns to the page with absolute times, and keeps the rest of the query."""
    headers = {"cookie": f"germane_zone={zone}"} if zone else {}
    query = {"since": "2026-11-19T09:00", "until": "2026-11-20T09:00", "bucket": "3h"}
    back = "/r/docs-search?window=30d&scorer=faithfulness"
    response = page.get("/range", params=query | {"back": back}, headers=headers)
    shown = page.get(response.headers["location"], headers=headers)

    assert response.status_code == 303
    assert response.headers["location"].startswith("/r/docs-search?scorer=faithfulness&since=")
    assert 'name="since" value="2026-11-19T09:00"' in shown.text
    assert 'name="until" value="2026-11-20T09:00"' in shown.text
    assert re.search("per 3 h", shown.text)
    assert page.get("/range", params={"since": "soon"}).status_code == 400
    assert page.get("/range", params={"back": "//evil.example"}).headers["location"] == "/"


def test_a_range_with_too_many_buckets_is_rejected(page: TestClient) -> None:
    """A page with a bucket for each hour of a year would be several megabytes large."""
    response = page.get("/?since=2025-11-20&bucket=1h")

    assert response.status_code == 400
    assert "more than 400 buckets" in response.text


def test_links_keep_the_selected_range(page: TestClient) -> None:
    """Only links to a fixed range, such as the last 24 hours, replace it."""
    selected = "since=2026-11-16T00%3A00%3A00%2B00%3A00&until=2026-11-19T12%3A00%3A00%2B00%3A00"
    for path in ("/", "/r/docs-search", "/answers", "/alerts", "/worker", "/alerts/backtest"):
        text = page.get(f"{path}?{selected}").text
        links = [html.unescape(link) for link in re.findall(r'<a [^>]*?href="(/[^"#]*)', text)]
        lost = [
            link
            for link in links
            if "since=" not in unquote(link)
            and "window=" not in link
            and link not in {"/", "/worker", "/labels"}
            and ".json" not in link
        ]
        assert not lost, (path, lost)


def test_without_a_baseline_earlier_scores_are_compared(own_seeded: TrackingStore) -> None:
    """The page names the period that it compares with."""
    (version,) = [
        one for one in own_seeded.baselines.list_versions() if one.status == "active" and not one.is_provisional
    ]
    own_seeded.baselines.restart_learning(version.key, "accepted", since=NOW, until=NOW + DAY)

    found = load_shown(own_seeded).fleet.days[0].reference_period

    assert found is not None
    assert (found.baseline, found.since, found.until) == (None, NOW - 7 * DAY + HALF, NOW - DAY - HALF)


def test_an_imported_baseline_is_not_compared(own_seeded: TrackingStore) -> None:
    """The scores of an imported baseline are not in this database."""
    (version,) = [
        one for one in own_seeded.baselines.list_versions() if one.status == "active" and not one.is_provisional
    ]
    assert version.baseline is not None
    fields = {name: getattr(version.baseline, name) for name in Baseline.__slots__}
    earlier = Baseline(**fields | {"since": NOW - 90 * DAY, "until": NOW - 60 * DAY})
    key = BaselineKey(SERVICE, RELEVANCY, FINGERPRINTS[RELEVANCY])
    assert own_seeded.baselines.replace_baseline(key, "imported", earlier, (None, None))

    found = load_shown(own_seeded).fleet.days[0].reference_period

    assert found is not None
    assert found.baseline is None


def test_erased_text_on_the_overview_is_marked_as_erased(open_pages: Open, own_seeded: TrackingStore) -> None:
    """The scores remain after the text is erased."""
    own_seeded.retention.prune(texts_before=NOW)

    found = words(open_pages(own_seeded).get("/").text)

    assert "(question erased or not stored)" in found
    assert "docs-search . Last 24 h:" in found


def test_an_overview_without_recent_data_is_marked_as_stale(open_pages: Open, seeded: TrackingStore) -> None:
    """After three days without answers, the verdict says nothing about the last day; open alerts are still shown."""
    later = NOW + 3 * DAY
    found = words(open_pages(seeded, now=later).get("/").text)

    assert "Relevancy, 24 h: all routes \u2013 no score" in found
    assert "No scored answers in the last 24 h." in found
    assert "Since about 19 Nov 0" in found


def test_the_overview_of_an_empty_database_shows_the_first_step(open_pages: Open, store: TrackingStore) -> None:
    """The page shows neither an error nor scores."""
    found = open_pages(store).get("/")

    assert found.status_code == 200
    assert "<h1>First steps</h1>" in found.text


def test_hostile_texts_on_the_overview_are_escaped(open_pages: Open, store: TrackingStore) -> None:
    """Questions, answers and route names are text, and the page stays small."""
    write_hostile_exchanges(store)
    found = open_pages(store).get("/").text

    assert "<script>window" not in found
    assert "<img src=x" not in found
    assert "<svg onload" not in found
    assert html.escape(HOSTILE) in found.replace("&#34;", "&quot;")
    assert TEXTS["script"] not in found
    assert len(found.encode()) < 200_000
    assert 'href="/r/%2F%2Fevil.example%2F"' in found


def test_links_on_the_overview_keep_the_mount_prefix(open_pages: Open, seeded: TrackingStore) -> None:
    """No link leads outside the prefix."""
    found = open_pages(seeded, root="/insights").get("/insights/").text
    hrefs = set(re.findall(r'(?:href|action|src)="(/[^"]*)"', found))

    assert hrefs
    assert {one for one in hrefs if not one.startswith("/insights/")} == set()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"budget": {"requests_per_day": 400}},
            "selected by expected information, within the budget: 400 requests per day",
        ),
        (
            {"budget": {"usd_per_hour": 0.5, "requests_per_day": 1000}},
            "within the budget: 1,000 requests per day, $0.50 per hour",
        ),
    ],
)
def test_the_overview_explains_the_sampling_rule(
    open_pages: Open, seeded: TrackingStore, settings: dict[str, Any], expected: str
) -> None:
    """The tile also shows the numbers of scored and seen answers."""
    assert expected in words(open_pages(seeded, **settings).get("/").text)


@BOTH
@pytest.mark.slow
def test_the_numbers_of_the_page_agree_while_answers_arrive(own_week: Week) -> None:
    """An answer that another process adds during the queries does not change the later ones."""
    from sqlalchemy import event

    engine = own_week.store.context.database.engine
    newest = own_week.store.answers.list_exchanges(limit=1)[0]
    arriving = [replace(newest, id=f"{number:032x}", trace_id=f"{number:032x}") for number in range(30)]
    expected = load_shown(own_week.store)
    with closing(TrackingStore(engine.url.render_as_string(hide_password=False), clock=lambda: NOW)) as other:

        def add_one(*given: Any) -> None:
            if arriving and given[2].startswith("SELECT"):
                added = arriving.pop()
                other.exchanges.add([added])
                other.sampling.assign_tasks([SamplingDecision(added.id, 1.0, "sampled")], FINGERPRINTS)

        event.listen(engine, "after_cursor_execute", add_one)
        loaded = load_shown(own_week.store)

    assert not arriving
    assert loaded == expected
    assert load_shown(own_week.store) != expected


@BOTH
def test_the_number_of_queries_does_not_grow_with_the_number_of_routes(own_week: Week, tmp_path: Path) -> None:
    """The routes of a page are loaded together."""
    from sqlalchemy import event

    asked: list[str] = []
    engine = engine_of(own_week.store)
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))

    load_shown(own_week.store)

    assert len(asked) <= 130


def test_the_list_of_other_routes_is_short(tmp_path: Path) -> None:
    """It links to the page on which any other route can be selected."""
    with closing(TrackingStore(f"sqlite:///{migrated_file(tmp_path)}", clock=lambda: NOW)) as store:
        names = [f"route-{number:02}" for number in range(31)]
        write(store, Random(1), [("shop", name, NOW - timedelta(hours=1), 0.8) for name in names])
        with open_dashboard(store) as client:
            more = client.get("/").text.partition('id="more-routes"')[2].partition("</details>")[0]

    assert "25 more routes" in more
    assert more.count('class="route"') == 20
    assert '<a href="/answers">select one of the other 5 on the answers page</a>' in more
