"""The jobs in the background, put together."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Final

from germane.alert import Alert
from germane.alerting.channels import Channel, takers
from germane.alerting.evaluator import Lookout
from germane.daemon_pool import Threads
from germane.exchange import Exchange
from germane.monitor.jobs.delivery import Delivery, Desk, Makers
from germane.monitor.jobs.queue_metrics import Measuring
from germane.monitor.jobs.retention import Housekeeping, Rhythm
from germane.monitor.jobs.rollups import Rollups
from germane.monitor.loop.backoff import Backoff
from germane.monitor.loop.heartbeat import Heartbeat
from germane.monitor.loop.job import Job, JobStatus
from germane.monitor.loop.leader import Office
from germane.monitor.loop.outage_log import Voice
from germane.monitor.loop.scheduler import Tick
from germane.monitor.quota.limiter import longest_wait, places_for
from germane.monitor.quota.usage import told_spent
from germane.monitor.sampling.budget_allocation import assumed
from germane.monitor.sampling.candidate_pool import Pool
from germane.monitor.sampling.eligibility import Fitness
from germane.monitor.sampling.feedback_requeue import Objections
from germane.monitor.sampling.proxy_scores import proxy_for
from germane.monitor.sampling.sampler import Sampling
from germane.monitor.scoring.result_writer import Failing, Results
from germane.monitor.scoring.worker import Limits, Scoring
from germane.score import Score
from germane.scorers import Scorer, asks_judge
from germane.settings import Settings
from germane.storage import JobRuns, Presence, Run, Store
from germane.tracer import Waiting

Attach = Callable[[Exchange, Sequence[Score]], object]
Quiet = Callable[[], AbstractContextManager[object]]

JOBS: Final = ("sample", "score", "save", "watch")
TICKING: Final = ("sample", "watch", "deliver", "roll")
"""What is done at every tick; ``score`` and ``save`` are done when there is something to do."""
KEEPING: Final = "housekeeping"
SAMPLER: Final = "sampler"
WATCHER: Final = "watcher"
STORE_CALLS: Final = 4
"""Calls to the database at a time."""
SHORTEST_TERM: Final = 10.0
"""Seconds for which a process that is gone may still be thought to sample or watch."""
LAST_BEAT: Final = 1.0
"""Seconds that stopping waits for a heartbeat under way."""
SHARE_FOR_JUDGES: Final = 0.6
"""Of the time for stopping, what requests under way may take. The rest is for saving, alerts and closing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a monitor is made of."""

    store: Store
    scorers: Sequence[Scorer]
    settings: Settings
    fitness: Fitness
    attach: Attach
    suppressed: Quiet
    channels: Mapping[str, Channel]
    """By name."""
    clock: Callable[[], datetime]
    close: Callable[[], Awaitable[None]]
    give_up: Callable[[], object]
    spent_until: Callable[[], datetime | None]
    backoff: Backoff
    rhythm: Rhythm


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the background is doing."""

    running: bool
    jobs: Mapping[str, JobStatus] = field(default_factory=lambda: dict.fromkeys(JOBS, JobStatus()))
    """By name: ``sample``, ``score``, ``save``, ``watch``, ``deliver``, ``roll``, ``housekeeping``; ``beat`` where
    one scores."""
    in_flight: int = 0
    """Scorers at work for an exchange now."""
    unsaved: int = 0
    """Exchanges that are scored and not saved yet."""
    judge_problem: str | None = None
    """Why a scorer leaves its judge alone for a while: a rejected key, a server that is away."""
    budget_problem: str | None = None
    """Until when the budget is spent; None while there is room, or without one."""
    channel_problems: Mapping[str, str] = field(default_factory=dict)
    """Per channel why it did not take its last notification, or can take none from here."""
    open_alerts: tuple[Alert, ...] = ()
    """What was open at the last look, whoever looked."""


