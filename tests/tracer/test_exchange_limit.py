"""What the capture limit does not keep costs next to nothing, and the caller cannot tell."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import germane
from germane.exchange import sampling_key_for


@germane.observe(route="support")
def ask(question: str) -> str:
    """Answer at once."""
    return "Within thirty days."


def test_the_limit_is_asked_with_the_draw(unconnected: Any) -> None:
    """And the exchange tells how probable it was that it is kept."""
    asked: list[tuple[str, str, int, float]] = []
    traced = unconnected.connect(admit=lambda *given: asked.append(given) or 0.25)

    assert ask("When?") == "Within thirty days."

    [(service, route, started, draw)] = asked
    assert (service, route, draw) == ("test", "support", sampling_key_for(traced.exchange.trace_id))
    assert datetime.fromtimestamp(started / 1e9, UTC) == traced.exchange.started_at
    assert (traced.exchange.capture_probability, traced.exchange.sampling_key) == (0.25, draw)


def test_what_is_not_kept_is_only_a_span(unconnected: Any) -> None:
    """With all its attributes: the traces are not ours to thin."""
    traced = unconnected.connect(admit=lambda *_: None)

    assert ask("When?") == "Within thirty days."

    assert traced.exchanges == []
    assert traced.attributes()["input.value"] == "When?"
    assert traced.attributes()["output.value"] == "Within thirty days."


def test_its_span_does_not_wait_for_a_score(unconnected: Any) -> None:
    """None will be made."""
    kept = iter([None, 1.0])
    holder = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60.0)
    traced = unconnected.connect(processor=holder, holds_spans=True, admit=lambda *_: next(kept))

    ask("When?")
    assert len(traced.spans) == 1
    ask("And where?")
    assert (len(traced.spans), holder.counts["held"]) == (1, 1)


def test_only_the_outermost_handler_counts(unconnected: Any) -> None:
    """One exchange is one towards the limit."""
    asked: list[Any] = []

    @germane.observe(route="outer")
    def outer(question: str) -> str:
        return ask(question)

    unconnected.connect(admit=lambda *given: asked.append(given) or 1.0)
    outer("When?")

    assert [route for _, route, *_ in asked] == ["outer"]


def test_a_limit_that_fails_does_not_reach_the_handler(unconnected: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The span is exported all the same."""

    def broken(*_: object) -> float:
        raise RuntimeError

    traced = unconnected.connect(admit=broken)

    assert ask("When?") == "Within thirty days."
    assert len(traced.spans) == 1
