"""A process under a budget."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import germane
from germane.testing import FakeJudge


@pytest.mark.parametrize(("changes", "at_once"), [({"budget": {"calls_per_day": 10}}, 1), ({}, 0)])
def test_no_span_waits_for_a_score_that_comes_later(
    judge: FakeJudge, database: str, changes: dict[str, object], at_once: int
) -> None:
    """Under a budget spans leave as they end; drawn by a rate they wait, here until the stop, for their scores."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(germane.hold(SimpleSpanProcessor(exporter), max_hold=600))
    germane.start(**judge.settings() | {"tick": 3600}, database=database, tracer_provider=provider, **changes)

    @germane.observe
    def ask(question: str) -> str:
        return "By card, in the shop."

    ask("How do I pay?")
    exported = len(exporter.get_finished_spans())
    germane.stop()
    provider.shutdown()

    assert exported == at_once
    assert len(exporter.get_finished_spans()) == 1