class Background:
    """One run of the background; lives on the event loop of its thread."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._voice, self._failing = Voice(), Failing()
        self._owner = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._sampler, self._watcher = self._office(SAMPLER), self._office(WATCHER)
        self._threads = Threads(STORE_CALLS, name="germane-monitor-store")
        self._delivery = self._make_delivery()
        self._lookout = self._make_lookout()
        self._open_alerts: tuple[Alert, ...] = ()
        self._results = Results(parts.store, owner=self._owner, threads=self._threads, attach=self._attach)
        self._sampling = self._make_sampling()
        self._objections = self._make_objections()
        self._measuring = Measuring(parts.store, parts.settings, office=self._sampler, threads=self._threads)
        self._rollups = self._make_rollups()
        self._scoring = self._make_scoring()
        self._lease = timedelta(seconds=parts.settings.lease)
        self._woken = parts.clock()
        self._told: dict[str, Sequence[Run]] = {}
        self._every = dict.fromkeys(TICKING, parts.settings.tick) | {KEEPING: parts.rhythm.every.total_seconds()}
        self._heartbeat = Heartbeat(
            self._job("beat", self._beat), leave=self._job("leave", self._leave), lease=self._lease
        )
        work = (self._sample_all, self._scoring.claim, self._results.save, self._watch_all)
        self._sample, self._score, self._save, self._watch = (
            self._job(name, do) for name, do in zip(JOBS, work, strict=True)
        )
        self._housekeeping = self._make_housekeeping()
        self._keep = self._job(KEEPING, self._housekeeping.run)
        self._measure = self._job("measure", self._measuring.run)
        self._roll = self._job("roll", self._rollups.run)
        self._deliver = self._job("deliver", self._delivery.look)
        self._loops = (
            asyncio.create_task(_again(self._scoring.changed, self._score)),
            asyncio.create_task(_again(self._results.changed, self._save)),
            asyncio.create_task(self._housekeeping.again(self._keep)),
        )
        if parts.scorers:
            self._heartbeat.start()

    def ticks(self) -> Mapping[str, Tick]:
        """Return what is done at every tick. Without a scorer nothing is decided on: a later start may bring one."""
        scoring: dict[str, Tick] = {"sample": self._sample.run, "score": self._wake, "measure": self._measure.run}
        # It watches without any rule too: scores on their way to the detectors would pile up.
        always: dict[str, Tick] = {"watch": self._watch.run, "deliver": self._deliver.run, "roll": self._roll.run}
        return (scoring if self._parts.scorers else {}) | always

    @property
    def waiting(self) -> Waiting | None:
        """What waits in the database, where this process reads it; may be read from any thread."""
        return self._measuring.waiting

    async def stop(self, deadline: float) -> bool:
        """Finish or hand back everything by ``deadline``, a time of the loop; return whether that went well."""
        left = deadline - asyncio.get_running_loop().time()
        self._sampling.stopping = self._objections.stopping = self._scoring.stopping = True
        self._housekeeping.stopping = self._rollups.stopping = True
        self._parts.give_up()
        finished = await self._scoring.stop(SHARE_FOR_JUDGES * left)
        try:
            async with asyncio.timeout_at(deadline):
                saved = await self._clear_up()
        except TimeoutError:
            saved = False
        for loop in self._loops:
            loop.cancel()
        await self._delivery.close()
        self._threads.close()
        self._housekeeping.close()
        self._heartbeat.stop(0)
        ended = self._threads.join(deadline - asyncio.get_running_loop().time())
        return finished and saved and ended

    def status(self) -> Status:
        """Return how it is doing; may be called from any thread."""
        beating = {"beat": self._heartbeat.status()} if self._parts.scorers else {}
        return Status(
            running=True,
            jobs={job.name: job.status() for job in self._jobs} | beating,
            in_flight=self._scoring.in_flight,
            unsaved=len(self._results),
            judge_problem=self._scoring.problem,
            budget_problem=self._budget_problem,
            channel_problems=self._delivery.problems,
            open_alerts=self._open_alerts,
        )

    async def _clear_up(self) -> bool:
        """Save what is there, hand back what is not, and close; return whether nothing was lost on the way."""
        handing, resigning = self._job("hand back", self._hand_back), self._job("resign", self._resign)
        closing = self._job("close", self._parts.close)
        # What others wait for comes first: a predicate that never returns holds up nothing but what comes after.
        await self._score.rest()
        await self._save.run()
        await handing.run()
        for job in (self._sample, self._watch, self._keep, self._measure, self._deliver, self._roll):
            await job.rest()
        draining = self._job("drain", self._delivery.drain)
        await asyncio.gather(resigning.run(), closing.run(), draining.run())
        return not (len(self._results) or handing.problem or resigning.problem or closing.problem)

    async def _hand_back(self) -> None:
        await self._threads.run(self._heartbeat.stop, LAST_BEAT)
        await self._threads.run(self._parts.store.release, self._owner)

    async def _resign(self) -> None:
        for office in (
            self._sampler,
            self._watcher,
            self._housekeeping.office,
            self._rollups.office,
            *self._delivery.offices,
        ):
            await self._threads.run(office.resign)

    async def _beat(self) -> None:
        held, longest = self._scoring.held() | self._results.held(), timedelta(seconds=self._parts.backoff.longest)
        runs = {job.name: job.status().runs for job in self._jobs}
        ran = {name: some for name, some in runs.items() if some and some != self._told.get(name)}
        self._parts.store.beat(self._presence(ran), held, lease=self._lease, longest_wait=longest)
        self._told |= ran

    async def _leave(self) -> None:
        self._parts.store.dismiss(self._owner)

    @property
    def _jobs(self) -> tuple[Job, ...]:
        return self._sample, self._score, self._save, self._watch, self._deliver, self._roll, self._keep

    def _presence(self, ran: Mapping[str, Sequence[Run]]) -> Presence:
        return Presence(
            id=self._owner,
            host=socket.gethostname(),
            pid=os.getpid(),
            service=self._parts.settings.service,
            version=version("germane"),
            scorers={scorer.name: scorer.fingerprint for scorer in self._parts.scorers},
            concurrency=places_for(self._parts.settings),
            in_flight=self._scoring.in_flight,
            problem=self._scoring.problem or self._budget_problem,
            jobs=[JobRuns(name=name, every=self._every.get(name), runs=runs) for name, runs in ran.items()],
        )

    @property
    def _budget_problem(self) -> str | None:
        until = self._parts.spent_until()
        return None if until is None or until <= self._parts.clock() else told_spent(until)

    async def _wake(self) -> None:
        now = self._parts.clock()
        if now < self._woken:  # the clock was set back, and what is dated by it has to be brought back
            self._heartbeat.soon()
        self._woken = now
        self._scoring.wake()
        self._results.wake()

    async def _sample_all(self) -> None:
        if await self._sampling.run() + await self._objections.run():
            self._scoring.wake()

    async def _watch_all(self) -> None:
        if await self._threads.run(self._look):
            await self._deliver.run()

    def _look(self) -> bool:
        """Look, if it is up to this process; return whether somebody is to be told something."""
        told = False
        if self._watcher.held():
            told = self._lookout.look()
        else:
            self._lookout.forget()
        self._open_alerts = tuple(self._parts.store.open_alerts())
        return told

    def _attach(self, exchange: Exchange, scores: Sequence[Score]) -> None:
        for score in scores:
            self._failing.note(score)
        # In a context of its own: here, unlike in all the rest, spans are made on purpose.
        Context().run(self._parts.attach, exchange, scores)

    def _job(self, name: str, work: Callable[[], Awaitable[None]]) -> Job:
        return Job(name, work, clock=self._parts.clock, quiet=self._parts.suppressed, voice=self._voice)

    def _office(self, name: str, term: timedelta | None = None) -> Office:
        lasting = term or timedelta(seconds=max(SHORTEST_TERM, 5 * self._parts.settings.tick))
        return Office(self._parts.store, name, self._owner, term=lasting, clock=self._parts.clock)

    def _make_delivery(self) -> Delivery:
        parts = self._parts
        desk = Desk(
            store=parts.store,
            owner=self._owner,
            threads=self._threads,
            clock=parts.clock,
            lease=timedelta(seconds=parts.settings.lease),
            link=parts.settings.alert_link,
        )
        makers = Makers(job=self._job, office=self._office)
        return Delivery(desk, parts.channels, takers(parts.settings, parts.channels), makers)

    def _make_lookout(self) -> Lookout:
        parts = self._parts
        return Lookout(
            parts.store,
            parts.settings,
            holder=(WATCHER, self._owner),
            scorers=[scorer.name for scorer in parts.scorers],
            channels=takers(parts.settings, parts.channels),
            clock=parts.clock,
        )

    def _make_housekeeping(self) -> Housekeeping:
        parts = self._parts
        retention, rhythm = parts.settings.retention, parts.rhythm
        return Housekeeping(parts.store, retention, owner=self._owner, rhythm=rhythm, clock=parts.clock)

    def _make_rollups(self) -> Rollups:
        parts, office = self._parts, self._office("roller")
        return Rollups(parts.store, parts.settings.trend_by, office=office, threads=self._threads, clock=parts.clock)

    def _make_sampling(self) -> Sampling:
        parts, settings = self._parts, self._parts.settings
        pool = Pool(
            parts.store,
            budget=settings.budget,
            rate=settings.rate,
            assumed=assumed(sum(map(asks_judge, parts.scorers))),
            holder=(SAMPLER, self._owner),
        )
        proxy = proxy_for(settings, parts.scorers)
        return Sampling(
            parts.store,
            parts.scorers,
            rate=settings.rate if settings.budget is None else None,
            fitness=parts.fitness,
            pool=pool,
            proxies=proxy.of if proxy else None,
            office=self._sampler,
            threads=self._threads,
            attach=self._attach,
            clock=parts.clock,
        )

    def _make_objections(self) -> Objections:
        parts = self._parts
        fingerprints = {scorer.name: scorer.fingerprint for scorer in parts.scorers}
        return Objections(
            parts.store,
            parts.fitness,
            fingerprints,
            office=self._sampler,
            threads=self._threads,
            holder=None if parts.settings.budget is None else (SAMPLER, self._owner),
        )

    def _make_scoring(self) -> Scoring:
        settings = self._parts.settings
        return Scoring(
            self._parts.store,
            self._parts.scorers,
            self._results,
            limits=Limits(
                places_for(settings),
                settings.judge_timeout,
                longest_wait(settings),
                lease=timedelta(seconds=settings.lease),
            ),
            retry_for=timedelta(seconds=settings.retry_for),
            backoff=self._parts.backoff,
            owner=self._owner,
            threads=self._threads,
            clock=self._parts.clock,
        )


async def _again(changed: Callable[[], Awaitable[None]], job: Job) -> None:
    while True:
        await changed()
        await job.run()
