"""Counters and gauges of the application's own meter provider, and of none."""

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
        undecided=2, exchanges={("s", "ready"): 5, ("s", "running"): 1}, lag=12.5, workers=4, budget={"requests": 0.25}))

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
    """Runs code in a process of its own, where a global provider can be set; returns what it prints last."""

    def run(code: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", SETUP + code], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.mark.parametrize("order", ["use_own(); connect()", "connect(); use_own()", "connect(); is_early(); use_own()"])
def test_the_applications_provider_shows_all_of_it(run: Any, order: str) -> None:
    """Set before the start, after it, or after something was measured: each figure is there once, under its name."""
    code = "is_early = tracer.are_gauges_exported\n" + order
    shown = run(f"{code}\nassert tracer.are_gauges_exported()\ntracer.count_outcomes(ENDED)\nprint(json.dumps(shown()))")

    assert shown == {**COUNTED, **GAUGES}


def test_gauges_are_gone_after_the_stop_and_back_after_the_next_start(run: Any) -> None:
    """What does not run shows nothing: no value that only was true once; counters keep what they counted."""
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


def test_without_a_provider_nothing_is_measured(run: Any) -> None:
    """Neither SDK nor exporter is loaded, no thread is started, and nobody asks for a state."""
    code = """
del sys.modules["opentelemetry.sdk.metrics"]
connect(); tracer.count_outcomes(ENDED)
print(json.dumps([tracer.are_gauges_exported(), calls, "opentelemetry.sdk.metrics" in sys.modules,
                  [thread.name for thread in threading.enumerate()]]))
"""
    assert run(code) == [False, [], False, ["MainThread"]]


def test_a_provider_that_does_nothing_is_none(run: Any) -> None:
    """An application that switches metrics off costs the database no reading."""
    code = """
metrics.set_meter_provider(metrics.NoOpMeterProvider()); connect(); tracer.count_outcomes(ENDED)
print(json.dumps(tracer.are_gauges_exported()))
"""
    assert run(code) is False


def test_a_forked_child_shows_its_own(run: Any) -> None:
    """In a child the same instruments read the child's state, and no lock is held for ever."""
    code = """
from germane.tracer.telemetry import counters
use_own(); connect(lambda: TelemetryState(queued=os.getpid())); tracer.are_gauges_exported()
counters._lock.acquire()
child = os.fork()
if not child:
    assert counters._lock.acquire(timeout=10)
    counters._lock.release()
    tracer.are_gauges_exported()
    print(json.dumps(shown()["germane.capture.queue.depth"][1] == [[{}, os.getpid()]]), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert run(code) is True


def test_a_score_below_0_counts_as_0(run: Any) -> None:
    """A histogram of OpenTelemetry takes nothing negative, and would leave the score out with a warning."""
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
             for scoped in group.scope_metrics for metric in scoped.metrics if metric.name == "germane.evaluation.score"]
print(json.dumps([[point.count, point.sum, point.min] for point in points]))
"""
    assert run(code) == [[2, 0.5, 0.0]]


def test_labels_that_are_texts_do_not_become_series(run: Any) -> None:
    """The first twenty of a scorer stand; further ones are counted without a label."""
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
             for scoped in group.scope_metrics for metric in scoped.metrics if metric.name == "germane.evaluation.score"]
print(json.dumps(sorted([point.count, point.attributes.get("gen_ai.evaluation.score.label", "")] for point in points)))
"""
    found = run(code)

    assert found[-1] == [40, ""]
    assert found[-2] == [2, "because of 3"]
    assert [1, "mostly_relevant"] in found
    assert len(found) == 22


def test_a_state_that_cannot_be_told_harms_nobody(run: Any) -> None:
    """An error on our side leaves out the reading, and the application's own metrics go out."""
    code = """
import logging
logging.disable()
use_own(); connect(lambda: 1 / 0); tracer.are_gauges_exported(); tracer.count_outcomes(ENDED)
metrics.get_meter("own").create_counter("own").add(1)
print(json.dumps(sorted(shown())))
"""
    assert run(code) == ["germane.capture.exchanges", "germane.evaluation.runs", "own"]
