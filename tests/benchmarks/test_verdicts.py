"""The verdict on generated installations with a planted drop, and on quiet ones."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from streams.fleets import NOW, Installation
from verdicts import STATES, first_sentences, judge

from germane.storage import TrackingStore
from germane.testing import engine_of


@pytest.mark.parametrize("drop", [True, False])
def test_the_first_sentence_names_the_route_that_fell_or_no_change(drop: bool) -> None:
    """It is the same in every window and in the report, with and without a baseline, with and without alerts."""
    results = judge(3, drop=drop, routes=2)

    assert len(results) == len(STATES)
    assert [one.sentences for one in results if not one.is_right] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11])
def test_the_first_sentence_is_right_with_twenty_routes_in_each_of_three_services(seed: int) -> None:
    """The chance of a wrong route does not grow with the number of routes."""
    results = [one for drop in (True, False) for one in judge(seed, drop=drop, routes=20)]

    assert [one.sentences for one in results if not one.is_right] == []


def test_the_number_of_queries_does_not_grow_with_the_number_of_services(tmp_path: Path) -> None:
    """Services are loaded together, although the periods of their baselines differ."""
    from sqlalchemy import event

    counts = []
    for services in (("a", "b"), tuple("abcdef")):
        asked: list[str] = []
        made = Installation.draw(3, drop=False, routes=1, services=services)
        with closing(TrackingStore(f"sqlite:///{tmp_path}/{len(services)}.db", clock=lambda: NOW)) as store:
            store.migrate()
            made.write(store)
            made.learn(store)
            event.listen(engine_of(store), "before_cursor_execute", lambda *given, to=asked: to.append(given[2]))
            first_sentences(store)
        counts.append(len(asked))

    assert counts[1] <= counts[0] + 6 * (len(STATES) + 1)
    assert NOW - timedelta(days=8) < made.answers[0][2]
