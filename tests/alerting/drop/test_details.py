"""Details of a drop alert, before and after it resolves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from germane.settings.rules import Drop

DAY = timedelta(days=1)


def test_an_alert_about_a_large_drop_is_critical(learned: Any) -> None:
    """The alert is critical immediately, or when the mean of a day has fallen by critical_drop."""
    watcher = learned.new_watcher(Drop(critical_drop=0.15))
    for _ in range(4):
        learned.pass_days(1, mean=0.3)
        learned.evaluate(watcher)

    assert learned.store.alerts.list_open()[0].severity == "critical"


def test_a_critical_alert_stays_critical_until_it_resolves(learned: Any) -> None:
    """The severity does not flap when means are near the limit, and a period without traffic changes nothing."""
    happened = []
    for mean in (0.3, 0.3, 0.3, 0.68, 0.6, 0.68, 0.6):
        learned.pass_days(1, mean=mean)
        happened += learned.evaluate(learned.new_watcher(Drop(critical_drop=0.15)))
    learned.now += 3 * DAY
    learned.pass_days(1, mean=0.6, per_day=3)
    happened += learned.evaluate(learned.new_watcher(Drop(critical_drop=0.15)))

    assert [one for one in happened if one != "fired"] in ([], ["escalated"])
    assert learned.store.alerts.list_open()[0].severity == "critical"


def test_drop_evaluation_without_new_scores_writes_nothing(learned: Any) -> None:
    """This applies to the same process and to its successor."""
    watcher = learned.new_watcher()
    for _ in range(4):
        learned.pass_days(1, mean=0.5)
        learned.evaluate(watcher)
    for again in (watcher, learned.new_watcher()):
        step = learned.step(again)
        assert (step.detector_states, step.processed_score_ids, step.changes) == ([], [], [])


def test_a_process_that_regains_the_lease_reports_the_current_drop(learned: Any) -> None:
    """The alert is not about an earlier drop that another process has resolved in the meantime."""
    first, second = learned.new_watcher(), learned.new_watcher()
    for watcher, mean, days in ((first, 0.5, 4), (second, 0.8, 12), (second, 0.5, 4)):
        for _ in range(days):
            learned.pass_days(1, mean=mean)
            learned.evaluate(watcher)
    (alert,) = learned.store.alerts.list_open()
    first.reset()

    assert learned.evaluate(first) == []
    (again,) = learned.store.alerts.list_open()
    assert (again.onset, again.value) == (alert.onset, alert.value)


def test_a_resolved_drop_alert_keeps_its_onset_and_baseline(learned: Any) -> None:
    """The current mean is the mean of the recovery."""
    watcher = learned.new_watcher()
    for mean, days in ((0.5, 4), (0.8, 14)):
        for _ in range(days):
            learned.pass_days(1, mean=mean)
            learned.evaluate(watcher)
    (over,) = learned.store.alerts.search()
    (fired,) = learned.fired

    assert (over.state, over.resolve_reason) == ("resolved", "recovered")
    assert (over.baseline, over.onset, over.cause) == (fired.baseline, fired.onset, fired.cause)
    assert over.current.mean > fired.current.mean


def test_an_alert_reports_a_new_release_and_the_baseline_is_kept(sqlite_simulation: Any) -> None:
    """A bad deployment must not become the baseline."""
    watcher = sqlite_simulation.new_watcher()
    sqlite_simulation.learn_baseline(watcher, model="m", prompt_version="7")
    for _ in range(4):
        sqlite_simulation.pass_days(1, mean=0.5, model="m", prompt_version="8")
        sqlite_simulation.evaluate(watcher)

    assert sqlite_simulation.store.alerts.list_open()[0].details["release"] == {"prompt_version": ["7", "8"]}
    assert [(one.number, one.status) for one in sqlite_simulation.store.baselines.list_versions(superseded=True)] == [
        (1, "active")
    ]


def test_a_resolved_alert_still_reports_a_release_that_was_reverted(sqlite_simulation: Any) -> None:
    """The resolved alert still contains the change of release."""
    watcher = sqlite_simulation.new_watcher()
    sqlite_simulation.learn_baseline(watcher, prompt_version="7")
    sqlite_simulation.pass_days(3, mean=0.5, prompt_version="8")
    sqlite_simulation.evaluate(watcher)
    for _ in range(14):
        sqlite_simulation.pass_days(1, prompt_version="7")
        sqlite_simulation.evaluate(watcher)

    (alert,) = sqlite_simulation.store.alerts.search()
    assert (alert.state, alert.details["release"]) == ("resolved", {"prompt_version": ["7", "8"]})
