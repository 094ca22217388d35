"""A part of the soak test: the real monitor with a simulated clock."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import soak
from streams.recipe import Change

pytestmark = pytest.mark.slow

STEP = timedelta(hours=12)


def test_a_simulated_drop_fires_one_alert_and_the_alert_resolves(tmp_path: Path) -> None:
    """Twelve quiet days, five bad days and a week of recovery raise one alert, which fires near the drop's onset."""
    made = soak.service(5, 60, 14, wander=0.01, change=Change(shift=0.2), lasts=4)

    outcome = soak.run(f"sqlite:///{tmp_path / 'soak.db'}", made, step=STEP)

    (alert,) = outcome.alerts
    assert outcome.scores == outcome.exchanges == len(made.hours)
    assert (outcome.events["fired"], outcome.events["resolved"]) == (1, 1)
    assert (alert.state, alert.resolve_reason) == ("resolved", "recovered")
    onset = soak.BEGIN + timedelta(hours=made.onset)
    assert alert.onset is not None
    assert abs(alert.onset - onset) < timedelta(days=1.5)
    assert alert.fired_at is not None
    assert alert.fired_at - onset < timedelta(days=1.5)
    # The first version is the provisional baseline.
    assert [(one.number, one.status) for one in outcome.versions] == [(1, "superseded"), (2, "active")]


def test_simulated_days_without_a_drop_raise_no_alert(tmp_path: Path) -> None:
    """No alert fires in two weeks of learning and four more days."""
    outcome = soak.run(f"sqlite:///{tmp_path / 'soak.db'}", soak.service(3, 40, 4, wander=0.01), step=STEP)

    assert outcome.alerts == []
    assert [version.status for version in outcome.versions] == ["superseded", "active"]
