"""germane's counters and gauges, with and without an application's meter provider."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

SETUP = """
import json, os, sys, threading
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from germane import tracer
from germane.tracer import TelemetryState, BacklogState

calls = []

def state():
    calls.append(threading.get_ident())
    return TelemetryState(queued=3, waiting=BacklogState(
        undecided=2, exchanges={("s", "ready"): 5, ("s", "running"): 1}, lag=12.5, workers=4,
        budget={"requests": 0.25}))

def connect(state=state):
    tracer.connect(sink=print, service="shop", state=state)

def use_own():
    global reader
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))

def shown():
    data = reader.get_metrics_data()
    found = {}
    for group in data.resource_metrics if data else []:
        for scoped in group.scope_metrics:
            for metric in scoped.metrics:
                found[metric.name] = [metric.unit, [[dict(p.attributes), p.value] for p in metric.data.data_points]]
    return found

ENDED = {("ask", "", "stored", ""): 7, ("ask", "", "dropped", "queue_full"): 2, ("ask", "s", "scored", ""): 4,
         ("ask", "s", "skipped", "not_sampled"): 3, ("ask", "s", "failed", "judge_timeout"): 1}
"""
ROUTE = {"gen_ai.workflow.name": "ask"}
NAME = {"gen_ai.evaluation.name": "s"}
COUNTED = {
    "germane.capture.exchanges": [
        "{exchange}",
        [[{**ROUTE, "outcome": "stored"}, 7], [{**ROUTE, "outcome": "dropped", "reason": "queue_full"}, 2]],
    ],
    "germane.evaluation.runs": [
        "{run}",
        [
            [{**NAME, **ROUTE, "outcome": "scored"}, 4],
            [{**NAME, **ROUTE, "outcome": "skipped", "reason": "not_sampled"}, 3],
            [{**NAME, **ROUTE, "outcome": "failed", "error.type": "judge_timeout"}, 1],
        ],
    ],
}
GAUGES = {
    "germane.capture.queue.depth": ["{exchange}", [[{}, 3]]],
    "germane.evaluation.queue.depth": [
        "{exchange}",
        [[{"state": "undecided"}, 2], [{**NAME, "state": "ready"}, 5], [{**NAME, "state": "running"}, 1]],
    ],
    "germane.evaluation.lag": ["s", [[{}, 12.5]]],
    "germane.evaluation.workers": ["{process}", [[{}, 4]]],
    "germane.evaluation.budget.used": ["1", [[{"limit": "requests"}, 0.25]]],
}


@pytest.fixture
def run(bare: Any) -> Any:
    """A function that runs code in a new process, where a global provider can be set, and returns its last line of
    output."""

    def run(code: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", SETUP + code], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.mark.parametrize("order", ["use_own(); connect()", "connect(); use_own()", "connect(); is_early(); use_own()"])
def test_all_metrics_reach_the_meter_provider_of_the_application(run: Any, order: str) -> None:
    """Each metric appears once, whether the provider is set before or after germane starts or measures."""
    code = "is_early = tracer.are_gauges_exported\n" + order
    shown = run(
        f"{code}\nassert tracer.are_gauges_exported()\ntracer.count_outcomes(ENDED)\nprint(json.dumps(shown()))"
    )

    assert shown == {**COUNTED, **GAUGES}


def test_gauges_disappear_at_a_stop_and_return_at_the_next_start(run: Any) -> None:
    """A stopped process does not report outdated values. Counters keep their counts."""
    code = """
use_own(); connect(); tracer.are_gauges_exported(); tracer.count_outcomes(ENDED)
first = shown(); tracer.disconnect()
second = shown(); tracer.count_outcomes(ENDED); connect(lambda: TelemetryState(queued=1)); tracer.are_gauges_exported()
print(json.dumps([sorted(first), second, shown()]))
"""
    first, second, third = run(code)

    assert first == sorted({**COUNTED, **GAUGES})
    assert second == COUNTED
    assert third == {**COUNTED, "germane.capture.queue.depth": ["{exchange}", [[{}, 1]]]}


def test_no_metric_is_recorded_without_a_meter_provider(run: Any) -> None:
    """Neither the SDK nor an exporter is loaded, no thread is started, and no state is read."""
    code = """
