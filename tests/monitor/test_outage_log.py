"""One line in the log when a trouble begins, one when it is over, none per event."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from germane.errors import DatabaseNotMigrated, DatabaseUnreachable
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.monitor.loop.job import Job
from germane.monitor.loop.outage_log import Voice
from germane.monitor.scoring.result_writer import Failing
from germane.score import Reason, Score
from germane.settings import Settings
from germane.storage import Store

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


class Works:
    """Work that raises what it is told to."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def __call__(self) -> None:
        if self.error is not None:
            raise self.error


def jobs(*names: str) -> tuple[Works, dict[str, Job]]:
    work, voice = Works(), Voice()
    return work, {
        name: Job(name, work, clock=lambda: MOMENT, quiet=contextlib.nullcontext, voice=voice) for name in names
    }


def test_a_database_that_is_away_is_one_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """However many jobs meet it, and however often: said by the first, and over with the last."""
    work, made = jobs("sample", "save", "watch")

    async def go() -> None:
        for detail in ("gone", "refused"):
            work.error = DatabaseUnreachable(detail)
            for job in made.values():
                await job.run()
        work.error = None
        for job in made.values():
            assert len(caplog.messages) == 1
            await job.run()

    asyncio.run(go())

    assert caplog.messages == [
        "background job 'sample' fails: DatabaseUnreachable: gone",
        "background job 'sample' works again",
    ]
    assert {job.problem for job in made.values()} == {None}


def test_troubles_of_two_kinds_are_two(caplog: pytest.LogCaptureFixture) -> None:
    """What is not the database's is each job's own; and a database that is back but not migrated is told."""
    work, made = jobs("sample", "save")

    async def go() -> None:
        for error in (KeyError("a"), KeyError("b"), DatabaseUnreachable("gone"), DatabaseNotMigrated("upgrade"), None):
            work.error = error
            for job in made.values():
                await job.run()

    asyncio.run(go())

    assert [line.split(":")[0] for line in caplog.messages] == [
        "background job 'sample' fails", "background job 'save' fails",
        "background job 'sample' fails", "background job 'sample' fails", "background job 'sample' works again",
    ]  # fmt: skip
    assert ["Unreachable" in line or "NotMigrated" in line for line in caplog.messages] == [
        False, False, True, True, False,
    ]  # fmt: skip


def failed(reason: Reason = Reason.UNPARSABLE, words: str = "") -> Score:
    return Score(scorer="s", fingerprint="f", reason=reason, explanation=words)


def test_a_scorer_that_fails_again_and_again_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Five failures in a row are told once, by their reason alone, and the first score after them."""
    failing, scored = Failing(), Score(scorer="s", fingerprint="f", value=0.5)
    for score in [*[failed()] * 4, scored, *[failed(Reason.SCORER_ERROR, "the question was")] * 7, scored, scored]:
        failing.note(score)

    assert caplog.messages == ["s fails again and again: scorer_error", "s scores again, after 7 failures in a row"]


def test_what_a_pause_tells_is_not_told_twice(caplog: pytest.LogCaptureFixture) -> None:
    """A judge that is away or rejects the key makes its scorer pause, which says so; what is skipped is no failure."""
    failing = Failing()
    for reason in (Reason.JUDGE_REJECTED, Reason.JUDGE_UNREACHABLE, Reason.BUDGET):
        for _ in range(6):
            failing.note(failed(reason))

    assert caplog.messages == []


class Broken:
    """A scorer of the user's that raises until it is mended."""

    name, fingerprint, range = "broken", "f1", (0.0, 1.0)
    requires = frozenset({"question", "answer"})
    mended = False

    async def score(self, exchange: Exchange) -> float:
        if not self.mended:
            raise ValueError(exchange.question)
        return 0.5


def test_the_log_follows_a_scorer_of_the_users(
    store: Store, start: Callable[..., Monitor], settings: Callable[..., Settings], new_exchange: Any, until: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Twenty failures make one line, without the text that the scorer put into its error."""
    scorer = Broken()
    store.add([new_exchange() for _ in range(20)])
    start(store, [scorer], settings=settings())
    until(lambda: store.counts().failed == 20)
    scorer.mended = True
    store.add([new_exchange()])
    until(lambda: len(caplog.messages) == 2)

    assert caplog.messages == [
        "broken fails again and again: scorer_error", "broken scores again, after 20 failures in a row",
    ]  # fmt: skip
