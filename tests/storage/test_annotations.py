"""Labels, markers and recorded scores, arriving in any order."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.annotation import EXTERNAL_FINGERPRINT, Feedback, RecordedScore
from germane.exchange import Exchange, new_exchange_id
from germane.score import Score, UnscoredReason
from germane.storage import Coverage, ExchangeWriter, SamplingDecision, TrackingStore
from germane.storage.db.component import StoreContext
from germane.storage.ingest.store_exchanges import ExchangeStore
from germane.storage.ingest.writer import ScoreRetryBuffer
from germane.testing import transaction

Make = Callable[..., Exchange]
WriteTo = Callable[..., ExchangeWriter]
LONG = 60.0
NOON = datetime.fromisoformat("2026-03-01T12:00:00Z")


def a_label(exchange_id: str, score: float = 1.0, minutes: float = 0, **given: Any) -> Feedback:
    """Return a label from the given number of minutes after noon."""
    created_at = NOON + timedelta(minutes=minutes)
    return Feedback(id=new_exchange_id(), exchange_id=exchange_id, score=score, created_at=created_at, **given)


def a_record(exchange_id: str, value: float = 0.5, minutes: float = 0, **given: Any) -> RecordedScore:
    """Return an externally computed score, recorded the given number of minutes after noon."""
    recorded_at = NOON + timedelta(minutes=minutes)
    return RecordedScore(
        **{"name": "mine", "value": value, "exchange_id": exchange_id, "recorded_at": recorded_at, **given}
    )


@pytest.fixture
def writer(store: TrackingStore) -> Iterator[ExchangeWriter]:
    """A writer that is stopped afterwards."""
    opened = ExchangeWriter(
        store, interval=0.01, scorers=("a",), backoff=(0.01, 0.05), score_timeout=LONG, score_delays=(0.01, 0.02)
    )
    yield opened
    opened.stop(LONG)


def until(condition: Callable[[], bool]) -> None:
    """Wait for a change made by another thread."""
    waiting = threading.Event()
    for _ in range(12_000):
        if condition():
            return
        waiting.wait(0.005)
    raise AssertionError("the condition never became true")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the logged warnings."""
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_labels_are_listed_with_their_exchanges(store: TrackingStore, make: Make) -> None:
    """Labels are listed newest first, and filtered by time and route. A label that is written twice is listed once."""
    first, second = make(route="ask"), make(route="search")
    early = a_label(first.id, 0.0, comment="wrong \0 shoe", user="ann")
    late = a_label(second.id, 1.0, minutes=5)
    store.exchanges.add([first, second])
    store.labels.add_feedback([early, late])
    store.labels.add_feedback([early])

    listed = store.labels.list_feedback()

    assert [(one.feedback.id, one.exchange.id) for one in listed] == [(late.id, second.id), (early.id, first.id)]
    assert listed[1].feedback == replace(early, comment="wrong \ufffd shoe")
    assert [one.feedback.id for one in store.labels.list_feedback(route="search")] == [late.id]
    assert [one.feedback.id for one in store.labels.list_feedback(since=NOON, until=late.created_at)] == [early.id]
    assert [one.feedback.id for one in store.labels.list_feedback(limit=1)] == [late.id]


def test_a_label_may_arrive_before_its_exchange(store: TrackingStore, make: Make) -> None:
    """The label is listed once the exchange has been stored."""
    exchange = make()
    store.labels.add_feedback([a_label(exchange.id)])
    assert store.labels.list_feedback() == []

    store.exchanges.add([exchange])

    assert [one.exchange for one in store.labels.list_feedback()] == [exchange]