del sys.modules["opentelemetry.sdk.metrics"]
connect(); tracer.count_outcomes(ENDED)
print(json.dumps([tracer.are_gauges_exported(), calls, "opentelemetry.sdk.metrics" in sys.modules,
                  [thread.name for thread in threading.enumerate()]]))
"""
    assert run(code) == [False, [], False, ["MainThread"]]


def test_no_state_is_queried_if_the_meter_provider_does_nothing(run: Any) -> None:
    """If an application turns metrics off, the database is not queried."""
    code = """
metrics.set_meter_provider(metrics.NoOpMeterProvider()); connect(); tracer.count_outcomes(ENDED)
print(json.dumps(tracer.are_gauges_exported()))
"""
    assert run(code) is False


def test_a_forked_child_reports_its_own_metrics(run: Any) -> None:
    """The same instruments read the child's state, and no lock stays locked."""
    code = """
from germane.tracer import telemetry
use_own(); connect(lambda: TelemetryState(queued=os.getpid())); tracer.are_gauges_exported()
telemetry._lock.acquire()
child = os.fork()
if not child:
    assert telemetry._lock.acquire(timeout=10)
    telemetry._lock.release()
    tracer.are_gauges_exported()
    print(json.dumps(shown()["germane.capture.queue.depth"][1] == [[{}, os.getpid()]]), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert run(code) is True


def test_a_negative_score_counts_as_zero_in_the_histogram(run: Any) -> None:
    """OpenTelemetry histograms would drop negative values with a warning."""
    code = """
from datetime import UTC, datetime
from germane.exchange import Exchange
from germane.score import Score
from germane.tracer import attach_scores
use_own(); connect()
exchange = Exchange(id="1" * 32, trace_id="a" * 32, span_id="b" * 16, service="s",
                    route="ask", question="q", answer="a", started_at=datetime.now(UTC))
attach_scores(exchange, [Score(scorer="mine", fingerprint="f", value=value) for value in (-0.2, 0.5)])
(points,) = [list(metric.data.data_points) for group in reader.get_metrics_data().resource_metrics
             for scoped in group.scope_metrics for metric in scoped.metrics
             if metric.name == "germane.evaluation.score"]
print(json.dumps([[point.count, point.sum, point.min] for point in points]))
"""
    assert run(code) == [[2, 0.5, 0.0]]


def test_the_number_of_score_labels_per_scorer_is_limited(run: Any) -> None:
    """The first twenty labels of a scorer become series. Further scores are counted without a label."""
    code = """
from datetime import UTC, datetime
from germane.exchange import Exchange
from germane.score import Score
from germane.tracer import attach_scores
use_own(); connect()
exchange = Exchange(id="1" * 32, trace_id="a" * 32, span_id="b" * 16, service="s",
                    route="ask", question="q", answer="a", started_at=datetime.now(UTC))
for number in range(60):
    attach_scores(exchange, [Score(scorer="mine", fingerprint="f", value=0.5, label=f"because of {number}")])
attach_scores(exchange, [Score(scorer="mine", fingerprint="f", value=0.5, label="because of 3"),
                  Score(scorer="other", fingerprint="f", value=0.5, label="mostly_relevant")])
(points,) = [list(metric.data.data_points) for group in reader.get_metrics_data().resource_metrics
             for scoped in group.scope_metrics for metric in scoped.metrics
             if metric.name == "germane.evaluation.score"]
print(json.dumps(sorted([point.count, point.attributes.get("gen_ai.evaluation.score.label", "")] for point in points)))
"""
    found = run(code)

    assert found[-1] == [40, ""]
    assert found[-2] == [2, "because of 3"]
    assert [1, "mostly_relevant"] in found
    assert len(found) == 22


def test_an_error_while_querying_state_does_not_affect_other_metrics(run: Any) -> None:
    """The application's own metrics are exported."""
    code = """
import logging
logging.disable()
use_own(); connect(lambda: 1 / 0); tracer.are_gauges_exported(); tracer.count_outcomes(ENDED)
metrics.get_meter("own").create_counter("own").add(1)
print(json.dumps(sorted(shown())))
"""
    assert run(code) == ["germane.capture.exchanges", "germane.evaluation.runs", "own"]
