"""The budget of calls, tokens and money, kept by all processes on one database together."""

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

from germane.errors import DatabaseUnreachable, ScoringError, SettingsError
from germane.exchange import Context
from germane.monitor.loop.backoff import Backoff
from germane.monitor.quota.limiter import SharedPace, shared_pace
from germane.monitor.scoring.circuit_breaker import OUTAGES, Pause
from germane.score import Reason, Score
from germane.scorers import Judge, Place, Workbench, build
from germane.scorers.base.protocols import Message
from germane.settings import Budget, load
from germane.storage import Decision, Grant, Limit, Spent, Store, amount, spent_of, spent_until
from germane.testing import FakeJudge, Fault

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PRICES = {"fake-judge": {"input": 1_000.0, "output": 2_000.0}}
WORKERS = """
import json, os, signal, sys, threading
import openai, psycopg
from germane.monitor import Monitor, shared_pace
from germane.monitor.loop.backoff import Backoff
from germane.scorers import build
from germane.settings import load
from germane.storage import Store

def work(settings):
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    store = Store(settings.database)
    workbench = build(settings, pace=shared_pace(settings, store))
    monitor = Monitor(
        store, workbench.scorers, settings, attach=lambda *_: None, close=workbench.aclose,
        give_up=workbench.give_up, backoff=Backoff(0.05, 0.2),
    )
    monitor.start()
    done.wait()
    stopped = monitor.stop(30)
    store.close()
    os._exit(0 if stopped else 1)

settings, children = load(**json.loads(sys.argv[1])), []
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
    """Processes that score until they are told to stop, or killed; they are forked, as importing takes long."""

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
    """Start so many processes that score with the same settings."""
    with ExitStack() as stack:

        def start(count: int, settings: dict[str, Any]) -> Workers:
            workers = Workers(count, settings)
            stack.callback(workers.close)
            return workers

        yield start


@pytest.fixture
def assigned(store: Store, new_exchange: Any) -> Callable[..., None]:
    """Write exchanges that are to be scored already: how they are picked is not the matter here."""

    def assign(settings: dict[str, Any], count: int, **fields: Any) -> None:
        async def fingerprints() -> dict[str, str]:
            workbench = build(load(**settings))
            found = {scorer.name: scorer.fingerprint for scorer in workbench.scorers}
            await workbench.aclose()
            return found

        exchanges = [new_exchange(**fields) for _ in range(count)]
        store.add(exchanges)
        store.assign([Decision(one.id, 1.0, "uniform") for one in exchanges], asyncio.run(fingerprints()))

    return assign


def told(store: Store) -> tuple[int, int, dict[str, int], dict[str, int], int]:
    """Return how many are seen, scored, skipped, failed and pending."""
    (found,) = store.coverage()
    assert found.seen == found.scored + sum(found.skipped.values()) + sum(found.failed.values()) + found.pending
    return found.seen, found.scored, dict(found.skipped), dict(found.failed), found.pending


def judge_of(workbench: Workbench) -> Judge:
    assert workbench.judge is not None
    return workbench.judge


async def comes_true(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(0.001)


def settings_for(judge: FakeJudge, url: str, **budget: float) -> dict[str, Any]:
    return {
        **judge.settings(),
        "database": url,
        "service": "shop",
        "tick": 0.05,
        "judge_timeout": 20.0,
        "concurrency": 8,
        "scorers": ["answer_relevancy"],
        "prices": PRICES,
        "budget": budget,
    }


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_processes_send_exactly_the_budget_of_calls(
    store: Store, url: str, judge: FakeJudge, work: Any, assigned: Any, until: Callable[..., None]
) -> None:
    """Four of them, with a judge that errs and breaks off: all is used, no more is sent."""
    calls, settings = 40, settings_for(judge, url, calls_per_day=40)
    assigned(settings, 80)
    judge.latency = 0.02
    judge.faults.extend([None, Fault("status", status=500), None, Fault("reset"), Fault("status", status=503)] * 4)
    workers = work(4, settings)
    until(lambda: store.counts().pending == store.counts().running == 0, timeout=90)
    workers.stop()

    assert (len(judge.chats), store.spent().calls) == (calls, calls)
    seen, scored, skipped, failed, pending = told(store)
    assert (seen, scored + skipped["budget"], list(skipped), failed, pending) == (80, 80, ["budget"], {}, 0)
    assert 0 < scored < calls


def test_what_a_killed_process_had_reserved_stays_spent(
    store: Store, url: str, judge: FakeJudge, work: Any, assigned: Any, until: Callable[..., None]
) -> None:
    """Nobody knows whether it was sent; the next start begins with what is left, and sends no more."""
    settings = settings_for(judge, url, calls_per_day=20) | {"concurrency": 2}
    assigned(settings, 60)
    first = work(1, settings)
    until(lambda: len(judge.chats) > 4)
    first.kill()
    before, sent = store.spent().calls, len(judge.chats)
    assert sent <= before <= 20

    second = work(1, settings)
    until(lambda: store.counts().pending == 0)
    second.stop()
    assert store.spent().calls == 20
    assert 20 - (before - sent) <= len(judge.chats) <= 20


def test_what_is_not_paid_for_is_skipped_and_not_tried_again(
    store: Store, judge: FakeJudge, start_judged: Any, assigned: Any, until: Any, attached: Any
) -> None:
    """It is nobody's failure: the scorer does not pause, and goes on when there is room."""
    assigned(settings_for(judge, "sqlite://", calls_per_day=5), 12)
    monitor = start_judged(store, judge, budget={"calls_per_day": 5}, scorers=["answer_relevancy"])
    until(lambda: store.counts().pending == store.counts().running == 0)

    _, scored, skipped, failed, pending = told(store)
    assert (scored + skipped["budget"], failed, pending) == (12, {}, 0)
    assert len(judge.chats) == 5
    assert monitor.status().judge_problem is None
    assert re.fullmatch(r"the budget is spent until ....-..-.. 00:00 UTC", str(monitor.status().budget_problem))
    assert all(score.value is not None or score.reason is Reason.BUDGET for score in attached.scores)
    with store._database.read() as connection:
        tries = connection.exec_driver_sql("SELECT DISTINCT attempts, error FROM scoring_task WHERE reason = 'budget'")
        (row,) = tries.all()
    assert row.attempts == 1
    assert row.error.startswith("the budget is spent until ")


