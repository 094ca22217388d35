"""An application with a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import germane
from germane.testing import FakeJudge

Query = Callable[[str], list[Any]]


@pytest.mark.parametrize(("changes", "at_once"), [({"budget": {"requests_per_day": 10}}, 1), ({}, 0)])
def test_spans_are_not_held_if_there_is_a_budget(
    judge: FakeJudge, database: str, changes: dict[str, object], at_once: int
) -> None:
    """With a budget, spans are exported when they end. With a sample rate, they wait for their scores."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(germane.ScoreSpanProcessor(SimpleSpanProcessor(exporter), max_delay=600))
    germane.start(**judge.settings() | {"poll_interval": 3600}, database=database, tracer_provider=provider, **changes)

    @germane.observe
    def ask(question: str) -> str:
        return "By card, in the shop."

    ask("How do I pay?")
    exported = len(exporter.get_finished_spans())
    germane.stop()
    provider.shutdown()

    assert exported == at_once
    assert len(exporter.get_finished_spans()) == 1


def test_draining_does_not_wait_for_candidates_under_a_budget(judge: FakeJudge, database: str, query: Query) -> None:
    """Candidates stay in the database for the next start and for other processes."""
    germane.start(**judge.settings(), database=database, poll_interval=0.05, budget={"requests_per_day": 10})

    @germane.observe
    def ask(question: str) -> str:
        return "By card, in the shop."

    ask("How do I pay?")
    assert germane.stop(drain_timeout=3600)  # a stop that waits would exceed pytest's time limit

    assert query("SELECT sampling_reason FROM exchange") == ["candidate"]
