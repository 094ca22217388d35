"""What is told with an alert about scores: worst answers, where the shift sits, what is likely behind it, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.alert import Alert, Level, key_of
from germane.alerting.evidence import About, Evidence
from germane.alerting.messages import sentence
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import Decision, Store

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
SCORER = "answer_relevancy"
LABELS = {"service": "shop", "scorer": SCORER}
Give = Callable[..., list[str]]


def an_alert(**given: Any) -> Alert:
    labels = given.pop("labels", LABELS)
    told: dict[str, Any] = {
        "rule": "drop", "kind": "drop", "state": "firing", "fingerprint": "f", "onset": NOON, "starts_at": NOON,
        "fired_at": NOON, "evaluated_at": NOON, **given,
    }  # fmt: skip
    return Alert(id="a", key=key_of(told["rule"], labels), labels=labels, **told)


@pytest.fixture
def give(store: Store, new_exchange: Callable[..., Exchange]) -> Give:
    """Write exchanges of some hours after noon with the scores of one scorer, or of several."""

    def give(
        hours: float,
        values: list[float],
        *others: tuple[str, float],
        label: str | None = None,
        scored_after: timedelta | None = None,
        **changes: Any,
    ) -> list[str]:
        exchanges = [new_exchange(started_at=NOON + timedelta(hours=hours), **changes) for _ in values]
        store.add(exchanges)
        scorers = {SCORER: "f"} | {name: "g" for name, _ in others}
        store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], scorers)
        claims = store.claim("me", scorers, limit=1000, lease=timedelta(60))
        known = dict(zip([one.id for one in exchanges], values, strict=True))
        results = []
        for task in (task for claim in claims for task in claim.tasks):
            value = dict(others).get(task.scorer, known[task.exchange_id])
            mark = label if task.scorer == SCORER else None
            found = Score(scorer=task.scorer, fingerprint=task.fingerprint, value=value, label=mark)
            if scored_after is not None:
                found = replace(found, scored_at=NOON + timedelta(hours=hours) + scored_after)
            results.append((task, found))
        store.complete("me", results)
        return [one.id for one in exchanges]

    return give


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_drop_names_route_label_scorer_and_worst_answers(store: Store, give: Give) -> None:
    """Where it sits: the route that fell most, the model that answered, the scorer that fell too; five worst ids."""
    for model in ("old", "new"):
        give(-24, [0.8] * 10, ("faithfulness", 0.9), ("other", 0.5), route="support", model=model)
        give(-24, [0.8] * 10, ("faithfulness", 0.9), ("other", 0.5), route="faq", model=model)
    give(1, [0.8] * 10, ("faithfulness", 0.9), ("other", 0.5), route="support", model="old")
    low = give(1, [0.2, 0.1, 0.3, 0.25, 0.15, 0.4], ("faithfulness", 0.5), route="support", model="new")
    give(1, [0.8] * 10, ("faithfulness", 0.9), ("other", 0.5), route="faq", model="old")

    found = Evidence(store, ["route", "model"]).of(an_alert())

    assert found.exchange_ids == (low[1], low[4], low[0], low[3], low[2])
    assert [(shift.kind, shift.name) for shift in found.shifts] == [
        ("route", "support"), ("attribute", "model=new"), ("scorer", SCORER), ("scorer", "faithfulness"),
    ]  # fmt: skip
    support = found.shifts[0]
    assert (support.before.n, support.since.n) == (20, 16)
    assert support.before.mean == pytest.approx(0.8, abs=1e-9)
    assert support.since.mean == pytest.approx((8 + 1.4) / 16, abs=1e-9)
    assert found.cause == "answers_drifting"


@pytest.mark.parametrize(
    "about", [About(routes=("sup*",)), About(attributes={"tenant": "ac*"})], ids=["routes", "attributes"]
)
def test_what_a_rule_does_not_look_at_is_no_evidence(store: Store, give: Give, about: About) -> None:
    """Neither worse answers of other routes or tenants nor their shifts: who is called looks at what fell."""
    mine: dict[str, Any] = {"route": "support", "attributes": {"tenant": "acme"}}
    for hours, low in ((-24, 0.8), (1, 0.3)):
        ids = give(hours, [low] * 6, **mine)
        give(hours, [low - 0.3] * 30, route="faq", attributes={"tenant": "other"})
    found = Evidence(store, ["route", "model"]).of(an_alert(), about)
    assert set(found.exchange_ids) <= set(ids)
    assert len(found.exchange_ids) == 5
    assert {shift.name for shift in found.shifts if shift.kind == "route"} == {"support"}
    assert found.baseline is not None
    assert found.baseline.n == 6
    assert found.baseline.mean == pytest.approx(0.8, abs=1e-9)


def test_a_mean_over_routes_has_the_interval_of_independent_means(store: Store, give: Give) -> None:
    """As far from it as the routes' own ends, each by its share, at right angles."""
    give(-24, [0.9, 0.8, 0.7] * 10, route="support")
    give(-24, [0.6, 0.5, 0.4] * 10, route="faq")
    give(1, [0.4, 0.3, 0.2] * 10, route="support")
    give(1, [0.2, 0.3, 0.1] * 5, route="faq")
    found = Evidence(store).of(an_alert())
    whole = next(shift.since for shift in found.shifts if shift.kind == "scorer")
    support, faq = (next(one.since for one in found.shifts if one.name == name) for name in ("support", "faq"))
    assert whole.interval is not None
    assert support.interval is not None
    assert faq.interval is not None
    for end in (0, 1):
        far = ((2 * (support.interval[end] - support.mean)) ** 2 + (faq.interval[end] - faq.mean) ** 2) ** 0.5 / 3
        assert abs(whole.interval[end] - whole.mean) == pytest.approx(far, abs=1e-9)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_answers_that_were_scored_together_later_are_those_of_the_drop(store: Store, give: Give) -> None:
    """An onset is when a score arrived: the answers came up to an hour before it, and are named all the same."""
    give(-24, [0.8] * 20)
    give(-2, [0.8] * 5)
    low = give(-0.5, [0.3] * 20, scored_after=timedelta(minutes=40))
    late = NOON + timedelta(minutes=10, seconds=1)
    found = Evidence(store).of(an_alert(onset=late, evaluated_at=late))
    assert set(found.exchange_ids) < set(low)
    shift = found.shifts[0]
    assert (shift.before.n, shift.since.n) == (25, 20)
    assert found.cause == "answers_drifting"


