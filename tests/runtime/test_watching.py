"""``germane.start(watch=True)`` in an application that another instrumentation traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

import germane

SCOPE = "openinference.instrumentation.langchain"
Query = Callable[[str], list[Any]]


@pytest.fixture
def provider() -> Iterator[TracerProvider]:
    """The application's provider."""
    provider = TracerProvider(shutdown_on_exit=False)
    yield provider
    provider.shutdown()


def record(provider: TracerProvider, number: int, **attributes: str) -> None:
    """Record the span of a chain."""
    with provider.get_tracer(SCOPE).start_as_current_span("Chain") as span:
        texts = {"input.value": f"How do I pay {number}?", "output.value": f"By card {number}."}
        span.set_attributes({"openinference.span.kind": "CHAIN", **texts, **attributes})


def test_every_watched_trace_is_stored_or_counted(database: str, query: Query, provider: TracerProvider) -> None:
    """Traces are exchanges in the database; unreadable ones are counted, under the route that they would have had."""
    germane.start(role="capture", database=database, tracer_provider=provider, watch=True)
    for number in range(50):
        record(provider, number)
    for number in range(7):
        record(provider, number, **{"output.value": "__REDACTED__"})
    assert germane.stop(60)

    rows = query("SELECT route, question, answer FROM exchange ORDER BY id")
    counts = query(
        "SELECT route, outcome, reason, sum(count) FROM tally GROUP BY 1, 2, 3 HAVING sum(count) > 0 ORDER BY 2"
    )
    assert sorted(map(tuple, rows)) == sorted(
        ("Chain", f"How do I pay {number}?", f"By card {number}.") for number in range(50)
    )
    assert list(map(tuple, counts)) == [("Chain", "seen", "", 7), ("Chain", "skipped", "unreadable", 7)]
    samples = query("SELECT scope, reason, spans FROM unreadable_trace")
    assert {(scope, reason) for scope, reason, _ in samples} == {(SCOPE, "content_capture_off")}
    assert len(samples) == 3
    assert all("output.value" in str(spans) and "pay" not in str(spans) for _, _, spans in samples)


def test_the_exchange_limit_applies_to_watched_traces(database: str, query: Query, provider: TracerProvider) -> None:
    """Above the limit, traces are sampled by the same key as decorated handlers, and the others are counted."""
    germane.start(role="capture", database=database, tracer_provider=provider, watch=True, max_exchanges_per_minute=60)
    for number in range(300):
        record(provider, number)
    assert germane.stop(60)

    rows = query("SELECT sampling_key, capture_probability FROM exchange")
    [counted] = query("SELECT sum(count) FROM tally WHERE reason = 'exchange_limit'")
    assert len(rows) + counted == 300
    assert 6 <= len(rows) < 200
    assert all(key <= probability for key, probability in rows)
