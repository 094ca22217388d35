"""What rules would have told over stored history: the same that they did tell, and nothing is written."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from germane.monitor.preview import Preview, Replayed, preview
from germane.settings import Floor, load
from germane.settings.rules import AnyRule, Drop
from germane.storage import tables
from germane.storage.tables import metadata

START = datetime.fromisoformat("2026-01-05T00:00:00+00:00")
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
CALM = Drop(critical_drop=None)
"""Never more than a warning."""
NUMBERS = ("key", "labels", "severity", "fingerprint", "onset", "kind")


def previewed(world: Any, *rules: AnyRule, since: datetime = START, **settings: Any) -> Preview:
    """Return what rules would have told up to now."""
    return preview(world.store, load(**settings), rules or (Drop(),), since=since, until=world.now)


def one_of(world: Any, rule: AnyRule, **given: Any) -> Replayed:
    """Return what one rule would have told."""
    (found,) = previewed(world, rule, **given).replayed
    return found


def rows(world: Any) -> dict[str, list[Any]]:
    """Return all there is in the database."""
    with world.store._database.read() as connection:
        counts = {
            name: connection.execute(select(func.count()).select_from(each)).scalar_one()
            for name, each in metadata.tables.items()
        }
        versions = connection.execute(select(tables.detector.c.row_version, tables.detector.c.state)).all()
    return {**counts, "progress": versions}


def months(world: Any, watch: Any) -> list[str]:
    """Let scores drop for five days and recover; return what live watching said."""
    world.learned(watch, per_day=40)
    told = []
    for days, mean in ((1, 0.8), (5, 0.62), (9, 0.8)):
        for _ in range(days):
            world.days(1, per_day=40, mean=mean)
            told += world.look(watch)
    return told


def test_a_drop_is_found_as_it_was_when_it_was_live(world: Any) -> None:
    """The same evidence, onset and carriers; nothing is written."""
    assert months(world, world.watch(CALM)) == ["fired", "resolved"]
    (live,) = world.fired
    before = rows(world)

    found = one_of(world, CALM)

    assert rows(world) == before
    (one,) = found.episodes
    assert {name: getattr(one.fired, name) for name in NUMBERS} == {name: getattr(live, name) for name in NUMBERS}
    assert one.fired.evidence == pytest.approx(live.evidence, rel=1e-9)  # other batches add in another order
    assert [each["half"] for each in one.fired.details["carriers"]] == [
        each["half"] for each in live.details["carriers"]
    ]
    assert live.fired_at is not None
    assert one.fired.fired_at is not None
    assert live.fired_at - DAY < one.fired.fired_at <= live.fired_at
    assert (one.last.state, one.last.resolve_reason, found.resolved) == ("resolved", "recovered", 1)
    assert one.seconds == (one.until - one.fired.fired_at).total_seconds()
    assert "relevancy of service shop dropped from 0.7" in one.fired.message
    assert found.notifications["firing"] == found.notifications["resolved"] == 1
    assert [event.what for event in one.events if event.what != "repeated"] == ["fired", "resolved"]


def test_a_floor_fires_and_resolves_once(world: Any) -> None:
    """By the look that watches, with its hysteresis and the time that it keeps firing."""
    for days, mean in ((2, 0.8), (2, 0.4), (3, 0.8)):
        world.days(days, per_day=40, mean=mean)
    before = rows(world)

    found = one_of(world, Floor(scorer="relevancy", threshold=0.6))

    assert rows(world) == before
    (one,) = found.episodes
    assert one.fired.labels == {"service": "shop", "scorer": "relevancy", "route": "ask"}
    assert one.fired.fired_at is not None
    assert START + 2 * DAY < one.fired.fired_at < START + 3 * DAY
    assert START + 4 * DAY < one.until < START + 6 * DAY
    assert "relevancy of route ask in shop is below 0.6" in one.fired.message
    assert found.notifications == {"firing": 1, "resolved": 1, "repeated": one.seconds // 86_400}
