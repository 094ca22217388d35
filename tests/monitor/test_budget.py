"""The budget for requests, tokens and dollars, shared by all processes on one database."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.delivery import Backoff
from germane.errors import DatabaseUnreachable, ScoringError, SettingsError
from germane.exchange import Context, Message
from germane.monitor.quota.limiter import SharedRateLimiter, shared_rate_limiter
from germane.monitor.scoring.failures import MAX_OUTAGES, CircuitBreaker
from germane.phrasing import format_amount
from germane.score import Score, UnscoredReason
from germane.scorers import Judge, RequestReservation, ScorerSet, build_scorers
from germane.settings import Budget, load_settings
from germane.storage import (
    BudgetDay,
    BudgetReservation,
    RateLimit,
    SamplingDecision,
    TrackingStore,
)
from germane.storage.db.component import StoreContext
from germane.storage.quota.store_quota import QuotaStore
from germane.testing import Clock, FakeJudge, Fault, transaction

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PRICES = {"fake-judge": {"input": 1_000.0, "output": 2_000.0}}
WORKERS = """
import json, os, signal, sys, threading
import openai, psycopg
from germane.monitor import Monitor, MonitorConfig, shared_rate_limiter
from germane.delivery import Backoff
from germane.scorers import build_scorers
from germane.settings import load_settings
from germane.storage import TrackingStore

def work(settings):
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    store = TrackingStore(settings.database)
    scorer_set = build_scorers(settings, rate_limiter=shared_rate_limiter(settings, store))
    monitor = Monitor(MonitorConfig(
        store, scorer_set.scorers, settings, attach=lambda *_: None, close=scorer_set.aclose,
        cancel_judge_requests=scorer_set.stop_waiting, backoff=Backoff(0.05, 0.2),
    ))
    monitor.start()
    done.wait()
    stopped = monitor.stop(30)
    store.close()
    os._exit(0 if stopped else 1)

settings, children = load_settings(**json.loads(sys.argv[1])), []
for _ in range(int(sys.argv[2])):
    children.append(os.fork())
    if not children[-1]:
        work(settings)
print(*children, flush=True)
sys.stdin.readline()
for child in children:
    os.kill(child, signal.SIGTERM)
