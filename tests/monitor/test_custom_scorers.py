"""User-defined scorers in a running monitor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import germane
from germane import registry
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.scorers import build_scorers
from germane.storage import TrackingStore

ANSWERS = {"good": 0.5, "high": 1.5, "nan": float("nan")}


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync and an async scorer function in a separate registry."""
    monkeypatch.setattr(registry, "_declarations", {})

    @germane.scorer
    def plain(exchange: Exchange) -> float:
        return ANSWERS[exchange.answer or ""]

    @germane.scorer
    async def asynchronous(exchange: Exchange) -> float:
        return ANSWERS[exchange.answer or ""]


@pytest.mark.parametrize("name", ["plain", "asynchronous"])
def test_a_custom_scorer_yields_a_value_or_a_reason(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Any,
    new_exchange: Any,
    until: Any,
    name: str,
    attached: Any,
) -> None:
    """An exception or a value outside the range becomes a failed score without a number."""
    configured = settings(scorers=(name,))
    scorer_set = build_scorers(configured)
    store.exchanges.add([new_exchange(answer=answer) for answer in ("good", "high", "nan", "raises")])
    start(store, scorer_set.scorers, settings=configured, close=scorer_set.aclose)

    until(lambda: store.answers.counts().done + store.answers.counts().failed == 4)

    assert [scored.score.value for scored in store.answers.worst()] == [0.5]
    assert store.answers.counts().failed_reasons == {"out_of_range": 2, "scorer_error": 1}
    until(lambda: len(attached.scores) == 4)
    assert {score.scorer for score in attached.scores} == {name}


@pytest.fixture
def free() -> Iterator[threading.Event]:
    """An event that a hanging function waits for; it is set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_a_hanging_custom_scorer_does_not_delay_the_stop(
    store: TrackingStore, start: Callable[..., Monitor], settings: Any, new_exchange: Any, free: threading.Event
) -> None:
    """The scorer's exchange is scored at the next start."""
    began = threading.Event()

    @germane.scorer
    def hangs(exchange: Exchange) -> float:
        began.set()
        free.wait(60)
        return 0.5

    configured = settings(scorers=("hangs",))
    scorer_set = build_scorers(configured)
    store.exchanges.add([new_exchange(answer="good")])
    monitor = start(store, scorer_set.scorers, settings=configured, close=scorer_set.aclose)
    assert began.wait(60)

    monitor.stop(1.0)

    counts = store.answers.counts()
    assert (counts.done, counts.failed, counts.pending + counts.running) == (0, 0, 1)
