"""Exchanges go in as they are and come out as they were."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from germane.errors import StorageError
from germane.exchange import Context, Exchange, Turn
from germane.storage import Store

Make = Callable[..., Exchange]


def test_an_exchange_comes_out_as_it_went_in(store: Store, make: Make) -> None:
    """Every field survives the database."""
    exchange = make(
        question="Wie viel? 日本語 🎉",
        contexts=(Context("one", "doc-1", 0.25), Context("two")),
        history=(Turn("user", "Hello"), Turn("assistant", "Hi")),
        model="m", prompt_version="7", session="s", user="u", status="error", error="ValueError: no",
        attributes={"tenant": "a", "retries": 2, "cached": True, "share": 0.5},
        duration=1.25, draw=0.125, traced=False,
    )  # fmt: skip

    store.add([exchange])

    assert store.exchanges() == [exchange]


def test_adding_an_exchange_again_changes_nothing(store: Store, make: Make) -> None:
    """A batch that was committed without our knowing may be tried again."""
    exchange = make()
    store.add([exchange])

    store.add([exchange, make()])

    assert store.counts().captured == 2


def test_adding_nothing_is_allowed(store: Store) -> None:
    """An empty batch is no error."""
    store.add([])

    assert store.counts().captured == 0


def test_moments_come_back_in_utc(store: Store, make: Make) -> None:
    """Whatever the zone they were given in."""
    local = datetime(2026, 3, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    store.add([make(started_at=local)])

    [found] = store.exchanges()

    assert found.started_at == datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    assert found.started_at.tzinfo is UTC


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "\udfff", "\0\ud800"])
def test_text_that_no_database_takes_is_mended(store: Store, make: Make, text: str) -> None:
    """NUL characters and lone surrogates become U+FFFD, in columns and inside JSON."""
    mended = text.replace("\0", "\ufffd").replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")

    store.add([make(question=text, contexts=(Context(text, text),), attributes={text: text}, user=text)])

    [found] = store.exchanges()
    assert (found.question, found.user) == (mended, mended)
    assert found.contexts == (Context(mended, mended),)
    assert found.attributes == {mended: mended}


def test_a_pair_of_surrogates_becomes_its_character(store: Store, make: Make) -> None:
    """What some JSON readers leave in two halves is one character again."""
    store.add([make(answer="\ud83c\udf89 \0")])

    assert store.exchanges()[0].answer == "🎉 \ufffd"


def test_numbers_that_json_lacks_become_null(store: Store, make: Make) -> None:
    """A retriever's NaN costs the figure, not the exchange."""
    store.add([make(contexts=(Context("text", score=math.nan), Context("more", score=math.inf)))])

    assert [context.score for context in store.exchanges()[0].contexts] == [None, None]


def test_a_backslash_before_u0000_is_left_alone(store: Store, make: Make) -> None:
    r"""The six characters \u0000 are text like any other."""
    store.add([make(contexts=(Context(r"say \u0000 or \\u0000"),))])

    assert store.exchanges()[0].contexts == (Context(r"say \u0000 or \\u0000"),)


@pytest.mark.parametrize("wrong", [{"question": 5}, {"status": None}, {"started_at": datetime(2026, 1, 1)}])  # noqa: DTZ001
def test_an_exchange_that_is_none_is_refused(store: Store, make: Make, wrong: dict[str, object]) -> None:
    """Values of a wrong type give an error of ours, whoever finds them."""
    with pytest.raises(StorageError):
        store.add([make(**wrong)])

    assert store.counts().captured == 0


def test_exchanges_are_listed_newest_first(store: Store, make: Make) -> None:
    """Within the window and on the route that were asked for."""
    store.add([make(minute, route="ask" if minute % 2 else "search") for minute in range(6)])
    start = make().started_at

    listed = store.exchanges(since=start + timedelta(minutes=1), until=start + timedelta(minutes=5), route="ask")

    assert [(one.started_at - start).seconds // 60 for one in listed] == [3, 1]
    assert len(store.exchanges(limit=2)) == 2


def test_threads_share_a_store(store: Store, make: Make) -> None:
    """Eight threads that write and read at once lose nothing and fail nowhere."""
    problems: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                store.add([make() for _ in range(10)])
                store.counts()
        except StorageError as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert store.counts().captured == 400


def test_a_database_in_memory_is_one_for_all_threads(make: Make) -> None:
    """sqlite:// lives as long as its store."""
    store = Store("sqlite://")
    store.migrate()
    thread = threading.Thread(target=store.add, args=([make()],))
    thread.start()
    thread.join()

    assert store.counts().captured == 1
    store.close()
