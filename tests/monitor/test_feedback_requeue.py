"""A person's bad label gets its answer scored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.score import Reason
from germane.settings import Settings
from germane.storage import Store

BELOW = [{"feedback_below": 0.5}]


class Plain:
    """A scorer that finds every answer bad."""

    name, fingerprint, range = "plain", "f1", (0.0, 1.0)
    requires = frozenset({"question", "answer"})

    async def score(self, exchange: Exchange) -> float:
        return 0.1


def label(exchange: Exchange, score: float) -> Feedback:
    return Feedback(id=exchange.id, exchange_id=exchange.id, score=score, created_at=datetime.now(UTC))


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_bad_label_gets_its_answer_scored(
    store: Store,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    attached: Any,
    new_exchange: Any,
    until: Any,
) -> None:
    """What was not drawn is scored once somebody dislikes it, wherever the label comes; what is liked is not."""
    disliked, liked, early = (new_exchange() for _ in range(3))
    store.add([disliked, liked])
    store.add_feedback([label(early, 0.0)])
    start(store, [Plain()], settings=settings(rate=0.0, always=BELOW))
    until(lambda: store.counts().skipped == 2)

    store.add_feedback([label(disliked, 0.49), label(liked, 0.5)])
    store.add([early])

    until(lambda: len(attached.calls) == 2)
    assert {scored.exchange.id for scored in store.worst()} == {disliked.id, early.id}
    assert store.counts().skipped_reasons == {Reason.NOT_DRAWN: 1}
    (mean,) = store.means(scorer="plain", since=None)
    assert mean.n == 2
    assert mean.mean == pytest.approx(0.1, abs=1e-9)
    (coverage,) = store.coverage()
    assert (coverage.seen, coverage.scored, coverage.skipped) == (3, 2, {"not_drawn": 1})


def test_a_rule_for_feedback_may_ask_for_more(
    store: Store, start: Callable[..., Monitor], settings: Callable[..., Settings], new_exchange: Any, until: Any
) -> None:
    """A bad label counts where all else that its rule names fits as well."""
    there, elsewhere = new_exchange(route="support"), new_exchange(route="faq")
    store.add([there, elsewhere])
    store.add_feedback([label(there, 0.0), label(elsewhere, 0.0)])
    start(store, [Plain()], settings=settings(rate=0.0, always=[{"feedback_below": 0.5, "routes": ["sup*"]}]))

    until(lambda: store.counts().rows == 1 and not store.unconsidered_feedback(5))

    assert [scored.exchange.id for scored in store.worst()] == [there.id]


def test_without_a_rule_feedback_is_left_alone(
    store: Store, start: Callable[..., Monitor], settings: Callable[..., Settings], new_exchange: Any, until: Any
) -> None:
    """Nothing looks at labels, and a later start with a rule still considers them."""
    exchange = new_exchange()
    store.add([exchange])
    store.add_feedback([label(exchange, 0.0)])
    monitor = start(store, [Plain()], settings=settings(rate=0.0))
    until(lambda: store.counts().skipped == 1)
    sampled_at = monitor.status().jobs["sample"].last_run
    until(lambda: monitor.status().jobs["sample"].last_run != sampled_at)
    assert monitor.stop(60)
    assert len(store.unconsidered_feedback(5)) == 1

    start(store, [Plain()], settings=settings(rate=0.0, always=BELOW))

    until(lambda: store.counts().rows == 1)
    assert store.unconsidered_feedback(5) == []