def test_a_rule_of_always_does_not_pay(
    store: Store, judge: FakeJudge, start_judged: Any, new_exchange: Any, until: Any
) -> None:
    """What is scored whatever the draw says is skipped too when nothing is left."""
    store.add([new_exchange(status="error") for _ in range(7)])
    always = [{"status": ["error"]}]
    start_judged(store, judge, budget={"calls_per_day": 4}, always=always, scorers=["answer_relevancy"])
    until(lambda: store.counts().skipped + store.counts().done == 7)

    _, scored, skipped, failed, pending = told(store)
    assert (scored + skipped["budget"], failed, pending, len(judge.chats)) == (7, {}, 0, 4)


def test_an_exchange_that_is_paid_for_in_part_is_skipped_as_a_whole(
    store: Store, judge: FakeJudge, start_judged: Any, assigned: Any, until: Any
) -> None:
    """A figure of several parts is not made of those that had their requests."""
    parts = {"scorers": ["answer_quality"]}
    settings = settings_for(judge, "sqlite://", calls_per_day=2) | parts
    assigned(settings, 1, contexts=(Context("The warranty of the lamp is two years."),))
    start_judged(store, judge, budget={"calls_per_day": 2}, **parts)
    until(lambda: store.counts().pending == store.counts().running == 0)

    assert told(store) == (1, 0, {"budget": 1}, {}, 0)
    assert len(judge.chats) == 2


