"""`germane doctor` tells which processes score, and what none of them does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from germane.storage import Decision, Presence, Store

Call = Callable[..., Any]
Scored = Callable[..., Any]
LEASE = timedelta(seconds=60)


def beat(database: str, *, ago: timedelta = timedelta(), **given: Any) -> None:
    """Let a process tell of itself, so long ago."""
    defaults = {"id": "a", "host": "h1", "pid": 7, "service": "shop", "version": "1", "scorers": {"relevancy": "f1"}}
    store = Store(database, clock=lambda: datetime.now(UTC) - ago)
    store.beat(Presence(**{**defaults, **given}), [], lease=LEASE)
    store.close()


def found(call: Call, subject: str) -> list[dict[str, Any]]:
    """Return what the doctor finds about a subject."""
    return [finding for finding in call("doctor", "--json").content["findings"] if finding["about"] == subject]


def test_processes_that_score_are_named(call: Call, store: Store, database: str) -> None:
    """With where they are, what they have, and what they wait for."""
    beat(database, in_flight=3)
    beat(database, id="b", host="h2", problem="judge_rejected: no such key")

    [finding] = found(call, "processes")

    assert finding["status"] == "ok"
    assert "each of 2 processes scores: " in finding["message"]
    assert "shop on h1 (process 7), germane 1, relevancy, 3 at work" in finding["message"]
    assert "waits: judge_rejected: no such key" in finding["message"]


def test_a_process_that_fell_silent_is_noted(call: Call, store: Store, database: str) -> None:
    """After two leases; the others are named beside it."""
    beat(database, id="b", host="h2", ago=timedelta(minutes=5))
    beat(database)

    alive, silent = found(call, "processes")

    assert ("h1" in alive["message"], "h2" in alive["message"]) == (True, False)
    assert silent["status"] == "note"
    assert "1 process fell silent without having stopped: shop on h2 (process 7), seen last at" in silent["message"]


def test_where_the_last_process_fell_silent_nobody_is_said_to_go_on(call: Call, store: Store, database: str) -> None:
    """What it held is not in anybody's hands."""
    beat(database, ago=timedelta(minutes=5))

    [silent] = found(call, "processes")

    assert silent["message"].endswith("; what it held waits until one starts: nobody scores now")


def test_tasks_of_a_scorer_that_nobody_runs_are_noted(call: Call, store: Store, database: str, scored: Scored) -> None:
    """How many they are, and what becomes of them; nothing is said of those that a process has."""
    [exchange] = scored(store, [0.9])
    for fingerprint in ("f0", "f2"):
        store.assign([Decision(exchange.id, 1.0, "drawn")], {"answer_relevancy": fingerprint})
    beat(database, scorers={"answer_relevancy": "f2"})

    [finding] = [one for one in found(call, "scorer answer_relevancy") if "fingerprint" in one["message"]]

    assert finding["status"] == "note"
    assert "1 tasks wait for its fingerprint f0, which no process runs" in finding["message"]


def test_no_more_processes_are_named_than_a_person_reads(call: Call, store: Store, database: str) -> None:
    """A fleet is counted."""
    for number in range(8):
        beat(database, id=f"worker-{number}", pid=number)

    [finding] = found(call, "processes")

    assert finding["message"].endswith("; and 3 more")
