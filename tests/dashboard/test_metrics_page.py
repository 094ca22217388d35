"""The metrics page for Prometheus."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from starlette.testclient import TestClient
from tests.cli.conftest import an_exchange
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.scrape import MetricSamples, parse_metrics
from tests.dashboard.seeding import NOW, SEARCH, SERVICE
from tests.insights.situations import drop_alert, make_situation

from germane.alert import ScoreLevel
from germane.dashboard import create_app
from germane.dashboard.metrics import exposition
from germane.dashboard.metrics.exposition import MAX_AGE, WINDOWS, DatabaseCollector
from germane.dashboard.metrics.families import MAX_ROUTE_SCORERS, MAX_ROUTES, MAX_SCORERS
from germane.insights.verdict import build_verdict
from germane.score import Score, UnscoredReason
from germane.settings import Budget, Settings, load_settings
from germane.storage import OutgoingRequest, RequestUsage, SamplingDecision, TrackingStore

MINUTE = NOW.replace(second=0, microsecond=0)
CLOSE = 1e-9


@pytest.fixture
def scrape(store: TrackingStore) -> Callable[..., MetricSamples]:
    """Read the gauges of the store once, at the end of the week or at the given time."""

    def read(at: datetime = NOW, **given: Any) -> MetricSamples:
        registry = CollectorRegistry()
        registry.register(DatabaseCollector(store, settings(**given), now=lambda: at))
        return parse_metrics(generate_latest(registry).decode())

    return read


def settings(**given: Any) -> Settings:
    return load_settings(database="sqlite://", **given)


def write_scored(
    store: TrackingStore, values: list[float], *, fingerprint: str = "f1", ago: timedelta, **given: Any
) -> None:
    """Write exchanges of the given age with one score each."""
    made = [an_exchange(started_at=NOW - ago, **given) for _ in values]
    store.exchanges.add(made)
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "sampled") for one in made], {"answer_relevancy": fingerprint}
    )
    claims = store.queue.claim_tasks(
        "test", {"answer_relevancy": fingerprint}, limit=len(values), lease=timedelta(minutes=1)
    )
    tasks = [task for claim in claims for task in claim.tasks]
    score = Score(scorer="answer_relevancy", fingerprint=fingerprint, scored_at=NOW, value=0.0)
    store.queue.complete_tasks(
        "test", [(task, replace(score, value=value)) for task, value in zip(tasks, values, strict=True)]
    )


@BOTH
def test_exported_gauges_equal_the_stored_values(week: Week, page: TestClient) -> None:
    """Mean, interval, n, shares and counts equal the store's summary and coverage of the exported window."""
    found = parse_metrics(page.get("/metrics").text)

    assert found.one("germane_up") == 1
    for name, span in WINDOWS.items():
        until = datetime.fromtimestamp(found.one("germane_window_end_timestamp_seconds", window=name), UTC)
        since = datetime.fromtimestamp(found.one("germane_window_begin_timestamp_seconds", window=name), UTC)
        assert (since, until) == (MINUTE - span, MINUTE)
        summaries = week.store.trends.summary(since=since, until=until)
        assert summaries or name == "1h"
        for one in summaries:
            labels = {"service": one.service, "route": one.route, "scorer": one.scorer, "window": name}
            labels |= {"fingerprint": one.fingerprint, "newest": str(one.newest).lower()}
            shown = {
                "germane_score_mean": one.mean,
                "germane_score_mean_ci_lower": one.interval[0] if one.interval else None,
                "germane_score_mean_ci_upper": one.interval[1] if one.interval else None,
                "germane_low_ratio": one.low_share,
                "germane_noncommittal_ratio": one.noncommittal_share,
            }
            assert found.one("germane_scores", **labels) == one.n
            for gauge, value in shown.items():
                expected = [pytest.approx(value, abs=CLOSE)] if one.has_min_samples and value is not None else []
                assert list(found.all(gauge, **labels).values()) == expected
        assert len(found.all("germane_scores", window=name)) == len(summaries)
    assert any(found.all("germane_score_mean", route=SEARCH, window="24h"))


def test_the_service_mean_on_the_metrics_page_covers_all_routes(week: Week, page: TestClient) -> None:
    """The mean is weighted by traffic and equals the mean on the overview."""
    found = parse_metrics(page.get("/metrics").text)

    for name, span in WINDOWS.items():
        services = week.store.trends.window_summary(since=MINUTE - span, until=MINUTE).services
        for one in services:
            labels = {"service": one.service, "scorer": one.scorer, "fingerprint": one.fingerprint, "window": name}
            expected = [pytest.approx(one.mean, abs=CLOSE)] if one.has_min_samples else []
            assert found.one("germane_service_scores", **labels) == one.n
            assert list(found.all("germane_service_score_mean", **labels).values()) == expected
        assert len(found.all("germane_service_scores", window=name)) == len(services)
    assert found.all("germane_service_score_mean_ci_lower", window="7d", newest="true")


