"""Sampling of carrier spans: a carrier is exported if and only if the span that it links to was sampled."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    TraceIdRatioBased,
)

import germane
from germane.score import Score
from germane.tracer import attach_scores, connect

SAMPLERS: dict[str, Sampler] = {
    "always on": ALWAYS_ON,
    "always off": ALWAYS_OFF,
    "ratio": TraceIdRatioBased(0.5),
    "small ratio": TraceIdRatioBased(0.1),
    "parent-based ratio": ParentBasedTraceIdRatio(0.5),
    "parent-based": ParentBased(ALWAYS_ON),
}


class Wrapper(trace.TracerProvider):
    """A provider that wraps another provider, like Logfire's proxy."""

    def __init__(self, provider: trace.TracerProvider) -> None:
        self.name = "wrapper"
        self.provider = provider

    def get_tracer(self, *args: Any, **kwargs: Any) -> trace.Tracer:
        return self.provider.get_tracer(*args, **kwargs)


@pytest.mark.parametrize("wrap", [lambda provider: provider, Wrapper, lambda provider: Wrapper(Wrapper(provider))])
@pytest.mark.parametrize("name", SAMPLERS)
def test_carrier_spans_follow_the_original_spans_sampling_decision(unconnected: Any, name: str, wrap: Any) -> None:
    """Each sampled span gets a carrier and no other span does, whatever sampler the application uses."""
    sdk_provider = TracerProvider(sampler=SAMPLERS[name], shutdown_on_exit=False)
    sdk_provider.add_span_processor(SimpleSpanProcessor(unconnected.exporter))
    connect(sink=unconnected.exchanges.append, service="test", holds_spans=False, provider=wrap(sdk_provider))
    ask = germane.observe(route="ask")(lambda question: "Because.")

    for number in range(60):
        ask(f"Why {number}?")
    for exchange in unconnected.exchanges:
        attach_scores(exchange, [Score(scorer="s", fingerprint="f", value=0.5)])

    sampled = [span.context.span_id for span in unconnected.spans if span.name.endswith("ask")]
    carriers = [span for span in unconnected.spans if span.name == "evaluation"]
    assert [link.context.span_id for span in carriers for link in span.links] == sampled
    assert {span.parent for span in carriers} <= {None}
    assert len(sampled) in {"always off": {0}, "always on": {60}, "parent-based": {60}}.get(name, range(61))
    sdk_provider.shutdown()
