"""The same numbers for a window everywhere: on pages and in the command line, gauges, database view and store."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.dashboard.scrape import MetricSamples, parse_metrics

from germane import sanitize
from germane.cli.app import group
from germane.dashboard import create_app
from germane.exchange import Exchange
from germane.insights.formatting import format_count as counted
from germane.insights.formatting import format_interval, format_number, format_percent
from germane.score import LOWEST_BAND, Score, UnscoredReason, band_of
from germane.settings import load_settings
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.db.models import metadata
from germane.testing import transaction

UNTIL = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
"""A day that is over: a trend by days has one point of it."""
SINCE = UNTIL - timedelta(days=1)
SCORER, FINGERPRINT, SERVICE = "answer_relevancy", "5d0c1f27a9be", "shop"
ONLY = {SCORER: FINGERPRINT}
LEASE = timedelta(hours=1)


@dataclass(frozen=True)
class Given:
    """An answer, its sampling probability, and its score."""

    route: str
    probability: float
    value: float | None
    """None of one that was not drawn."""
    at: datetime
    proxy: float | None = None


def write(store: TrackingStore, answers: Sequence[Given]) -> None:
    """Store answers with their scores. Unsampled answers are skipped."""
    made = {f"{number:032x}": one for number, one in enumerate(answers)}
    store.exchanges.add([_exchange(id_, one) for id_, one in made.items()])
    store.sampling.assign_tasks([_decision(id_, one) for id_, one in made.items()], ONLY)
    claims = store.queue.claim_tasks("me", ONLY, limit=len(made) + 1, lease=LEASE)
    store.queue.complete_tasks(
        "me", [(task, _score(made[task.exchange_id])) for claim in claims for task in claim.tasks]
    )
    store.queue.release_tasks("me")


def _exchange(id_: str, one: Given) -> Exchange:
    who = {"id": id_, "trace_id": id_, "span_id": id_[16:]}
    return Exchange(**who, service=SERVICE, route=one.route, question="q", answer="a", started_at=one.at)


def _decision(id_: str, one: Given) -> SamplingDecision:
    skip = {SCORER: UnscoredReason.NOT_SAMPLED} if one.value is None else {}
    chance = None if one.proxy is None else 1.0
    return SamplingDecision(id_, one.probability, "sampled", skip, proxy=one.proxy, proxy_probability=chance)


def _score(one: Given) -> Score:
    assert one.value is not None
    label = "noncommittal" if one.value == 0 else band_of(one.value)
    return Score(scorer=SCORER, fingerprint=FINGERPRINT, value=one.value, label=label, scored_at=one.at)


@dataclass(frozen=True)
class Views:
    """All the places that show the window's numbers."""

    url: str
    page: TestClient

    def report(self, *more: str) -> str:
        """Return the command line's report for the window."""
        return self._germane("report", *more)

    def trend(self, *more: str) -> Mapping[str, Any]:
        """Return the only point of a daily trend."""
        found = json.loads(self._germane("trend", SCORER, "--bucket", "1d", "--json", *more))
        (bucket,) = found["buckets"]
        point: Mapping[str, Any] = bucket
        return point

    def _germane(self, *arguments: str) -> str:
        window = ("--since", SINCE.isoformat(), "--until", UNTIL.isoformat(), "--database", self.url)
        done = CliRunner().invoke(group, [*arguments, *window], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    def gauges(self) -> MetricSamples:
        """Return the gauges of a window that ends in the same minute."""
        found = parse_metrics(self.page.get("/metrics").text)
        assert found.one("germane_window_begin_timestamp_seconds", window="24h") == SINCE.timestamp()
        assert found.one("germane_window_end_timestamp_seconds", window="24h") == UNTIL.timestamp()
        return found

    def tiles(self, address: str) -> dict[str, str]:
        """Return the text of each tile on a page, by heading."""
        text = self.page.get(address).text
        found = re.findall(r'<div class="tile[^"]*"><dt>(.*?)</dt><dd>(.*?)</dd></div>', text, re.DOTALL)
        return {head: _plain(body) for head, body in found}

    def cards(self) -> dict[str, str]:
        """Return the text of each card on the overview page, by route."""
        found = re.findall(r'<a class="small[^"]*".*?</a>', self.page.get("/").text, re.DOTALL)
        return {match[1]: _plain(one) for one in found if (match := re.search("<code[^>]*>(.*?)</code>", one))}

    def view(self, of: str = "1 = 1") -> tuple[float, int]:
        """Return mean and n from the documented query on the ``answers`` view."""
        asked = (
            "SELECT sum(weight * value) / sum(weight), count(*) FROM answers WHERE value IS NOT NULL"
            f" AND started_at >= '{SINCE:%Y-%m-%d}' AND started_at < '{UNTIL:%Y-%m-%d}' AND {of}"
        )
        connect: Callable[[], Any] = partial(psycopg.connect, self.url)
        if self.url.startswith("sqlite"):
            connect = partial(sqlite3.connect, self.url.removeprefix("sqlite:///"))
        else:
            asked = "SET TIME ZONE 'UTC'; " + asked
        with closing(connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(asked)
            while cursor.description is None:
                cursor.nextset()
            mean, n = cursor.fetchone()
        return float(mean), n


def _plain(text: str) -> str:
    return " ".join(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", text, flags=re.DOTALL).split())


@pytest.fixture
def shop(migrated_url: str, bare: Path) -> Iterator[TrackingStore]:
    """An empty database of either kind, with a clock at midnight."""
    with closing(TrackingStore(migrated_url, clock=lambda: UNTIL)) as store:
        yield store


@contextmanager
def viewed(store: TrackingStore, url: str) -> Iterator[Views]:
    """Serve the dashboard, and return all the places that show the window's numbers."""
    app = create_app(load_settings(database="sqlite://"), store=store, now=lambda: UNTIL)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)) as page:
        yield Views(url, page)


# Shrinking would take minutes, because each example fills a database.
@settings(
    max_examples=5,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(chance=st.randoms(use_true_random=False))
def test_page_command_line_view_and_metrics_show_the_same_number(
    shop: TrackingStore, migrated_url: str, chance: random.Random
) -> None:
    """For any routes, weights and scores, the mean, interval, n, shares and counts are the same everywhere."""
    _forget(shop)
    inside = [_drawn(chance) for _ in range(chance.randrange(60, 120))]
    enough = [Given("ask", 0.5, 0.25 + one / 50, SINCE + timedelta(minutes=one)) for one in range(25)]
    outside = [Given("ask", 0.1, 0.01, at) for at in (SINCE - timedelta(seconds=1), UNTIL + timedelta(seconds=1))]
    write(shop, [*inside, *enough, *outside])
    with viewed(shop, migrated_url) as views:
        _compare(views, [*inside, *enough])


def _drawn(chance: random.Random) -> Given:
    value = chance.choices([0.0, round(chance.uniform(0.001, 1.0), 6), None], [1, 6, 2])[0]
    route, at = chance.choice(["ask", "docs-search", "support/eu"]), SINCE + timedelta(seconds=chance.randrange(86_400))
    return Given(route, chance.uniform(0.02, 1.0), value, at)


def _forget(store: TrackingStore) -> None:
    with transaction(store) as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())


def _compare(views: Views, answers: Sequence[Given]) -> None:
    report = json.loads(views.report("--json"))
    routes = {one["route"]: one for one in report["routes"]}
    text, gauges, cards = views.report(), views.gauges(), views.cards()
    markdown, html = views.report("--format", "markdown"), _plain(views.report("--format", "html"))
    by_route = {one.route: [other for other in answers if other.route == one.route] for one in answers}
    for route, mine in by_route.items():
        if not any(one.value is not None for one in mine):
            assert route not in routes
            continue
        _compare_route(views, routes[route], mine, gauges, cards[route])
        row = _row(routes[route])
        for shown in (markdown.replace("\\", ""), html):
            assert row in " ".join(shown.replace("|", " ").split())
        assert set(row.split()) <= {*text.split()}  # long cells are wrapped
    _compare_service(views, answers, gauges)


def _compare_route(
    views: Views, found: Mapping[str, Any], mine: Sequence[Given], gauges: MetricSamples, card: str
) -> None:
    """Check the report against the scores, and gauges, trend, view and pages against the report."""
    route, labels = found["route"], {"route": found["route"], "window": "24h", "newest": "true"}
    scored = [(one.value, 1 / one.probability) for one in mine if one.value is not None]
    weight = sum(weight for _, weight in scored)
    assert found["mean"] == pytest.approx(sum(value * one for value, one in scored) / weight, abs=1e-9)
    assert found["low_share"] == pytest.approx(
        sum(one for value, one in scored if band_of(value) == LOWEST_BAND) / weight, abs=1e-9
    )
    assert found["n"] == len(scored)
    assert (found["coverage"]["scored"], found["coverage"]["seen"]) == (len(scored), len(mine))
    assert views.view(f"route = '{route}'") == (pytest.approx(found["mean"], abs=1e-9), found["n"])
    _same(views.trend("--route", route), found)
    assert gauges.one("germane_scores", **labels) == found["n"]
    assert gauges.one("germane_exchanges_seen", route=route, window="24h") == len(mine)
    tiles = views.tiles(f"/r/{route}?window=24h")
    if found["has_min_samples"]:
        _same(_gauged(gauges, "germane_", labels), found)
        interval = format_interval(tuple(found["interval"]))
        shown = f"{format_number(found['mean'])} 95% interval {interval}, n={counted(found['n'])}"
        assert tiles["Answer relevancy, 24 h"] == shown
        assert tiles["Low scores, 24 h"].startswith(format_percent(found["low_share"]))
        assert card.startswith(f"{route} {shown.split()[0]}")
        assert shown.split(" ", 1)[1] in card
    else:
        assert not gauges.all("germane_score_mean", **labels)
        assert tiles["Answer relevancy, 24 h"] == f"\u2013 not enough data (n={found['n']}, need 20)"
    assert tiles["Scored, 24 h"].startswith(f"{counted(len(scored))} of {counted(len(mine))}")


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    for name in ("n", "mean", "low_share", "noncommittal_share", "correlation"):
        assert one[name] == pytest.approx(other[name], abs=1e-9), name
    assert one["interval"] == pytest.approx(other["interval"], abs=1e-9)


def _gauged(gauges: MetricSamples, prefix: str, labels: Mapping[str, str]) -> Mapping[str, Any]:
    """Return gauges by their names in the report."""
    correlation = gauges.all(f"{prefix}score_correlation", **labels)
    ends = [gauges.one(f"{prefix}score_mean_ci_{end}", **labels) for end in ("lower", "upper")]
    return {
        "n": gauges.one(f"{prefix}scores", **labels),
        "mean": gauges.one(f"{prefix}score_mean", **labels),
        "low_share": gauges.one(f"{prefix}low_ratio", **labels),
        "noncommittal_share": gauges.one(f"{prefix}noncommittal_ratio", **labels),
        "interval": ends,
        "correlation": next(iter(correlation.values()), None),
    }


def _row(found: Mapping[str, Any]) -> str:
    """Return a row of a report's table."""
    n, (scored, seen) = found["n"], (found["coverage"]["scored"], found["coverage"]["seen"])
    head, end = f"{sanitize.line(found['route'])} {SCORER} {n}", f"{scored} of {seen}"
    if not found["has_min_samples"]:
        return f"{head} - not enough data (need 20) - - {end}"
    low, high = found["interval"]
    corrected = "" if found["correlation"] is None else f", corrected (r={found['correlation']:z.2f})"
    shares = f"{found['low_share']:.0%} {found['noncommittal_share']:.0%}"
    return f"{head} {found['mean']:z.3f} {low:z.3f} to {high:z.3f}{corrected} {shares} {end}"


def _compare_service(views: Views, answers: Sequence[Given], gauges: MetricSamples) -> None:
    """Check all routes together: gauges, trend and the first page."""
    point, labels = views.trend(), {"service": SERVICE, "window": "24h", "newest": "true"}
    scored = sum(one.value is not None for one in answers)
    _same(_gauged(gauges, "germane_service_", labels), point)
    assert point["n"] == scored
    assert (point["coverage"]["scored"], point["coverage"]["seen"]) == (scored, len(answers))
    if point["correlation"] is None:
        assert views.view() == (pytest.approx(point["mean"], abs=1e-9), scored)
    corrected = "" if point["correlation"] is None else f" , corrected (r={format_number(point['correlation'])})"
    tiles = views.tiles("/")
    mean = f"{format_number(point['mean'])} 95% interval {format_interval(tuple(point['interval']))}"
    expected = f"{mean}, n={counted(scored)}{corrected}"
    assert tiles["Relevancy, 24 h: all routes"] == expected
    assert tiles["Low scores, 24 h: all routes"].startswith(format_percent(point["low_share"]))
    assert tiles["Scored, 24 h: all routes"].startswith(f"{counted(scored)} of {counted(len(answers))}")


def test_a_corrected_mean_is_labeled_everywhere(shop: TrackingStore, migrated_url: str) -> None:
    """The view contains the raw mean, which differs. Elsewhere, the corrected mean is labeled with its correlation."""
    chance = random.Random(7)
    write(shop, [_with_proxy(chance, SINCE + timedelta(minutes=2 * place)) for place in range(600)])
    with viewed(shop, migrated_url) as views:
        _compare_corrected(views)


def _with_proxy(chance: random.Random, at: datetime) -> Given:
    quality = chance.betavariate(5, 2)
    proxy = min(1.0, max(0.0, quality + chance.gauss(0, 0.03)))
    return Given("ask", 0.15, quality if chance.random() < 0.15 else None, at, proxy)


def _compare_corrected(views: Views) -> None:
    (found,) = json.loads(views.report("--json"))["routes"]
    gauges, (alone, n) = views.gauges(), views.view()
    assert found["correlation"] > 0.9
    assert abs(found["mean"] - alone) > 1e-3
    assert n == found["n"]
    _same(views.trend(), found)
    for prefix in ("germane_", "germane_service_"):
        _same(_gauged(gauges, prefix, {"window": "24h", "newest": "true"}), found)
    correction = f"corrected (r={found['correlation']:z.2f})"
    for address, tile in (("/", "Relevancy, 24 h: all routes"), ("/r/ask?window=24h", "Answer relevancy, 24 h")):
        shown = views.tiles(address)[tile]
        assert shown.startswith(
            f"{format_number(found['mean'])} 95% interval {format_interval(tuple(found['interval']))}, n={n}"
        )
        assert shown.endswith(correction)
    for format_ in ("text", "markdown", "html"):
        text = " ".join(views.report("--format", format_).replace("\\", "").split())
        assert correction in text
        assert "The answers SQL view contains the uncorrected scores" in text


def test_grafana_dashboard_queries_the_exported_gauges(shop: TrackingStore, migrated_url: str) -> None:
    """The dashboard queries the means by their exported names."""
    write(shop, [Given("ask", 1.0, 0.5, SINCE + timedelta(minutes=one)) for one in range(30)])
    dashboard = CliRunner().invoke(group, ["grafana", "--print", "dashboard"], catch_exceptions=False).stdout
    with viewed(shop, migrated_url) as views:
        for name in ("germane_score_mean", "germane_scores", "germane_low_ratio"):
            assert views.gauges().samples[name]
            assert re.search(rf"\b{name}{{", dashboard)