@BOTH
def test_every_exchange_is_counted_once_in_the_metrics(week: Week, page: TestClient) -> None:
    """Scored, skipped, failed and pending exchanges add up to those seen, and equal the store's counts."""
    found = parse_metrics(page.get("/metrics").text)

    coverage = [one for one in week.store.trends.coverage(since=MINUTE - WINDOWS["7d"], until=MINUTE) if one.scorer]
    assert coverage
    for one in coverage:
        labels = {"service": one.service, "route": one.route, "scorer": one.scorer, "window": "7d"}
        assert found.one("germane_exchanges", outcome="scored", **labels) == one.scored
        assert found.one("germane_exchanges", outcome="pending", **labels) == one.pending
        assert found.one("germane_exchanges_seen", **labels) == one.seen
        assert sum(found.all("germane_exchanges", **labels).values()) == one.seen
        for reason, number in one.skipped.items():
            assert found.one("germane_exchanges", outcome="skipped", reason=reason, **labels) == number


def test_baseline_alerts_backlog_and_workers_are_exported(week: Week, page: TestClient) -> None:
    """Gauges for baselines, alerts, backlog and workers are exported with the means."""
    found, store = parse_metrics(page.get("/metrics").text), week.store

    (version,) = [one for one in store.baselines.list_versions() if one.status == "active" and not one.is_provisional]
    assert version.baseline is not None
    known = version.baseline.routes[SEARCH].mean
    assert found.one("germane_baseline_mean", service=SERVICE, route=SEARCH) == pytest.approx(known, abs=CLOSE)
    alert = store.alerts.get(week.seeded.open_alert)
    assert alert is not None
    labels = {"rule": "drop", "severity": alert.severity, "state": alert.state}
    assert sum(found.all("germane_alerts_open", **labels).values()) == 1
    backlog = store.backlog.load_backlog(alive_within=timedelta(minutes=1))
    assert found.one("germane_queue_depth", state="undecided") == backlog.outstanding.undecided > 0
    assert found.one("germane_queue_lag_seconds") == pytest.approx(backlog.lag.total_seconds(), abs=CLOSE)
    assert found.one("germane_workers") == backlog.workers


def test_the_verdict_of_the_overview_is_exported(page: TestClient) -> None:
    """The metrics name the same route as the first sentence of the page."""
    found = parse_metrics(page.get("/metrics").text)

    assert "1 of 3 routes got worse: relevancy fell on" in page.get("/").text
    assert found.one("germane_verdict_routes", state="worse") == 1
    assert found.one("germane_verdict_routes", state="") == 3
    assert found.one("germane_verdict_drop", service=SERVICE, route=SEARCH, scorer="answer_relevancy") > 0.1


def test_metrics_do_not_search_for_the_cause_of_a_drop(week: Week) -> None:
    """They do not state it, and are read more often than pages."""
    verdict = exposition.load_snapshot(week.store, load_settings(database="sqlite://"), NOW).verdict

    assert verdict is not None
    assert verdict.is_worse
    assert verdict.situation.explained is None


