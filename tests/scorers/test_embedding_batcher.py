"""Embedding requests shared by concurrent exchanges."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers import Vectors
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.testing import FakeEmbedder


class Picky(FakeEmbedder):
    """Embedder that rejects batches with an invalid text and can be unreachable or slow."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.gate: asyncio.Event | None = None
        self.asked: asyncio.Event | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        if self.gate is not None and self.asked is not None:
            self.asked.set()
            await self.gate.wait()
        if self.away:
            raise ScoringError(UnscoredReason.EMBEDDER_ERROR, "nobody there", retry_after=0)
        if "bad" in texts:
            raise ScoringError(UnscoredReason.EMBEDDER_ERROR, "a bad text")
        self.calls.pop()
        return await super().embed(texts)


def gather(batcher: EmbeddingBatcher, *calls: Sequence[str]) -> list[Any]:
    """Return the rows or the error of each concurrent call."""

    async def embed_all() -> list[Any]:
        return await asyncio.gather(*(batcher.embed(call) for call in calls), return_exceptions=True)

    return asyncio.run(embed_all())


def test_concurrent_embedding_calls_share_one_request() -> None:
    """Identical texts are sent once, and each caller gets its own rows in order."""
    embedder = FakeEmbedder()

    rows = gather(EmbeddingBatcher(embedder), ["a", "b"], ["c", "a"], ["b", "b"])

    assert embedder.calls == [["a", "b", "c"]]
    assert np.array_equal(rows[0][0], rows[1][1])
    assert np.array_equal(rows[0][1], rows[2][0])
    assert np.array_equal(rows[2][0], rows[2][1])


def test_a_full_batch_is_sent_immediately_and_never_exceeds_its_size() -> None:
    """The limit also applies to a single call with many texts."""
    embedder = FakeEmbedder()

    one, rest = gather(
        EmbeddingBatcher(embedder, gather_seconds=3600, max_texts=4), ["text"], [f"text {place}" for place in range(9)]
    )

    assert [len(call) for call in embedder.calls] == [4, 4, 2]
    assert (one.shape, rest.shape) == ((1, 256), (9, 256))


def test_rejected_texts_raise_an_error_only_in_the_call_that_contains_them() -> None:
    """If a batch is rejected, each caller's texts are sent separately."""
    embedder = Picky()

    first, second, third = gather(EmbeddingBatcher(embedder), ["a"], ["bad"], ["c", "d"])

    assert first.shape == (1, 256)
    assert isinstance(second, ScoringError)
    assert third.shape == (2, 256)
    assert len(embedder.calls) == 4


def test_an_unreachable_embedder_fails_all_waiting_calls_after_one_request() -> None:
    """A separate retry for each caller would only add load."""
    embedder = Picky()
    embedder.away = True

    results = gather(EmbeddingBatcher(embedder), ["a"], ["b"], ["c"])

    assert [str(result) for result in results] == ["nobody there"] * 3
    assert len(embedder.calls) == 1


def test_any_embedder_exception_reaches_all_waiting_callers() -> None:
    """A custom embedder can raise any exception."""

    class Broken(FakeEmbedder):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            raise KeyError("colour")

    results = gather(EmbeddingBatcher(Broken()), ["a"], ["b"])

    assert [type(result) for result in results] == [KeyError, KeyError]


def test_invalid_rows_from_an_embedder_are_rejected() -> None:
    """Rows from a custom embedder are validated like any others."""

    class Zero(FakeEmbedder):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            return np.zeros((len(texts), 3))

    (result,) = gather(EmbeddingBatcher(Zero()), ["a"])

    assert isinstance(result, ScoringError)
    assert result.reason is UnscoredReason.EMBEDDER_ERROR


def test_only_texts_marked_by_the_caller_are_cached() -> None:
    """The cache has a maximum size."""
    embedder = FakeEmbedder()
    batcher = EmbeddingBatcher(embedder, gather_seconds=0, cache_size=2)

    async def ask() -> None:
        for question in ("q1", "q2", "q1", "q3", "q2"):
            await batcher.embed([question, "answer"], keep=1)

    asyncio.run(ask())

    assert embedder.calls == [["q1", "answer"], ["q2", "answer"], ["answer"], ["q3", "answer"], ["q2", "answer"]]


def test_a_cancelled_caller_does_not_cancel_the_shared_request() -> None:
    """The other exchanges get their vectors."""
    embedder = Picky()

    async def cancel_one() -> Any:
        embedder.gate, embedder.asked = asyncio.Event(), asyncio.Event()
        batcher = EmbeddingBatcher(embedder, gather_seconds=0)
        patient, hasty = asyncio.create_task(batcher.embed(["a"])), asyncio.create_task(batcher.embed(["b"]))
        await embedder.asked.wait()
        hasty.cancel()
        embedder.gate.set()
        return await asyncio.gather(patient, hasty, return_exceptions=True)

    patient, hasty = asyncio.run(cancel_one())

    assert patient.shape == (1, 256)
    assert isinstance(hasty, asyncio.CancelledError)


