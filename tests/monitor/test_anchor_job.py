"""Anchors: the same answers scored in every round, drawn and replaced one by one, within the budget."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import select
from tests.monitor.conftest import FAST_BACKOFF, fast_settings, make_exchange

from germane.alert import Alert, AlertChange
from germane.alerting import AlertEvaluator
from germane.daemon_pool import DaemonThreadPool
from germane.monitor import Monitor
from germane.monitor.jobs.anchors import AnchorJob
from germane.monitor.loop.leases import LeaderLease
from germane.monitor.quota.limiter import shared_rate_limiter
from germane.monitor.scoring.failures import RetryPolicy
from germane.scorers import build_scorers, run_scorer, uses_judge
from germane.settings import load_settings
from germane.storage import AlertTransaction, SamplingDecision, TrackingStore
from germane.storage.db.tables import anchor, anchor_score
from germane.testing import FakeJudge, Fault, JudgeRequest, transaction

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
NAME = "direct_relevancy"
SIZE = 10


class Time:
    """A clock that the test advances."""

    now = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Process:
    """The anchors of one process, whose judge rates an answer the same way every time, apart from ``shift``."""

    def __init__(self, store: TrackingStore, time: Time, stack: ExitStack, owner: str = "me", **given: Any) -> None:
        self.store, self.time = store, time
        self.judge: FakeJudge = given.pop("judge", None) or stack.enter_context(FakeJudge(first_token=self.rate))
        self.shift = self.noise = 0.0
        self.random = random.Random(given.pop("seed", 0))
        size, backoff = given.pop("size", SIZE), FAST_BACKOFF
        settings = fast_settings(**{"scorers": [NAME]} | self.judge.settings() | given)
        self.loop = stack.enter_context(asyncio.Runner())
        pool = DaemonThreadPool(1, name="test-anchors")
        stack.callback(pool.close)
        scorers = build_scorers(settings, rate_limiter=shared_rate_limiter(settings, store))
        self.scorer = scorers.scorers[0]
        stack.callback(lambda: self.loop.run(scorers.aclose()))
        self.job = AnchorJob(
            store,
            scorers.scorers,
            size=size,
            text_lifetime=timedelta(days=settings.retention.text_days),
            has_budget=settings.budget is not None,
            timeout=60.0,
            retry_policy=RetryPolicy(HOUR, backoff=backoff, clock=time),
            new_lease=lambda name: LeaderLease(store, name, owner, ttl=MINUTE, clock=time),
            thread_pool=pool,
            clock=time,
        )

    def rate(self, request: JudgeRequest) -> dict[str, float]:
        """Rate an answer from 3.0 to 4.2, depending on its text."""
        rating = 3 + hashlib.sha256(request.answer.encode()).digest()[0] / 256 * 1.2
        rating = min(4.999, max(1.0, rating + 4 * self.random.gauss(self.shift, self.noise)))
        return {str(int(rating)): 1 - rating % 1, str(int(rating) + 1): rating % 1}

    def capture(self, count: int, **changes: Any) -> list[str]:
        """Capture and score answers; return their ids."""
        changes = {"started_at": self.time.now} | changes
        self.store.exchanges.add(exchanges := [make_exchange(**changes) for _ in range(count)])
        fingerprints = {NAME: self.scorer.fingerprint}
        decisions = [SamplingDecision(each.id, 1.0, "sampled") for each in exchanges]
        self.store.sampling.assign_tasks(decisions, fingerprints)
        claims = self.store.queue.claim_tasks("me", fingerprints, limit=count, lease=MINUTE)
        for claim in claims:
            score = self.loop.run(run_scorer(self.scorer, claim.exchange, clock=self.time))
            self.store.queue.complete_tasks("me", [(task, score) for task in claim.tasks])
        return [each.id for each in exchanges]

    def run(self, after: timedelta = MINUTE) -> int:
        """Let time pass, run the job, and return the number of requests that it sent."""
        self.time.now += after
        before = self.requests
        self.loop.run(self.job.run())
        return self.requests - before

    def learn(self, count: int = SIZE + 10) -> None:
        """Capture answers, and run rounds until the baselines are complete."""
        self.capture(count)
        self.run()
        for _ in range(4):
            self.run(HOUR)

    @property
    def requests(self) -> int:
        """The number of ratings that the judge was asked for."""
        return sum(request.path.endswith("completions") and request.is_single_token for request in self.judge.requests)

    @property
    def anchors(self) -> list[Any]:
        """All rows of anchors, retired ones included."""
        with transaction(self.store) as connection:
            return list(connection.execute(select(anchor).order_by(anchor.c.id)).all())

    @property
    def active(self) -> list[Any]:
        """The rows of anchors that are scored."""
        return [row for row in self.anchors if row.retired_at is None]

    @property
    def scores(self) -> list[Any]:
        """All rows of scores of anchors, by round."""
        query = select(anchor_score).order_by(anchor_score.c.round, anchor_score.c.anchor_id)
        with transaction(self.store) as connection:
            return list(connection.execute(query).all())


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def new_process(url: str, stack: ExitStack, time: Time) -> Callable[..., Process]:
    """Start the job of a process. All of them share a database and the clock."""

    def new_process(**given: Any) -> Process:
        store = TrackingStore(url, clock=time)
        stack.callback(store.close)
        return Process(store, time, stack, **given)

    return new_process


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_anchors_are_scored_daily_against_the_mean_of_five_fresh_scores(
    new_process: Callable[..., Process],
) -> None:
    """They wait for enough answers, and cover the range of scores. The score of the answer itself never counts."""
    process = new_process()
    process.capture(SIZE - 1)
    assert process.run() == 0
    process.capture(11)
    process.shift = 0.05  # the judge has changed since it scored the answers
    assert process.run() == SIZE
    values = sorted(row.baseline for row in process.active)
    assert [row.baseline_count for row in process.active] == [1] * SIZE
    assert values[0] < 0.64 < 0.76 < values[-1]

    assert [process.run(HOUR) for _ in range(5)] == [SIZE] * 4 + [0]
    assert process.run(DAY) == SIZE
    assert process.run(DAY - timedelta(seconds=1)) == 0
    process.shift = 0.13
    assert process.run() == SIZE

    rounds = process.store.anchors.load_rounds(NAME)
    assert rounds is not None
    assert rounds.judge == "fake-judge"
    assert rounds.baseline_counts == pytest.approx([5] * SIZE)
    assert rounds.differences[0] == pytest.approx([0.0] * SIZE)
    assert rounds.differences[1] == pytest.approx([0.08] * SIZE)
    assert all(row.is_baseline == (row.round <= 5) for row in process.scores)


def test_a_round_continues_where_it_stopped(new_process: Callable[..., Process]) -> None:
    """Each score is saved before the next request, so another process pays for the rest only."""
    first = new_process()
    first.capture(SIZE)
    stop_at = first.requests + 4

    def rate_and_stop(request: JudgeRequest) -> dict[str, float]:
        if first.requests == stop_at:
            first.loop.get_loop().call_soon_threadsafe(first.job.stop)
        return first.rate(request)

    first.judge.first_token = rate_and_stop
    assert first.run() == 4
    done = sum(row.scored_at is not None for row in first.scores)
    assert done in {3, 4}

    second = new_process(owner="other", judge=first.judge)
    assert second.run(timedelta(seconds=59)) == 0  # the other process may still be alive
    assert second.run() == SIZE - done
    assert [row.baseline_count for row in second.active] == [1] * SIZE
    assert {row.round for row in second.scores} == {1}


KILLED = """
import json, sys
from contextlib import ExitStack
from datetime import datetime
from tests.monitor.test_anchor_job import MINUTE, Process, Time, TrackingStore