def test_a_recorded_score_counts_like_other_scores(store: TrackingStore, make: Make) -> None:
    """It is included in summary, lowest scores and coverage with weight 1, under the exchange's route and time. No
    process has claimed its task.
    """
    exchange = make(7, route="search")
    store.exchanges.add([exchange])
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.1, "uniform")], {"a": "f1"})

    given = a_record(exchange.id, 0.25, label="weak", explanation="short", details={"words": [3, None]})
    assert store.exchanges.record_scores([given]) == []

    [summary] = store.trends.summary()
    assert (summary.route, summary.scorer, summary.fingerprint, summary.n, summary.mean) == (
        "search", "mine", EXTERNAL_FINGERPRINT, 1, 0.25,
    )  # fmt: skip
    assert summary.coverage == Coverage(service="shop", route="search", scorer="mine", seen=1, scored=1)
    [worst] = store.answers.worst(scorer="mine")
    assert (worst.score.value, worst.score.label, worst.score.explanation) == (0.25, "weak", "short")
    assert (worst.score.details, worst.score.scored_at) == ({"words": [3, None]}, NOON)
    assert store.answers.get_scores([exchange.id, "none"]) == {exchange.id: [worst.score]}
    with transaction(store, read_only=True) as connection:
        query = "SELECT value, weight, state FROM answers WHERE scorer = 'mine'"
        assert [tuple(row) for row in connection.exec_driver_sql(query)] == [(0.25, 1.0, "done")]
        query = "SELECT claims FROM scoring_task WHERE scorer = 'mine'"
        assert connection.exec_driver_sql(query).scalar_one() == 0


def test_a_later_recorded_score_replaces_the_earlier_one(store: TrackingStore, make: Make) -> None:
    """It does so within and across batches. Only one score counts, and an older one that arrives late is ignored."""
    exchange = make()
    store.exchanges.add([exchange])

    store.exchanges.record_scores(
        [a_record(exchange.id, 0.2, minutes=1), a_record(exchange.id, 0.1), a_record(exchange.id, 0.9, name="b")]
    )
    store.exchanges.record_scores([a_record(exchange.id, 0.7, minutes=2, label="new")])
    store.exchanges.record_scores([a_record(exchange.id, 0.3)])

    found = {score.scorer: (score.value, score.label) for score in store.answers.get_scores([exchange.id])[exchange.id]}
    assert found == {"mine": (0.7, "new"), "b": (0.9, None)}
    assert [(one.scorer, one.seen, one.scored, one.pending) for one in store.trends.coverage()] == [
        ("b", 1, 1, 0), ("mine", 1, 1, 0),
    ]  # fmt: skip


def test_recorded_parts_get_their_overall_quality(store: TrackingStore, make: Make) -> None:
    """Parts may arrive separately, in any order. The mean is that of ``answer_quality``, without the missing parts."""
    first, second = make(), make()
    store.exchanges.add([first, second])

    def overall(exchange: Exchange) -> tuple[float, str] | None:
        scores = store.answers.get_scores([exchange.id])[exchange.id]
        return next(((s.value, s.label) for s in scores if s.scorer == "answer_quality"), None)

    def record(exchange: Exchange, minutes: float, **parts: float) -> None:
        store.exchanges.record_scores(
            [a_record(exchange.id, value, minutes, name=name) for name, value in parts.items()]
        )

    record(first, 0, faithfulness=0.9)
    record(first, 0, mine=0.1)
    assert overall(first) is None, "a part alone measures something else"
    record(first, 1, answer_relevancy=0.5)
    assert overall(first) == (pytest.approx((0.4 * 0.9 + 0.3 * 0.5) / 0.7), "C")
    record(first, 2, context_relevance=-0.2, answer_relevancy=1.0, direct_relevancy=0.0)
    assert overall(first) == (pytest.approx(0.4 * 0.9 + 0.3), "D")

    record(second, 0, answer_quality=0.2, faithfulness=0.9, answer_relevancy=0.9)
    assert overall(second) == (0.2, None), "a recorded value is kept"
    assert {each.scorer: each.scored for each in store.trends.coverage()}["answer_quality"] == 2


