"""What is said of exchanges from outside is kept, whatever comes first, and counted once."""

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

from germane.annotation import RECORDED, Feedback, Recorded
from germane.exchange import Exchange, new_exchange_id
from germane.storage import Coverage, Decision, Store, Writer
from germane.storage.ingest.writer import Waiting

Make = Callable[..., Exchange]
WriteTo = Callable[..., Writer]
LONG = 60.0
NOON = datetime.fromisoformat("2026-03-01T12:00:00Z")


def a_label(exchange_id: str, score: float = 1.0, minutes: float = 0, **given: Any) -> Feedback:
    """Return a label of so many minutes after noon."""
    created_at = NOON + timedelta(minutes=minutes)
    return Feedback(id=new_exchange_id(), exchange_id=exchange_id, score=score, created_at=created_at, **given)


def a_record(exchange_id: str, value: float = 0.5, minutes: float = 0, **given: Any) -> Recorded:
    """Return a score made elsewhere, recorded so many minutes after noon."""
    recorded_at = NOON + timedelta(minutes=minutes)
    return Recorded(**{"name": "mine", "value": value, "exchange_id": exchange_id, "recorded_at": recorded_at, **given})


@pytest.fixture
def writer(store: Store) -> Iterator[Writer]:
    """A writer that is stopped afterwards."""
    opened = Writer(store, interval=0.01, scorers=("a",), backoff=(0.01, 0.05), patience=LONG, pauses=(0.01, 0.02))
    yield opened
    opened.stop(LONG)


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do."""
    waiting = threading.Event()
    for _ in range(12_000):
        if condition():
            return
        waiting.wait(0.005)
    raise AssertionError("it never came true")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was warned of."""
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_labels_are_read_with_their_exchanges_newest_first(store: Store, make: Make) -> None:
    """By the time at which they were given, and by route; the same label written twice is there once."""
    first, second = make(route="ask"), make(route="search")
    early = a_label(first.id, 0.0, comment="wrong \0 shoe", user="ann")
    late = a_label(second.id, 1.0, minutes=5)
    store.add([first, second])
    store.add_feedback([early, late])
    store.add_feedback([early])

    found = store.feedback()

    assert [(one.feedback.id, one.exchange.id) for one in found] == [(late.id, second.id), (early.id, first.id)]
    assert found[1].feedback == replace(early, comment="wrong \ufffd shoe")
    assert [one.feedback.id for one in store.feedback(route="search")] == [late.id]
    assert [one.feedback.id for one in store.feedback(since=NOON, until=late.created_at)] == [early.id]
    assert [one.feedback.id for one in store.feedback(limit=1)] == [late.id]


def test_a_label_may_come_before_its_exchange(store: Store, make: Make) -> None:
    """No key refuses it; it shows once the exchange is there."""
    exchange = make()
    store.add_feedback([a_label(exchange.id)])
    assert store.feedback() == []

    store.add([exchange])

    assert [one.exchange for one in store.feedback()] == [exchange]


def test_a_recorded_score_stands_beside_the_others(store: Store, make: Make) -> None:
    """In summary, worst and coverage, under the exchange's route and time, with weight 1: seen = scored."""
    exchange = make(7, route="search")
    store.add([exchange])
    store.assign([Decision(exchange.id, 0.1, "uniform")], {"a": "f1"})

    given = a_record(exchange.id, 0.25, label="weak", explanation="short", details={"words": [3, None]})
    assert store.record([given]) == []

    [summary] = store.summary()
    assert (summary.route, summary.scorer, summary.fingerprint, summary.n, summary.mean) == (
        "search", "mine", RECORDED, 1, 0.25,
    )  # fmt: skip
    assert summary.coverage == Coverage(service="shop", route="search", scorer="mine", seen=1, scored=1)
    [worst] = store.worst(scorer="mine")
    assert (worst.score.value, worst.score.label, worst.score.explanation) == (0.25, "weak", "short")
    assert (worst.score.details, worst.score.scored_at) == ({"words": [3, None]}, NOON)
    assert store.scores_of([exchange.id, "none"]) == {exchange.id: [worst.score]}
    with store._database.read() as connection:
        query = "SELECT value, weight, state FROM answers WHERE scorer = 'mine'"
        assert [tuple(row) for row in connection.exec_driver_sql(query)] == [(0.25, 1.0, "done")]