sys.exit(max(os.waitpid(child, 0)[1] for child in children) != 0)
"""


class Workers:
    """Processes that score until they are stopped or killed. They are forked, because imports take a long time."""

    def __init__(self, count: int, settings: dict[str, Any]) -> None:
        command = [sys.executable, "-c", WORKERS, json.dumps(settings), str(count)]
        self.parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.parent.stdout is not None
        self.pids = [int(pid) for pid in self.parent.stdout.readline().split()]
        assert len(self.pids) == count

    def kill(self) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        self.parent.communicate(timeout=60)

    def stop(self) -> None:
        self.parent.communicate(timeout=60)
        assert self.parent.returncode == 0

    def close(self) -> None:
        if self.parent.poll() is None:
            self.kill()


@pytest.fixture
def work() -> Iterator[Callable[..., Workers]]:
    """Start a number of processes that score with the same settings."""
    with ExitStack() as stack:

        def start(count: int, settings: dict[str, Any]) -> Workers:
            workers = Workers(count, settings)
            stack.callback(workers.close)
            return workers

        yield start


@pytest.fixture
def assigned(store: TrackingStore, new_exchange: Any) -> Callable[..., None]:
    """Write exchanges with assigned tasks, without the sampler."""

    def assign(settings: dict[str, Any], count: int, **fields: Any) -> None:
        async def fingerprints() -> dict[str, str]:
            scorer_set = build_scorers(load_settings(**settings))
            await scorer_set.aclose()
            return {scorer.name: scorer.fingerprint for scorer in scorer_set.scorers}

        exchanges = [new_exchange(**fields) for _ in range(count)]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks(
            [SamplingDecision(exchange.id, 1.0, "uniform") for exchange in exchanges], asyncio.run(fingerprints())
        )

    return assign


def load_counts(store: TrackingStore) -> tuple[int, int, dict[str, int], dict[str, int], int]:
    """Return the numbers of seen, scored, skipped, failed and pending exchanges."""
    (coverage,) = store.trends.coverage()
    skipped, failed = dict(coverage.skipped), dict(coverage.failed)
    assert coverage.seen == coverage.scored + sum(skipped.values()) + sum(failed.values()) + coverage.pending
    return coverage.seen, coverage.scored, skipped, failed, coverage.pending


def judge_of(scorer_set: ScorerSet) -> Judge:
    assert scorer_set.judge is not None
    return scorer_set.judge


async def wait_until_true(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.001)


def settings_for(judge: FakeJudge, url: str, **budget: float) -> dict[str, Any]:
    return {
        **judge.settings(),
        "database": url,
        "service": "shop",
        "poll_interval": 0.05,
        "judge_timeout": 20.0,
        "concurrency": 8,
        "scorers": ["answer_relevancy"],
        "prices": PRICES,
        "budget": budget,
    }


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_several_processes_together_use_exactly_the_request_budget(
    store: TrackingStore, url: str, judge: FakeJudge, work: Any, assigned: Any, until: Callable[..., None]
) -> None:
    """Four processes with a judge that fails and disconnects use the whole budget and send no more."""
    calls, settings = 40, settings_for(judge, url, requests_per_day=40)
    assigned(settings, 80)
    judge.latency = 0.02
    judge.faults.extend([None, Fault("status", status=500), None, Fault("reset"), Fault("status", status=503)] * 4)
    workers = work(4, settings)
    until(lambda: store.answers.counts().pending == store.answers.counts().running == 0, timeout=90)
    workers.stop()

    assert (len(judge.chat_requests), store.quota.load_usage().requests) == (calls, calls)
    seen, scored, skipped, failed, pending = load_counts(store)
    assert (seen, scored + skipped["budget"], list(skipped), failed, pending) == (80, 80, ["budget"], {}, 0)
    assert 0 < scored < calls


@pytest.mark.slow
def test_reservations_of_a_killed_process_are_not_refunded(
    store: TrackingStore, url: str, judge: FakeJudge, work: Any, assigned: Any, until: Callable[..., None]
) -> None:
    """It is unknown whether the requests were sent, so only the rest of the budget is left at the next start."""
    settings = settings_for(judge, url, requests_per_day=20) | {"concurrency": 2}
    assigned(settings, 60)
    first = work(1, settings)
    until(lambda: len(judge.chat_requests) > 4)
    first.kill()
    before, sent = store.quota.load_usage().requests, len(judge.chat_requests)
    assert sent <= before <= 20

    second = work(1, settings)
    until(lambda: store.answers.counts().pending == 0)
    second.stop()
    assert store.quota.load_usage().requests == 20
    assert 20 - (before - sent) <= len(judge.chat_requests) <= 20


def test_exchanges_beyond_the_budget_are_skipped_without_retry(
    store: TrackingStore, judge: FakeJudge, start_judged: Any, assigned: Any, until: Any, attached: Any
) -> None:
    """An exhausted budget is not a failure: the circuit stays closed, and scoring resumes when budget is available."""
    assigned(settings_for(judge, "sqlite://", requests_per_day=5), 12)
    monitor = start_judged(store, judge, budget={"requests_per_day": 5}, scorers=["answer_relevancy"])
    until(lambda: store.answers.counts().pending == store.answers.counts().running == 0)

    _, scored, skipped, failed, pending = load_counts(store)
    assert (scored + skipped["budget"], failed, pending) == (12, {}, 0)
    assert len(judge.chat_requests) == 5
    assert monitor.status().judge_problem is None
    assert re.fullmatch(r"the budget is exhausted until ....-..-.. 00:00 UTC", str(monitor.status().budget_problem))
    assert all(score.value is not None or score.reason is UnscoredReason.BUDGET for score in attached.scores)
    with transaction(store, read_only=True) as connection:
        tries = connection.exec_driver_sql("SELECT DISTINCT claims, error FROM scoring_task WHERE reason = 'budget'")
        (row,) = tries.all()
    assert row.claims == 1
    assert row.error.startswith("the budget is exhausted until ")


def test_always_score_rules_are_subject_to_the_budget(
    store: TrackingStore, judge: FakeJudge, start_judged: Any, new_exchange: Any, until: Any
) -> None:
    """When the budget is exhausted, even an exchange that a rule requires to be scored is skipped."""
    store.exchanges.add([new_exchange(status="error") for _ in range(7)])
    always = [{"status": ["error"]}]
    start_judged(store, judge, budget={"requests_per_day": 4}, always_score=always, scorers=["answer_relevancy"])
    until(lambda: store.answers.counts().skipped + store.answers.counts().done == 7)

    _, scored, skipped, failed, pending = load_counts(store)
    assert (scored + skipped["budget"], failed, pending, len(judge.chat_requests)) == (7, {}, 0, 4)


def test_a_composite_score_is_skipped_if_the_budget_covers_only_some_of_its_parts(
    store: TrackingStore, judge: FakeJudge, start_judged: Any, assigned: Any, until: Any
) -> None:
    """A composite score is never computed from the parts that the budget covered."""
    parts = {"scorers": ["answer_quality"]}
    settings = settings_for(judge, "sqlite://", requests_per_day=2) | parts
    assigned(settings, 1, contexts=(Context("The warranty of the lamp is two years."),))
    start_judged(store, judge, budget={"requests_per_day": 2}, **parts)
    until(lambda: store.answers.counts().pending == store.answers.counts().running == 0)

    assert load_counts(store) == (1, 0, {"budget": 1}, {}, 0)
    assert len(judge.chat_requests) == 2


@pytest.mark.parametrize("kind", ["tokens_per_day", "usd_per_day"])
def test_token_and_dollar_budgets_are_exceeded_only_by_in_flight_requests(
    store: TrackingStore, other_store: TrackingStore, judge: FakeJudge, kind: str
) -> None:
    """Two processes use a judge that generates more tokens than estimated."""
    each, flight = 300, 4
    judge.replies = lambda _: "word " * each
    limit = {"tokens_per_day": 6_000, "usd_per_day": 12.0}[kind]
    settings = load_settings(**settings_for(judge, "sqlite://", **{kind: limit}) | {"concurrency": flight})

    async def ask_all(store: TrackingStore) -> list[float]:
        scorer_set = build_scorers(settings, rate_limiter=shared_rate_limiter(settings, store))
        taken: list[float] = []

        async def ask(number: int) -> None:
            for turn in range(10):
                with suppress(ScoringError):
                    reply = await judge_of(scorer_set).ask([Message("user", f"{number} {turn} {id(store)}")])
                    tokens = (reply.input_tokens or 0) + (reply.output_tokens or 0)
                    taken.append(tokens if kind == "tokens_per_day" else reply.cost or 0.0)

        await asyncio.gather(*map(ask, range(flight)))
        await scorer_set.aclose()
        return taken

    async def both() -> list[list[float]]:
        return await asyncio.gather(ask_all(store), ask_all(other_store))

    taken = [amount for share in asyncio.run(both()) for amount in share]
    spent = store.quota.load_usage()
    assert (spent.tokens if kind == "tokens_per_day" else spent.usd) == pytest.approx(sum(taken), abs=1e-6)
    assert limit - max(taken) <= sum(taken) <= limit + 2 * flight * max(taken)
    assert len(taken) == spent.requests == len(judge.chat_requests)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON)


@pytest.fixture
def clocked(url: str, clock: Clock) -> Iterator[TrackingStore]:
    store = TrackingStore(url, clock=clock)
    yield store
    store.close()


def test_budget_exhaustion_and_recovery_are_each_logged_once(
    clocked: TrackingStore, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The number of rejected requests does not matter. A second exhaustion is logged again."""
    caplog.set_level(logging.INFO)

    async def ask(limiter: SharedRateLimiter, count: int) -> int:
        asked = await asyncio.gather(*(limiter.acquire(1.0) for _ in range(count)), return_exceptions=True)
        return sum(isinstance(result, RequestReservation) for result in asked)

    known: list[datetime | None] = []

    async def live() -> list[int]:
        limiter, admitted = SharedRateLimiter(clocked, [], budget=Budget(requests_per_hour=2, requests_per_day=27)), []
        for hours, count in [(0, 26), (0, 5), (0, 3), (1, 1), (0, 3), (12, 1)]:
            clock.now += timedelta(hours=hours)
            admitted.append(await ask(limiter, count))
            known.append(limiter.budget_exhausted_until)
        await limiter.aclose()
        return admitted

    assert asyncio.run(live()) == [26, 0, 0, 1, 0, 1]
    hour, midnight = NOON + timedelta(hours=1), NOON + timedelta(hours=12)
    assert known == [None, hour, hour, None, midnight, None]
    assert [record.getMessage() for record in caplog.records] == [
        "the budget is exhausted until 2026-03-01 13:00 UTC; scores that the budget does not cover are being skipped",
        "budget is available again: judge requests have resumed",
        "the budget is exhausted until 2026-03-02 00:00 UTC; scores that the budget does not cover are being skipped",
        "budget is available again: judge requests have resumed",
    ]


