"""The metrics that an OTLP receiver gets, compared with the database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.testing import FakeJudge, OTLPReceiver

APPLICATION = Path(__file__).with_name("application.py")
QUESTIONS = 12
SCORER, ROUTE = "answer_relevancy", "ask"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mapping[str, Any], str]:
    """The last value of each metric, and the database, of an application that samples half of its answers."""
    database = f"sqlite:///{tmp_path_factory.mktemp('metrics')}/germane.db"
    with FakeJudge(latency=0.5, embedding_latency=0.0) as judge, OTLPReceiver() as receiver:
        settings = judge.settings()
        prices = {settings["judge"]: {"input": 1.0, "output": 2.0}, settings["embedder"]: {"input": 0.5}}
        environment = {
            **os.environ,
            **receiver.environment(),
            "OPENAI_BASE_URL": settings["base_url"],
            "OPENAI_API_KEY": "test",
            "GERMANE_JUDGE": settings["judge"],
            "GERMANE_EMBEDDER": settings["embedder"],
            "GERMANE_PRICES": json.dumps(prices),
            "GERMANE_SAMPLE_RATE": "0.5",
            "OTEL_METRIC_EXPORT_INTERVAL": "50",
        }
        command = [sys.executable, str(APPLICATION), "private", database, "1", "http/protobuf"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        return _latest(receiver), database


def _latest(receiver: OTLPReceiver) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for metric in receiver.metrics:
        points = found.setdefault(metric.name, {"unit": metric.unit, "kind": metric.type})
        for point in metric.points:
            points[tuple(sorted(point.attributes.items()))] = point.value
    return found


def _key(**attributes: str) -> tuple[tuple[str, str], ...]:
    names = {"scorer": "gen_ai.evaluation.name", "route": "gen_ai.workflow.name", "token": "gen_ai.token.type"}
    return tuple(sorted((names.get(name, name), value) for name, value in attributes.items()))


def test_exported_counters_equal_the_counts_in_the_database(ran: Any) -> None:
    """The counters are those for captured exchanges, scoring tasks, tokens and cost."""
    metrics, database = ran
    store = germane.Store(database)
    (coverage,) = store.trends.coverage(since=store.answers.list_exchanges()[-1].started_at)
    scores = [scored.score for scored in store.answers.worst(limit=100)]
    store.close()

    assert metrics["germane.capture.exchanges"] == {
        "unit": "{exchange}", "kind": "sum", _key(route=ROUTE, outcome="stored"): QUESTIONS,
    }  # fmt: skip
    runs = {"scored": _key(scorer=SCORER, route=ROUTE, outcome="scored"),
            "skipped": _key(scorer=SCORER, route=ROUTE, outcome="skipped", reason="not_sampled")}  # fmt: skip
    measured = {outcome: metrics["germane.evaluation.runs"].get(key, 0) for outcome, key in runs.items()}
    assert measured == {"scored": coverage.scored, "skipped": coverage.skipped.get("not_sampled", 0)}
    assert sum(measured.values()) == coverage.seen == QUESTIONS
    for direction in ("input", "output"):
        tokens = sum(getattr(score, f"{direction}_tokens") or 0 for score in scores)
        assert metrics["germane.evaluation.tokens"][_key(scorer=SCORER, route=ROUTE, token=direction)] == tokens
    cost = metrics["germane.evaluation.cost"][_key(scorer=SCORER, route=ROUTE)]
    assert cost == pytest.approx(sum(score.cost or 0 for score in scores), abs=1e-9)
    assert cost > 0


def test_exported_gauges_report_the_queue(ran: Any) -> None:
    """Depth, lag and workers are read repeatedly, and have their documented names and units."""
    metrics, _ = ran

    assert metrics["germane.capture.queue.depth"] == {"unit": "{exchange}", "kind": "gauge", (): 0}
    assert metrics["germane.evaluation.lag"]["unit"] == "s"
    assert 0 <= metrics["germane.evaluation.queue.depth"][_key(state="undecided")] <= QUESTIONS
    assert metrics["germane.evaluation.workers"]["unit"] == "{process}"
    assert {name for name in metrics if name.startswith("germane.")} == {
        "germane.capture.queue.depth",
        "germane.capture.exchanges",
        "germane.evaluation.cost",
        "germane.evaluation.duration",
        "germane.evaluation.lag",
        "germane.evaluation.queue.depth",
        "germane.evaluation.runs",
        "germane.evaluation.score",
        "germane.evaluation.tokens",
        "germane.evaluation.workers",
    }


def test_exported_metrics_contain_no_text_of_exchanges(ran: Any) -> None:
    """Attributes have few values, and contain no ids, text or error messages."""
    metrics, _ = ran
    allowed = {"gen_ai.evaluation.name", "gen_ai.workflow.name", "gen_ai.token.type",
               "gen_ai.evaluation.score.label", "outcome", "reason", "state", "limit", "error.type"}  # fmt: skip
    keys = [key for points in metrics.values() for key in points if isinstance(key, tuple)]

    assert {name for key in keys for name, _ in key} <= allowed
    assert not any("parcel" in str(key) for key in keys)
