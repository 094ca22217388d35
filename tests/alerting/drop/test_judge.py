"""A drop asks the anchors whether the judge is the cause, and a change of the judge raises an alert of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.alerting.channels.conftest import an_alert
from tests.alerting.drop.conftest import DAY, HOLDER, START, Simulation

from germane.alert import Notification
from germane.alerting import AlertEvaluator, onset_bounds, resolve_alert
from germane.alerting.wording.titles import alert_title
from germane.score import Score, UnscoredReason
from germane.settings import load_settings

SIZE = 25
HOUR = timedelta(hours=1)


class Shop:
    """A service with anchors, whose answers and judge a test controls."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.store = simulation, simulation.store
        self.noise = random.Random(7)
        self.evaluator = AlertEvaluator(
            self.store, load_settings(), holder=HOLDER, scorers=["relevancy"], channels={"log": lambda _: True},
            clock=lambda: simulation.now,
        )  # fmt: skip
        self.heard: set[str] = set()

    def score_anchors(self, shift: float = 0.0, *, noise: float = 0.1, fingerprint: str = "f1") -> None:
        """Run a round whose scores have random noise."""
        anchors = self.store.anchors
        anchors.refill("relevancy", SIZE, text_lifetime=365 * DAY)
        anchors.start_round("relevancy", "daily")
        while (pending := anchors.next_pending("relevancy")) is not None:
            value = 0.5 + int(pending.exchange.id[:2], 16) / 1000 + self.noise.gauss(shift, noise)
            scored = Score(scorer="relevancy", fingerprint=fingerprint, value=value, judge="orca-2")
            anchors.save_score("relevancy", pending, scored)

    def learn(self) -> None:
        """Complete the baselines, and run two quiet rounds."""
        for _ in range(7):
            self.score_anchors()

    def look(self) -> list[Notification]:
        """Evaluate all rules; return the new notifications, oldest first."""
        self.evaluator.evaluate()
        posted = [record.notification for record in self.store.notifications.search(limit=1000)][::-1]
        news = [one for one in posted if one.id not in self.heard]
        self.heard |= {one.id for one in news}
        return news

    def answer_until(self, is_reached: Callable[[list[Notification]], object], mean: float, days: int = 10) -> int:
        """Let answers arrive until a condition on the new notifications is met; return the hours."""
        for hours in range(6, 24 * days + 1, 6):
            self.simulation.add_scores(self.simulation.values(10, mean), hours=6)
            if is_reached(self.look()):
                return hours
        raise AssertionError("the condition was not met")

    def titles(self) -> list[str]:
        """Return the titles of the open alerts."""
        return [alert_title(alert) for alert in self.store.alerts.list_open()]


@pytest.fixture
def shop(learned: Simulation) -> Shop:
    """A service with a learned baseline of 0.76."""
    return Shop(learned)


def test_a_drop_that_the_anchors_share_names_the_judge(shop: Shop) -> None:
    """Its first notification says that the judge is being checked; after the next round, another one names it."""
    shop.learn()
    shop.answer_until(len, mean=0.62)
    (drop,) = shop.store.alerts.list_open()
    assert alert_title(drop).startswith("drop in shop")
    assert "; whether the judge has changed is being measured." in drop.message

    shop.score_anchors(shift=-0.14)
    shop.simulation.now += 2 * timedelta(minutes=1)
    (notification,) = shop.look()
    assert notification.type == "repeated"
    (alert,) = notification.alerts
    assert (alert.id, alert.cause) == (drop.id, "judge_drift")
    assert alert_title(alert).startswith("judge scores lower in shop (0.")
    assert "the judge scores 0.1" in alert.message
    assert "lower than before (95% confidence 0." in alert.message
    shop.score_anchors()
    shop.simulation.now += HOUR
    assert [alert.cause for alert in shop.store.alerts.list_open()] == ["judge_drift"]


def test_a_drop_after_a_round_that_shows_the_change_names_the_judge_at_once(shop: Shop) -> None:
    """If the newest round is newer than the onset, no other round is needed."""
    shop.learn()
    onset = shop.simulation.now
    shop.simulation.add_scores(shop.simulation.values(5, 0.62), hours=3)
    shop.score_anchors(shift=-0.14)
    fired: list[Notification] = []

    def is_fired(news: list[Notification]) -> bool:
        fired.extend(news)
        return bool(news)

    shop.answer_until(is_fired, mean=0.62)
    (alert,) = fired[0].alerts
    assert alert.onset is not None
    assert alert.onset < onset + 3 * HOUR
    assert alert_title(alert).startswith("judge scores lower in shop (0.")


@pytest.mark.parametrize(("shift", "noise"), [(-0.04, 0.01), (-0.1, 1.2)])
def test_a_drop_of_the_application_is_found_as_fast_with_a_stable_judge(shop: Shop, shift: float, noise: float) -> None:
    """The anchors neither delay it nor take the blame for it, if they explain less than half of it or nothing."""
    shop.learn()
    hours = shop.answer_until(len, mean=0.62)
    for _ in range(3):
        shop.score_anchors(shift=shift, noise=noise)
        shop.simulation.now += HOUR
        assert shop.look() == []
    (alert,) = shop.store.alerts.list_open()
    assert alert_title(alert).startswith("drop in shop")
    assert alert.cause != "judge_drift"
    assert "judge" not in alert.message
    assert hours <= 24