@pytest.mark.parametrize("kind", ["tokens_per_day", "usd_per_day"])
def test_tokens_and_money_are_exceeded_by_no_more_than_is_in_flight(
    store: Store, other_store: Store, judge: FakeJudge, kind: str
) -> None:
    """Two processes, and a judge that writes more than it was expected to."""
    each, flight = 300, 4
    judge.replies = lambda _: "word " * each
    limit = {"tokens_per_day": 6_000, "usd_per_day": 12.0}[kind]
    settings = load(**settings_for(judge, "sqlite://", **{kind: limit}) | {"concurrency": flight})

    async def ask_all(store: Store) -> list[float]:
        workbench = build(settings, pace=shared_pace(settings, store))
        taken: list[float] = []

        async def ask(number: int) -> None:
            for turn in range(10):
                with suppress(ScoringError):
                    reply = await judge_of(workbench).ask([Message("user", f"{number} {turn} {id(store)}")])
                    tokens = (reply.input_tokens or 0) + (reply.output_tokens or 0)
                    taken.append(tokens if kind == "tokens_per_day" else reply.cost or 0.0)

        await asyncio.gather(*map(ask, range(flight)))
        await workbench.aclose()
        return taken

    async def both() -> list[list[float]]:
        return await asyncio.gather(ask_all(store), ask_all(other_store))

    taken = [one for share in asyncio.run(both()) for one in share]
    spent = store.spent()
    assert (spent.tokens if kind == "tokens_per_day" else spent.usd) == pytest.approx(sum(taken), abs=1e-6)
    assert limit - max(taken) <= sum(taken) <= limit + 2 * flight * max(taken)
    assert len(taken) == spent.calls == len(judge.chats)


class Clocked:
    """A store's clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clocked:
    return Clocked()


@pytest.fixture
def clocked(url: str, clock: Clocked) -> Iterator[Store]:
    store = Store(url, clock=clock)
    yield store
    store.close()


def test_one_line_when_it_is_spent_and_one_when_there_is_room(
    clocked: Store, clock: Clocked, caplog: pytest.LogCaptureFixture
) -> None:
    """However many requests are refused, and also where it is spent again in the next hour."""
    caplog.set_level(logging.INFO)

    async def ask(pace: SharedPace, count: int) -> int:
        asked = await asyncio.gather(*(pace.admit(1.0) for _ in range(count)), return_exceptions=True)
        return sum(isinstance(one, Place) for one in asked)

    known: list[datetime | None] = []

    async def live() -> list[int]:
        pace, admitted = SharedPace(clocked, [], budget=Budget(calls_per_hour=2, calls_per_day=27)), []
        for hours, count in [(0, 26), (0, 5), (0, 3), (1, 1), (0, 3), (12, 1)]:
            clock.now += timedelta(hours=hours)
            admitted.append(await ask(pace, count))
            known.append(pace.spent_until)
        await pace.aclose()
        return admitted

    assert asyncio.run(live()) == [26, 0, 0, 1, 0, 1]
    hour, midnight = NOON + timedelta(hours=1), NOON + timedelta(hours=12)
    assert known == [None, hour, hour, None, midnight, None]
    assert [record.getMessage() for record in caplog.records] == [
        "the budget is spent until 2026-03-01 13:00 UTC: what it does not pay for is skipped",
        "there is room in the budget again: judge requests go on",
        "the budget is spent until 2026-03-02 00:00 UTC: what it does not pay for is skipped",
        "there is room in the budget again: judge requests go on",
    ]


class Slow(Store):
    """Counts the transactions on the budget, and lets them wait or fail."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.transactions = 0
        self.away = False
        self.hold = threading.Event()
        self.hold.set()

    def reserve_budget(self, *arguments: Any, **named: Any) -> Grant:
        self.transactions += 1
        if self.away:
            raise DatabaseUnreachable("it is away")
        grant = super().reserve_budget(*arguments, **named)
        self.hold.wait(30)
        return grant


@pytest.fixture
def slow(url: str) -> Iterator[Slow]:
    store = Slow(url)
    yield store
    store.hold.set()
    store.close()


def test_requests_that_wait_together_are_paid_for_together(slow: Slow) -> None:
    """First ones and repeated ones: one transaction for a hundred of them."""

    async def ask_all() -> None:
        pace = SharedPace(slow, [], budget=Budget(calls_per_day=1_000))
        places = await asyncio.gather(*(pace.admit(1.0) for _ in range(100)))
        assert slow.transactions == 1
        await asyncio.gather(*map(pace.repeat, places))
        assert slow.transactions == 2
        await pace.aclose()

    asyncio.run(ask_all())
    assert (slow.transactions, slow.spent().calls, slow.spent().tokens) == (2, 200, 200)