def test_the_drop_of_a_service_as_a_whole_is_exported(scrape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has an empty route. A share of answers is no decrease of a mean, so it is left out."""
    level = {"shifts": (), "current": ScoreLevel(mean=0.6, n=90), "baseline": ScoreLevel(mean=0.8, n=90)}
    for kind, expected in (("drop", [pytest.approx(0.2)]), ("noncommittal_rate", [])):
        verdict = build_verdict(make_situation({}, None, alerts=[drop_alert(type=kind, **level)]))
        monkeypatch.setattr(
            exposition, "load_unexplained_fleet", lambda *_, found=verdict: SimpleNamespace(verdict=found)
        )

        found = scrape()

        assert list(found.all("germane_verdict_drop", route="").values()) == expected
        assert found.one("germane_verdict_routes", state="worse") == 1


def test_the_length_and_age_of_each_forwarding_queue_are_exported(store: TrackingStore, scrape: Any) -> None:
    """A target for which nothing waits has no series."""
    requests = [OutgoingRequest("traces", b"text")] * 3
    store.received.stage([], max_wait=1.0, requests=requests, target="http://there 1a2b")
    found = scrape()

    (waiting,) = store.forwarding.list_targets()
    assert len(found.all("germane_forwarding_requests")) == 1
    assert found.one("germane_forwarding_requests", target="http://there 1a2b") == 3
    assert found.one("germane_forwarding_lag_seconds") <= waiting.age.total_seconds()


def test_a_mean_gauge_needs_twenty_scores(store: TrackingStore, scrape: Any) -> None:
    """With fewer than 20 scores, only n is exported; a window without scores has no series."""
    write_scored(store, [0.5] * 19, ago=timedelta(minutes=90))
    assert scrape().one("germane_scores", window="24h") == 19
    assert not scrape().samples.get("germane_score_mean")

    write_scored(store, [0.9], ago=timedelta(minutes=90))
    found = scrape()
    assert found.one("germane_score_mean", window="24h") == pytest.approx((19 * 0.5 + 0.9) / 20, abs=CLOSE)
    assert found.labels("germane_scores", "window") == {"24h", "7d"}
    assert not found.all("germane_exchanges_seen", window="1h")


def test_metrics_never_average_scores_of_different_fingerprints(store: TrackingStore, scrape: Any) -> None:
    """Each judge has its own mean; the mean from the judge of the latest answer is marked as newest."""
    write_scored(store, [0.2] * 20, fingerprint="old", ago=timedelta(hours=3))
    write_scored(store, [0.8] * 20, fingerprint="new", ago=timedelta(hours=2))
    found = scrape()

    means = {dict(key)["fingerprint"]: value for key, value in found.all("germane_score_mean", window="7d").items()}
    assert means == {"old": pytest.approx(0.2, abs=CLOSE), "new": pytest.approx(0.8, abs=CLOSE)}
    assert found.one("germane_score_mean", window="7d", newest="true") == pytest.approx(0.8, abs=CLOSE)
    assert found.one("germane_score_mean", window="7d", fingerprint="old", newest="false") == pytest.approx(
        0.2, abs=CLOSE
    )


def test_only_the_two_newest_fingerprints_are_exported(store: TrackingStore, scrape: Any) -> None:
    """A judge that changes every hour does not create unbounded series."""
    for number in range(4):
        write_scored(store, [0.5], fingerprint=f"f{number}", ago=timedelta(hours=12 - number))

    assert scrape().labels("germane_scores", "fingerprint") == {"f2", "f3"}


HOSTILE = 'a"}\ngermane_up 0\n# TYPE x \\n {évil="1"} \u202e<script>alert(1)</script> 😈'


def test_hostile_label_values_are_escaped(store: TrackingStore, scrape: Any) -> None:
    """Quotes, line breaks and backslashes in a route round-trip, and change nothing else."""
    write_scored(store, [0.5], route=HOSTILE, service='s"\\', ago=timedelta(minutes=5))
    found = scrape()

    assert found.one("germane_up") == 1
    assert found.one("germane_scores", route=HOSTILE, service='s"\\', window="1h") == 1


def test_the_number_of_routes_is_limited_and_dropped_series_are_counted(store: TrackingStore, scrape: Any) -> None:
    """The 200 busiest routes have series; a gauge counts the others, including overlong names."""
    busy = {("shop", f"route-{number}"): 2 for number in range(MAX_ROUTES)}
    more = {("shop", f"quiet-{number}"): 1 for number in range(9)} | {("shop", "r" * 100_000): 7}
    store.exchanges.count_dropped(
        busy | more, ["answer_relevancy"], UnscoredReason.QUEUE_FULL, at=NOW - timedelta(minutes=3)
    )
    found = scrape()

    assert found.labels("germane_exchanges_seen", "route") == {route for _, route in busy}
    assert found.one("germane_series_dropped", what="routes") == len(more)
    assert found.one("germane_exchanges", route="route-7", window="1h", outcome="skipped", reason="queue_full") == 2


def test_the_number_of_exported_series_is_limited(store: TrackingStore, scrape: Any) -> None:
    """At most 600 (route, scorer) pairs are exported; scorers with the most exchanges come first."""
    routes = {("shop", f"route-{number}"): 1 + number for number in range(50)}
    store.exchanges.count_dropped(
        routes, [f"s{number}" for number in range(25)], UnscoredReason.QUEUE_FULL, at=NOW - timedelta(hours=2)
    )
    found = scrape()

    assert len(found.all("germane_exchanges_seen", window="24h")) == MAX_ROUTE_SCORERS
    assert len(found.labels("germane_exchanges_seen", "scorer")) == MAX_SCORERS
    left = {what: found.one("germane_series_dropped", what=what) for what in ("routes", "scorers", "routes_of_scorers")}
    assert left == {"routes": 0, "scorers": 5, "routes_of_scorers": 50 * 25 - MAX_ROUTE_SCORERS}


def test_budget_usage_is_exported_for_each_limit(store: TrackingStore, scrape: Any) -> None:
    """Requests, tokens and dollars are exported too; without a budget, there are no samples."""
    assert not scrape().samples.get("germane_budget_used_ratio")
    assert not scrape().samples.get("germane_judge_cost_today_usd")

    store.quota.reserve_budget(Budget(requests_per_day=10**6), [RequestUsage(12, 500.0, 6.0)])
    found = scrape(budget=Budget(requests_per_day=100, requests_per_hour=2, usd_per_day=24.0))
    assert found.one("germane_budget_used_ratio", limit="requests") == pytest.approx(12 / 48, abs=CLOSE)
    assert found.one("germane_budget_used_ratio", limit="usd") == pytest.approx(6 / 24, abs=CLOSE)
    assert found.one("germane_judge_cost_today_usd") == pytest.approx(6.0, abs=CLOSE)


class Timer:
    """A manual clock that counts its readings."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.readings = 0

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        self.readings += 1
        return NOW


@BOTH
def test_concurrent_scrapes_share_one_query(store: TrackingStore) -> None:
    """The result is reused for a few seconds."""
    timer = Timer()
    gauges = DatabaseCollector(store, settings(), now=timer.now, timer=timer)
    pages: list[list[Any]] = []
    threads = [Thread(target=lambda: pages.append(list(gauges.collect()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    timer.seconds = MAX_AGE - 0.001
    list(gauges.collect())

    assert (len(pages), timer.readings) == (8, 1)
    timer.seconds = MAX_AGE
    list(gauges.collect())
    assert timer.readings == 2


def test_an_unreachable_database_removes_its_gauges_from_the_metrics(tmp_path: Path, migrated_file: Path) -> None:
    """Until the database is reachable again, the process responds with germane_up 0 and without database metrics."""
    timer, path = Timer(), tmp_path / "there.db"
    store = TrackingStore(f"sqlite:///{path}")
    registry = CollectorRegistry()
    registry.register(DatabaseCollector(store, settings(), now=timer.now, timer=timer))

    def read() -> MetricSamples:
        timer.seconds += MAX_AGE
        return parse_metrics(generate_latest(registry).decode())

    away = read()
    shutil.copy(migrated_file, path)
    back = read()
    store.close()

    assert (away.one("germane_up"), back.one("germane_up")) == (0, 1)
    ours = {"germane_up", "germane_reading_timestamp_seconds", "germane_reading_duration_seconds", "germane_build_info"}
    assert set(away.samples) == ours
    assert back.one("germane_queue_lag_seconds") == 0


@pytest.fixture
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty SQLite file."""
    from tests.conftest import migrated_file

    return migrated_file(tmp_path_factory.getbasetemp())


def test_the_metrics_format_follows_the_accept_header(page: TestClient) -> None:
    """The default is text; OpenMetrics and gzip are available on request, and HEAD responses have no body."""
    plain = page.get("/metrics", headers={"Accept-Encoding": "identity"})
    openmetrics = page.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    head = page.head("/metrics")

    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "content-encoding" not in plain.headers
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert openmetrics.headers["content-encoding"] == "gzip"
    assert {family.name for family in read_openmetrics(openmetrics.text)} >= {"germane_up", "germane_score_mean"}
    assert (head.status_code, head.content) == (200, b"")


def test_the_metrics_page_requires_the_token(seeded: TrackingStore) -> None:
    """Scrapers send the token in a header; without it, the response contains no values or names."""
    app = create_app(settings(), store=seeded, now=lambda: NOW, token="correct-horse-battery")
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        refused = client.get("/metrics")
        shown = client.get("/metrics", headers={"Authorization": "Bearer correct-horse-battery"})

    assert (refused.status_code, shown.status_code) == (401, 200)
    assert "germane_score" in shown.text
    assert SERVICE not in refused.text


@pytest.mark.slow
def test_promtool_accepts_the_metrics_page(page: TestClient) -> None:
    """Names, help texts and types follow Prometheus conventions."""
    promtool = shutil.which("promtool") or pytest.skip("promtool is not installed: the page is not linted")
    text = page.get("/metrics").text
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
