"""What sinks never get: questions, answers, contexts, and any text that has been erased."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from opentelemetry.sdk.trace import TracerProvider
from tests.conftest import migrated_file
from tests.sinks.conftest import NAME, Backend, Bench

import germane
from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore
from germane.testing import Clock, collect

SECRET = "hunter2"
MINUTE = timedelta(minutes=1)


def capture(clock: Clock, **options: Any) -> Exchange:
    """Return the exchange of a handler whose texts contain a secret, as it is captured with these options."""
    with collect(provider=TracerProvider(), **options) as exchanges:

        @germane.observe(route="docs")
        def ask(question: str) -> str:
            germane.add_contexts([f"context {SECRET}"])
            return f"answer {SECRET}"

        ask(f"question {SECRET}")
    return replace(exchanges[0], user="ada", started_at=clock())


def score(store: TrackingStore, exchange: Exchange, clock: Clock) -> None:
    """Score an exchange like a worker whose scorer quotes the answer."""
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled")], {"tone": "f1"})
    (claim,) = store.queue.claim_tasks("me", {"tone": "f1"}, limit=1, lease=MINUTE)
    result = Score(
        scorer="tone", fingerprint="f1", value=0.5, explanation=f"quotes {claim.exchange.answer}",
        details={"claim": claim.exchange.answer}, scored_at=clock(),
    )  # fmt: skip
    assert store.queue.complete_tasks("me", [(task, result) for task in claim.tasks])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    capturing=some.sampled_from(["span+store", "store", "none"]),
    redacts=some.booleans(),
    erases=some.booleans(),
    later=some.sampled_from(["nothing", "erase", "forget"]),
    waits=some.booleans(),
)
def test_no_request_contains_text_that_must_not_be_kept(
    backend: Backend,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    capturing: Any,
    redacts: bool,
    erases: bool,
    later: str,
    waits: bool,
) -> None:
    """Whatever is captured, redacted or erased, and whether or not the item waits for a retry at that time."""
    path = shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / "germane.db")
    clock = Clock()
    backend.requests.clear()
    with closing(TrackingStore(f"sqlite:///{path}", clock=clock, erase_after_scoring=erases, sinks=[NAME])) as store:
        bench = Bench(store, backend, clock)
        redact = (lambda text: text.replace(SECRET, "***")) if redacts else None
        exchange = capture(clock, capture=capturing, redact=redact)
        store.exchanges.add([exchange])
        comment = f"the answer quotes {exchange.answer}"
        store.labels.add_feedback(
            [Feedback(id="l", exchange_id=exchange.id, score=0.0, comment=comment, created_at=clock())]
        )
        score(store, exchange, clock)
        if waits:
            backend.script.append(lambda _: (503, {}, b"{}"))
            bench.deliver()
            backend.requests.clear()
        clock.advance(hours=1)
        if later == "erase":
            store.retention.prune(texts_before=clock())
        elif later == "forget":
            store.retention.forget(user="ada")
        bench.deliver()
        bench.pool.close()

    sent = str(backend.requests)
    may_quote = capturing != "none" and not redacts and not erases and later == "nothing"
    assert (SECRET in sent) is may_quote
    assert f"question {SECRET}" not in sent
    assert f"context {SECRET}" not in sent
    assert bool(backend.requests) is (later != "forget")
