"""Spans, events and metrics that an OTLP receiver gets from an observed application."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import germane
from germane.testing import FakeJudge, OTLPReceiver

APPLICATION = Path(__file__).with_name("application.py")
QUESTIONS = 12
SCORE = "evaluations.0.evaluation.score"


def run_application(
    receiver: OTLPReceiver,
    judge: FakeJudge,
    database: str,
    *,
    order: str,
    protocol: str,
    max_span_delay: float,
    **more: str,
) -> None:
    """Run the application until it exits. It exports to the receiver and uses the judge.

    ``more`` is added to its environment.
    """
    settings = judge.settings()
    environment = {
        **os.environ,
        **receiver.environment(protocol),
        "OPENAI_BASE_URL": settings["base_url"],
        "OPENAI_API_KEY": "test",
        "GERMANE_JUDGE": settings["judge"],
        "GERMANE_EMBEDDER": settings["embedder"],
        **more,
    }
    command = [sys.executable, str(APPLICATION), order, database, str(max_span_delay), protocol]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Run:
    """The telemetry and the database of an application that has exited."""

    database: str
    receiver: OTLPReceiver
    """Stopped."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Run]:
    """A function that runs the application until it exits, once for each setup order and protocol."""

    @cache
    def run(order: str, protocol: str) -> Run:
        database = f"sqlite:///{tmp_path_factory.mktemp('export')}/germane.db"
        with FakeJudge() as judge, OTLPReceiver() as receiver:
            run_application(receiver, judge, database, order=order, protocol=protocol, max_span_delay=60)
        return Run(database, receiver)

    return run


@pytest.mark.parametrize("order", ["private", "before", "after"])
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_scores_are_exported_on_the_original_spans(ran: Callable[[str, str], Run], order: str, protocol: str) -> None:
    """Every handler span arrives once, with its score, no matter when OpenTelemetry is set up."""
    run = ran(order, protocol)
    spans = run.receiver.spans

    handlers = [span for span in spans if span.name == "invoke_workflow ask"]
    assert Counter(span.span_id for span in spans).most_common(1)[0][1] == 1
    assert len(handlers) == QUESTIONS
    assert {span.attributes["evaluations.0.evaluation.name"] for span in handlers} == {"answer_relevancy"}
    store = germane.Store(run.database)
    rows = {scored.exchange.span_id: scored.score.value for scored in store.answers.worst(limit=100)}
    store.close()
    assert {span.span_id: pytest.approx(span.attributes[SCORE]) for span in handlers} == rows
    assert [span.name for span in spans if span.attributes["openinference.span.kind"] == "EVALUATOR"] == []


@pytest.mark.parametrize(
    ("order", "protocol"), [("private", "http/protobuf"), ("before", "grpc"), ("after", "http/protobuf")]
)
def test_late_scores_are_exported_on_a_linked_span(tmp_path: Path, order: str, protocol: str) -> None:
    """A span waits no longer than max_span_delay. A later score arrives on a new root span that links to it."""
    with FakeJudge(latency=2.0, embedding_latency=0.0) as judge, OTLPReceiver() as receiver:
        run_application(
            receiver, judge, f"sqlite:///{tmp_path}/germane.db", order=order, protocol=protocol, max_span_delay=0.2
        )
        spans = receiver.spans

    handlers = {span.span_id: span for span in spans if span.name == "invoke_workflow ask"}
    carriers = [span for span in spans if span.attributes["openinference.span.kind"] == "EVALUATOR"]
    assert len(handlers) == len(carriers) == QUESTIONS
    assert not any(SCORE in span.attributes for span in handlers.values())
    assert {span.links[0].span_id for span in carriers} == set(handlers)
    assert all(len(span.links) == 1 and span.parent_span_id is None for span in carriers)
    assert all(handlers[span.links[0].span_id].trace_id == span.links[0].trace_id for span in carriers)
    assert all(isinstance(span.attributes[SCORE], float) for span in carriers)


@pytest.mark.parametrize("order", ["private", "before"])
def test_carrier_spans_of_late_scores_follow_head_sampling(tmp_path: Path, order: str) -> None:
    """Scores only arrive for the spans that were sampled, but all exchanges are scored."""
    database = f"sqlite:///{tmp_path}/germane.db"
    sampler = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}
    with FakeJudge(latency=2.0, embedding_latency=0.0) as judge, OTLPReceiver() as receiver:
        run_application(receiver, judge, database, order=order, protocol="http/protobuf", max_span_delay=0.2, **sampler)
        spans = receiver.spans

    handlers = [span.span_id for span in spans if span.name == "invoke_workflow ask"]
    carriers = [span for span in spans if span.attributes["openinference.span.kind"] == "EVALUATOR"]
    assert sorted(span.links[0].span_id for span in carriers) == sorted(handlers)
    store = germane.Store(database)
    assert store.answers.counts().scores == QUESTIONS
    store.close()


def test_private_providers_export_events_and_metrics(ran: Callable[[str, str], Run]) -> None:
    """Without any OpenTelemetry setup, each score is exported as an event in its span's context and a measurement."""
    receiver = ran("private", "http/protobuf").receiver
    spans, logs, metrics = receiver.spans, receiver.logs, receiver.metrics

    events = [log for log in logs if log.event_name == "gen_ai.evaluation.result"]
    assert {event.span_id for event in events} == {s.span_id for s in spans if s.name == "invoke_workflow ask"}
    assert {event.attributes["germane.sampling_probability"] for event in events} == {1.0}
    assert {metric.name for metric in metrics} >= {"germane.evaluation.score", "germane.evaluation.runs"}
