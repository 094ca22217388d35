"""Cached judge replies: no request is repeated, and no reply is invented."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from labelled.judge import KeptJudge, Shares, counted
from labelled.kept import Kept, key_of

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers import Reply
from germane.scorers.base.protocols import Token

HELLO = [Message("user", "Hello")]


class Judge:
    """A judge that counts its requests and fails on demand."""

    model = "small"

    def __init__(self) -> None:
        self.asked = 0
        self.error: ScoringError | None = None

    async def identify(self) -> str:
        """Return the judge's name."""
        return "small-1"

    async def ask(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Reply with the number of the request."""
        self.asked += 1
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return Reply((str(self.asked),), 7, 1, "small-1", first_token={"1": 0.5}, tokens=(Token("1", {"1": 0.5}),))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    """Return an empty cache file."""
    file = Kept(tmp_path / "deep" / "kept.sqlite")
    yield file
    file.close()


def test_a_cached_request_is_not_sent_again(kept: Kept) -> None:
    """The second call returns the same reply and usage, even without a judge."""
    judge = Judge()

    async def twice() -> tuple[Reply, Reply]:
        first = await KeptJudge(kept, "small", judge).ask(HELLO, top_tokens=5)
        with counted() as usage:
            second = await KeptJudge(kept, "small", None).ask(HELLO, top_tokens=5)
        assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, 7, 1)
        assert await KeptJudge(kept, "small", None).identify() == "small-1"
        return first, second

    first, second = asyncio.run(twice())
    assert first == second
    assert judge.asked == 1


def test_identical_concurrent_requests_are_sent_once(kept: Kept) -> None:
    """Two scorers with the same request share the reply, and both count its usage."""
    judge = Judge()

    async def both() -> list[Reply]:
        shared = KeptJudge(kept, "small", judge)
        return list(await asyncio.gather(shared.ask(HELLO), shared.ask(HELLO)))

    first, second = asyncio.run(both())
    assert first == second
    assert judge.asked == 1


def test_the_random_delimiter_is_not_part_of_the_cache_key() -> None:
    """The delimiter differs between processes; the text inside it does not."""

    def key(fence: str, text: str = "Two miles.") -> str:
        return key_of([Message("user", f"<answer-{fence}>\n{text}\n</answer-{fence}>")], {}, model="m", run=0)

    assert key("0123abcd") == key("fedc9876")
    assert key("0123abcd") != key("0123abcd", "Three miles.")


def test_benchmark_runs_share_cached_replies_at_temperature_zero() -> None:
    """At temperature 0, the second run reuses the replies of the first run."""

    def key(run: int, temperature: float) -> str:
        return key_of(HELLO, {"temperature": temperature}, model="m", run=run)

    assert key(0, 0.0) == key(1, 0.0)
    assert key(0, 0.7) != key(1, 0.7)


def test_an_unsent_request_is_reported_and_not_cached(kept: Kept) -> None:
    """This happens without a judge and after the deadline."""
    judge = Judge()

    async def ask(asking: KeptJudge) -> int:
        with counted() as usage, pytest.raises(ScoringError, match="not asked yet"):
            await asking.ask(HELLO)
        return len(usage.missing)

    assert asyncio.run(ask(KeptJudge(kept, "small", None))) == 1
    assert asyncio.run(ask(KeptJudge(kept, "small", judge, deadline=time.monotonic() - 1))) == 1
    assert judge.asked == 0


def test_only_permanent_judge_failures_are_cached(kept: Kept) -> None:
    """A permanent failure is reused by every later rendering. A temporary failure is retried."""
    judge = Judge()

    async def ask(reason: UnscoredReason, text: str) -> int:
        judge.error = ScoringError(reason, "as told")
        with counted() as usage, pytest.raises(ScoringError):
            await KeptJudge(kept, "small", judge).ask([Message("user", text)])
        return len(usage.missing)

    assert asyncio.run(ask(UnscoredReason.JUDGE_REFUSED, "a")) == 0
    assert asyncio.run(ask(UnscoredReason.JUDGE_REFUSED, "a")) == 0
    assert judge.asked == 1
    assert asyncio.run(ask(UnscoredReason.JUDGE_TIMEOUT, "b")) == 1
    assert asyncio.run(ask(UnscoredReason.JUDGE_TIMEOUT, "b")) == 1
    assert judge.asked == 3


def test_elapsed_time_is_divided_among_concurrent_judge_requests() -> None:
    """The shares of two concurrent requests add up to the elapsed time."""
    shares, first, second = Shares(), list[float](), list[float]()
    started = time.perf_counter()
    with shares.of(first), shares.of(second):
        time.monotonic()
    assert 0 < first[0] + second[0] <= time.perf_counter() - started + 1e-6
