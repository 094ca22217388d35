"""What is queued for sinks, and when."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, select
from tests.cases import each
from tests.cli.conftest import write
from tests.sinks.conftest import NAME, Backend, Bench

from germane.annotation import Feedback
from germane.score import Score
from germane.storage import LabelPopulation, TrackingStore
from germane.storage.db.tables import delivery
from germane.storage.history.results import write_scores
from germane.testing import engine_of, transaction


def rows(store: TrackingStore) -> list[Any]:
    with transaction(store, read_only=True) as connection:
        return list(connection.execute(select(delivery).order_by(delivery.c.id)))


def label(bench: Bench, exchange_id: str, score: float = 1.0) -> None:
    """Store a label."""
    given = Feedback(id=f"label {score}", exchange_id=exchange_id, score=score, user="ada", created_at=bench.clock())
    bench.store.labels.add_feedback([given])


def score_again(bench: Bench, exchange_id: str) -> None:
    """Rescore an answer, with another fingerprint."""
    result = Score(scorer="tone", fingerprint="f2", value=0.1, scored_at=bench.clock())
    with transaction(bench.store) as connection:
        write_scores(connection, "test", [(exchange_id, result)], {"tone": "f2"}, bench.clock(), census=False)


def test_scores_and_labels_queue_their_exchange_once(bench: Bench, backend: Backend) -> None:
    """Whoever wrote them. One request contains all that is known by then."""
    (exchange,) = write(bench.store, [0.5], scorer="answer_relevancy", service="shop")
    assert [(row.target, row.exchange_id) for row in rows(bench.store)] == [(NAME, exchange.id)]
    bench.score([exchange], value=0.7)
    label(bench, exchange.id)
    score_again(bench, exchange.id)
    (row,) = rows(bench.store)
    assert (row.payload, row.body, row.trace_id) == ({}, None, None)

    bench.deliver()

    assert backend.values() == {
        (exchange.span_id, "answer_relevancy"): 0.5,
        (exchange.span_id, "tone"): 0.1,
        (exchange.span_id, "human_label"): 1.0,
    }
    assert rows(bench.store) == []


def test_labels_of_a_wave_and_calibrated_labels_are_sent(bench: Bench, backend: Backend) -> None:
    """A person labels a drawn answer; a calibration changes the label of a score."""
    (exchange,) = write(bench.store, [0.5], scorer="tone", service="shop")
    bench.clock.now = datetime.now(UTC)
    bench.deliver()
    hour = timedelta(hours=1)
    population = LabelPopulation(scorer="tone", since=bench.clock() - hour, until=bench.clock() + hour, service="shop")
    wave = bench.store.draws.draw(population, 1)
    bench.store.draws.settle(wave.id, exchange.id, "answers", user="ada")
    bench.deliver()
    assert [score["name"] for score in backend.requests[-1]] == ["tone", "human_label"]
    (stored,) = bench.store.answers.get_scores([exchange.id])[exchange.id]
    assert bench.store.labels.update_labels([(exchange.id, replace(stored, label="polite"))]) == 1
    bench.deliver()

    assert backend.requests[-1][0]["metadata"]["label"] == "polite"


@pytest.mark.parametrize("change", [Bench.score, score_again, label])
def test_what_is_scored_during_a_request_is_sent_afterwards(bench: Bench, backend: Backend, change: Any) -> None:
    """The item that is being sent stays, and is due again."""
    exchanges = bench.add(1)
    bench.score(exchanges)

    def accept_late(scores: Any) -> Any:
        change(bench, exchanges if change is Bench.score else exchanges[0].id)
        return backend.accept(scores)

    backend.script.append(accept_late)
    bench.deliver()

    assert len(backend.requests) == 2
    assert len(backend.requests[1]) == (2 if change is label else 1)
    assert rows(bench.store) == []


def test_without_a_sink_nothing_is_queued(store: TrackingStore) -> None:
    """The transactions that write scores have no statement more."""
    statements: list[str] = []
    event.listen(engine_of(store), "before_cursor_execute", lambda *given: statements.append(given[2]))
    (exchange,) = write(store, [0.5])
    store.labels.add_feedback([Feedback(id="1", exchange_id=exchange.id, score=1.0, created_at=store.now())])

    assert statements
    assert [text for text in statements if "delivery" in text] == []


def test_deleted_exchanges_are_no_longer_queued(bench: Bench, backend: Backend) -> None:
    """Neither those that wait nor those that were given up."""
    forgotten, kept = bench.add(1, user="ada"), bench.add(1)
    bench.score([*forgotten, *kept])
    bench.store.retention.forget(user="ada")
    bench.deliver()

    assert [span for span, _ in backend.values()] == [kept[0].span_id]
    assert (rows(bench.store), bench.undelivered()) == ([], [])


@each("values", [{"traced": False}, {"trace_id": "0" * 32}, {"span_id": "0" * 16}])
def test_exchanges_without_a_span_in_any_backend_are_not_sent(bench: Bench, backend: Backend, values: Any) -> None:
    """OpenTelemetry did not sample their span, or there was none."""
    (exchange,) = write(bench.store, [0.5], **values)
    bench.deliver()

    assert exchange.span_id not in str(backend.requests)
    assert (rows(bench.store), bench.undelivered()) == ([], [])


def test_a_label_waits_for_its_exchange(bench: Bench, backend: Backend) -> None:
    """A label may be stored earlier than its exchange. If that never arrives, it is given up after an hour."""
    label(bench, f"{1:032x}")
    label(bench, "never", score=0.0)
    bench.deliver()
    bench.clock.advance(minutes=1)
    bench.add(1)
    bench.deliver(times=4, minutes=20)

    assert set(backend.values().values()) == {1.0}
    assert [(each.exchange_id, each.span_id, each.error) for each in bench.undelivered()] == [
        ("never", None, "the exchange is not in the database")
    ]


def test_resending_queues_answers_since_a_time(bench: Bench, backend: Backend) -> None:
    """The backend replaces what it has."""
    old = bench.add(2)
    bench.score(old)
    bench.deliver()
    bench.clock.advance(hours=5)
    new = bench.add(3)
    bench.score(new)
    bench.deliver()
    label(bench, old[0].id)
    bench.deliver()

    assert bench.store.sinks.resend([NAME], bench.clock() - timedelta(hours=1)) == 4
    bench.deliver()

    assert sorted(len(request) for request in backend.requests) == [2, 2, 3, 5]
    assert len(backend.values()) == 6


def test_a_score_that_is_committed_during_a_claim_is_sent(migrated_url: str, bench: Bench, backend: Backend) -> None:
    """A claim waits for the transaction that reuses its item, or leaves the item alone: no score is missed."""
    if migrated_url.startswith("sqlite"):
        pytest.skip("only one transaction writes")
    exchanges = bench.add(1)
    bench.score(exchanges)
    hold, held = threading.Event(), threading.Event()

    def pause(*_: Any) -> None:
        if threading.current_thread() is writer and not held.is_set():
            held.set()
            hold.wait(30)

    writer = threading.Thread(target=bench.score, args=(exchanges, 0.9))
    event.listen(engine_of(bench.store), "commit", pause)
    writer.start()
    assert held.wait(30)
    bench.deliver()
    assert backend.requests == []
    hold.set()
    writer.join(30)
    bench.deliver()

    assert set(backend.values().values()) == {0.9}
