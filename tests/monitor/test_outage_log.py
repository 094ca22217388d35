"""The outage log: one log line when an outage starts, and one when it ends."""

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
from germane.monitor.loop.job import Job, OutageLog
from germane.monitor.scoring.result_writer import FailureLog
from germane.score import Score, UnscoredReason
from germane.settings import Settings
from germane.storage import TrackingStore

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


class Works:
    """Work that raises a given error."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def __call__(self) -> None:
        if self.error is not None:
            raise self.error


def jobs(*names: str) -> tuple[Works, dict[str, Job]]:
    work, voice = Works(), OutageLog()
    return work, {
        name: Job(name, work, clock=lambda: MOMENT, suppressed=contextlib.nullcontext, outage_log=voice)
        for name in names
    }


def test_an_unreachable_database_is_logged_as_one_outage(caplog: pytest.LogCaptureFixture) -> None:
    """The start is logged for the first affected job, and the end after the last job recovers, regardless of the number
    of failures."""
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
        "background job 'sample' is failing: DatabaseUnreachable: gone",
        "background job 'sample' has recovered",
    ]
    assert {job.problem for job in made.values()} == {None}


def test_different_errors_are_logged_as_different_outages(caplog: pytest.LogCaptureFixture) -> None:
    """Other errors affect a single job, and a reachable but unmigrated database is a new outage."""
    work, made = jobs("sample", "save")

    async def go() -> None:
        for error in (KeyError("a"), KeyError("b"), DatabaseUnreachable("gone"), DatabaseNotMigrated("upgrade"), None):
            work.error = error
            for job in made.values():
                await job.run()

    asyncio.run(go())

    assert [line.split(":")[0] for line in caplog.messages] == [
        "background job 'sample' is failing", "background job 'save' is failing",
        "background job 'sample' is failing", "background job 'sample' is failing",
        "background job 'sample' has recovered",
    ]  # fmt: skip
    assert ["Unreachable" in line or "NotMigrated" in line for line in caplog.messages] == [
        False, False, True, True, False,
    ]  # fmt: skip


def failed(reason: UnscoredReason = UnscoredReason.UNPARSABLE, words: str = "") -> Score:
    return Score(scorer="s", fingerprint="f", reason=reason, explanation=words)


def test_repeated_scorer_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Five consecutive failures are logged once, with the reason only. The first score after them is also logged."""
    failures, scored = FailureLog(), Score(scorer="s", fingerprint="f", value=0.5)
    for score in [
        *[failed()] * 4,
        scored,
        *[failed(UnscoredReason.SCORER_ERROR, "the question was")] * 7,
        scored,
        scored,
    ]:
        failures.record_score(score)

    assert caplog.messages == ["s is failing repeatedly: scorer_error", "s has recovered after 7 consecutive failures"]


def test_failures_that_open_the_circuit_breaker_are_logged_only_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Such failures are an unreachable judge and a rejected key. Skipped scores are not failures."""
    failures = FailureLog()
    for reason in (UnscoredReason.JUDGE_REJECTED, UnscoredReason.JUDGE_UNREACHABLE, UnscoredReason.BUDGET):
        for _ in range(6):
            failures.record_score(failed(reason))

    assert caplog.messages == []


class Broken:
    """A custom scorer that raises until it is fixed."""

    name, fingerprint, range = "broken", "f1", (0.0, 1.0)
    requires = frozenset({"question", "answer"})
    fixed = False

    async def score(self, exchange: Exchange) -> float:
        if not self.fixed:
            raise ValueError(exchange.question)
        return 0.5


def test_custom_scorer_failures_are_logged(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Twenty failures cause one log line, without the message of the scorer's exception."""
    scorer = Broken()
    store.exchanges.add([new_exchange() for _ in range(20)])
    start(store, [scorer], settings=settings())
    until(lambda: store.answers.counts().failed == 20)
    scorer.fixed = True
    store.exchanges.add([new_exchange()])
    until(lambda: len(caplog.messages) == 2)

    assert caplog.messages == [
        "broken is failing repeatedly: scorer_error", "broken has recovered after 20 consecutive failures",
    ]  # fmt: skip
