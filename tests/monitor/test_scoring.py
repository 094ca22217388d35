"""The scoring worker: claimed tasks become scores."""

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
from germane.delivery import Backoff
from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.score import Score, UnscoredReason
from germane.settings import Settings
from germane.storage import SamplingDecision, TrackingStore
from germane.testing import FakeJudge, Fault

Start = Callable[..., Monitor]
Until = Callable[..., None]


class Custom:
    """A custom scorer that calls a function."""

    requires: Any = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self, score: Callable[[Exchange], Any], name: str = "custom", fingerprint: str = "f1") -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._score = score

    async def score(self, exchange: Exchange) -> Any:
        result = self._score(exchange)
        return await result if asyncio.iscoroutine(result) else result


def done(store: TrackingStore) -> int:
    counts = store.answers.counts()
    return counts.done + counts.failed + counts.skipped


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_every_exchange_is_scored_over_http_and_its_scores_are_attached(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, attached: Any, new_exchange: Any, until: Until
) -> None:
    """The score in the database equals the attached score."""
    exchange = new_exchange()
    store.exchanges.add([exchange])
    start_judged(store, judge)

    until(lambda: attached.calls)

    (scored,) = store.answers.worst()
    assert scored.exchange.id == exchange.id
    assert [exchange.id for exchange, _ in attached.calls] == [exchange.id]
    assert [score.value for score in attached.scores] == [pytest.approx(scored.score.value)]