def test_a_second_record_replaces_the_first(store: Store, make: Make) -> None:
    """In the same batch or later; it is counted once, and one that arrives late changes nothing."""
    exchange = make()
    store.add([exchange])

    store.record(
        [a_record(exchange.id, 0.2, minutes=1), a_record(exchange.id, 0.1), a_record(exchange.id, 0.9, name="b")]
    )
    store.record([a_record(exchange.id, 0.7, minutes=2, label="new")])
    store.record([a_record(exchange.id, 0.3)])

    found = {score.scorer: (score.value, score.label) for score in store.scores_of([exchange.id])[exchange.id]}
    assert found == {"mine": (0.7, "new"), "b": (0.9, None)}
    assert [(one.scorer, one.seen, one.scored, one.pending) for one in store.coverage()] == [
        ("b", 1, 1, 0), ("mine", 1, 1, 0),
    ]  # fmt: skip


def test_records_of_processes_at_once_are_counted_once(store: Store, migrated_url: str, make: Make) -> None:
    """Whoever is first makes the count, and nobody waits for another for ever."""
    exchanges = [make() for _ in range(60)]
    store.add(exchanges)
    stores = [Store(migrated_url) for _ in range(4)]
    records = [a_record(one.id, 0.5, name=name) for one in exchanges for name in ("x", "y")]
    threads = [
        threading.Thread(target=each.record, args=[records[:: (1 if number % 2 else -1)]])
        for number, each in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in stores:
        each.close()

    assert [(one.scorer, one.seen, one.scored) for one in store.coverage()] == [("x", 60, 60), ("y", 60, 60)]
    assert store.counts().rows == store.counts().done == 120


def test_a_record_of_an_unknown_exchange_is_handed_back(store: Store, make: Make) -> None:
    """The others are written."""
    exchange = make()
    store.add([exchange])
    unknown = a_record("nowhere")

    assert store.record([unknown, a_record(exchange.id)]) == [unknown]
    assert store.counts().rows == 1


def test_the_writer_takes_annotations_beside_exchanges(store: Store, writer: Writer, make: Make) -> None:
    """Those of one batch may come in any order."""
    exchange = make()
    for item in (a_record(exchange.id), a_label(exchange.id), exchange):
        assert writer.put(item)

    assert writer.flush(LONG)

    assert ([len(store.feedback()), store.counts().rows], writer.lost) == ([1, 1], 0)


def test_a_score_waits_for_its_exchange(store: Store, writer: Writer, make: Make) -> None:
    """It may come from another process; until then a flush does not wait for it."""
    exchange = make()
    writer.put(a_record(exchange.id))
    assert writer.flush(LONG)
    assert store.counts().rows == 0

    store.add([exchange])

    until(lambda: store.counts().rows == 1)
    assert writer.lost == 0


def test_a_score_whose_exchange_never_comes_is_given_up(
    store: Store, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """After its time, with one line and a count; nothing of it stays. What is named cannot forge lines of a log."""
    writer = write_to(store, interval=0.01, patience=0.05, pauses=(0.01, 0.02))
    lost = [a_record(f"gone\n{number}") for number in range(3)]
    writer._queue.extend(lost[:2])  # not put: the writer might take them before the third
    writer.put(lost[2])

    until(lambda: writer.lost == 3)  # counted after it was said

    assert warnings(caplog) == [
        "lost: 3 recorded scores, their exchange never came: 'gone\\n0', 'gone\\n1', 'gone\\n2'"
    ]
    assert writer.stop(LONG)
    assert store.coverage() == []


def test_a_stop_tries_once_more(store: Store, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo) -> None:
    """What still has no exchange then is lost, and named."""
    writer = write_to(store, interval=0.0, patience=LONG, pauses=(LONG, LONG))
    exchange = make()
    writer.put(a_record(exchange.id))
    writer.put(a_record("gone"))
    assert writer.flush(LONG)
    store.add([exchange])

    assert writer.stop(LONG)

    assert (store.counts().rows, writer.lost) == (1, 1)
    assert warnings(caplog) == ["lost: 1 recorded score, the end came before their exchange: 'gone'"]


class Holding(Store):
    """Records nothing until it is let."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.free = threading.Event()

    def record(self, scores: Sequence[Recorded]) -> list[Recorded]:
        assert self.free.wait(60)
        return super().record(scores)


def test_a_stop_that_ends_before_its_thread_says_so(
    store: Store, migrated_url: str, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Scores that still wait for their exchange are named with what is left; a later stop finds all done."""
    holding = Holding(migrated_url)
    writer = write_to(holding, patience=LONG, pauses=(LONG, LONG))
    exchange = make()
    writer._waiting.add([a_record(exchange.id)], 0.0)
    writer.put(exchange)

    assert not writer.stop(0.2)
    assert "1 recorded score not written to" in caplog.text
    holding.free.set()

    assert writer.stop(LONG)
    assert (store.counts().rows, writer.lost) == (1, 0)
    holding.close()


def test_annotations_survive_a_database_that_is_away(tmp_path: Path, make: Make, write_to: WriteTo) -> None:
    """They are held in the queue as exchanges are."""
    store = Store(f"sqlite:///{tmp_path / 'later' / 'germane.db'}")
    writer = write_to(store, interval=0.01, backoff=(0.01, 0.02))
    exchange = make()
    for item in (exchange, a_label(exchange.id), a_record(exchange.id)):
        writer.put(item)
    until(lambda: writer.problem is not None)

    (tmp_path / "later").mkdir()
    store.migrate()

    assert writer.stop(LONG)
    assert (len(store.feedback()), store.counts().rows) == (1, 1)
    store.close()


def test_a_full_queue_drops_annotations_and_counts_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Nobody waits for room."""
    store = Store(f"sqlite:///{tmp_path / 'absent' / 'germane.db'}")
    writer = write_to(store, capacity=2, batch=1)

    while writer.put(a_label("x")):  # besides the two, one may be on its way
        pass

    assert (writer.lost, writer.dropped) == (1, 0)
    writer.stop(0.1)
    store.close()
    assert any(re.search(r"^[23] labels not written to ", warning) for warning in warnings(caplog))


def test_an_annotation_that_no_column_takes_is_lost_alone(
    store: Store, writer: Writer, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """The others of its batch are written."""
    exchange = make()
    bad = replace(a_label(exchange.id), created_at=datetime(2026, 3, 1))  # noqa: DTZ001 - a moment nobody can place
    for item in (exchange, bad, a_label(exchange.id)):
        writer.put(item)

    assert writer.flush(LONG)

    assert (store.counts().captured, len(store.feedback()), writer.lost, writer.dropped) == (1, 1, 1, 0)
    assert bad.id in warnings(caplog)[0]
    assert " refuses 1 label for what is in them" in warnings(caplog)[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_has_none_of_the_parents_annotations(sqlite_store: Store) -> None:
    """They are the parent's to write."""
    writer = Writer(sqlite_store, interval=60)
    writer._queue.append(a_label("x"))  # not put: that would start a thread, which a fork does not copy
    writer._waiting.add([a_record("y")], 0.0)

    writer.after_fork_in_child()

    assert (writer.depth, len(writer._waiting)) == (0, 0)


def test_waiting_grows_longer_until_it_ends() -> None:
    """Tries come after 1, 3, 7 and 10 seconds of 10; what found its exchange is forgotten, as is what is too old."""
    waiting = Waiting(patience=10.0, pauses=(1.0, 4.0), capacity=2)
    one, two, three = (a_record(name) for name in ("one", "two", "three"))
    assert waiting.add([one, two, three], 0.0) == [three]
    assert (waiting.due(0.9), waiting.left(0.25)) == ([], 0.75)
    assert waiting.due(1.0) == [one, two]
    assert waiting.settle([one, two], [one], 1.0) == []
    for now in (3.0, 7.0):
        assert (waiting.left(now - 1), waiting.due(now)) == (1.0, [one])
        assert waiting.settle([one], [one], now) == []
    assert (waiting.due(9.9), waiting.due(10.0)) == ([], [one])
    assert waiting.settle([one], [one], 10.0) == [one]
    assert (len(waiting), waiting.left(10.0)) == (0, None)


def test_a_cut_line_to_postgresql_doubles_nothing(
    line: Any, postgresql: Any, migrated_database: str, make: Make, write_to: WriteTo
) -> None:
    """A batch that may have been committed is written again: labels by their id, scores in their own place."""
    store = Store(postgresql.url(migrated_database, line.directory))
    writer = write_to(store, batch=20, interval=0.0, backoff=(0.01, 0.05))
    for _ in range(3):
        for _ in range(40):
            exchange = make()
            for item in (a_record(exchange.id), exchange, a_label(exchange.id)):
                writer.put(item)
        line.cut()
        writer.put(make())
        until(lambda: writer.problem is not None)
        line.mend()
        assert writer.flush(LONG)
    assert writer.stop(LONG)

    assert (len(store.feedback(limit=999)), store.counts().rows, writer.lost, writer.dropped) == (120, 120, 0, 0)
    assert [(one.seen, one.scored) for one in store.coverage()] == [(120, 120)]
    store.close()
