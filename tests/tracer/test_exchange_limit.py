"""The exchange limit: a dropped exchange only leaves a span."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import germane
from germane.exchange import sampling_key_for


@germane.observe(route="support")
def ask(question: str) -> str:
    """Answer."""
    return "Within thirty days."


def test_the_exchange_limiter_receives_the_sampling_key_of_the_exchange(unconnected: Any) -> None:
    """The exchange records the probability with which it was captured."""
    asked: list[tuple[str, str, int, float]] = []
    traced = unconnected.connect(admit=lambda *given: asked.append(given) or 0.25)

    assert ask("When?") == "Within thirty days."

    [(service, route, started, sampling_key)] = asked
    assert (service, route, sampling_key) == ("test", "support", sampling_key_for(traced.exchange.trace_id))
    assert datetime.fromtimestamp(started / 1e9, UTC) == traced.exchange.started_at
    assert (traced.exchange.capture_probability, traced.exchange.sampling_key) == (0.25, sampling_key)


def test_the_span_of_a_dropped_exchange_has_all_attributes(unconnected: Any) -> None:
    """The limit does not change the traces of the application."""
    traced = unconnected.connect(admit=lambda *_: None)

    assert ask("When?") == "Within thirty days."

    assert traced.exchanges == []
    assert traced.attributes()["input.value"] == "When?"
    assert traced.attributes()["output.value"] == "Within thirty days."


def test_the_span_of_a_dropped_exchange_is_not_held_for_a_score(unconnected: Any) -> None:
    """The span is exported immediately, because the exchange will not be scored."""
    kept = iter([None, 1.0])
    holder = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60.0)
    traced = unconnected.connect(processor=holder, holds_spans=True, admit=lambda *_: next(kept))

    ask("When?")
    assert len(traced.spans) == 1
    ask("And where?")
    assert (len(traced.spans), holder.counts["held"]) == (1, 1)


def test_nested_handlers_count_once_towards_the_exchange_limit(unconnected: Any) -> None:
    """Only the outermost handler yields an exchange."""
    asked: list[Any] = []

    @germane.observe(route="outer")
    def outer(question: str) -> str:
        return ask(question)

    unconnected.connect(admit=lambda *given: asked.append(given) or 1.0)
    outer("When?")

    assert [route for _, route, *_ in asked] == ["outer"]


def test_an_error_in_the_exchange_limiter_does_not_reach_the_handler(
    unconnected: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The span is exported."""

    def broken(*_: object) -> float:
        raise RuntimeError

    traced = unconnected.connect(admit=broken)

    assert ask("When?") == "Within thirty days."
    assert len(traced.spans) == 1