def test_what_is_booked_while_scoring_ends_is_given_back(slow: Slow) -> None:
    """Nobody waits for it any more, and the next start has it."""

    async def ask_and_close() -> BaseException | None:
        pace = SharedPace(slow, [], budget=Budget(calls_per_day=10))
        slow.hold.clear()
        asked = asyncio.create_task(pace.admit(5.0, 0.5))
        await comes_true(lambda: slow.transactions)
        pace.give_up()
        slow.hold.set()
        await pace.aclose()
        return (await asyncio.gather(asked, return_exceptions=True))[0]

    assert isinstance(asyncio.run(ask_and_close()), ScoringError)
    spent = slow.spent()
    assert (spent.calls, spent.tokens, spent.usd) == (0, 0, 0)


def test_what_is_about_to_be_sent_again_does_not_outlast_scoring(slow: Slow) -> None:
    """Its caller learns at once that it has no turn, while the database is still busy; nothing is left reserved."""

    async def ask_and_close() -> BaseException | None:
        pace = SharedPace(slow, [], budget=Budget(calls_per_day=10))
        place, before = await pace.admit(5.0), slow.transactions
        slow.hold.clear()
        again = asyncio.create_task(pace.repeat(place))
        await comes_true(lambda: slow.transactions > before)
        pace.give_up()
        await asyncio.wait([again], timeout=10)
        assert again.done()
        slow.hold.set()
        await pace.aclose()
        return again.exception()

    assert isinstance(asyncio.run(ask_and_close()), ScoringError)
    assert slow.spent().calls == 1


class Breaking(Store):
    """Its connection breaks after the commits of transactions that are to come, before it says that they were made."""

    breaks = 0

    def reserve_budget(self, *arguments: Any, **named: Any) -> Grant:
        grant = super().reserve_budget(*arguments, **named)
        if self.breaks:
            self.breaks -= 1
            raise DatabaseUnreachable("it went away")
        return grant


def test_what_is_given_back_is_given_back_once(url: str) -> None:
    """Also when nobody knows whether it was: rather less is spent than allowed than more."""

    async def ask(store: Breaking) -> None:
        pace = SharedPace(store, [], budget=Budget(calls_per_day=10), backoff=Backoff(0.01, 0.02))
        kept, left = await asyncio.gather(pace.admit(10.0), pace.admit(10.0))
        pace.settle(left, requests=-1, tokens=-10.0)
        pace.settle(kept, tokens=5.0)
        store.breaks = 2
        await pace.admit(0.0)
        await pace.aclose()

    store = Breaking(url)
    asyncio.run(ask(store))
    spent = store.spent()
    store.close()
    assert (spent.calls, spent.tokens) == (1 + 3, 15.0)  # what was asked for in between was booked three times


def test_while_the_database_is_away_nothing_is_sent(slow: Slow) -> None:
    """Neither the first time nor again; then all goes on."""

    async def ask() -> int:
        pace = SharedPace(slow, [], budget=Budget(calls_per_day=10), backoff=Backoff(0.01, 0.02))
        place = await pace.admit(1.0)
        slow.away, before = True, slow.transactions
        asked = [asyncio.create_task(pace.admit(1.0)), asyncio.create_task(pace.repeat(place))]
        await comes_true(lambda: slow.transactions >= before + 6)
        assert not any(task.done() for task in asked)
        slow.away = False
        await asyncio.gather(*asked)
        await pace.aclose()
        return slow.spent().calls

    assert asyncio.run(ask()) == 3


def test_a_place_under_a_limit_that_nobody_uses_is_given_back_to_the_budget(store: Store) -> None:
    """Limits and budget in one: who waits for its turn has been paid for, and leaves."""

    async def ask_and_close() -> None:
        pace = SharedPace(store, [Limit("requests", 6)], budget=Budget(calls_per_day=3))
        asked = [asyncio.create_task(pace.admit(2.0)) for _ in range(3)]
        await asked[0]
        await comes_true(lambda: pace._promises)
        await pace.aclose()
        await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(ask_and_close())
    assert (store.spent().calls, store.spent().tokens) == (1, 2)


def test_a_place_that_comes_as_its_request_is_given_up_goes_back(store: Store) -> None:
    """In the same moment: the request does not see it any more."""

    async def ask_and_leave() -> None:
        pace = SharedPace(store, [Limit("requests", 6)], budget=Budget(calls_per_day=3))
        await pace.admit(2.0)
        asked = asyncio.create_task(pace.admit(2.0))
        await comes_true(lambda: pace._promises)
        pace._start(next(iter(pace._promises)))
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await pace.aclose()

    asyncio.run(ask_and_leave())
    assert (store.spent().calls, store.spent().tokens) == (1, 2)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("limits", [[], [Limit("requests", 12_000)]], ids=["budget alone", "with a limit"])
