"""The page with the diagnosis and backtests of rules."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import numpy as np
import pytest
from tests.dashboard.conftest import Week, now
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import NOW, SEARCH, SERVICE

from germane.alert import Silence
from germane.alerting import evaluate_mean_threshold, evaluate_share, resolve_alert
from germane.insights.context import InsightContext, ViewParams
from germane.insights.rule_diagnosis import BacktestTooLarge, DiagnosisScope, diagnose_rules, run_rule_backtest
from germane.insights.wording import finding_sentence
from germane.settings import Drop, LowScoreRate, MeanThreshold, load_settings
from germane.storage import TrackingStore


def test_the_page_states_for_each_rule_why_it_does_not_fire(own_seeded: TrackingStore) -> None:
    """A rule may be disabled, have too few scores, be within limits, be silenced, or still be learning."""
    until = NOW + timedelta(hours=3)
    own_seeded.alerts.add_silence(Silence(id="s", matchers={"rule": "many"}, starts_at=NOW, ends_at=until))
    rules = [
        {"type": "mean_threshold", "threshold": 0.1, "min_samples": 2, "name": "many", "window": 86_400 * 3},
        {"type": "mean_threshold", "threshold": 0.9, "min_samples": 5_000, "name": "few", "routes": ["ask"]},
        {"type": "low_score_rate", "threshold": 0.3, "name": "none", "enabled": False, "routes": ["nowhere"]},
    ]
    context = InsightContext(store=own_seeded, settings=load_settings(database="sqlite://", rules=rules), now=now)
    view = ViewParams(window="7d", since=NOW - timedelta(days=7), until=NOW)
    found: dict[tuple[str, str], set[str]] = {}
    with open_dashboard(own_seeded, rules=rules) as client:
        for route in ("support/eu", "ask"):
            shown = html.unescape(client.get(f"/alerts/backtest?route={route}").text)
            for one in diagnose_rules(context, DiagnosisScope(since=view.since, until=NOW, route=route))[1]:
                found[one.rule.name, route] = {finding.kind for finding in one.findings}
                assert all(finding_sentence(finding, view) in shown for finding in one.findings[:8])

    assert {"mean_not_below", "silenced"} <= found["many", "support/eu"]
    assert found["few", "support/eu"] == {"other_route"}
    assert found["few", "ask"] == {"few_scores"}
    assert found["none", "ask"] == {"disabled", "other_route"}
    assert "provisional" in found["drop", "ask"]


def test_a_rule_is_backtested_over_the_window_in_the_url(seeded: TrackingStore) -> None:
    """A crossed threshold shows when the rule would have fired; nothing is stored."""
    floor = MeanThreshold(threshold=0.7, routes=("docs-search",), window=6 * 3600.0, min_samples=10)
    before = seeded.answers.counts()
    with open_dashboard(seeded, rules=[floor.model_dump()]) as client:
        text = client.get("/alerts/backtest?window=24h&replay=mean_threshold").text

    assert re.search(r"<b>mean_threshold</b> would have fired (once|twice|\d times)", text)
    assert seeded.answers.counts() == before
    assert len(seeded.alerts.list_open()) == 1


def test_a_large_backtest_suggests_the_command_line(seeded: TrackingStore) -> None:
    """A page reads only a limited number of scores."""
    context = InsightContext(store=seeded, settings=load_settings(database="sqlite://"), now=now)
    scope = DiagnosisScope(since=NOW - timedelta(days=7), until=NOW)
    with pytest.raises(BacktestTooLarge, match="scores are too many"):
        run_rule_backtest(context, Drop(), scope, max_scores=1_000)


def test_a_rule_that_would_fire_is_labeled(seeded: TrackingStore) -> None:
    """Nothing prevents the rule from firing, and its mean is below the threshold; times are in the visitor's zone."""
    with open_dashboard(seeded, rules=[{"type": "mean_threshold", "threshold": 0.7}]) as client:
        client.cookies.set("germane_zone", "Asia/Tokyo")
        text = client.get("/alerts/backtest?route=docs-search").text

    assert re.search(r'<span class="tag bad">would fire</span>', text)
    assert re.search(r"n=\d+\), below 0\.7\.", text)
    assert re.search(r"until [^;]+ JST, the baseline", text)


