"""What an alert of a drop shows, and what of it stays."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from germane.settings.rules import Drop

DAY = timedelta(days=1)


def test_refusals_are_named(small: Any) -> None:
    """The half that carries the evidence, with its rate before and since."""
    watch = small.watch()
    small.learned(watch)
    for _ in range(4):
        small.days(1, refused=0.4)
        small.look(watch)

    (alert,) = small.store.open_alerts()
    carrier = alert.details["carriers"][0]
    assert (alert.cause, carrier["half"]) == ("refusals_rising", "zero")
    assert carrier["before"]["mean"] == pytest.approx(0.05, abs=0.03)
    assert carrier["since"]["mean"] == pytest.approx(0.4, abs=0.15)


def test_a_large_drop_is_critical(small: Any) -> None:
    """It is so at once, or as soon as the mean of a day has fallen by as much as the rule says."""
    watch = small.watch(Drop(critical_drop=0.15))
    small.learned(watch)
    for _ in range(4):
        small.days(1, mean=0.3)
        small.look(watch)

    assert small.store.open_alerts()[0].severity == "critical"


def test_what_was_critical_stays_so_until_it_is_over(small: Any) -> None:
    """Means near the limit do not go back and forth, whoever looks; nor does silence, after which few scores tell."""
    small.learned(small.watch(Drop(critical_drop=0.15)))
    happened = []
    for mean in (0.3, 0.3, 0.3, 0.68, 0.6, 0.68, 0.6):
        small.days(1, mean=mean)
        happened += small.look(small.watch(Drop(critical_drop=0.15)))
    small.now += 3 * DAY
    small.days(1, mean=0.6, per_day=3)
    happened += small.look(small.watch(Drop(critical_drop=0.15)))

    assert [one for one in happened if one != "fired"] in ([], ["escalated"])
    assert small.store.open_alerts()[0].severity == "critical"


def test_while_nothing_comes_nothing_is_written(small: Any) -> None:
    """What fires is as it was at the last look, for the same process and for the next one."""
    watch = small.watch()
    small.learned(watch)
    for _ in range(4):
        small.days(1, mean=0.5)
        small.look(watch)
    for again in (watch, small.watch()):
        step = small.step(again)
        assert (step.progress, step.consumed, step.changes) == ([], [], [])


def test_who_watches_again_shows_nothing_of_what_another_one_ended(small: Any) -> None:
    """Back in office after a recovery and a second drop, it tells of the second one."""
    first, second = small.watch(), small.watch()
    small.learned(first)
    for watch, mean, days in ((first, 0.5, 4), (second, 0.8, 12), (second, 0.5, 4)):
        for _ in range(days):
            small.days(1, mean=mean)
            small.look(watch)
    (alert,) = small.store.open_alerts()
    first.forget()

    assert small.look(first) == []
    (again,) = small.store.open_alerts()
    assert (again.onset, again.evidence, again.value) == (alert.onset, alert.evidence, alert.value)


def test_what_is_over_keeps_what_it_fired_by(small: Any) -> None:
    """Evidence, beginning and baseline are those of the drop; the mean of now is that of the recovery."""
    watch = small.watch()
    small.learned(watch)
    for mean, days in ((0.5, 4), (0.8, 14)):
        for _ in range(days):
            small.days(1, mean=mean)
            small.look(watch)
    (over,) = small.store.alerts()
    (fired,) = small.fired

    assert (over.state, over.resolve_reason) == ("resolved", "recovered")
    assert (over.evidence, over.onset, over.cause) == (fired.evidence, fired.onset, fired.cause)
    assert over.evidence is not None
    assert over.current.mean > fired.current.mean


def test_a_change_of_the_application_is_named_and_the_baseline_stays(small: Any) -> None:
    """A bad deploy must not become what is normal."""
    watch = small.watch()
    small.learned(watch, model="m", prompt_version="7")
    for _ in range(4):
        small.days(1, mean=0.5, model="m", prompt_version="8")
        small.look(watch)

    assert small.store.open_alerts()[0].details["release"] == {"prompt_version": ["7", "8"]}
    assert [(one.number, one.status) for one in small.store.baselines(superseded=True)] == [(1, "active")]
