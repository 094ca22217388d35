"""Writing and reading exchanges."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import text

from germane.errors import DatabaseNotMigrated, DatabaseUnreachable, StorageError, UsageError
from germane.exchange import Context, Exchange, Message
from germane.storage import TrackingStore

Make = Callable[..., Exchange]


def test_an_exchange_round_trips_through_the_database(store: TrackingStore, make: Make) -> None:
    """Every field is stored and loaded unchanged."""
    exchange = make(
        question="Wie viel? 日本語 🎉",
        contexts=(Context("one", "doc-1", 0.25), Context("two")),
        history=(Message("user", "Hello"), Message("assistant", "Hi")),
        model="m", prompt_version="7", session="s", user="u", status="error", error="ValueError: no",
        attributes={"tenant": "a", "retries": 2, "cached": True, "share": 0.5},
        duration=1.25, sampling_key=0.125, traced=False,
    )  # fmt: skip

    store.exchanges.add([exchange])

    assert store.answers.list_exchanges() == [exchange]


def test_adding_an_exchange_twice_changes_nothing(store: TrackingStore, make: Make) -> None:
    """A batch whose commit was not confirmed can be retried."""
    exchange = make()
    store.exchanges.add([exchange])

    store.exchanges.add([exchange, make()])

    assert store.answers.counts().captured == 2


def test_adding_an_empty_batch_is_allowed(store: TrackingStore) -> None:
    """Adding no exchanges is not an error."""
    store.exchanges.add([])

    assert store.answers.counts().captured == 0


def test_stored_times_are_returned_in_utc(store: TrackingStore, make: Make) -> None:
    """Times may be written in any time zone."""
    local = datetime(2026, 3, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    store.exchanges.add([make(started_at=local)])

    [listed] = store.answers.list_exchanges()

    assert listed.started_at == datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    assert listed.started_at.tzinfo is UTC


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "\udfff", "\0\ud800"])
def test_characters_that_databases_cannot_store_are_replaced(store: TrackingStore, make: Make, text: str) -> None:
    """NUL characters and lone surrogates become U+FFFD, in columns and in JSON."""
    cleaned = text.replace("\0", "\ufffd").replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")

    store.exchanges.add([make(question=text, contexts=(Context(text, text),), attributes={text: text}, user=text)])

    [listed] = store.answers.list_exchanges()
    assert (listed.question, listed.user) == (cleaned, cleaned)
    assert listed.contexts == (Context(cleaned, cleaned),)
    assert listed.attributes == {cleaned: cleaned}


def test_surrogate_pairs_in_stored_text_are_joined_to_one_character(store: TrackingStore, make: Make) -> None:
    """Some JSON parsers return the two halves separately."""
    store.exchanges.add([make(answer="\ud83c\udf89 \0")])

    assert store.answers.list_exchanges()[0].answer == "🎉 \ufffd"


def test_nan_in_stored_json_becomes_null(store: TrackingStore, make: Make) -> None:
    """A retriever's NaN does not prevent storing the exchange."""
    store.exchanges.add([make(contexts=(Context("text", score=math.nan), Context("more", score=math.inf)))])

    assert [context.score for context in store.answers.list_exchanges()[0].contexts] == [None, None]


def test_an_escaped_u0000_in_stored_text_is_not_changed(store: TrackingStore, make: Make) -> None:
    r"""The six characters \u0000 are text like any other."""
    store.exchanges.add([make(contexts=(Context(r"say \u0000 or \\u0000"),))])

    assert store.answers.list_exchanges()[0].contexts == (Context(r"say \u0000 or \\u0000"),)


@pytest.mark.parametrize("wrong", [{"question": 5}, {"status": None}, {"started_at": datetime(2026, 1, 1)}])  # noqa: DTZ001
def test_exchange_with_a_value_of_the_wrong_type_raises_content_refused(
    store: TrackingStore, make: Make, wrong: dict[str, object]
) -> None:
    """The error is the same wherever the value is detected."""
    with pytest.raises(StorageError):
        store.exchanges.add([make(**wrong)])

    assert store.answers.counts().captured == 0


