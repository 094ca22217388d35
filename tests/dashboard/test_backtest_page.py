"""Why a rule does not alert, in sentences, and what it would have told."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from tests.dashboard.conftest import now
from tests.dashboard.seeding import NOW
from tests.dashboard.visits import visiting

from germane.alert import Silence
from germane.dashboard.pages.alerts.backtest_page import Place, replay
from germane.dashboard.web.http_error import Refusal
from germane.insights.context import Desk
from germane.settings import Drop, Floor, load
from germane.storage import Store


def test_each_rule_says_what_stands_in_its_way(seeded: Store) -> None:
    """What is off, too few, on the good side, silenced or not learned yet."""
    until = NOW + timedelta(hours=3)
    seeded.add_silence(Silence(id="s", matchers={"rule": "many"}, starts_at=NOW, ends_at=until))
    rules = [
        {"kind": "floor", "threshold": 0.1, "min_count": 2, "name": "many", "window": 86_400 * 3},
        {"kind": "floor", "threshold": 0.9, "min_count": 5_000, "name": "few", "routes": ["ask"]},
        {"kind": "low_rate", "threshold": 0.3, "name": "none", "enabled": False, "routes": ["nowhere"]},
    ]
    with visiting(seeded, rules=rules) as client:
        text = client.get("/alerts/preview?route=support/eu").text
        other = client.get("/alerts/preview?route=ask").text

    assert re.search(r"the mean is 0\.\d\d \(95 % interval 0\.\d\d\u20130\.\d\d, n=\d+\), not under 0\.1", text)
    assert "silenced until" in text
    assert "switched off" in text
    assert "its patterns leave this one out" in text
    assert "faithfulness of handbook: learning until" in text
    assert re.search(r"n=\d+ in 24 h, and it needs 5000", other)


def test_a_rule_is_replayed_over_the_time_in_the_address(seeded: Store) -> None:
    """A floor that was broken says when it would have fired; nothing is written."""
    floor = Floor(threshold=0.7, routes=("docs-search",), window=6 * 3600.0, min_count=10)
    before = seeded.counts()
    with visiting(seeded, rules=[floor.model_dump()]) as client:
        text = client.get("/alerts/preview?window=24h&replay=floor").text

    assert re.search(r"<b>floor</b> would have fired (once|twice|\d times)", text)
    assert "route docs-search in handbook is below 0.7" in text
    assert seeded.counts() == before
    assert len(seeded.open_alerts()) == 1


def test_a_replay_of_too_much_is_left_to_the_command_line(seeded: Store) -> None:
    """A page does not read more scores than it may."""
    desk = Desk(store=seeded, settings=load(database="sqlite://"), now=now)
    place = Place(since=NOW - timedelta(days=7), until=NOW)
    with pytest.raises(Refusal, match="scores are too many") as refused:
        replay(desk, Drop(), place, most=1_000)

    assert refused.value.status == 413
    assert "germane alerts preview --rule drop" in refused.value.next_step


def test_a_rule_that_would_fire_at_the_next_look_says_so(seeded: Store) -> None:
    """Nothing is in its way, and what it sees is under its floor; times are in the visitor's zone."""
    with visiting(seeded, rules=[{"kind": "floor", "threshold": 0.7}]) as client:
        client.cookies.set("germane_zone", "Asia/Tokyo")
        text = client.get("/alerts/preview?route=docs-search").text

    assert re.search(r'<span class="tag bad">would fire</span>', text)
    assert re.search(r"Route docs-search of handbook: the mean is 0\.\d\d \(.*\), under 0\.7\.", text)
    assert re.search(r"faithfulness of handbook: learning until [^;]+ JST", text)
