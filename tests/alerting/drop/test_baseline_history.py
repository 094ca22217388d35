"""Baselines in a backtest: those of its start, and later changes by people."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.cases import each

from germane.alerting.backtest_history import BaselineHistory
from germane.baseline import Baseline
from germane.storage import BaselineKey, BaselineVersion

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
LEARNED = Baseline(
    service="shop",
    scorer="relevancy",
    fingerprint="f1",
    since=SINCE,
    until=SINCE,
    n=300,
    mean=0.8,
    deviation=0.1,
    scores_per_day=20.0,
    committed_per_day=20.0,
    routes={},
)


def day(number: float) -> datetime:
    """Return a time in days after the start of the backtest."""
    return SINCE + timedelta(days=number)


def version(created: int, until: int, **fields: Any) -> BaselineVersion:
    """Return a version whose learning began on one day, and ended, ends or was cancelled on another."""
    given: dict[str, Any] = {"status": "active", "reason": "first", "baseline": LEARNED} | fields
    key = BaselineKey("shop", "relevancy", "f1", "")
    names: dict[str, Any] = {"id": 1, "key": key, "number": 1, "model": None, "prompt_version": None}
    return BaselineVersion(since=day(created), until=day(until), created_at=day(created), **names, **given)


UNFINISHED: dict[str, Any] = {"status": "learning", "baseline": None}
CANCELLED: dict[str, Any] = {"status": "superseded", "baseline": None}
ACCEPTED: dict[str, Any] = {"reason": "accepted"}
PROVISIONAL: dict[str, Any] = {"reason": "provisional"}


@each(
    ("stored", "statuses"),
    [
        (version(-20, -6), ["active"] * 4),
        (version(-20, 0), ["active"] * 4),
        (version(-20, -6, status="superseded"), ["active"] * 4),
        (version(-5, 9), ["learning", "learning", "active", "active"]),
        (version(-5, 9, **UNFINISHED), ["learning"] * 4),
        (version(-20, -6, **UNFINISHED), [None] * 4),
        (version(-20, -6, **CANCELLED), [None] * 4),
        (version(-5, 9, **CANCELLED), [None] * 4),
        (version(-20, -6, **PROVISIONAL), ["active"] * 4),
        (version(-5, 9, **PROVISIONAL), [None] * 4),
        (version(3, 17), [None] * 4),
        (version(5, 5, **ACCEPTED), [None, "active", "active", "active"]),
        (version(5, 2, **ACCEPTED), [None, "active", "active", "active"]),
        (version(5, 19, **ACCEPTED), [None, "learning", "learning", "learning"]),
        (version(5, 5, **ACCEPTED, **UNFINISHED), [None, "learning", "learning", "learning"]),
    ],
)
def test_a_backtest_sees_each_baseline_as_it_was(stored: BaselineVersion, statuses: list[str | None]) -> None:
    """At its start and 5, 9 and 30 days later, it has the baselines that were stored and that people changed.

    It learns by itself what processes learned after its start.
    """
    now = SINCE
    history = BaselineHistory([stored], SINCE, lambda: now)
    seen = []
    for number in (0, 5, 9, 30):
        now = day(number)
        seen.append(next((found.status for found in history.list_versions()), None))

    assert seen == statuses


def test_only_complete_baselines_have_statistics_in_a_backtest() -> None:
    """A baseline that was still being learned is not used before its learning period is over."""
    now = SINCE
    history = BaselineHistory([version(-5, 9)], SINCE, lambda: now)

    (learning,) = history.list_versions()
    assert learning.baseline is None
    now = day(9)
    (learned,) = history.list_versions()
    assert learned.baseline == LEARNED


def test_the_highest_sampling_rate_includes_baselines_that_become_active_later() -> None:
    """A backtest reads as many scores as the baselines of its stream need, and ignores other streams."""
    sampled = {rate: replace(LEARNED, sampling_rate=rate) for rate in (0.1, 0.4)}
    other = replace(version(-20, -6), id=3, key=BaselineKey("shop", "relevancy", "f2", ""))
    stored = [version(-20, -6, baseline=sampled[0.1]), replace(version(5, 5, **ACCEPTED), id=2, baseline=sampled[0.4])]
    history = BaselineHistory([*stored, other], SINCE, lambda: SINCE)

    assert history.max_sampling_rate(("shop", "relevancy", "f1")) == 0.4
    assert history.max_sampling_rate(("shop", "relevancy", "f2")) == 1.0
    assert history.max_sampling_rate(("shop", "relevancy", "f3")) == 0.0