def test_closing_the_batcher_cancels_requests_in_progress() -> None:
    """Callers are cancelled instead of waiting forever."""
    embedder = Picky()

    async def close() -> list[Any]:
        embedder.gate, embedder.asked = asyncio.Event(), asyncio.Event()
        batcher = EmbeddingBatcher(embedder, gather_seconds=0)
        waiting = asyncio.create_task(batcher.embed(["a"]))
        await embedder.asked.wait()
        batcher.gather_seconds = 3600
        gathering = asyncio.create_task(batcher.embed(["b"]))
        await asyncio.sleep(0)
        await batcher.aclose()
        return await asyncio.gather(waiting, gathering, return_exceptions=True)

    assert [type(result) for result in asyncio.run(close())] == [asyncio.CancelledError] * 2


def test_a_batcher_works_on_successive_event_loops() -> None:
    """State left over from a closed loop does not block the next one."""
    batcher = EmbeddingBatcher(FakeEmbedder(), gather_seconds=3600)

    async def stop_waiting() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.embed(["a"]), 0.01)

    asyncio.run(stop_waiting())
    batcher.gather_seconds = 0
    (rows,) = gather(batcher, ["b"])

    assert rows.shape == (1, 256)


class Gated(FakeEmbedder):
    """Embedder that replies only when released."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: list[asyncio.Event] = []
        self.asked = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        gate = asyncio.Event()
        self.gates.append(gate)
        self.asked.set()
        await gate.wait()
        return await super().embed(texts)


def test_texts_are_collected_while_a_request_is_in_progress() -> None:
    """Waiting texts are sent together afterwards, so any number of callers takes two requests."""
    embedder = Gated()

    async def crowd() -> list[Vectors]:
        batcher = EmbeddingBatcher(embedder, gather_seconds=0)
        first = asyncio.create_task(batcher.embed(["first"]))
        await embedder.asked.wait()
        others = [asyncio.create_task(batcher.embed([f"text {place}"])) for place in range(40)]
        for _ in range(10):  # iterations of the event loop; an idle batcher needs one
            await asyncio.sleep(0)
        assert len(embedder.gates) == 1
        embedder.asked.clear()
        embedder.gates[0].set()
        await embedder.asked.wait()
        embedder.gates[1].set()
        return await asyncio.gather(first, *others)

    assert len(asyncio.run(crowd())) == 41
    assert [len(call) for call in embedder.calls] == [1, 40]


def test_a_full_batch_does_not_wait_for_a_request_in_progress() -> None:
    """Both requests run at the same time."""
    embedder = Gated()

    async def crowd() -> None:
        batcher = EmbeddingBatcher(embedder, gather_seconds=0, max_texts=8)
        tasks = [asyncio.create_task(batcher.embed(["first"]))]
        await embedder.asked.wait()
        embedder.asked.clear()
        tasks += [asyncio.create_task(batcher.embed([f"text {place}"])) for place in range(8)]
        await embedder.asked.wait()
        for gate in embedder.gates:
            gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(crowd())

    assert sorted(len(call) for call in embedder.calls) == [1, 8]


def test_a_hanging_request_delays_other_texts_only_for_a_limited_time() -> None:
    """After the maximum wait, the waiting texts are sent in a separate request."""
    embedder = Gated()

    async def crowd() -> Vectors:
        batcher = EmbeddingBatcher(embedder, gather_seconds=0, max_wait=0.02)
        hanging = asyncio.create_task(batcher.embed(["hangs"]))
        await embedder.asked.wait()
        embedder.asked.clear()
        other = asyncio.create_task(batcher.embed(["other"]))
        await embedder.asked.wait()
        embedder.gates[1].set()
        rows = await other
        hanging.cancel()
        await batcher.aclose()
        return rows

    assert asyncio.run(crowd()).shape == (1, 256)


def test_long_texts_are_split_into_requests_of_limited_size() -> None:
    """Rows are returned in the order of their texts."""
    embedder = FakeEmbedder()
    texts = [f"{place} " + "word " * 1_500 for place in range(120)]

    (rows,) = gather(EmbeddingBatcher(embedder), texts)

    assert rows.shape == (120, 256)
    assert len(embedder.calls) == 2
    assert [text for call in embedder.calls for text in call] == texts
    assert all(sum(map(len, call)) <= 800_000 for call in embedder.calls)


def test_cached_vectors_are_replaced_if_the_dimension_changes() -> None:
    """A server can serve a different model under the same name."""
    embedder = FakeEmbedder()
    batcher = EmbeddingBatcher(embedder, gather_seconds=0)

    async def ask() -> Vectors:
        await batcher.embed(["question", "answer"], keep=1)
        embedder.dimension = 16
        return await batcher.embed(["question", "other"], keep=1)

    assert asyncio.run(ask()).shape == (2, 16)
    assert embedder.calls == [["question", "answer"], ["other"], ["question", "other"]]