def test_each_place_is_used_or_given_back(store: Store, other_store: Store, limits: list[Limit]) -> None:
    """Whenever requests are given up, sent again or never sent, in two processes: what is spent is what was sent."""
    chance, most = random.Random(7), 60
    sent: list[float] = []

    async def ask(pace: SharedPace, tokens: float) -> None:
        await asyncio.sleep(chance.random() * 0.1)
        place, sendings = await pace.admit(tokens), chance.choice([0, 1, 1, 1, 2])
        if not sendings:
            pace.settle(place, requests=-1, tokens=-place.tokens)
            return
        sent.append(place.tokens)
        for _ in range(sendings - 1):
            place = await pace.repeat(place)
            sent.append(place.tokens)

    async def live(store: Store) -> None:
        pace = SharedPace(store, limits, budget=Budget(calls_per_day=most))
        asked = [asyncio.create_task(ask(pace, chance.randint(1, 9))) for _ in range(60)]
        for task in chance.sample(asked, 20):
            asyncio.get_running_loop().call_later(chance.random() * 0.2, task.cancel)
        await asyncio.wait(asked, timeout=0.3 if limits else None)
        await pace.aclose()
        await asyncio.gather(*asked, return_exceptions=True)

    async def both() -> None:
        await asyncio.gather(live(store), live(other_store))

    asyncio.run(both())
    assert len(sent) == store.spent().calls <= most
    assert store.spent().tokens == pytest.approx(sum(sent), abs=1e-6)


def test_a_refused_probe_leaves_a_pause_as_it_is(clock: Clocked) -> None:
    """The budget says nothing of the judge: the next request is the probe then."""

    def without(reason: Reason) -> Score:
        return Score(scorer="mine", fingerprint="f1", reason=reason, explanation="why")

    pause = Pause("mine", backoff=Backoff(60, 60), clock=clock)
    for _ in range(OUTAGES):
        pause.note(without(Reason.JUDGE_UNREACHABLE), pause.admit())
    clock.now += timedelta(hours=1)
    assert pause.admit() == "probe"
    pause.note(without(Reason.BUDGET), "probe")

    assert pause.problem is not None
    assert pause.admit() == "probe"


def test_money_needs_a_price(settings: Callable[..., Any], store: Store, judge: FakeJudge) -> None:
    """Else nobody would know when it is spent: that is said at the start."""
    told = r"""budget\.usd_per_hour: .*'my-model'.*setting prices: \[prices\."my-model"\]"""
    mine = judge.settings() | {"judge": "my-model"}
    with pytest.raises(SettingsError, match=told):
        shared_pace(settings(**mine, budget={"usd_per_hour": 1}), store)

    assert shared_pace(settings(**mine, budget={"usd_per_hour": 1}, prices={"my-model": {"input": 1}}), store)
    assert shared_pace(settings(**mine, budget={"calls_per_day": 1}), store)
    assert shared_pace(settings(judge="local", budget={"usd_per_hour": 1}), store)


def test_what_is_spent_is_told_of_each_limit() -> None:
    """Of an hour's limit with what the hours before it brought; it is spent when a usual request does not fit."""
    budget = Budget(calls_per_hour=10, tokens_per_day=9_000, usd_per_hour=0.5)
    spent = Spent(day=NOON.date(), calls=100, tokens=8_930, usd=0.75)

    assert [amount(value) for value in (2e6, 1.5, 0.0034, 0)] == ["2,000,000", "1.5", "0.0034", "0"]
    assert spent_of(budget, spent, NOON) == [
        "100 of the 130 calls that the hours up to now allow",
        "8,930 of 9,000 tokens are spent",
        "0.75 of the 6.5 usd that the hours up to now allow",
    ]
    assert spent_until(budget, spent, NOON) == datetime(2026, 3, 2, tzinfo=UTC)  # a request takes 89 tokens
    assert spent_until(budget, Spent(day=NOON.date(), calls=130), NOON) == NOON + timedelta(hours=1)
    assert spent_until(budget, Spent(day=NOON.date(), calls=129), NOON) is None
