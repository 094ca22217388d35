"""What people say about the answers of a window, from labels of drawn answers and all scores."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

import numpy as np
import pytest
from sqlalchemy import select, text, update
from starlette.testclient import TestClient
from tests.storage.test_label_draws import ALL, NOON, add_scored

from germane.alert import Alert, AlertChange, AlertEvent, alert_key
from germane.annotation import Feedback
from germane.cli.commands.report.data import describe_labels, load_report
from germane.dashboard import create_app
from germane.dashboard.metrics.exposition import load_snapshot
from germane.dashboard.metrics.families import build_families
from germane.insights import ViewParams, load_estimates, load_labeled_window, people_sentence
from germane.settings import load_settings
from germane.statistics import t_quantile
from germane.storage import AlertTransaction, LabelWave, TrackingStore
from germane.storage.counts import dirty_hours
from germane.storage.db.tables import label_draw, score
from germane.testing import transaction

VIEW = ViewParams(window="24h", since=NOON - timedelta(days=1), until=NOON)
LABELS: Mapping[Literal["answers", "partly", "does_not"], float] = {"answers": 1.0, "partly": 0.5, "does_not": 0.0}


@pytest.fixture
def store(migrated_url: str) -> Iterator[TrackingStore]:
    """Scores of two routes, of which the judge scores one too high. The clock shows the end of the window."""
    with closing(TrackingStore(migrated_url, clock=lambda: NOON)) as store:
        add_routes(store)
        yield store


def add_routes(store: TrackingStore) -> None:
    """Store scores of two routes."""
    made = random.Random(3)
    for route, count, bias in (("ask", 300, 0.1), ("find", 100, -0.05)):
        chances = [made.choice((0.1, 0.4, 1.0)) for _ in range(count)]
        exchanges = add_scored(store, chances, route=route)
        with transaction(store) as connection:
            dirty_hours.mark_dirty(connection, [one.started_at for one in exchanges])
            for one in exchanges:
                value = min(1.0, max(0.0, truth(one.id) + bias + made.gauss(0, 0.15)))
                connection.execute(update(score).where(score.c.exchange_id == one.id).values(value=value))


def truth(exchange_id: str) -> float:
    """Return what people say about an answer."""
    return random.Random(exchange_id).choice((0.0, 0.5, 0.5, 1.0, 1.0))


def label_all(store: TrackingStore, wave: LabelWave, *, user: str = "ann", stop: int = 0, skip: int = 0) -> None:
    """Label all answers of a wave but the last ``stop``. The first ``skip`` are skipped."""
    for number in range(wave.total.size - stop):
        found = store.draws.next_answer(wave.id)
        assert found is not None
        verdict = {value: name for name, value in LABELS.items()}[truth(found[1])]
        store.draws.settle(wave.id, found[1], "skipped" if number < skip else verdict, user=user)


def draw(store: TrackingStore, count: int, *, seed: int = 1) -> LabelWave:
    return store.draws.draw(ALL, count, generator=np.random.default_rng(seed))


def expected(
    store: TrackingStore, waves: list[LabelWave], routes: tuple[str, ...], since: datetime = NOON - timedelta(days=1)
) -> tuple[float, float, float]:
    """Return the mean label and its interval, from the rows of the database and the formulas alone."""
    with transaction(store, read_only=True) as connection:
        scores = connection.execute(
            select(score.c.route, score.c.value, score.c.sampling_probability).where(score.c.started_at >= since)
        ).all()
        labels = connection.execute(
            text(
                "SELECT d.route, d.exchange_id, d.wave, d.probability, s.sampling_probability, "
                "f.score AS y, s.value AS f FROM label_draw d "
                "JOIN feedback f ON f.wave = d.wave AND f.exchange_id = d.exchange_id "
                "JOIN score s ON s.exchange_id = d.exchange_id"
            )
        ).all()
        recent = set(connection.execute(select(score.c.exchange_id).where(score.c.started_at >= since)).scalars())
    labels = [one for one in labels if one.route in routes and one.exchange_id in recent]
    w = np.array([1 / one.sampling_probability for one in scores if one.route in routes])
    values = np.array([one.value for one in scores if one.route in routes])
    judge = float(w @ values / w.sum())
    answers = {route: sum(1 / one.sampling_probability for one in scores if one.route == route) for route in routes}
    chances = {(one.wave, one.route): one.probability for one in labels}  # no answer here is certain to be drawn

    def weight(one: Any) -> float:
        s = float(one.sampling_probability)
        return 1 / (s * (1 - math.prod(1 - chances.get((wave.id, one.route), 0.0) / s for wave in waves)))

    totals = {route: sum(weight(one) for one in labels if one.route == route) for route in routes}
    v = np.array([answers[one.route] * weight(one) / totals[one.route] for one in labels])
    v /= v.sum()
    y, f = (np.array([getattr(one, name) for one in labels]) for name in "yf")
    y0, f0 = float(v @ y), float(v @ f)
    slope = max(0.0, float(v @ ((f - f0) * (y - y0)) / (v @ (f - f0) ** 2)))
    spread = float(v @ (f - f0) ** 2)
    residuals = y - y0 - slope * (f - f0)
    influence, leverage = v * (1 + (f - f0) * (judge - f0) / spread), v * (1 + (f - f0) ** 2 / spread)
    variance = float(np.sum((influence * residuals / (1 - leverage)) ** 2))
    variance += slope**2 * float((w**2 @ (values - judge) ** 2) / w.sum() ** 2) * len(w) / (len(w) - 1)
    mean, half = y0 + slope * (judge - f0), t_quantile(int(1 / (v @ v) + 1e-6) - 2) * math.sqrt(variance)
    return mean, max(0.0, mean - half), min(1.0, mean + half)


@pytest.mark.parametrize("route", [None, "ask"])
def test_the_number_is_that_of_the_formula(store: TrackingStore, route: str | None) -> None:
    wave = draw(store, 100)
    label_all(store, wave, skip=7)

    found = load_labeled_window(store, service="shop", route=route)

    assert found is not None
    assert found.estimate is not None
    mean, low, high = expected(store, [wave], ("ask", "find") if route is None else ("ask",))
    assert (found.estimate.mean, *found.estimate.interval) == pytest.approx((mean, low, high), abs=1e-9)
    assert (found.counts.skipped, found.n_scores) == ((7, 400) if route is None else (found.counts.skipped, 300))


def test_a_second_wave_adds_labels_with_nearly_the_same_weight(store: TrackingStore) -> None:
    """Each answer of a route that was not in the first wave had the same chance to be in the second one."""
    first = draw(store, 40)
    label_all(store, first)
    second = draw(store, 80, seed=2)
    label_all(store, second)

    found = load_labeled_window(store)

    assert found is not None
    assert found.estimate is not None
    assert (set(found.waves), found.estimate.n) == ({first.id, second.id}, 120)
    assert found.estimate.mean == pytest.approx(expected(store, [first, second], ("ask", "find"))[0], abs=1e-9)


@pytest.mark.parametrize("sizes", [(400,), (150, 100, 100, 50)], ids=str)
def test_waves_of_all_answers_yield_their_mean_label(store: TrackingStore, sizes: tuple[int, ...]) -> None:
    """The more waves, the closer is the number to the truth, also if suspicious answers are scored more often."""
    for seed, size in enumerate(sizes):
        label_all(store, draw(store, size, seed=seed))
    with transaction(store, read_only=True) as connection:
        rows = connection.execute(select(score.c.exchange_id, score.c.sampling_probability)).all()

    found = load_labeled_window(store)

    assert found is not None
    assert found.estimate is not None
    weights = [1 / row.sampling_probability for row in rows]
    assert found.estimate.mean == pytest.approx(np.average([truth(row.exchange_id) for row in rows], weights=weights))


def test_the_line_says_which_labels_do_not_count(store: TrackingStore) -> None:
    """Not even if they are so many that there is no number."""
    label_all(store, draw(store, 40))
    fire(store, "judge_drift", timedelta(minutes=5), onset=NOON - timedelta(seconds=1))
    drifted = load_labeled_window(store)
    with transaction(store) as connection:
        connection.execute(update(score).values(fingerprint="f2"))
    replaced = load_labeled_window(store)

    assert drifted is not None
    assert replaced is not None
    assert people_sentence(drifted, VIEW) == (
        "According to people: not enough data (0 labels, need 20; shop, 1 Mar). "
        "40 labels from before a drift of the judge do not count."
    )
    assert people_sentence(replaced, VIEW) == (
        "According to people: not enough data (0 labels, need 20; shop, 1 Mar). "
        "40 labels whose scores were replaced do not count."
    )


def test_unasked_labels_and_erased_texts_change_no_digit(store: TrackingStore) -> None:
    wave = draw(store, 60)
    label_all(store, wave)
    before = load_labeled_window(store)
    with transaction(store, read_only=True) as connection:
        ids = list(connection.execute(text("SELECT id FROM exchange ORDER BY id")).scalars())
    thumbs = [
        Feedback(id=f"t{number}", exchange_id=id_, score=0.0, comment=None, user=None, created_at=NOON)
        for number, id_ in enumerate(ids)
    ]
    store.labels.add_feedback(thumbs)
    store.retention.prune(texts_before=NOON + timedelta(days=1))

    assert load_labeled_window(store) == before


def test_there_is_no_number_before_a_wave_is_finished_nor_with_fewer_than_twenty_labels(store: TrackingStore) -> None:
    """An estimate that people watch while they label would be wrong more often than stated."""
    wave = draw(store, 30)
    label_all(store, wave, stop=1)
    found = load_labeled_window(store)
    assert found is not None
    assert (found.estimate, found.is_finished, found.counts.open) == (None, False, 1)
    assert people_sentence(found, VIEW) == (
        "According to people: 29 of 30 drawn answers reviewed, shop, 1 Mar; the number appears after the last one."
    )
    label_all(store, wave, stop=29)
    of_route = load_labeled_window(store, route="find")
    assert of_route is not None
    assert of_route.estimate is None
    assert people_sentence(of_route, VIEW) == (
        f"According to people: not enough data ({of_route.counts.labeled} labels, need 20; shop, 1 Mar)."
    )
    assert load_labeled_window(store, route="unknown") is None


def fire(store: TrackingStore, type_: str, fired_at: timedelta, onset: datetime | None = None, **labels: str) -> None:
    """Write an open alert that fired some time after the last label."""
    given = {"service": "shop", "scorer": "relevancy", **labels}
    alert = Alert(
        id=type_, key=alert_key(type_, given), rule=type_, type=type_, labels=given, state="firing",
        starts_at=NOON - timedelta(hours=1), onset=onset, fingerprint="f1",
        fired_at=NOON + fired_at, evaluated_at=NOON + fired_at,
    )  # fmt: skip
    event = AlertEvent(id=type_, alert_id=type_, at=NOON, type="fired", after="firing")
    assert store.alerts.commit(AlertTransaction(changes=[AlertChange(alert=alert, event=event)]))


def test_a_drop_after_the_last_label_outdates_the_number_on_its_route(store: TrackingStore) -> None:
    label_all(store, draw(store, 100))
    fire(store, "drop", timedelta(minutes=-5), route="find")
    before = [load_labeled_window(store, route=route) for route in ("ask", "find")]
    assert [window and window.outdated for window in before] == [None, None]
    fire(store, "mean_threshold", timedelta(minutes=5), route="find")

    ask, find, whole = (load_labeled_window(store, route=route) for route in ("ask", "find", None))

    assert ask is not None
    assert find is not None
    assert whole is not None
    assert (ask.outdated, find.outdated, whole.outdated) == (None, "drop", "drop")
    assert "An alert about worse answers has fired since the last label." in people_sentence(find, VIEW)
    assert ask.estimate is not None
    scored = replace(ask, estimate=replace(ask.estimate, judge_variance=0.0))  # as with very many scores
    assert scored.labels_to_halve == pytest.approx(3 * ask.estimate.n, rel=0.1)
    assert f" {scored.labels_to_halve:,} more labels would halve the interval." in people_sentence(scored, VIEW)


def test_answers_from_before_a_drift_of_the_judge_leave_the_estimate(store: TrackingStore) -> None:
    """The judge's scores before and after the drift mean different things. The dates say which answers are left."""
    wave = draw(store, 100)
    label_all(store, wave)
    with transaction(store, read_only=True) as connection:
        times = [one.started_at for one in connection.execute(select(score.c.started_at)).all()]
    drift = sorted(times)[len(times) // 4]  # enough labels are left on either side of the middle
    fire(store, "judge_drift", timedelta(minutes=5), onset=drift)

    found = load_labeled_window(store)

    assert found is not None
    assert found.estimate is not None
    assert (found.since, found.outdated) == (drift, None)
    assert (found.left_out + found.estimate.n, found.n_scores) == (100, sum(at >= drift for at in times))
    assert f"{found.left_out} labels from before a drift of the judge do not count." in people_sentence(found, VIEW)
    mean, low, high = expected(store, [wave], ("ask", "find"), since=drift)
    assert (found.estimate.mean, *found.estimate.interval) == pytest.approx((mean, low, high), abs=1e-9)


def test_another_judge_after_the_last_label_outdates_the_number(store: TrackingStore) -> None:
    label_all(store, draw(store, 40))
    add_scored(store, [1.0], fingerprint="f2", started_at=NOON + timedelta(minutes=1))

    found = load_labeled_window(store)

    assert found is not None
    assert (found.fingerprint, found.outdated) == ("f1", "judge_changed")


def test_pages_report_and_metrics_state_the_number_with_its_basis(store: TrackingStore) -> None:
    label_all(store, draw(store, 100))
    found = load_labeled_window(store)
    assert found is not None
    assert found.estimate is not None
    low, high = (f"{end:.2f}" for end in found.estimate.interval)
    settings = load_settings(database="sqlite://")
    basis = "1 Mar; 400 judge scores"

    app = create_app(settings, store=store, now=lambda: NOON)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)) as client:
        pages = {path: client.get(path).text for path in ("/?window=24h", "/r/ask?window=24h")}
    assert f"<b>{low}\u2013{high}</b>\n<small>100 labels, {basis}</small>" in pages["/?window=24h"]
    assert all('class="people"' in page for page in pages.values())
    report = load_report(store, NOON - timedelta(days=1), NOON, service=None, route=None)
    sentence = describe_labels(settings, report)
    assert sentence.startswith(f"According to people {low}\u2013{high} (100 labels, shop, {basis}). ")
    assert sentence.endswith("More labels alone cannot halve the interval; more scores can.")
    people: Any = report.as_dict()["people"]
    assert people["estimate"]["mean"] == found.estimate.mean
    families = {family.name: family for family in build_families(load_snapshot(store, settings, NOON))}
    means = {one.labels["route"]: one.value for one in families["germane_people_mean"].samples}
    assert means == {(window.route or ""): window.estimate.mean for window in load_estimates(store) if window.estimate}
    assert means[""] == found.estimate.mean


def test_pages_and_the_report_state_the_number_of_the_same_scorer(store: TrackingStore) -> None:
    """Not that of the scorer for which answers were drawn last."""
    label_all(store, draw(store, 100))
    exchanges = add_scored(store, [1.0] * 60, scorer="faithfulness")
    with transaction(store) as connection:
        dirty_hours.mark_dirty(connection, [one.started_at for one in exchanges])
        connection.execute(update(label_draw).values(drawn_at=NOON - timedelta(minutes=1)))
    population = replace(ALL, scorer="faithfulness")
    label_all(store, store.draws.draw(population, 60, generator=np.random.default_rng(2)))
    newest = load_labeled_window(store)
    app = create_app(load_settings(database="sqlite://"), store=store, now=lambda: NOON)

    report = load_report(store, NOON - timedelta(days=1), NOON, service=None, route=None)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)) as client:
        page = client.get("/?window=24h").text

    assert newest is not None
    assert report.labeled is not None
    assert (newest.scorer, report.labeled.scorer) == ("faithfulness", "relevancy")
    assert "<small>100 labels, 1 Mar; 400 judge scores</small>" in page
