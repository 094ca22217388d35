"""The loop that turns exchanges into scores."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import pytest

from germane import tracer
from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.monitor.loop.backoff import Backoff
from germane.score import Reason, Score
from germane.settings import Settings
from germane.storage import Decision, Store
from germane.testing import FakeJudge, Fault

Start = Callable[..., Monitor]
Until = Callable[..., None]


class Custom:
    """A scorer of a user's own: what it does is a function."""

    requires: Any = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self, score: Callable[[Exchange], Any], name: str = "custom", fingerprint: str = "f1") -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._score = score

    async def score(self, exchange: Exchange) -> Any:
        result = self._score(exchange)
        return await result if asyncio.iscoroutine(result) else result


def done(store: Store) -> int:
    counts = store.counts()
    return counts.done + counts.failed + counts.skipped


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_every_exchange_is_scored_over_http_and_attached(
    store: Store, judge: FakeJudge, start_judged: Start, attached: Any, new_exchange: Any, until: Until
) -> None:
    """An exchange in the database becomes a score in the database, and the same score is attached."""
    exchange = new_exchange()
    store.add([exchange])
    start_judged(store, judge)

    until(lambda: attached.calls)

    (scored,) = store.worst()
    assert scored.exchange.id == exchange.id
    assert [exchange.id for exchange, _ in attached.calls] == [exchange.id]
    assert [score.value for score in attached.scores] == [pytest.approx(scored.score.value)]