def test_the_diagnosis_agrees_with_the_rules(seeded: TrackingStore) -> None:
    """A mean or a share near a threshold is judged by the limit that the rule uses."""
    scope = DiagnosisScope(since=NOW - timedelta(days=1), until=NOW, scorer="answer_relevancy")
    means = seeded.trends.means(scorer="answer_relevancy", since=scope.since, until=NOW, histograms=False)
    newest = [mean for mean in means if mean.newest]
    agreed = set()
    for threshold in np.arange(0.02, 1, 0.02):
        floor = MeanThreshold(threshold=threshold, min_samples=10)
        low = LowScoreRate(threshold=threshold, min_samples=10)
        rules = [rule.model_dump(by_alias=True) for rule in (floor, low)]
        settings = load_settings(database="sqlite://", rules=rules)
        context = InsightContext(store=seeded, settings=settings, now=now)
        shown = {each.rule.type: each.is_violated for each in diagnose_rules(context, scope)[1]}

        fires = any(evaluate_mean_threshold(floor, mean).state == "bad" for mean in newest)
        assert shown["mean_threshold"] == fires, threshold
        is_high = any(evaluate_share(low, mean, mean.low_share).state == "bad" for mean in newest)
        assert shown["low_score_rate"] == is_high, threshold
        agreed |= {fires, is_high}
    assert agreed == {True, False}


WHY = re.compile(r'<a href="(/alerts/backtest[^"]*)">Why is there no alert\?</a>')


def test_a_drop_without_an_alert_links_to_the_diagnosis_of_the_rules(own_week: Week) -> None:
    """The overview and the route page lead to the diagnosis of the route and the scorer that the verdict is about."""
    resolve_alert(own_week.store, load_settings(database="sqlite://"), own_week.seeded.open_alert, "me")
    with open_dashboard(own_week.store) as client:
        for path in ("/", "/?window=24h&scorer=answer_relevancy", f"/r/{SEARCH}", f"/r/{SEARCH}?service={SERVICE}"):
            text = client.get(path).text
            assert 'class="verdict bad"' in text
            (link,) = WHY.findall(text)
            shown = client.get(html.unescape(link))
            assert shown.status_code == 200
            assert "answer_relevancy for handbook: no drop" in shown.text
            assert "faithfulness for handbook" not in shown.text
            assert f'<option value="{SEARCH}" selected>' in shown.text


def test_a_drop_with_an_alert_has_no_link_to_the_diagnosis(week: Week) -> None:
    """The verdict links to the alert instead, and the diagnosis shows its state."""
    with open_dashboard(week.store) as client:
        assert WHY.search(client.get("/").text) is None
        text = client.get(f"/alerts/backtest?route={SEARCH}&scorer=answer_relevancy").text

    assert '<span class="tag warn">firing</span>' in text
    assert "no drop" not in text


def test_the_diagnosis_for_one_scorer_excludes_rules_for_other_scorers(seeded: TrackingStore) -> None:
    """Such rules cannot fire for this scorer, whatever its scores."""
    rules = [{"type": "mean_threshold", "threshold": 0.9, "name": "faithful", "scorer": "faithfulness"}]
    context = InsightContext(store=seeded, settings=load_settings(database="sqlite://", rules=rules), now=now)
    scope = DiagnosisScope(since=NOW - timedelta(days=7), until=NOW, scorer="answer_relevancy")
    found = {one.rule.name: one for one in diagnose_rules(context, scope)[1]}

    assert [finding.kind for finding in found["faithful"].obstacles] == ["other_scorer"]