def test_exchanges_are_listed_newest_first(store: TrackingStore, make: Make) -> None:
    """A window and a route restrict the list."""
    store.exchanges.add([make(minute, route="ask" if minute % 2 else "search") for minute in range(6)])
    start = make().started_at

    listed = store.answers.list_exchanges(
        since=start + timedelta(minutes=1), until=start + timedelta(minutes=5), route="ask"
    )

    assert [(one.started_at - start).seconds // 60 for one in listed] == [3, 1]
    assert len(store.answers.list_exchanges(limit=2)) == 2


def test_a_store_is_thread_safe(store: TrackingStore, make: Make) -> None:
    """Eight threads that write and read concurrently lose nothing."""
    problems: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                store.exchanges.add([make() for _ in range(10)])
                store.answers.counts()
        except StorageError as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert store.answers.counts().captured == 400


def test_threads_share_one_in_memory_database(make: Make) -> None:
    """sqlite:// exists as long as its store."""
    store = TrackingStore("sqlite://")
    store.migrate()
    thread = threading.Thread(target=store.exchanges.add, args=([make()],))
    thread.start()
    thread.join()

    assert store.answers.counts().captured == 1
    store.close()


def test_all_queries_in_a_snapshot_see_the_same_exchanges(
    store: TrackingStore, other_store: TrackingStore, make: Make
) -> None:
    """What another process adds meanwhile appears after the outermost block, even if a query in it fails."""

    def count() -> int:
        return store.answers.counts().captured

    store.exchanges.add([make()])
    with store.snapshot():
        assert count() == 1
        other_store.exchanges.add([make(1), make(2)])
        with store.snapshot():
            assert count() == 1
        assert count() == 1
    assert count() == 3

    with pytest.raises(UsageError), store.snapshot():
        store.trends.summary(since=datetime(2026, 1, 1))  # noqa: DTZ001 - a time without a time zone is the error
    other_store.exchanges.add([make(3)])
    assert count() == 4


def test_a_snapshot_does_not_affect_other_threads(store: TrackingStore, make: Make) -> None:
    """Each request of the dashboard has its own transaction."""
    with store.snapshot():
        assert store.answers.counts().captured == 0
        with ThreadPoolExecutor(1) as executor:
            executor.submit(store.exchanges.add, [make()]).result()
            assert executor.submit(store.answers.counts).result().captured == 1
        assert store.answers.counts().captured == 0


def test_errors_in_a_snapshot_block_keep_their_type(store: TrackingStore, make: Make) -> None:
    """Only errors of queries are database errors, and writing is refused."""
    with pytest.raises(OverflowError, match="own"), store.snapshot():
        raise OverflowError("own")
    with store.snapshot(), pytest.raises(StorageError, match="cannot be changed within a snapshot"):
        store.exchanges.add([make()])
    with (
        store.snapshot(),
        pytest.raises(DatabaseNotMigrated),
        store.context.database.read() as connection,
    ):
        connection.execute(text("SELECT * FROM missing"))

    store.exchanges.add([make()])
    assert store.answers.counts().captured == 1


def test_a_snapshot_survives_the_loss_of_its_connection(migrated_database: str, postgresql: Any, make: Make) -> None:
    """If PostgreSQL ends the connection, the read fails with germane's error, and the next one opens a new one."""
    with closing(TrackingStore(postgresql.url(migrated_database))) as store:
        store.exchanges.add([make()])
        with store.snapshot():
            with store.context.database.read() as connection:
                process = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            postgresql.execute(f"SELECT pg_terminate_backend({process})")
            with pytest.raises(DatabaseUnreachable):
                store.answers.counts()
        with store.snapshot():
            assert store.answers.counts().captured == 1
