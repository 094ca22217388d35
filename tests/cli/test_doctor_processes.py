"""Tests of the workers listed by `germane doctor`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from germane.storage import SamplingDecision, TrackingStore, WorkerHeartbeat

Call = Callable[..., Any]
Scored = Callable[..., Any]
LEASE = timedelta(seconds=60)


def beat(database: str, *, ago: timedelta = timedelta(), **given: Any) -> None:
    """Write a process's heartbeat with the given age."""
    defaults = {"id": "a", "host": "h1", "pid": 7, "service": "shop", "version": "1", "scorers": {"relevancy": "f1"}}
    store = TrackingStore(database, clock=lambda: datetime.now(UTC) - ago)
    store.workers.heartbeat(WorkerHeartbeat(**{**defaults, **given}), [], lease=LEASE)
    store.close()


def found(call: Call, subject: str) -> list[dict[str, Any]]:
    """Return the doctor's findings about a subject."""
    return [finding for finding in call("doctor", "--json").content["findings"] if finding["subject"] == subject]


def test_scoring_processes_are_listed(call: Call, store: TrackingStore, database: str) -> None:
    """The list shows the host, scorers and state."""
    beat(database, in_flight=3)
    beat(database, id="b", host="h2", problem="judge_rejected: no such key")

    [finding] = found(call, "workers")

    assert finding["level"] == "ok"
    assert "2 scoring processes: " in finding["message"]
    assert "shop on h1 (process 7), germane 1, relevancy, 3 in progress" in finding["message"]
    assert "degraded: judge_rejected: no such key" in finding["message"]


def test_an_unresponsive_scoring_process_is_a_warning(call: Call, store: TrackingStore, database: str) -> None:
    """The warning appears after two task leases. Active processes are still listed."""
    beat(database, id="b", host="h2", ago=timedelta(minutes=5))
    beat(database)

    alive, silent = found(call, "workers")

    assert ("h1" in alive["message"], "h2" in alive["message"]) == (True, False)
    assert silent["level"] == "warning"
    assert "1 unresponsive process: shop on h2 (process 7), last seen" in silent["message"]


def test_doctor_reports_waiting_tasks_if_the_only_process_is_unresponsive(
    call: Call, store: TrackingStore, database: str
) -> None:
    """No other process can claim them."""
    beat(database, ago=timedelta(minutes=5))

    [silent] = found(call, "workers")

    assert silent["message"].endswith("; their tasks are waiting because no process is scoring")


def test_tasks_for_a_scorer_that_no_process_runs_are_a_warning(
    call: Call, store: TrackingStore, database: str, scored: Scored
) -> None:
    """The warning states their number and the consequence."""
    [exchange] = scored(store, [0.9])
    for fingerprint in ("f0", "f2"):
        store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled")], {"answer_relevancy": fingerprint})
    beat(database, scorers={"answer_relevancy": "f2"})

    [finding] = [one for one in found(call, "scorer answer_relevancy") if "fingerprint" in one["message"]]

    assert finding["level"] == "warning"
    assert "1 task with fingerprint f0, which no process runs" in finding["message"]


def test_long_lists_of_processes_are_shortened(call: Call, store: TrackingStore, database: str) -> None:
    """Many processes are counted instead of listed."""
    for number in range(8):
        beat(database, id=f"worker-{number}", pid=number)

    [finding] = found(call, "workers")

    assert finding["message"].endswith("; and 3 more")
