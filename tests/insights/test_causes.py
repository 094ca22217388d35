"""The cause of a drop on pages and in reports: with and without an alert, and whenever there is evidence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from tests.conftest import migrated_file
from tests.insights.incidents import write

from germane.alert import Alert, alert_key
from germane.alerting import alert_message
from germane.annotation import Marker
from germane.cli.commands.report.data import load_report, load_verdict
from germane.exchange import Exchange
from germane.insights import (
    WINDOWS,
    InsightContext,
    ViewParams,
    load_alert_detail,
    load_fleet,
    load_overview,
    load_route,
    report_sentence,
)
from germane.insights.onset import explain_drop
from germane.insights.situation import ComparisonPeriod
from germane.insights.verdict import Movement
from germane.score import Score
from germane.settings import load_settings
from germane.storage import SamplingDecision, TrackingStore

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
BEGAN = NOW - 8 * HOUR
SCORER, FINGERPRINT = "answer_relevancy", "f1"
LABELS = {"service": "shop", "scorer": SCORER, "route": "ask"}
CARRIER = "The drop is largest where model=orca-2."


@pytest.fixture
def context(tmp_path: Path) -> Iterator[InsightContext]:
    """A service whose answers of one model got worse: 25 answers of each model since then, and 150 before."""
    store = TrackingStore(f"sqlite:///{migrated_file(tmp_path)}", clock=lambda: NOW)
    made, models = Random(4), ("orca-1", "orca-2")
    since = [(BEGAN + 18 * timedelta(minutes=number), model) for number in range(25) for model in models]
    times = [(BEGAN - HOUR * number, model) for number in range(150, 0, -1) for model in models] + since
    results = {}
    for at, model in times:
        one = Exchange(
            id=UUID(int=made.getrandbits(128)).hex, trace_id=f"{made.getrandbits(128):032x}", span_id="a" * 16,
            service="shop", route="ask", question="q", answer="a", started_at=at, model=model,
        )  # fmt: skip
        level = 0.4 if at >= BEGAN and model == "orca-2" else 0.8
        value = made.gauss(level, 0.04)
        results[one.id] = one, Score(scorer=SCORER, fingerprint=FINGERPRINT, value=value, scored_at=at)
    store.exchanges.add([one for one, _ in results.values()])
    store.sampling.assign_tasks([SamplingDecision(each, 1.0, "sampled") for each in results], {SCORER: FINGERPRINT})
    claims = store.queue.claim_tasks("me", {SCORER: FINGERPRINT}, limit=len(results), lease=DAY)
    store.queue.complete_tasks("me", [(task, results[task.exchange_id][1]) for one in claims for task in one.tasks])
    yield InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW)
    store.close()


def view(name: str) -> ViewParams:
    """Return a window that ends now."""
    return ViewParams(window=name, since=NOW - WINDOWS[name], until=NOW, zone=None)


def test_a_drop_without_an_alert_has_its_cause_on_pages_and_in_the_report(context: InsightContext) -> None:
    """It is the same in all windows."""
    said = [report_sentence(load_overview(context, view(name)).verdict) for name in WINDOWS]
    for name in WINDOWS:
        found = load_route(context, view(name), "ask")
        assert found is not None
        assert found.verdict is not None
        said.append(report_sentence(found.verdict))
    report = load_report(context.store, NOW - DAY, service=None, route=None)
    said.append(load_verdict(context.store, context.settings, report)[0])

    assert [sentence for sentence in said if CARRIER not in sentence] == []


def test_a_group_that_reaches_the_minimum_after_an_alert_fired_is_named(context: InsightContext) -> None:
    """The page of the alert also states the side of a deploy that was recorded later."""
    alert = Alert(
        id="a1", key=alert_key("drop", LABELS), rule="drop", type="drop", labels=LABELS, state="firing",
        fingerprint=FINGERPRINT, onset=BEGAN, onset_interval=(BEGAN - HOUR / 2, BEGAN + HOUR / 2),
        starts_at=BEGAN + HOUR, fired_at=BEGAN + HOUR, evaluated_at=NOW,
    )  # fmt: skip
    context.store.trends.add_markers([Marker(id="1" * 32, name="index v42", service="shop", at=BEGAN - HOUR)])

    detail = load_alert_detail(context, replace(alert, message=alert_message(alert)), view("24h"), "")

    assert "the drop is largest where model=orca-2" in detail.text
    assert 'it began 60 minutes after the deploy "index v42"' in detail.text
    assert [shift.name for shift in detail.alert.shifts if shift.supported] == ["model=orca-2"]
    worded_earlier = replace(alert, message="relevancy fell")
    assert load_alert_detail(context, worded_earlier, view("24h"), "").text == "relevancy fell"
    over = replace(alert, state="resolved", resolved_at=NOW, resolve_reason="recovered")
    assert load_alert_detail(context, replace(over, message=alert_message(over)), view("24h"), "").alert.shifts == ()


def test_a_drop_since_an_old_baseline_has_an_onset(context: InsightContext) -> None:
    """The search begins with the reference period, not two weeks ago."""
    made, began = Random(8), NOW - 20 * DAY
    times = [NOW - 34 * DAY + 4 * HOUR * number for number in range(6 * 34)]
    write(context.store, made, [("shop", "old", at, made.gauss(0.4 if at >= began else 0.8, 0.05)) for at in times])
    (situation,) = load_fleet(context, view("24h"), NOW).situations

    for until, expected in ((NOW - 30 * DAY, began), (NOW - DAY, None)):
        period = ComparisonPeriod(since=until - 4 * DAY, until=until)
        found = explain_drop(context, Movement(situation=replace(situation, reference_period=period), route="old"))
        assert (found.onset and found.onset.at) == expected


def test_the_cause_of_a_drop_of_a_route_is_not_that_of_its_whole_service(tmp_path: Path) -> None:
    """The alert is about both routes: one of them refuses more questions, and the answers of the other one drift."""
    ages = [HOUR * number for number in range(150, 8, -1)] + [8 * HOUR * number / 40 for number in range(40, 0, -1)]
    scores = []
    for number, age in enumerate(ages):
        chat, docs = (0.8, 0.8) if age > 8 * HOUR else (0.8 * (number % 2), 0.4)
        noise = (number // 2 % 5 - 2) / 20
        scores += [("shop", "chat", NOW - age, chat and chat + noise), ("shop", "docs", NOW - age, docs + noise)]
    alert = Alert(
        id="a1", key=alert_key("drop", LABELS), rule="drop", type="drop", labels={"service": "shop", "scorer": SCORER},
        state="firing", fingerprint=FINGERPRINT, onset=BEGAN, onset_interval=(BEGAN - HOUR, BEGAN + HOUR / 2),
        starts_at=BEGAN + HOUR, fired_at=BEGAN + HOUR, evaluated_at=NOW,
    )  # fmt: skip
    with closing(TrackingStore(f"sqlite:///{migrated_file(tmp_path)}", clock=lambda: NOW)) as store:
        write(store, Random(1), scores)
        context = InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: NOW)
        situation = load_fleet(context, view("24h"), NOW).situations[0]
        drops = [Movement(situation=situation, route=route, alert=alert) for route in ("chat", "docs")]
        explained = [explain_drop(context, drop) for drop in drops]

    causes = [one.explained.cause for one in explained if one.explained is not None]
    assert causes == ["refusals_rising", "answers_drifting"]
    assert [one.onset.at for one in explained if one.onset is not None] == [BEGAN, BEGAN]