class SlowQuota(QuotaStore):
    """Counts budget transactions, delays them while ``hold`` is clear, and fails while ``unreachable``."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context)
        self.transactions = 0
        self.unreachable = False
        self.hold = threading.Event()
        self.hold.set()

    def reserve_budget(self, *arguments: Any, **named: Any) -> BudgetReservation:
        self.transactions += 1
        if self.unreachable:
            raise DatabaseUnreachable("the database is unreachable")
        grant = super().reserve_budget(*arguments, **named)
        self.hold.wait(30)
        return grant


class Slow(TrackingStore):
    """A store with a :class:`SlowQuota`."""

    quota: SlowQuota

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.quota = SlowQuota(self.context)


@pytest.fixture
def slow(url: str) -> Iterator[Slow]:
    store = Slow(url)
    yield store
    store.quota.hold.set()
    store.close()


def test_waiting_requests_reserve_their_budget_in_one_transaction(slow: Slow) -> None:
    """One hundred first attempts and retries take one transaction."""

    async def ask_all() -> None:
        limiter = SharedRateLimiter(slow, [], budget=Budget(requests_per_day=1_000))
        places = await asyncio.gather(*(limiter.acquire(1.0) for _ in range(100)))
        assert slow.quota.transactions == 1
        await asyncio.gather(*map(limiter.reserve_retry, places))
        assert slow.quota.transactions == 2
        await limiter.aclose()

    asyncio.run(ask_all())
    assert (slow.quota.transactions, slow.quota.load_usage().requests, slow.quota.load_usage().tokens) == (2, 200, 200)


def test_reservations_made_during_shutdown_are_refunded(slow: Slow) -> None:
    """No request is waiting for them anymore, so the budget is available at the next start."""

    async def ask_and_close() -> BaseException | None:
        limiter = SharedRateLimiter(slow, [], budget=Budget(requests_per_day=10))
        slow.quota.hold.clear()
        asked = asyncio.create_task(limiter.acquire(5.0, 0.5))
        await wait_until_true(lambda: slow.quota.transactions)
        limiter.stop_waiting()
        slow.quota.hold.set()
        await limiter.aclose()
        return (await asyncio.gather(asked, return_exceptions=True))[0]

    assert isinstance(asyncio.run(ask_and_close()), ScoringError)
    spent = slow.quota.load_usage()
    assert (spent.requests, spent.tokens, spent.usd) == (0, 0, 0)


def test_a_shutdown_rejects_waiting_retries_immediately(slow: Slow) -> None:
    """The caller gets an error while the database is still busy, and no reservation remains."""

    async def ask_and_close() -> BaseException | None:
        limiter = SharedRateLimiter(slow, [], budget=Budget(requests_per_day=10))
        place, before = await limiter.acquire(5.0), slow.quota.transactions
        slow.quota.hold.clear()
        again = asyncio.create_task(limiter.reserve_retry(place))
        await wait_until_true(lambda: slow.quota.transactions > before)
        limiter.stop_waiting()
        await asyncio.wait([again], timeout=10)
        assert again.done()
        slow.quota.hold.set()
        await limiter.aclose()
        return again.exception()

    assert isinstance(asyncio.run(ask_and_close()), ScoringError)
    assert slow.quota.load_usage().requests == 1


class BreakingQuota(QuotaStore):
    """Loses its connection right after each of the next ``breaks`` commits."""

    breaks = 0

    def reserve_budget(self, *arguments: Any, **named: Any) -> BudgetReservation:
        grant = super().reserve_budget(*arguments, **named)
        if self.breaks:
            self.breaks -= 1
            raise DatabaseUnreachable("the connection was lost")
        return grant


def test_a_budget_refund_is_applied_at_most_once(url: str) -> None:
    """If it is unknown whether a refund was committed, it is dropped. Spending too little is better than too much."""

    async def ask(store: TrackingStore) -> None:
        limiter = SharedRateLimiter(store, [], budget=Budget(requests_per_day=10), backoff=Backoff(0.01, 0.02))
        kept, left = await asyncio.gather(limiter.acquire(10.0), limiter.acquire(10.0))
        limiter.settle(left, requests=-1, tokens=-10.0)
        limiter.settle(kept, tokens=5.0)
        quota.breaks = 2
        await limiter.acquire(0.0)
        await limiter.aclose()

    store = TrackingStore(url)
    store.quota = quota = BreakingQuota(store.context)
    asyncio.run(ask(store))
    spent = store.quota.load_usage()
    store.close()
    assert (spent.requests, spent.tokens) == (1 + 3, 15.0)  # the last request was reserved three times


def test_no_request_is_sent_while_the_database_is_unreachable(slow: Slow) -> None:
    """First attempts and retries wait, and resume when the database is reachable."""

    async def ask() -> int:
        limiter = SharedRateLimiter(slow, [], budget=Budget(requests_per_day=10), backoff=Backoff(0.01, 0.02))
        place = await limiter.acquire(1.0)
        slow.quota.unreachable, before = True, slow.quota.transactions
        asked = [asyncio.create_task(limiter.acquire(1.0)), asyncio.create_task(limiter.reserve_retry(place))]
        await wait_until_true(lambda: slow.quota.transactions >= before + 6)
        assert not any(task.done() for task in asked)
        slow.quota.unreachable = False
        await asyncio.gather(*asked)
        await limiter.aclose()
        return slow.quota.load_usage().requests

    assert asyncio.run(ask()) == 3


def test_an_unused_reservation_is_refunded_to_the_budget(store: TrackingStore) -> None:
    """With a rate limit and a budget, a request that is canceled while it waits refunds its reservation."""

    async def ask_and_close() -> None:
        limiter = SharedRateLimiter(store, [RateLimit("requests", 6)], budget=Budget(requests_per_day=3))
        asked = [asyncio.create_task(limiter.acquire(2.0)) for _ in range(3)]
        await asked[0]
        await wait_until_true(lambda: limiter._scheduled)
        await limiter.aclose()
        await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(ask_and_close())
    assert (store.quota.load_usage().requests, store.quota.load_usage().tokens) == (1, 2)


def test_a_reservation_granted_during_cancellation_is_refunded(store: TrackingStore) -> None:
    """The request is canceled at the moment of the grant, and cannot use the reservation."""

    async def ask_and_leave() -> None:
        limiter = SharedRateLimiter(store, [RateLimit("requests", 6)], budget=Budget(requests_per_day=3))
        await limiter.acquire(2.0)
        asked = asyncio.create_task(limiter.acquire(2.0))
        await wait_until_true(lambda: limiter._scheduled)
        limiter._start_next(next(iter(limiter._scheduled)))
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await limiter.aclose()

    asyncio.run(ask_and_leave())
    assert (store.quota.load_usage().requests, store.quota.load_usage().tokens) == (1, 2)


def test_a_reservation_committed_while_the_limiter_closes_is_refunded(
    store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limiter is closed after the transaction, but before the waiting request learns of its reservation."""
    limiter = SharedRateLimiter(store, [], budget=Budget(requests_per_day=3))
    commit = limiter._ledger._commit

    async def commit_and_stop(*batch: Any, **options: Any) -> Any:
        granted = await commit(*batch, **options)
        asyncio.get_running_loop().call_soon(limiter.stop_waiting)
        return granted

    async def ask_and_close() -> None:
        monkeypatch.setattr(limiter._ledger, "_commit", commit_and_stop)
        with pytest.raises(ScoringError):
            await limiter.acquire(2.0)
        monkeypatch.undo()
        await limiter.aclose()

    asyncio.run(ask_and_close())
    assert (store.quota.load_usage().requests, store.quota.load_usage().tokens) == (0, 0)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("limits", [[], [RateLimit("requests", 12_000)]], ids=["budget alone", "with a limit"])