def test_another_mix_of_routes_is_no_shift(store: Store, give: Give) -> None:
    """Before is what these routes had, each as often as it is asked now."""
    give(-24, [0.9] * 30, route="easy")
    give(-24, [0.5] * 10, route="hard")
    give(1, [0.9] * 5, route="easy")
    give(1, [0.5] * 30, route="hard")
    found = Evidence(store).of(an_alert())
    assert found.shifts == ()
    assert found.baseline is not None
    assert found.baseline.mean == pytest.approx((5 * 0.9 + 30 * 0.5) / 35, abs=1e-9)


def test_refusals_are_told_from_answers_that_drift(store: Store, give: Give) -> None:
    """Half of the drop or more by answers that do not answer."""
    give(-24, [0.8] * 20)
    give(1, [0.8] * 10)
    give(1, [0.0] * 10, label="noncommittal")
    found = Evidence(store).of(an_alert())
    assert found.cause == "refusals_rising"
    assert found.details["refusals"] == [0.0, pytest.approx(0.5)]


def test_worse_contexts_are_behind_worse_answers(store: Store, give: Give) -> None:
    """Where context_relevance fell too, retrieval comes first."""
    give(-24, [0.8] * 20, ("context_relevance", 0.9))
    give(1, [0.5] * 20, ("context_relevance", 0.4))
    assert Evidence(store).of(an_alert(cause="answers_drifting")).cause == "retrieval_worse"


def test_other_services_and_judges_are_no_evidence(store: Store, give: Give) -> None:
    """Of a route of the same name elsewhere nothing is named; nor is anything compared with nothing."""
    give(1, [0.1] * 10, service="other")
    mine = give(1, [0.3] * 6)
    found = Evidence(store).of(an_alert())
    assert set(found.exchange_ids) < set(mine)
    assert (found.shifts, found.baseline, found.cause) == ((), None, None)


def test_an_alert_that_is_not_about_scores_stays_as_it_is(store: Store) -> None:
    """Nothing is read for it."""
    alert = an_alert(kind="no_data", rule="no_data")
    assert Evidence(store).of(alert) == alert


def test_the_sentence_of_a_drop_says_what_since_when_where_and_how_sure(store: Store, give: Give) -> None:
    """One plain sentence, and another when it is over."""
    give(-24, [0.8] * 20, route="support")
    give(1, [0.2] * 10, route="support")
    current = Level(mean=0.71, n=212, interval=(0.68, 0.74))
    alert = an_alert(baseline=Level(mean=0.82, n=1400), current=current, evidence=0.0213)
    alert = Evidence(store).of(alert)
    assert sentence(alert) == (
        "answer_relevancy of service shop dropped from 0.820 (n = 1400) to 0.710 (95 % interval 0.680 to 0.740, "
        "n = 212) since about Tue 2026-03-03 12:00 UTC; most on route support 0.800 -> 0.200; "
        "as rare as 0.021 false alarms a year."
    )
    over = replace(alert, state="resolved", resolve_reason="judge_changed")
    assert sentence(over).startswith("Over, the judge has changed, and its scores are not those of the one before: ")
    back = replace(over, resolve_reason="recovered", current=replace(current, mean=0.81, interval=None))
    assert sentence(back) == (
        "Over, it has recovered: answer_relevancy of service shop is at 0.810 (n = 212), 0.820 is usual."
    )


def test_hostile_names_stay_within_the_sentence() -> None:
    """A route with a line break and an escape in it is one line of plain text."""
    hostile = an_alert(kind="floor", labels={**LABELS, "route": "a\n\x1b[31m" + "x" * 500}, value=0.5, threshold=0.6)
    said = sentence(hostile)
    assert said.isprintable()
    assert len(said) < 300
