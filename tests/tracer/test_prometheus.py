"""Metrics of the private provider in a Prometheus registry."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from germane.exchange import Exchange
from germane.score import Score
from germane.tracer import (
    BacklogState,
    TelemetryState,
    are_gauges_exported,
    attach_scores,
    connect,
    count_outcomes,
    disconnect,
    expose_registry,
)

WAITING = BacklogState(undecided=2, exchanges={("s", "ready"): 5}, lag=12.5, workers=4, budget={"requests": 0.25})


@pytest.fixture
def registry(bare: object) -> Iterator[CollectorRegistry]:
    """A registry with the metrics of this process, without an OTLP endpoint."""
    made = CollectorRegistry()
    expose_registry(made)
    connect(sink=print, service="shop", state=lambda: TelemetryState(queued=3, waiting=WAITING))
    yield made
    disconnect()
    expose_registry(None)


def samples(registry: CollectorRegistry) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return the scraped samples by name, without the scope labels."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if not name.startswith("otel_scope_")}
            found.setdefault(sample.name, []).append((labels, sample.value))
    return found


def test_metrics_have_their_documented_prometheus_names(registry: CollectorRegistry) -> None:
    """Dots become underscores, counters end with _total and durations with _seconds."""
    count_outcomes({("ask", "s", "scored", ""): 4, ("ask", "", "stored", ""): 7})
    found = samples(registry)

    assert are_gauges_exported()
    route = {"gen_ai_workflow_name": "ask"}
    assert found["germane_capture_exchanges_total"] == [({**route, "outcome": "stored"}, 7)]
    assert found["germane_evaluation_runs_total"] == [
        ({**route, "gen_ai_evaluation_name": "s", "outcome": "scored"}, 4),
    ]
    assert found["germane_evaluation_lag_seconds"] == [({}, 12.5)]
    assert found["germane_evaluation_workers"] == [({}, 4)]
    assert found["germane_evaluation_budget_used"] == [({"limit": "requests"}, 0.25)]
    assert found["germane_capture_queue_depth"] == [({}, 3)]
    assert dict(found["target_info"][0][0])["service_name"] == "shop"


def test_score_histogram_buckets_are_a_tenth_wide(registry: CollectorRegistry, exchange: Exchange) -> None:
    """The histogram counts each score in its bucket. Durations have buckets in seconds."""
    for value in (0.87, -0.2, 0.96):
        attach_scores(
            exchange, [Score(scorer="s", fingerprint="f", value=value, latency=0.3, cost=0.5, input_tokens=9)]
        )
    found = samples(registry)

    buckets = {labels["le"]: value for labels, value in found["germane_evaluation_score_bucket"]}
    edges = [*(f"{tenth / 10:.1f}" for tenth in range(1, 10)), "0.95", "1.0", "+Inf"]
    assert buckets == dict(zip(edges, [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 3], strict=True))
    assert found["germane_evaluation_score_count"][0][1] == 3
    durations = [labels["le"] for labels, _ in found["germane_evaluation_duration_seconds_bucket"]]
    assert durations == ["0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "60.0", "+Inf"]
    assert found["germane_evaluation_cost_USD_total"][0][1] == pytest.approx(1.5, abs=1e-9)
    assert found["germane_evaluation_tokens_total"][0][1] == 27


@pytest.fixture
def exchange() -> Exchange:
    """An exchange whose span has been exported."""
    return Exchange.from_texts("How do I pay?", "By card.")


def test_the_metrics_registry_is_empty_after_a_stop(registry: CollectorRegistry) -> None:
    """The metrics are removed together with the provider."""
    count_outcomes({("ask", "s", "scored", ""): 4})
    assert samples(registry)
    disconnect()

    assert samples(registry) == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_forked_child_does_not_report_the_metrics_of_its_parent(registry: CollectorRegistry) -> None:
    """After a fork, only the parent fills the registry."""
    from germane.tracer.exporters import exposed_registry

    assert exposed_registry() is registry
    child = os.fork()
    if not child:
        os._exit(0 if exposed_registry() is None else 1)
    assert os.waitpid(child, 0)[1] == 0