def test_every_budget_reservation_is_used_or_refunded(
    store: TrackingStore, other_store: TrackingStore, limits: list[RateLimit]
) -> None:
    """Whenever two processes cancel, resend or do not send requests, the budget counts the requests that were sent."""
    chance, most = random.Random(7), 60
    sent: list[float] = []

    async def ask(limiter: SharedRateLimiter, tokens: float) -> None:
        await asyncio.sleep(chance.random() * 0.1)
        place, sendings = await limiter.acquire(tokens), chance.choice([0, 1, 1, 1, 2])
        if not sendings:
            limiter.settle(place, requests=-1, tokens=-place.tokens)
            return
        sent.append(place.tokens)
        for _ in range(sendings - 1):
            place = await limiter.reserve_retry(place)
            sent.append(place.tokens)

    async def live(store: TrackingStore) -> None:
        limiter = SharedRateLimiter(store, limits, budget=Budget(requests_per_day=most))
        asked = [asyncio.create_task(ask(limiter, chance.randint(1, 9))) for _ in range(60)]
        for task in chance.sample(asked, 20):
            asyncio.get_running_loop().call_later(chance.random() * 0.2, task.cancel)
        await asyncio.wait(asked, timeout=0.3 if limits else None)
        await limiter.aclose()
        await asyncio.gather(*asked, return_exceptions=True)

    async def both() -> None:
        await asyncio.gather(live(store), live(other_store))

    asyncio.run(both())
    assert len(sent) == store.quota.load_usage().requests <= most
    assert store.quota.load_usage().tokens == pytest.approx(sum(sent), abs=1e-6)