class Remote:
    def settings(self):
        return json.loads(sys.argv[2])

time = Time()
time.now = datetime.fromisoformat(sys.argv[3])
process = Process(TrackingStore(sys.argv[1], clock=time), time, ExitStack(), owner="killed", judge=Remote())
time.now += MINUTE
process.loop.run(process.job.run())
"""


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_round_continues_after_its_process_was_killed(
    new_process: Callable[..., Process], url: str, time: Time, until: Callable[..., None]
) -> None:
    """At most the request in flight is paid twice."""
    process = new_process()
    process.capture(SIZE)
    before, process.judge.latency = process.requests, 0.05
    arguments = [url, json.dumps(process.judge.settings()), time.now.isoformat()]
    with subprocess.Popen([sys.executable, "-c", KILLED, *arguments]) as child:
        until(lambda: process.requests >= before + 4)
        child.kill()
    assert process.requests < before + SIZE

    process.time.now += MINUTE
    process.run()
    assert process.requests <= before + SIZE + 1
    assert [row.baseline_count for row in process.active] == [1] * SIZE
    assert {row.round for row in process.scores} == {1}


def test_a_judge_that_fails_leaves_scores_missing(new_process: Callable[..., Process]) -> None:
    """A request that may succeed later is sent again for an hour. No value is invented."""
    process = new_process()
    process.learn()
    process.judge.outage = Fault("status", status=500)
    process.run(DAY)
    process.judge.outage = None
    assert process.run() == SIZE
    assert [row.value is None for row in process.scores] == [False] * 6 * SIZE

    process.judge.outage = Fault("status", status=500)
    process.run(DAY)
    process.run(HOUR)
    process.judge.outage = None
    assert process.run() == 0
    last = [row for row in process.scores if row.round == 7]
    assert [(row.value, row.reason) for row in last] == [(None, "judge_unreachable")] * SIZE
    assert process.run(DAY) == SIZE
    rounds = process.store.anchors.load_rounds(NAME)
    assert rounds is not None
    assert len(rounds.started_at) == 2  # not the round without scores


def test_an_exhausted_budget_stops_a_round_until_the_next_day(new_process: Callable[..., Process]) -> None:
    """Anchors count like any other request, and rounds for the first baselines are daily, too."""
    process = new_process(budget={"requests_per_day": SIZE + 15})
    process.capture(SIZE + 10)
    left = SIZE + 15 - process.store.quota.load_usage().requests
    assert 0 < left < 6
    assert process.run() == left
    assert process.run(HOUR) == 0
    assert [row.value is None for row in process.scores] == [False] * left + [True] * (SIZE - left)

    assert process.run(12 * HOUR) == SIZE - left  # the next day
    assert [row.value is None for row in process.scores] == [False] * SIZE
    assert process.run(10 * HOUR) == 0
    assert process.run(2 * HOUR) == SIZE


def test_erased_anchors_are_replaced_one_by_one(new_process: Callable[..., Process]) -> None:
    """At most a tenth of them in a week, each with its own baseline. Anchors keep no text alive."""
    process = new_process(retention={"text_days": 3650})
    process.capture(5)
    process.time.now += 10 * DAY
    process.capture(5)
    for _ in range(5):
        process.run(HOUR)
    assert [row.baseline_count for row in process.active] == [5] * SIZE
    process.capture(9)
    assert process.store.retention.prune(texts_before=process.time.now - DAY).texts == 5

    counts = [(process.run(DAY), len(process.active)) for _ in range(15)]
    assert counts == [(5, 5)] * 6 + [(6, 6)] * 7 + [(7, 7)] * 2
    new = process.active[5:]
    assert [(row.baseline_count, row.baseline is None) for row in new] == [(5, False), (2, False)]
    assert {row.exchange_id for row in new}.isdisjoint(row.exchange_id for row in process.anchors[:10])
    rounds = process.store.anchors.load_rounds(NAME)
    assert rounds is not None
    assert rounds.differences.shape == (15, 6)
    assert np.isnan(rounds.differences[:11, 5]).all()


def test_anchors_whose_text_will_be_erased_are_replaced_in_time(new_process: Callable[..., Process]) -> None:
    """So a retention period of weeks never takes all of them at once."""
    process = new_process(retention={"text_days": 30})
    process.learn()
    first = {row.exchange_id for row in process.active}
    for _ in range(4):
        process.capture(1, started_at=process.time.now + 7 * DAY)
        process.run(7 * DAY)
    assert len(process.active) == SIZE
    assert len(first & {row.exchange_id for row in process.active}) == SIZE - 4


def test_retired_anchors_are_deleted_with_the_scores(new_process: Callable[..., Process]) -> None:
    """Retention deletes them after as long a time as exchanges."""
    process = new_process(retention={"text_days": 3650})
    process.learn()
    process.store.anchors.restart(NAME)
    process.run(DAY)
    process.run(DAY)
    retention = process.store.retention
    retention.prune(before=process.time.now - 3 * DAY)
    assert len(process.anchors) == 2 * SIZE
    retention.prune(before=process.time.now)
    assert process.anchors == process.active
    assert [row.retired_at for row in process.anchors] == [None] * SIZE
    assert {row.anchor_id for row in process.scores} == {row.id for row in process.active}


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_reported_change_of_the_judge_starts_a_round_and_new_baselines(new_process: Callable[..., Process]) -> None:
    """The old baselines stay, with the first scores by the new judge, so that the shift can be computed."""
    process = new_process()
    process.learn()
    process.run(DAY)
    process.judge.model, process.shift = "fake-judge-2", -0.06
    process.capture(9)
    assert process.run() == 0
    process.capture(2)
    assert [process.run() for _ in range(3)] == [SIZE, 0, 0]

    old, new = process.anchors[:SIZE], process.active
    assert [row.exchange_id for row in old] == [row.exchange_id for row in new]
    assert all(row.retired_at is not None and row.baseline_count == 5 for row in old)
    assert [row.baseline_count for row in new] == [1] * SIZE
    differences = [after.baseline - before.baseline for before, after in zip(old, new, strict=True)]
    assert differences == pytest.approx([-0.06] * SIZE)
    pairs = {row.anchor_id: row for row in process.scores if row.round == 7}
    assert [pairs[row.id].value for row in old] == [row.baseline for row in new]
    assert {row.judge for row in pairs.values()} == {"fake-judge-2"}

    assert [process.run(HOUR) for _ in range(5)] == [SIZE] * 4 + [0]
    assert process.run(DAY) == SIZE
    rounds = process.store.anchors.load_rounds(NAME)
    assert rounds is not None
    assert rounds.differences == pytest.approx(np.zeros((1, SIZE)))


def test_a_judge_whose_replies_name_several_models_keeps_its_baselines(
    new_process: Callable[..., Process],
) -> None:
    """Baselines are replaced only if nearly all anchors of a round were scored by another model."""
    process = new_process()
    process.learn()
    numbers = iter(range(100))

    def rate(request: JudgeRequest) -> dict[str, float]:
        process.judge.model = "fake-judge-2" if next(numbers) % 5 > 1 else "fake-judge"
        return process.rate(request)

    process.judge.first_token = rate
    assert process.run(DAY) == SIZE
    assert process.anchors == process.active
    rounds = process.store.anchors.load_rounds(NAME)
    assert rounds is not None
    assert rounds.differences.shape == (1, 4)
    assert process.store.anchors.load_change(NAME) is None


def test_a_return_to_the_last_judge_is_a_change_of_its_own(new_process: Callable[..., Process]) -> None:
    """Its time is that of the return, not of the first score by this judge. A mixed round does not hide it."""
    process = new_process()
    process.learn()
    process.judge.model = "fake-judge-2"
    process.run(DAY)
    numbers = iter(range(SIZE))

    def rate(request: JudgeRequest) -> dict[str, float]:
        process.judge.model = "fake-judge-2" if next(numbers, SIZE) < 3 else "fake-judge"
        return process.rate(request)

    process.judge.first_token = rate
    process.run(DAY)
    there = process.store.anchors.load_change(NAME)
    process.run(DAY)
    returned = process.time.now
    process.run(DAY)
    back = process.store.anchors.load_change(NAME)

    assert there is not None
    assert back is not None
    assert (there.judges, back.judges) == (("fake-judge", "fake-judge-2"), ("fake-judge-2", "fake-judge"))
    assert back.fingerprints == there.fingerprints[::-1]
    assert back.at == returned


def test_a_drop_starts_at_most_one_extra_round_a_day(new_process: Callable[..., Process]) -> None:
    """The round is needed only if the last one is older than the start of the drop."""
    process = new_process()
    process.learn()
    process.run(DAY)

    def fire(onset: datetime, scorer: str = NAME, kind: str = "drop") -> None:
        name, now = uuid4().hex, process.time.now
        labels = {"service": "shop", "scorer": scorer, "route": name}
        times = {"starts_at": now, "evaluated_at": now, "onset": onset}
        alert = Alert(id=name, key=name, rule="drop", type=kind, labels=labels, state="firing", **times)
        assert process.store.alerts.commit(AlertTransaction(changes=[AlertChange(alert=alert)]))

    fire(process.time.now - MINUTE)
    assert process.run(HOUR) == 0
    fire(process.time.now - MINUTE, scorer="faithfulness")
    fire(process.time.now - MINUTE, kind="improvement")
    assert process.run() == 0
    fire(process.time.now - MINUTE)
    assert [process.run() for _ in range(2)] == [SIZE, 0]
    fire(process.time.now)
    assert process.run(HOUR) == 0
    assert process.run(DAY - HOUR - 2 * MINUTE) == 0
    assert process.run() == SIZE


def find_drift(process: Process, rounds: int) -> int | None:
    """Run daily rounds, and evaluate after each; return the number of rounds until an alert names the judge."""
    store, time = process.store, process.time
    settings = load_settings(rules=[{"type": "drop", "enabled": False}])
    evaluator = AlertEvaluator(
        store, settings, holder=("watcher", "me"), scorers=[NAME], channels={"log": lambda _: True}, clock=time
    )
    assert store.workers.acquire_lease("watcher", "me", ttl=1000 * DAY)
    for number in range(1, rounds + 1):
        process.run(DAY)
        evaluator.evaluate()
        if alerts := store.alerts.list_open():
            assert [(alert.type, alert.scorer) for alert in alerts] == [("judge_drift", NAME)]
            return number
    return None


def test_a_silent_change_of_the_judge_is_found_within_ten_rounds(new_process: Callable[..., Process]) -> None:
    """Its server reports the same model. A quiet judge, whose scores vary as much, raises no alert."""
    process = new_process(size=15)
    process.noise = 0.06
    process.learn()
    assert find_drift(process, rounds=4) is None
    process.shift = -0.08
    found = find_drift(process, rounds=10)
    assert found is not None
    (alert,) = process.store.alerts.list_open()
    assert alert.details["judge"] == "fake-judge"
    assert alert.details["anchors"] in {14, 15}  # one has been replaced
    assert alert.details["interval"][0] < -0.08 < alert.details["interval"][1] < 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_every_silent_change_of_the_judge_is_found(new_process: Callable[..., Process], seed: int) -> None:
    """With 50 anchors and a judge that varies by .1, a change of .08 takes at most ten rounds, in 20 of 20 runs."""
    process = new_process(size=50, seed=seed)
    process.noise = 0.1
    process.learn(60)
    assert find_drift(process, rounds=5) is None
    process.shift = 0.08 if seed % 2 else -0.08
    assert find_drift(process, rounds=10) is not None


def test_the_monitor_scores_anchors_and_stops_without_waiting_for_one(
    store: TrackingStore, start: Callable[..., Monitor], judge: FakeJudge, until: Callable[..., None]
) -> None:
    """A process with a scorer that uses a judge has the job. A request in flight is sent again after the next start."""
    shift = timedelta()
    settings = fast_settings(scorers=[NAME], anchors=SIZE, **judge.settings())
    scorers = build_scorers(settings, rate_limiter=shared_rate_limiter(settings, store))
    store.exchanges.add([make_exchange() for _ in range(SIZE)])
    clients = {"close": scorers.aclose, "cancel_judge_requests": scorers.stop_waiting}
    monitor = start(store, scorers.scorers, settings=settings, clock=lambda: datetime.now(UTC) + shift, **clients)
    until(lambda: store.answers.counts().done == SIZE)
    judge.latency = 30
    shift += MINUTE
    until(lambda: judge.in_flight)

    assert monitor.stop(20)
    assert store.anchors.load_status(NAME).pending == SIZE


@pytest.mark.parametrize("given", [{"size": 0}, {"scorers": ["context_coverage"]}])
def test_without_anchors_or_a_judge_nothing_is_sent(new_process: Callable[..., Process], given: dict[str, Any]) -> None:
    """The setting `anchors = 0` turns anchors off."""
    process = new_process(**given)
    process.capture(SIZE)
    assert process.run(DAY) == 0
    assert process.anchors == []


def test_a_composite_scorer_has_anchors_if_one_of_its_parts_asks_a_judge() -> None:
    """Scorers that use only an embedder have none."""
    with FakeJudge() as judge:
        names = ["answer_quality", "faithfulness", "question_answer_similarity"]
        scorers = build_scorers(fast_settings(scorers=names, **judge.settings())).scorers
    assert [uses_judge(scorer) for scorer in scorers] == [True, True, False]
