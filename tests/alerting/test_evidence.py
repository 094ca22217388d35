"""Evidence for alerts about scores (worst answers, shifts and likely cause), and the message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.alert import Alert, ScoreLevel, ScoreShift, alert_key
from germane.alerting.evidence import EvidenceCollector, RuleScope
from germane.alerting.wording import alert_message
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
SCORER = "answer_relevancy"
LABELS = {"service": "shop", "scorer": SCORER}
Give = Callable[..., list[str]]


def an_alert(**given: Any) -> Alert:
    labels = given.pop("labels", LABELS)
    fields: dict[str, Any] = {
        "rule": "drop", "type": "drop", "state": "firing", "fingerprint": "f", "onset": NOON, "starts_at": NOON,
        "fired_at": NOON, "evaluated_at": NOON, **given,
    }  # fmt: skip
    return Alert(id="a", key=alert_key(fields["rule"], labels), labels=labels, **fields)


@pytest.fixture
def give(store: TrackingStore, new_exchange: Callable[..., Exchange]) -> Give:
    """Store exchanges some hours after noon, with scores from one or more scorers."""

    def give(
        hours: float,
        values: list[float],
        *others: tuple[str, float],
        label: str | None = None,
        scored_after: timedelta | None = None,
        **changes: Any,
    ) -> list[str]:
        exchanges = [new_exchange(started_at=NOON + timedelta(hours=hours), **changes) for _ in values]
        store.exchanges.add(exchanges)
        scorers = {SCORER: "f"} | {name: "g" for name, _ in others}
        store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], scorers)
        claims = store.queue.claim_tasks("me", scorers, limit=1000, lease=timedelta(60))
        known = dict(zip([one.id for one in exchanges], values, strict=True))
        results = []
        for task in (task for claim in claims for task in claim.tasks):
            value = dict(others).get(task.scorer, known[task.exchange_id])
            mark = label if task.scorer == SCORER else None
            found = Score(scorer=task.scorer, fingerprint=task.fingerprint, value=value, label=mark)
            if scored_after is not None:
                found = replace(found, scored_at=NOON + timedelta(hours=hours) + scored_after)
            results.append((task, found))
        store.queue.complete_tasks("me", results)
        return [one.id for one in exchanges]

    return give


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_evidence_includes_route_attribute_other_scorers_and_worst_answers(store: TrackingStore, give: Give) -> None:
    """The alert lists the largest shift per dimension, and five ids."""
    for model in ("old", "new"):
        give(-24, [0.8] * 20, ("faithfulness", 0.9), ("other", 0.5), route="support", model=model)
        give(-24, [0.8] * 20, ("faithfulness", 0.9), ("other", 0.5), route="faq", model=model)
    give(1, [0.8] * 20, ("faithfulness", 0.9), ("other", 0.5), route="support", model="old")
    low = give(1, [0.2, 0.1, 0.3, 0.25, 0.15, *[0.4] * 15], ("faithfulness", 0.1), route="support", model="new")
    give(1, [0.8] * 40, ("faithfulness", 0.9), ("other", 0.5), route="faq", model="old")

    found = EvidenceCollector(store, ["route", "model"]).add_to(an_alert())

    assert found.exchange_ids == (low[1], low[4], low[0], low[3], low[2])
    assert [(shift.dimension, shift.name, shift.supported) for shift in found.shifts] == [
        ("route", "support", True), ("attribute", "model=new", True), ("scorer", "faithfulness", True),
    ]  # fmt: skip
    support = found.shifts[0]
    assert (support.before.n, support.since.n) == (40, 40)
    assert support.before.mean == pytest.approx(0.8, abs=1e-9)
    assert support.since.mean == pytest.approx((16 + 7) / 40, abs=1e-9)
    assert found.cause == "answers_drifting"


def test_evidence_for_drifting_answers_comes_from_the_routes_that_fell(store: TrackingStore, give: Give) -> None:
    """Refusals and answers on other routes are not evidence, although their scores are lower."""
    for route in ("support", "faq"):
        give(-24, [0.8] * 20, route=route, label="relevant")
        give(-24, [0.0] * 3, route=route, label="noncommittal")
        give(1, [0.0] * 3, route=route, label="noncommittal")
    give(1, [0.05, 0.06, *[0.8] * 18], route="faq", label="relevant")
    low = give(1, [0.31, 0.32, 0.33, 0.34, 0.35, *[0.4] * 15], route="support", label="irrelevant")

    found = EvidenceCollector(store, ["route"]).add_to(an_alert())

    assert found.cause == "answers_drifting"
    assert found.exchange_ids == tuple(low[:5])


def test_evidence_for_a_rise_in_refusals_consists_of_refusals(store: TrackingStore, give: Give) -> None:
    """The refusals are from the route that fell. Other low answers fill up the list."""
    for route in ("support", "faq"):
        give(-24, [0.8] * 40, route=route, label="relevant")
    give(1, [0.8] * 40, route="faq", label="relevant")
    refused = give(1, [0.0] * 30, route="support", label="noncommittal")
    give(1, [0.0, 0.1, *[0.8] * 8], route="support", label="irrelevant")

    found = EvidenceCollector(store, ["route"]).add_to(an_alert())

    assert found.cause == "refusals_rising"
    assert set(found.exchange_ids) <= set(refused)
    assert len(found.exchange_ids) == 5


def test_evidence_is_kept_after_the_earlier_scores_were_deleted(store: TrackingStore, give: Give) -> None:
    """An alert may be open for longer than scores are kept. Reminders state what is still known."""
    give(1, [0.3] * 40, route="support")
    level = ScoreLevel(mean=0.8, n=40)
    shift = ScoreShift(dimension="route", name="support", before=level, since=level, supported=True)
    alert = an_alert(shifts=(shift,), cause="answers_drifting")

    assert EvidenceCollector(store, ["route"]).explain(alert) == alert
    assert EvidenceCollector(store, ["route"]).explain(an_alert(cause="answers_drifting")).cause is None
    assert EvidenceCollector(store, ["route"]).explain(an_alert(cause="judge_drift")).cause == "judge_drift"


@pytest.mark.parametrize(
    "scope", [RuleScope(routes=("sup*",)), RuleScope(attributes={"tenant": "ac*"})], ids=["routes", "attributes"]
)
def test_evidence_contains_only_answers_that_the_rule_covers(
    store: TrackingStore, give: Give, scope: RuleScope
) -> None:
    """Worse answers from other routes or tenants are not listed."""
    mine: dict[str, Any] = {"route": "support", "attributes": {"tenant": "acme"}}
    for hours, low in ((-24, 0.8), (1, 0.3)):
        ids = give(hours, [low] * 6, **mine)
        give(hours, [low - 0.3] * 30, route="faq", attributes={"tenant": "other"})
    found = EvidenceCollector(store, ["route", "model"]).add_to(an_alert(), scope)
    assert set(found.exchange_ids) <= set(ids)
    assert len(found.exchange_ids) == 5
    assert {shift.name for shift in found.shifts if shift.dimension == "route"} == {"support"}
    assert found.baseline is not None
    assert found.baseline.n == 6
    assert found.baseline.mean == pytest.approx(0.8, abs=1e-9)


def test_the_interval_of_a_mean_over_routes_combines_independent_intervals(store: TrackingStore, give: Give) -> None:
    """The squares of the weighted distances to the limits are added."""
    give(-24, [0.9, 0.8, 0.7] * 10, route="support")
    give(-24, [0.6, 0.5, 0.4] * 10, route="faq")
    give(1, [0.4, 0.3, 0.2] * 10, route="support")
    give(1, [0.2, 0.3, 0.1] * 5, route="faq")
    found = EvidenceCollector(store).add_to(an_alert())
    whole = found.baseline
    assert whole is not None
    support, faq = (next(one.before for one in found.shifts if one.name == name) for name in ("support", "faq"))
    assert whole.interval is not None
    assert support.interval is not None
    assert faq.interval is not None
    for end in (0, 1):
        far = ((2 * (support.interval[end] - support.mean)) ** 2 + (faq.interval[end] - faq.mean) ** 2) ** 0.5 / 3
        assert abs(whole.interval[end] - whole.mean) == pytest.approx(far, abs=1e-9)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_an_onset_is_the_time_of_an_answer_even_if_it_was_scored_later(store: TrackingStore, give: Give) -> None:
    """Earlier answers do not belong to the drop, although their scores may have arrived after the onset."""
    give(-24, [0.8] * 20)
    give(-2, [0.8] * 5, scored_after=timedelta(hours=3))
    low = give(-0.5, [0.3] * 20, scored_after=timedelta(minutes=40))
    onset = NOON - timedelta(minutes=30)
    found = EvidenceCollector(store).add_to(an_alert(onset=onset, evaluated_at=NOON + timedelta(minutes=10)))
    assert set(found.exchange_ids) < set(low)
    shift = found.shifts[0]
    assert (shift.before.n, shift.since.n) == (25, 20)
    assert found.cause == "answers_drifting"


def test_a_change_in_the_route_mix_is_not_reported_as_a_shift(store: TrackingStore, give: Give) -> None:
    """Earlier means are weighted by the current mix."""
    give(-24, [0.9] * 30, route="easy")
    give(-24, [0.5] * 10, route="hard")
    give(1, [0.9] * 5, route="easy")
    give(1, [0.5] * 30, route="hard")
    found = EvidenceCollector(store).add_to(an_alert())
    assert found.shifts == ()
    assert found.baseline is not None
    assert found.baseline.mean == pytest.approx((5 * 0.9 + 30 * 0.5) / 35, abs=1e-9)


def test_a_route_without_a_name_needs_evidence_like_others(store: TrackingStore, give: Give) -> None:
    """If both routes fell by the same amount, sentences name neither."""
    for route in ("", "faq"):
        give(-24, [0.8] * 20, route=route)
        give(1, [0.4] * 20, route=route)

    found = EvidenceCollector(store).add_to(an_alert())

    assert {(shift.name, shift.supported) for shift in found.shifts} == {("", False), ("faq", False)}


def test_refusals_are_named_as_the_cause_if_they_explain_half_of_the_drop(store: TrackingStore, give: Give) -> None:
    """Otherwise the cause is drift."""
    give(-24, [0.8] * 20)
    give(1, [0.8] * 10)
    give(1, [0.0] * 10, label="noncommittal")
    found = EvidenceCollector(store).add_to(an_alert())
    assert found.cause == "refusals_rising"
    assert found.details["refusals"] == [0.0, pytest.approx(0.5)]


def test_a_drop_in_context_relevance_names_retrieval_as_the_likely_cause(store: TrackingStore, give: Give) -> None:
    """This cause takes precedence over other causes."""
    give(-24, [0.8] * 20, ("context_relevance", 0.9))
    give(1, [0.5] * 20, ("context_relevance", 0.4))
    assert EvidenceCollector(store).add_to(an_alert(cause="answers_drifting")).cause == "retrieval_worse"


def test_scores_from_another_service_or_judge_are_not_evidence(store: TrackingStore, give: Give) -> None:
    """Without earlier scores, nothing is compared."""
    give(1, [0.1] * 10, service="other")
    mine = give(1, [0.3] * 6)
    found = EvidenceCollector(store).add_to(an_alert())
    assert set(found.exchange_ids) < set(mine)
    assert (found.shifts, found.baseline, found.cause) == ((), None, None)


def test_alerts_that_are_not_about_scores_get_no_evidence(store: TrackingStore) -> None:
    """No query is run."""
    alert = an_alert(type="no_data", rule="no_data")
    assert EvidenceCollector(store).add_to(alert) == alert


def test_hostile_names_are_sanitized_in_alert_messages() -> None:
    """Line breaks and escape sequences are removed."""
    hostile = an_alert(
        type="mean_threshold", labels={**LABELS, "route": "a\n\x1b[31m" + "x" * 500}, value=0.5, threshold=0.6
    )
    message = alert_message(hostile)
    assert message.isprintable()
    assert len(message) < 300