def test_concurrently_recorded_scores_are_counted_once(store: TrackingStore, migrated_url: str, make: Make) -> None:
    """Only one process counts the score, and no process waits forever."""
    exchanges = [make() for _ in range(60)]
    store.exchanges.add(exchanges)
    stores = [TrackingStore(migrated_url) for _ in range(4)]
    records = [a_record(one.id, 0.5, name=name) for one in exchanges for name in ("x", "y")]
    threads = [
        threading.Thread(target=each.exchanges.record_scores, args=[records[:: (1 if number % 2 else -1)]])
        for number, each in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in stores:
        each.close()

    assert [(one.scorer, one.seen, one.scored) for one in store.trends.coverage()] == [("x", 60, 60), ("y", 60, 60)]
    assert store.answers.counts().scores == store.answers.counts().done == 120


@pytest.mark.parametrize("skipped", [False, True])
def test_an_external_score_replaces_a_pending_task(store: TrackingStore, make: Make, *, skipped: bool) -> None:
    """The exchange counts once, as scored, whether germane's own task is pending or skipped."""
    exchange = make(route="search")
    store.exchanges.add([exchange])
    skip = {"a": UnscoredReason.NOT_SAMPLED} if skipped else {}
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled", skip=skip)], {"a": "f1", "b": "f1"})

    store.exchanges.record_scores([a_record(exchange.id, 0.25, name="a")])

    counts = {one.scorer: (one.seen, one.scored, one.pending, one.skipped) for one in store.trends.coverage()}
    assert counts == {"a": (1, 1, 0, {}), "b": (1, 0, 1, {})}
    claims = store.queue.claim_tasks("me", {"a": "f1", "b": "f1"}, limit=9, lease=timedelta(minutes=1))
    assert [task.scorer for claim in claims for task in claim.tasks] == ["b"]


def test_an_external_score_does_not_replace_a_computed_score(store: TrackingStore, make: Make) -> None:
    """Both scores are kept, each with its own fingerprint."""
    exchange = make()
    store.exchanges.add([exchange])
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled")], {"a": "f1"})
    (claim,) = store.queue.claim_tasks("me", {"a": "f1"}, limit=9, lease=timedelta(minutes=1))
    store.queue.complete_tasks("me", [(claim.tasks[0], Score(scorer="a", fingerprint="f1", value=0.75))])

    store.exchanges.record_scores([a_record(exchange.id, 0.25, name="a")])

    scores = store.answers.get_scores([exchange.id])[exchange.id]
    assert {score.fingerprint: score.value for score in scores} == {"f1": 0.75, EXTERNAL_FINGERPRINT: 0.25}


def test_a_candidate_with_an_external_score_leaves_the_pool(store: TrackingStore, make: Make) -> None:
    """No budget is spent on the candidate, whether the score or the decision comes first."""
    early, late = make(), make()
    store.exchanges.add([early, late])
    store.exchanges.record_scores([a_record(early.id, 0.25, name="a")])
    decisions = [SamplingDecision(exchange.id, None, "candidate") for exchange in (early, late)]
    store.sampling.assign_tasks(decisions, {"a": "f1"})
    assert [candidate.id for candidate in store.pool.list_candidates(9)] == [late.id]

    store.exchanges.record_scores([a_record(late.id, 0.25, name="a")])

    assert store.pool.list_candidates(9) == []


def test_a_recorded_score_for_an_unknown_exchange_is_returned_to_the_caller(store: TrackingStore, make: Make) -> None:
    """The other scores are written."""
    exchange = make()
    store.exchanges.add([exchange])
    unknown = a_record("nowhere")

    assert store.exchanges.record_scores([unknown, a_record(exchange.id)]) == [unknown]
    assert store.answers.counts().scores == 1


def test_the_exchange_writer_also_writes_annotations(store: TrackingStore, writer: ExchangeWriter, make: Make) -> None:
    """The items of a batch may be in any order."""
    exchange = make()
    for item in (a_record(exchange.id), a_label(exchange.id), exchange):
        assert writer.put(item)

    assert writer.flush(LONG)

    assert ([len(store.labels.list_feedback()), store.answers.counts().scores], writer.lost) == ([1, 1], 0)


def test_a_recorded_score_waits_for_its_exchange(store: TrackingStore, writer: ExchangeWriter, make: Make) -> None:
    """Another process may write the exchange. A flush does not wait for the score."""
    exchange = make()
    writer.put(a_record(exchange.id))
    assert writer.flush(LONG)
    assert store.answers.counts().scores == 0

    store.exchanges.add([exchange])

    until(lambda: store.answers.counts().scores == 1)
    assert writer.lost == 0


def test_a_recorded_score_without_an_exchange_is_dropped(
    store: TrackingStore, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """The score is dropped after its timeout, logged in one line and counted. Ids cannot forge log lines."""
    writer = write_to(store, interval=0.01, score_timeout=0.05, score_delays=(0.01, 0.02))
    lost = [a_record(f"gone\n{number}") for number in range(3)]
    writer._queue.extend(lost[:2])  # not put(): the writer might take them before the third
    writer.put(lost[2])

    until(lambda: writer.lost == 3)  # counted after it was logged

    assert warnings(caplog) == [
        "lost 3 recorded scores because the exchange never arrived: 'gone\\n0', 'gone\\n1', 'gone\\n2'"
    ]
    assert writer.stop(LONG)
    assert store.trends.coverage() == []


def test_stop_retries_waiting_scores_once(
    store: TrackingStore, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Scores that still have no exchange are lost, and logged."""
    writer = write_to(store, interval=0.0, score_timeout=LONG, score_delays=(LONG, LONG))
    exchange = make()
    writer.put(a_record(exchange.id))
    writer.put(a_record("gone"))
    assert writer.flush(LONG)
    store.exchanges.add([exchange])

    assert writer.stop(LONG)

    assert (store.answers.counts().scores, writer.lost) == (1, 1)
    assert warnings(caplog) == ["lost 1 recorded score because the process stopped before the exchange arrived: 'gone'"]


class BlockedExchanges(ExchangeStore):
    """Blocks the recording of scores until ``free`` is set."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context)
        self.free = threading.Event()

    def record_scores(self, scores: Sequence[RecordedScore]) -> list[RecordedScore]:
        assert self.free.wait(60)
        return super().record_scores(scores)


def test_stop_reports_scores_that_are_still_waiting(
    store: TrackingStore, migrated_url: str, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Waiting scores are reported if the thread is still running; a later stop finds everything written."""
    holding = TrackingStore(migrated_url)
    holding.exchanges = blocked = BlockedExchanges(holding.context)
    writer = write_to(holding, score_timeout=LONG, score_delays=(LONG, LONG))
    exchange = make()
    writer._score_buffer.add([a_record(exchange.id)], 0.0)
    writer.put(exchange)

    assert not writer.stop(0.2)
    assert "lost 1 recorded score that could not be written to" in caplog.text
    blocked.free.set()

    assert writer.stop(LONG)
    assert (store.answers.counts().scores, writer.lost) == (1, 0)
    holding.close()


def test_annotations_are_queued_while_the_database_is_unreachable(
    tmp_path: Path, make: Make, write_to: WriteTo
) -> None:
    """Labels, markers and recorded scores are queued like exchanges."""
    store = TrackingStore(f"sqlite:///{tmp_path / 'later' / 'germane.db'}")
    writer = write_to(store, interval=0.01, backoff=(0.01, 0.02))
    exchange = make()
    for item in (exchange, a_label(exchange.id), a_record(exchange.id)):
        writer.put(item)
    until(lambda: writer.problem is not None)

    (tmp_path / "later").mkdir()
    store.migrate()

    assert writer.stop(LONG)
    assert (len(store.labels.list_feedback()), store.answers.counts().scores) == (1, 1)
    store.close()


def test_a_full_queue_drops_annotations(tmp_path: Path, caplog: pytest.LogCaptureFixture, write_to: WriteTo) -> None:
    """Dropped annotations are counted, and put() does not wait."""
    store = TrackingStore(f"sqlite:///{tmp_path / 'absent' / 'germane.db'}")
    writer = write_to(store, capacity=2, batch=1)

    while writer.put(a_label("x")):  # the queue holds two, and one more may be in transit
        pass

    assert (writer.lost, writer.dropped) == (1, 0)
    writer.stop(0.1)
    store.close()
    assert any(re.search(r"^lost [23] labels that could not be written to ", warning) for warning in warnings(caplog))


def test_a_rejected_annotation_does_not_block_other_annotations(
    store: TrackingStore, writer: ExchangeWriter, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """The other annotations of its batch are written."""
    exchange = make()
    bad = replace(a_label(exchange.id), created_at=datetime(2026, 3, 1))  # noqa: DTZ001 - a naive datetime is under test
    for item in (exchange, bad, a_label(exchange.id)):
        writer.put(item)

    assert writer.flush(LONG)

    assert (store.answers.counts().captured, len(store.labels.list_feedback()), writer.lost, writer.dropped) == (
        1,
        1,
        1,
        0,
    )
    assert bad.id in warnings(caplog)[0]
    assert " rejected the content of 1 label" in warnings(caplog)[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_does_not_write_its_parents_annotations(sqlite_store: TrackingStore) -> None:
    """The parent writes its own annotations."""
    writer = ExchangeWriter(sqlite_store, interval=60)
    writer._queue.append(a_label("x"))  # not put(): that would start a thread, which a fork does not copy
    writer._score_buffer.add([a_record("y")], 0.0)

    writer.after_fork_in_child()

    assert (writer.depth, len(writer._score_buffer)) == (0, 0)


def test_retry_delays_double_until_the_timeout() -> None:
    """A timeout of 10 seconds allows attempts after 1, 3, 7 and 10 seconds. Written and expired scores are removed."""
    buffer = ScoreRetryBuffer(timeout=10.0, delays=(1.0, 4.0), capacity=2)
    one, two, three = (a_record(name) for name in ("one", "two", "three"))
    assert buffer.add([one, two, three], 0.0) == [three]
    assert (buffer.due_scores(0.9), buffer.seconds_until_retry(0.25)) == ([], 0.75)
    assert buffer.due_scores(1.0) == [one, two]
    assert buffer.record_attempt([one, two], [one], 1.0) == []
    for now in (3.0, 7.0):
        assert (buffer.seconds_until_retry(now - 1), buffer.due_scores(now)) == (1.0, [one])
        assert buffer.record_attempt([one], [one], now) == []
    assert (buffer.due_scores(9.9), buffer.due_scores(10.0)) == ([], [one])
    assert buffer.record_attempt([one], [one], 10.0) == [one]
    assert (len(buffer), buffer.seconds_until_retry(10.0)) == (0, None)


def test_annotations_are_not_duplicated_after_a_lost_postgresql_connection(
    proxy: Any, postgresql: Any, migrated_database: str, make: Make, write_to: WriteTo
) -> None:
    """A batch that may have been committed is written again: labels by id, scores in place."""
    store = TrackingStore(postgresql.url(migrated_database, proxy.directory))
    writer = write_to(store, batch=20, interval=0.0, backoff=(0.01, 0.05))
    for _ in range(3):
        for _ in range(40):
            exchange = make()
            for item in (a_record(exchange.id), exchange, a_label(exchange.id)):
                writer.put(item)
        proxy.disconnect()
        writer.put(make())
        until(lambda: writer.problem is not None)
        proxy.reconnect()
        assert writer.flush(LONG)
    assert writer.stop(LONG)

    assert (len(store.labels.list_feedback(limit=999)), store.answers.counts().scores, writer.lost, writer.dropped) == (
        120,
        120,
        0,
        0,
    )
    assert [(one.seen, one.scored) for one in store.trends.coverage()] == [(120, 120)]
    store.close()