def test_the_concurrency_setting_limits_judge_requests(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """With a concurrency of two, ten exchanges are scored with no more than two requests in flight at a time."""
    judge.latency = 0.05
    store.exchanges.add([new_exchange() for _ in range(10)])
    start_judged(store, judge, concurrency=2)

    until(lambda: store.answers.counts().done == 10)

    assert len(judge.chat_requests) == 2 * 10
    assert judge.max_in_flight <= 2


def test_exchanges_captured_by_an_earlier_process_are_scored_at_the_next_start(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """A monitor that stops early leaves its tasks to the next monitor."""
    first = start_judged(store, judge)
    assert first.stop(60)
    store.exchanges.add([new_exchange() for _ in range(3)])

    start_judged(store, judge)

    until(lambda: store.answers.counts().done == 3)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_two_monitors_score_each_exchange_exactly_once(
    store: TrackingStore,
    other_store: TrackingStore,
    judge: FakeJudge,
    start_judged: Start,
    attached: Any,
    new_exchange: Any,
    until: Until,
) -> None:
    """Each exchange is requested, scored and attached once."""
    judge.latency = 0.01
    exchanges = [new_exchange(answer=f"The warranty is {years} years.") for years in range(60)]
    store.exchanges.add(exchanges)
    for place in (store, other_store):
        start_judged(place, judge, concurrency=4)

    until(lambda: len(attached.calls) == 60)

    assert Counter(exchange.id for exchange, _ in attached.calls) == Counter(exchange.id for exchange in exchanges)
    assert len(judge.chat_requests) == 2 * 60  # one for the questions, one for the rating
    assert store.answers.counts().scores == 60


def test_a_slow_exchange_does_not_delay_other_exchanges(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """The other slots continue scoring."""
    release = threading.Event()

    async def score(exchange: Exchange) -> float:
        if exchange.question == "slow":
            await asyncio.to_thread(release.wait, 10)
        return 0.5

    store.exchanges.add([new_exchange(question="slow"), *(new_exchange() for _ in range(20))])
    start(store, [Custom(score)], settings=settings(concurrency=2))

    until(lambda: store.answers.counts().done == 20)
    release.set()
    until(lambda: store.answers.counts().done == 21)


def test_a_failing_exchange_does_not_affect_other_exchanges(
    store: TrackingStore,
    start: Start,
    attached: Any,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
) -> None:
    """If a scorer raises for one exchange, only that exchange fails, once. The failure is also attached."""

    def score(exchange: Exchange) -> float:
        if exchange.question == "bad":
            raise ZeroDivisionError
        return 0.5

    bad = new_exchange(question="bad")
    store.exchanges.add([bad, *(new_exchange() for _ in range(5))])
    start(store, [Custom(score)], settings=settings())

    until(lambda: len(attached.calls) == 6)

    counts = store.answers.counts()
    assert (counts.done, counts.failed_reasons) == (5, {UnscoredReason.SCORER_ERROR: 1})
    assert [score.reason for exchange, [score] in attached.calls if exchange.id == bad.id] == [
        UnscoredReason.SCORER_ERROR
    ]


def test_scores_of_one_exchange_are_attached_together(
    store: TrackingStore,
    start: Start,
    attached: Any,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
) -> None:
    """Two scorers lead to one call with two scores."""
    store.exchanges.add([new_exchange()])
    scorers = [Custom(lambda _: 0.2, "first"), Custom(lambda _: 0.8, "second")]
    start(store, scorers, settings=settings())

    until(lambda: attached.calls)

    ((_, scores),) = attached.calls
    assert {score.scorer: score.value for score in scores} == {"first": 0.2, "second": 0.8}


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_postponed_task_does_not_delay_other_scorers(
    store: TrackingStore,
    start: Start,
    attached: Any,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
) -> None:
    """One scorer's score is saved and attached while the other scorer is retried."""
    allowed, calls = threading.Event(), []

    async def busy(exchange: Exchange) -> float:
        calls.append(exchange)
        if len(calls) == 1:  # only once: each failure doubles the delay
            raise ScoringError(UnscoredReason.JUDGE_RATE_LIMITED, "come back later")
        await asyncio.to_thread(allowed.wait)
        return 0.9

    store.exchanges.add([new_exchange()])
    start(store, [Custom(lambda _: 0.2, "ready"), Custom(busy, "busy")], settings=settings())
    until(lambda: len(attached.scores) == 1)
    allowed.set()
    until(lambda: len(attached.scores) == 2)

    assert [score.scorer for score in attached.scores] == ["ready", "busy"]
    assert store.answers.counts().done == 2


def test_a_retry_claimed_during_its_postponement_is_scored(
    store: TrackingStore,
    start: Start,
    attached: Any,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A retry may be due and claimed again before the transaction after its postponement has ended."""
    calls: list[Exchange] = []
    complete_tasks = store.queue.complete_tasks

    def complete_after_next_claim(*results: Any) -> Any:
        if len(calls) == 1:
            until(lambda: store.answers.counts().running == 2)
        return complete_tasks(*results)

    def busy(exchange: Exchange) -> float:
        calls.append(exchange)
        if len(calls) == 1:
            raise ScoringError(UnscoredReason.JUDGE_RATE_LIMITED, "come back later")
        return 0.9

    monkeypatch.setattr(store.queue, "complete_tasks", complete_after_next_claim)
    store.exchanges.add([new_exchange()])
    start(store, [Custom(lambda _: 0.2, "ready"), Custom(busy, "busy")], settings=settings())

    until(lambda: len(attached.scores) == 2)

    assert len(calls) == 2


def test_tasks_with_unknown_fingerprints_stay_pending(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """Another process may still score these tasks."""
    exchange = new_exchange()
    store.exchanges.add([exchange])
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled")], {"custom": "of a newer release"})
    start(store, [Custom(lambda _: 0.5)], settings=settings())
    store.exchanges.add([new_exchange()])

    until(lambda: store.answers.counts().done == 1)

    assert store.answers.counts().pending == 1


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("odd", [{"label": 7}, {"input_tokens": 10**30}, {"details": {"when": object()}}])
def test_a_score_that_cannot_be_stored_does_not_block_other_scores(
    store: TrackingStore,
    start: Start,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
    odd: dict[str, Any],
) -> None:
    """A custom scorer with invalid details fails at most that exchange."""

    def score(exchange: Exchange) -> Score:
        extra = odd if exchange.question == "odd" else {}
        return Score(scorer="custom", fingerprint="f1", value=0.5, **extra)

    store.exchanges.add([new_exchange(question="odd"), *(new_exchange() for _ in range(5))])
    start(store, [Custom(score)], settings=settings())

    until(lambda: done(store) == 6)

    assert store.answers.counts().scores >= 5
    assert store.answers.counts().failed_reasons in ({}, {UnscoredReason.SCORER_ERROR: 1})


def test_a_score_is_stored_under_the_name_of_its_scorer(
    store: TrackingStore,
    start: Start,
    attached: Any,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
) -> None:
    """The name in the score does not matter, but its fingerprint is kept."""
    odd = Score(scorer="somebody else", fingerprint="f9", value=0.5)
    store.exchanges.add([new_exchange()])
    start(store, [Custom(lambda _: odd)], settings=settings())

    until(lambda: attached.calls)

    assert [(score.scorer, score.fingerprint) for score in attached.scores] == [("custom", "f9")]
    assert [(found.score.scorer, found.score.fingerprint) for found in store.answers.worst()] == [("custom", "f9")]


@pytest.mark.parametrize("requires", [{"answr"}, None])
def test_a_scorer_with_invalid_inputs_does_not_affect_other_scorers(
    store: TrackingStore,
    start: Start,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
    requires: Any,
) -> None:
    """A misspelled input does not count as a missing input, and other scorers are unaffected."""
    broken = Custom(lambda _: 0.5, "broken")
    broken.requires = requires
    store.exchanges.add([new_exchange() for _ in range(2)])
    start(store, [broken, Custom(lambda _: 0.5)], settings=settings())

    until(lambda: done(store) == 4)

    assert (store.answers.counts().done, store.answers.counts().failed_reasons) == (2, {UnscoredReason.SCORER_ERROR: 2})


def test_an_unexpected_scoring_error_is_logged(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, caplog: Any
) -> None:
    """The log omits the error's message, and the other exchanges are scored."""
    odd = threading.Event()

    def score(exchange: Exchange) -> float:
        if exchange.question == "odd":
            odd.set()
        return 0.5

    def clock() -> datetime:
        # The monitor's thread reads the clock to get the time of a score.
        if odd.is_set() and threading.current_thread().name == "germane-monitor":
            odd.clear()
            raise LookupError("text of a user")
        return datetime.now(UTC)

    store.exchanges.add([new_exchange(question="odd"), new_exchange()])
    start(store, [Custom(score)], settings=settings(), clock=clock)

    until(lambda: "ScoringCrashed: LookupError while scoring" in caplog.text)
    until(lambda: store.answers.counts().done == 1)
    assert store.answers.counts().running == 1
    assert "text of a user" not in caplog.text


def test_a_paused_scorer_does_not_slow_down_other_scorers(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """While one scorer's key is rejected, another continues at full speed. All waiting tasks name the problem."""
    works = threading.Event()
    asked: list[str] = []

    def rejected(exchange: Exchange) -> float:
        asked.append(exchange.id)
        if works.is_set():
            return 0.9
        raise ScoringError(UnscoredReason.JUDGE_REJECTED, "no such model")

    exchanges = [new_exchange() for _ in range(40)]
    store.exchanges.add(exchanges)
    scorers = [Custom(lambda _: 0.2, "good"), Custom(rejected, "rejected")]
    monitor = start(store, scorers, settings=settings(concurrency=4), backoff=Backoff(initial=0.1, maximum=60))
    until(lambda: store.answers.counts().done == 40)

    assert len(asked) < 20
    assert "no such model" in str(monitor.status().judge_problem)
    tasks = [task for one in exchanges if (found := store.answers.load_detail(one.id)) for task in found.tasks]
    assert all("no such model" in str(task.error) for task in tasks if task.scorer == "rejected")
    works.set()
    until(lambda: store.answers.counts().done == 80)


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    token = _quiet.set(True)
    yield
    _quiet.reset(token)


def test_scoring_is_not_traced_but_attached_scores_are_exported(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """Judge requests create no exchanges or spans; attaching may create spans."""
    seen: dict[str, bool] = {}

    def score(exchange: Exchange) -> float:
        seen["scoring"] = _quiet.get()
        return 0.5

    def attach(exchange: Exchange, scores: list[Score]) -> None:
        seen["attaching"] = _quiet.get()

    store.exchanges.add([new_exchange()])
    start(store, [Custom(score)], settings=settings(), suppressed=quiet, attach=attach)

    until(lambda: "attaching" in seen)

    assert seen == {"scoring": True, "attaching": False}


def test_observed_functions_called_by_a_scorer_create_no_exchanges(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """This also applies to a judge that is an observed handler in the same process."""

    @tracer.observe
    def ask(question: str) -> str:
        return "an answer"

    captured: list[Exchange] = []
    tracer.connect(sink=captured.append, service="shop", holds_spans=False)
    store.exchanges.add([new_exchange() for _ in range(3)])
    start(store, [Custom(lambda exchange: len(ask("?")) / 10)], settings=settings(), suppressed=tracer.suppress_tracing)
    until(lambda: store.answers.counts().done == 3)
    ask("Is it captured out here?")
    tracer.disconnect()

    assert [exchange.question for exchange in captured] == ["Is it captured out here?"]


def test_a_scorer_that_hangs_times_out(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """The task fails after four times the judge timeout, and the slot is free again."""
    store.exchanges.add([new_exchange()])
    hang = Custom(lambda _: asyncio.sleep(3600))
    start(store, [hang], settings=settings(judge_timeout=0.05, retry_timeout=0, concurrency=1))

    until(lambda: store.answers.counts().failed_reasons == {UnscoredReason.JUDGE_TIMEOUT: 1})


def test_a_value_outside_the_range_is_a_failed_score(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """This includes infinity. Means do not include such a score."""
    answers = iter([float("inf"), float("nan"), 7.0, 0.5])
    store.exchanges.add([new_exchange() for _ in range(4)])
    start(store, [Custom(lambda _: next(answers))], settings=settings())

    until(lambda: done(store) == 4)

    assert store.answers.counts().failed_reasons == {UnscoredReason.OUT_OF_RANGE: 3}
    (summary,) = store.trends.summary()
    assert (summary.n, summary.mean) == (1, 0.5)


def test_transient_failures_are_retried(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """Rate limits, broken connections and 5xx are retried until there is a score."""
    judge.faults.extend([Fault("status", status=429), Fault("status", status=503), Fault("reset"), Fault("truncated")])
    store.exchanges.add([new_exchange() for _ in range(4)])
    start_judged(store, judge, concurrency=2)

    until(lambda: store.answers.counts().done == 4)

    assert store.answers.counts().failed == 0