def test_a_drop_long_after_the_last_round_does_not_announce_another_one(shop: Shop) -> None:
    """The anchors may have been turned off, or their scorer removed."""
    shop.learn()
    shop.simulation.add_scores(shop.simulation.values(40, 0.76), hours=4 * 24)
    shop.answer_until(len, mean=0.62)
    (drop,) = shop.store.alerts.list_open()
    assert alert_title(drop).startswith("drop in shop")
    assert "judge" not in drop.message


def test_a_silent_change_of_the_judge_raises_an_alert_until_it_is_accepted(shop: Shop) -> None:
    """It names the judge, the size with its interval, and the start. Resolving it starts new baselines."""
    shop.learn()
    assert shop.look() == []
    found, rounds = list[Notification](), 0
    while not found:
        shop.simulation.now += DAY
        shop.score_anchors(shift=-0.12)
        rounds += 1
        found = shop.look()
    assert rounds <= 6
    (alert,) = found[0].alerts
    assert (alert.type, alert.labels, alert.cause) == ("judge_drift", {"scorer": "relevancy"}, "judge_drift")
    assert alert.value == pytest.approx(-0.12, abs=0.03)
    low, high = alert.details["interval"]
    assert low < -0.12 < high < 0
    assert alert.onset is not None
    assert abs(alert.onset - (shop.simulation.now - (rounds - 1) * DAY)) <= DAY
    assert alert_title(alert) == f"judge scores lower (relevancy by {-alert.value:.2f})"
    assert alert.message.startswith(f"The judge orca-2 scores relevancy {-alert.value:.2f} lower than before (95% ")
    assert f"measured on {SIZE} answers that it scores again every day" in alert.message

    resolve_alert(shop.store, load_settings(), alert.id, "ann")
    for _ in range(7):
        shop.simulation.now += DAY
        shop.score_anchors(shift=-0.12)
        assert [one for one in shop.look() if one.type == "firing"] == []
    assert shop.titles() == []


def test_a_judge_that_is_back_resolves_its_alert(shop: Shop) -> None:
    """As long as the change lasts, the alert stays open."""
    shop.learn()
    for shift in (0.14, 0.14, 0.14):
        shop.simulation.now += DAY
        shop.score_anchors(shift=shift)
        shop.look()
    assert [title.partition(" by")[0] for title in shop.titles()] == ["judge scores higher (relevancy"]
    for _ in range(6):
        shop.simulation.now += DAY
        shop.score_anchors()
        shop.look()
    assert shop.titles() == []
    newest = shop.store.alerts.search()[0]
    assert newest.message == "Resolved (recovered): the judge orca-2 scores relevancy as before again."


def test_an_alert_ends_when_the_judge_reports_another_model(shop: Shop) -> None:
    """The anchors then have new baselines. A round counts only once it is complete."""
    shop.learn()
    for _ in range(3):
        shop.simulation.now += DAY
        shop.score_anchors(shift=-0.14)
        shop.look()
    assert len(shop.titles()) == 1
    rounds = shop.store.anchors.load_rounds("relevancy")
    assert rounds is not None
    shop.store.anchors.start_round("relevancy", "daily")
    pending = shop.store.anchors.next_pending("relevancy")
    assert pending is not None
    shop.store.anchors.save_score("relevancy", pending, Score(scorer="relevancy", fingerprint="f1", value=0.1))
    unfinished = shop.store.anchors.load_rounds("relevancy")
    assert unfinished is not None
    assert unfinished.started_at == rounds.started_at

    shop.simulation.now += DAY
    shop.score_anchors(fingerprint="f2")
    shop.look()
    assert shop.titles() == []
    assert shop.store.alerts.search()[0].resolve_reason == "new_baseline"


def test_an_onset_is_not_after_its_alert() -> None:
    """The interval of an onset may end later, but the drop had begun when the alert fired."""
    at = START
    alert = an_alert(onset=at, onset_interval=(at - DAY, at + DAY), starts_at=at + HOUR, fired_at=at + 2 * HOUR)
    assert onset_bounds(alert) == (at - DAY, at + 2 * HOUR)
    assert onset_bounds(replace(alert, fired_at=None)) == (at - DAY, at + HOUR)
    assert onset_bounds(replace(alert, onset_interval=None)) == (at, at)


def test_missing_scores_of_anchors_are_no_evidence(shop: Shop) -> None:
    """A round without scores changes nothing."""
    shop.learn()
    anchors = shop.store.anchors
    for _ in range(5):
        shop.simulation.now += DAY
        anchors.start_round("relevancy", "daily")
        anchors.close_round("relevancy", UnscoredReason.JUDGE_UNREACHABLE)
        assert shop.look() == []