def test_ten_calls_with_two_places_are_all_scored_two_at_a_time(
    store: Store, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """More exchanges than places: all are scored, and the judge never sees more requests than there are places."""
    judge.latency = 0.05
    store.add([new_exchange() for _ in range(10)])
    start_judged(store, judge, concurrency=2)

    until(lambda: store.counts().done == 10)

    assert len(judge.chats) == 10
    assert judge.most_in_flight <= 2


def test_what_an_earlier_process_captured_is_scored_at_the_next_start(
    store: Store, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """A monitor that was stopped before it could score leaves the work to the next one."""
    first = start_judged(store, judge)
    assert first.stop(60)
    store.add([new_exchange() for _ in range(3)])

    start_judged(store, judge)

    until(lambda: store.counts().done == 3)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_two_monitors_on_one_database_score_once(
    store: Store,
    other_store: Store,
    judge: FakeJudge,
    start_judged: Start,
    attached: Any,
    new_exchange: Any,
    until: Until,
) -> None:
    """However many monitors work on one database, each exchange is asked about, scored and attached once."""
    judge.latency = 0.01
    exchanges = [new_exchange(answer=f"The warranty is {years} years.") for years in range(60)]
    store.add(exchanges)
    for place in (store, other_store):
        start_judged(place, judge, concurrency=4)

    until(lambda: len(attached.calls) == 60)

    assert Counter(exchange.id for exchange, _ in attached.calls) == Counter(exchange.id for exchange in exchanges)
    assert len(judge.chats) == 60
    assert store.counts().rows == 60


def test_a_slow_exchange_holds_up_no_other(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """While one exchange takes its time, the other places go on."""
    release = threading.Event()

    async def score(exchange: Exchange) -> float:
        if exchange.question == "slow":
            await asyncio.to_thread(release.wait, 10)
        return 0.5

    store.add([new_exchange(question="slow"), *(new_exchange() for _ in range(20))])
    start(store, [Custom(score)], settings=settings(concurrency=2))

    until(lambda: store.counts().done == 20)
    release.set()
    until(lambda: store.counts().done == 21)


def test_a_failing_exchange_ends_failed_and_blocks_nobody(
    store: Store, start: Start, attached: Any, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """A scorer that raises on one exchange fails that one, once, with its reason; the failure is attached as well."""

    def score(exchange: Exchange) -> float:
        if exchange.question == "bad":
            raise ZeroDivisionError
        return 0.5

    bad = new_exchange(question="bad")
    store.add([bad, *(new_exchange() for _ in range(5))])
    start(store, [Custom(score)], settings=settings())

    until(lambda: len(attached.calls) == 6)

    counts = store.counts()
    assert (counts.done, counts.failed_reasons) == (5, {Reason.SCORER_ERROR: 1})
    assert [score.reason for exchange, [score] in attached.calls if exchange.id == bad.id] == [Reason.SCORER_ERROR]


def test_scores_of_one_exchange_are_attached_together(
    store: Store, start: Start, attached: Any, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """Two scorers on one exchange make one call of attach with two scores."""
    store.add([new_exchange()])
    scorers = [Custom(lambda _: 0.2, "first"), Custom(lambda _: 0.8, "second")]
    start(store, scorers, settings=settings())

    until(lambda: attached.calls)

    ((_, scores),) = attached.calls
    assert {score.scorer: score.value for score in scores} == {"first": 0.2, "second": 0.8}


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_postponed_task_does_not_keep_the_others_of_its_exchange(
    store: Store, start: Start, attached: Any, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """What one scorer brought is saved and attached while the other is tried again; that one follows by itself."""
    allowed = threading.Event()

    def busy(exchange: Exchange) -> float:
        if not allowed.is_set():
            raise ScoringError(Reason.JUDGE_RATE_LIMITED, "come back later")
        return 0.9

    store.add([new_exchange()])
    start(store, [Custom(lambda _: 0.2, "ready"), Custom(busy, "busy")], settings=settings())
    until(lambda: len(attached.scores) == 1)
    allowed.set()
    until(lambda: len(attached.scores) == 2)

    assert [score.scorer for score in attached.scores] == ["ready", "busy"]
    assert store.counts().done == 2


def test_a_task_of_another_process_is_left_to_it(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """While it may still be scored elsewhere, a task of an unknown fingerprint stays pending."""
    exchange = new_exchange()
    store.add([exchange])
    store.assign([Decision(exchange.id, 1.0, "drawn")], {"custom": "of a newer release"})
    start(store, [Custom(lambda _: 0.5)], settings=settings())
    store.add([new_exchange()])

    until(lambda: store.counts().done == 1)

    assert store.counts().pending == 1


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("odd", [{"label": 7}, {"input_tokens": 10**30}, {"details": {"when": object()}}])
def test_a_score_that_no_column_takes_holds_up_no_other(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, odd: dict[str, Any]
) -> None:
    """A scorer of a user's own that returns nonsense beside its value fails that exchange at most, and no other."""

    def score(exchange: Exchange) -> Score:
        extra = odd if exchange.question == "odd" else {}
        return Score(scorer="custom", fingerprint="f1", value=0.5, **extra)

    store.add([new_exchange(question="odd"), *(new_exchange() for _ in range(5))])
    start(store, [Custom(score)], settings=settings())

    until(lambda: done(store) == 6)

    assert store.counts().rows >= 5
    assert store.counts().failed_reasons in ({}, {Reason.SCORER_ERROR: 1})


def test_a_score_is_kept_under_the_name_of_its_scorer(
    store: Store, start: Start, attached: Any, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """What a scorer calls itself in its scores does not matter; the fingerprint is that of what it really did."""
    odd = Score(scorer="somebody else", fingerprint="f9", value=0.5)
    store.add([new_exchange()])
    start(store, [Custom(lambda _: odd)], settings=settings())

    until(lambda: attached.calls)

    assert [(score.scorer, score.fingerprint) for score in attached.scores] == [("custom", "f9")]
    assert [(found.score.scorer, found.score.fingerprint) for found in store.worst()] == [("custom", "f9")]


@pytest.mark.parametrize("requires", [{"answr"}, None])
def test_a_scorer_that_cannot_say_what_it_needs_fails_its_own_exchanges(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, requires: Any
) -> None:
    """A misspelt input is not taken for a missing one, and what a scorer breaks holds up no other scorer."""
    broken = Custom(lambda _: 0.5, "broken")
    broken.requires = requires
    store.add([new_exchange() for _ in range(2)])
    start(store, [broken, Custom(lambda _: 0.5)], settings=settings())

    until(lambda: done(store) == 4)

    assert (store.counts().done, store.counts().failed_reasons) == (2, {Reason.SCORER_ERROR: 2})


def test_an_error_of_our_own_in_scoring_is_told(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, caplog: Any
) -> None:
    """What breaks around a scorer is told in the log, without its message, and the other exchanges are scored."""
    odd = threading.Event()

    def score(exchange: Exchange) -> float:
        if exchange.question == "odd":
            odd.set()
        return 0.5

    def clock() -> datetime:
        if odd.is_set() and threading.current_thread().name == "germane-monitor":  # where scores get their time
            odd.clear()
            raise LookupError("text of a user")
        return datetime.now(UTC)

    store.add([new_exchange(question="odd"), new_exchange()])
    start(store, [Custom(score)], settings=settings(), clock=clock)

    until(lambda: "LostTask: LookupError while scoring" in caplog.text)
    until(lambda: store.counts().done == 1)
    assert store.counts().running == 1
    assert "text of a user" not in caplog.text


def test_one_scorer_that_pauses_does_not_slow_the_others(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """While one scorer's key is rejected, another scorer of the same exchanges goes on at full speed."""
    works = threading.Event()
    asked: list[str] = []

    def rejected(exchange: Exchange) -> float:
        asked.append(exchange.id)
        if works.is_set():
            return 0.9
        raise ScoringError(Reason.JUDGE_REJECTED, "no such model")

    store.add([new_exchange() for _ in range(40)])
    scorers = [Custom(lambda _: 0.2, "good"), Custom(rejected, "rejected")]
    monitor = start(store, scorers, settings=settings(concurrency=4), backoff=Backoff(first=0.1, limit=60))
    until(lambda: store.counts().done == 40)

    assert len(asked) < 20
    assert "no such model" in str(monitor.status().judge_problem)
    works.set()
    until(lambda: store.counts().done == 80)


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    token = _quiet.set(True)
    yield
    _quiet.reset(token)


def test_scoring_is_suppressed_and_attaching_is_not(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """A scorer runs where nothing is traced or captured, so that judge calls make no exchanges; spans are attached
    outside of that."""
    seen: dict[str, bool] = {}

    def score(exchange: Exchange) -> float:
        seen["scoring"] = _quiet.get()
        return 0.5

    def attach(exchange: Exchange, scores: list[Score]) -> None:
        seen["attaching"] = _quiet.get()

    store.add([new_exchange()])
    start(store, [Custom(score)], settings=settings(), suppressed=quiet, attach=attach)

    until(lambda: "attaching" in seen)

    assert seen == {"scoring": True, "attaching": False}


def test_what_a_scorer_calls_makes_no_exchange(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """A judge that is itself an observed handler, in the same process, is not captured while it scores."""

    @tracer.observe
    def ask(question: str) -> str:
        return "an answer"

    captured: list[Exchange] = []
    tracer.connect(sink=captured.append, service="shop", hold=False)
    store.add([new_exchange() for _ in range(3)])
    start(store, [Custom(lambda exchange: len(ask("?")) / 10)], settings=settings(), suppressed=tracer.suppressed)
    until(lambda: store.counts().done == 3)
    ask("Is it captured out here?")
    tracer.disconnect()

    assert [exchange.question for exchange in captured] == ["Is it captured out here?"]


def test_a_scorer_that_never_returns_ends_as_a_time_out(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """A scorer may take four judge time-outs for an exchange; then its task fails, and its place is free again."""
    store.add([new_exchange()])
    hang = Custom(lambda _: asyncio.sleep(3600))
    start(store, [hang], settings=settings(judge_timeout=0.05, retry_for=0, concurrency=1))

    until(lambda: store.counts().failed_reasons == {Reason.JUDGE_TIMEOUT: 1})


def test_a_value_outside_the_range_is_no_score(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """Infinity and values outside a scorer's range end as failed, and in no mean."""
    answers = iter([float("inf"), float("nan"), 7.0, 0.5])
    store.add([new_exchange() for _ in range(4)])
    start(store, [Custom(lambda _: next(answers))], settings=settings())

    until(lambda: done(store) == 4)

    assert store.counts().failed_reasons == {Reason.OUT_OF_RANGE: 3}
    (summary,) = store.summary()
    assert (summary.n, summary.mean) == (1, 0.5)


def test_transient_faults_cost_nothing_but_time(
    store: Store, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """Rate limits, broken connections and 5xx are tried again until there is a score."""
    judge.faults.extend([Fault("status", status=429), Fault("status", status=503), Fault("reset"), Fault("truncated")])
    store.add([new_exchange() for _ in range(4)])
    start_judged(store, judge, concurrency=2)

    until(lambda: store.counts().done == 4)

    assert store.counts().failed == 0