def test_a_probe_rejected_by_the_budget_keeps_the_circuit_breaker_open(clock: Clock) -> None:
    """An exhausted budget says nothing about the judge, so the next request is the probe."""

    def without(reason: UnscoredReason) -> Score:
        return Score(scorer="mine", fingerprint="f1", reason=reason, explanation="why")

    breaker = CircuitBreaker("mine", backoff=Backoff(60, 60), clock=clock)
    for _ in range(MAX_OUTAGES):
        breaker.record_score(without(UnscoredReason.JUDGE_UNREACHABLE), breaker.admit())
    clock.now += timedelta(hours=1)
    assert breaker.admit() == "probe"
    breaker.record_score(without(UnscoredReason.BUDGET), "probe")

    assert breaker.problem is not None
    assert breaker.admit() == "probe"


def test_a_dollar_budget_requires_a_price(settings: Callable[..., Any], store: TrackingStore, judge: FakeJudge) -> None:
    """Without a price, the start fails."""
    message = r"""budget\.usd_per_hour: .*'my-model'.*prices setting as \[prices\."my-model"\]"""
    mine = judge.settings() | {"judge": "my-model"}
    with pytest.raises(SettingsError, match=message):
        shared_rate_limiter(settings(**mine, budget={"usd_per_hour": 1}), store)

    assert shared_rate_limiter(settings(**mine, budget={"usd_per_hour": 1}, prices={"my-model": {"input": 1}}), store)
    assert shared_rate_limiter(settings(**mine, budget={"requests_per_day": 1}), store)
    assert shared_rate_limiter(settings(judge="local", budget={"usd_per_hour": 1}), store)


def test_budget_usage_is_described_for_each_limit() -> None:
    """An hourly limit includes the unused budget of earlier hours. A limit is exhausted if it does not cover a typical
    request."""
    budget = Budget(requests_per_hour=10, tokens_per_day=9_000, usd_per_hour=0.5)
    spent = BudgetDay(day=NOON.date(), requests=100, tokens=8_930, usd=0.75)

    assert [format_amount(value) for value in (2e6, 1.5, 0.0034, 0)] == ["2,000,000", "1.5", "0.0034", "0"]
    assert spent.describe(budget, NOON) == [
        "100 of 130 requests used (hourly limits so far)",
        "8,930 of 9,000 tokens used",
        "0.75 of 6.5 usd used (hourly limits so far)",
    ]
    assert spent.exhausted_until(budget, NOON) == datetime(2026, 3, 2, tzinfo=UTC)  # a request takes 89 tokens
    assert BudgetDay(day=NOON.date(), requests=130).exhausted_until(budget, NOON) == NOON + timedelta(hours=1)
    assert BudgetDay(day=NOON.date(), requests=129).exhausted_until(budget, NOON) is None
