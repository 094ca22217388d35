"""The supervisor. It wires one process's background jobs together, and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from typing import Final

from germane.alert import Alert
from germane.alerting import AlertEvaluator, Channel, channel_filters, message_formats
from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff, DeliveryContext
from germane.exchange import Exchange
from germane.monitor.jobs.anchors import AnchorJob
from germane.monitor.jobs.calibration import CalibrationJob
from germane.monitor.jobs.delivery import Dispatcher, NotificationContext, NotificationDispatcher
from germane.monitor.jobs.maintenance import RetentionJob, RetentionSchedule, RollupJob
from germane.monitor.jobs.queue_metrics import QueueMetricsJob
from germane.monitor.loop.job import Job, JobStatus, OutageLog
from germane.monitor.loop.leases import LeaderLease, build_heartbeat
from germane.monitor.loop.scheduler import PeriodicJob
from germane.monitor.quota.limiter import max_concurrency, max_queue_wait
from germane.monitor.quota.reservations import exhausted_message
from germane.monitor.sampling.budget_allocation import default_cost
from germane.monitor.sampling.candidate_pool import CandidatePool
from germane.monitor.sampling.eligibility import EligibilityChecker
from germane.monitor.sampling.proxy_scores import build_proxy_scorer
from germane.monitor.sampling.sampler import FeedbackRequeue, Sampler
from germane.monitor.scoring.failures import RetryPolicy
from germane.monitor.scoring.result_writer import FailureLog, ResultWriter
from germane.monitor.scoring.worker import ScoringLimits, ScoringWorker
from germane.score import Score
from germane.scorers import Scorer, uses_coalescing_judge
from germane.settings import Settings
from germane.sinks import SINK_BACKOFF, SinkTarget, build_sinks
from germane.storage import (
    CalibrationCache,
    JobRun,
    JobRuns,
    LeaseRenewal,
    TrackingStore,
    WorkerHeartbeat,
    new_worker_id,
)
from germane.tracer import BacklogState

AttachScores = Callable[[Exchange, Sequence[Score]], object]
SuppressTelemetry = Callable[[], AbstractContextManager[object]]

MAIN_JOBS: Final = ("sample", "score", "save", "evaluate")
POLLED_JOBS: Final = ("sample", "evaluate", "deliver", "rollup")
"""Jobs that run at every poll interval. ``score`` and ``save`` run whenever they have work."""
RETENTION_JOB: Final = "retention"
SAMPLER_LEASE: Final = "sampler"
EVALUATOR_LEASE: Final = "watcher"
STORE_THREADS: Final = 4
"""The maximum number of concurrent database calls."""
MIN_LEASE_TTL: Final = 10.0
"""The shortest TTL of a leader lease, in seconds. If the leader crashes, its successor waits at least this long."""
HEARTBEAT_STOP_TIMEOUT: Final = 1.0
"""Maximum number of seconds to wait for a heartbeat in progress when stopping."""
SINK_DRAIN_TIMEOUT: Final = 2.0
"""Maximum number of seconds for writing to sinks when stopping."""
JUDGE_TIMEOUT_SHARE: Final = 0.6
"""The share of the stop timeout for in-flight judge requests. The rest is for saving, notifications and closing."""


@dataclass(frozen=True, slots=True)
class MonitorConfig:
    """What one process samples, scores and evaluates, and what it calls to do so."""

    store: TrackingStore
    scorers: Sequence[Scorer]
    """The scorers to run. If there are none, only alert rules are evaluated."""
    settings: Settings
    _: KW_ONLY
    attach: AttachScores
    """Called with an exchange and its scores after they are saved."""
    suppressed: SuppressTelemetry = contextlib.nullcontext
    """Returns a context in which nothing is traced or captured. All code except ``attach`` runs in it."""
    channels: Mapping[str, Channel] = field(default_factory=dict)
    """Channels by name, in addition to the log and the configured channels."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    close: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0)
    """Closes the scorers' clients on their event loop when the monitor stops."""
    cancel_judge_requests: Callable[[], object] = lambda: None
    """Cancels judge requests that are waiting for the rate limiter. Called when the monitor starts to stop."""
    budget_exhausted_until: Callable[[], datetime | None] = lambda: None
    backoff: Backoff = field(default_factory=Backoff)
    """The delays between attempts of a task, and between probes of a judge."""
    retention_schedule: RetentionSchedule = field(default_factory=RetentionSchedule)
    worker_id: str | None = None
    """The worker id of this process. Defaults to a new id."""
    waiting_exchanges: Callable[[], Sequence[str]] = tuple
    """Returns the ids of the exchanges whose spans this process holds until their scores arrive. It scores them first.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorStatus:
    """The status of one process's background jobs."""

    running: bool
    jobs: Mapping[str, JobStatus] = field(default_factory=lambda: dict.fromkeys(MAIN_JOBS, JobStatus()))
    """Status by job name: ``sample``, ``score``, ``save``, ``evaluate``, ``deliver``, ``rollup``, ``retention``, and
    ``heartbeat`` in a process with scorers."""
    in_flight: int = 0
    """The number of scorer runs in progress, one per scorer and exchange."""
    unsaved: int = 0
    """The number of exchanges whose scores have not been saved yet."""
    judge_problem: str | None = None
    """Why a circuit breaker has paused a scorer, such as a rejected key or an unreachable server; None if none is
    paused.
    """
    stuck_scorers: Mapping[str, str] = field(default_factory=dict)
    """The scorers for which waiting does not help, with the reason: the judge's server rejects every request, or does
    not answer any."""
    budget_problem: str | None = None
    """A message with the time until which the budget is exhausted; None if no budget is set or exhausted."""
    channel_problems: Mapping[str, str] = field(default_factory=dict)
    """Problems by channel name: the error from the last attempt, or the reason this process cannot use the channel.
    """
    sink_problems: Mapping[str, str] = field(default_factory=dict)
    """Problems by sink name."""


class Supervisor:
    """One run of the background jobs, on the background thread's event loop."""

    def __init__(
        self,
        config: MonitorConfig,
        *,
        eligibility: EligibilityChecker,
        channels: Mapping[str, Channel],
        calibrations: CalibrationCache,
    ) -> None:
        store, settings, clock = config.store, config.settings, config.clock
        self._config = config
        self._eligibility = eligibility
        self._calibrations = calibrations
        self._channels = channels
        self._owner = config.worker_id or new_worker_id()
        self._outage_log, self._failure_log = OutageLog(), FailureLog()
        self._last_wake_up = clock()
        self._reported_runs: dict[str, Sequence[JobRun]] = {}
        self._lease = timedelta(seconds=settings.task_lease)
        pool = self._thread_pool = DaemonThreadPool(STORE_THREADS, name="germane-monitor-store")
        self._sampler_lease, self._evaluator_lease = self._new_lease(SAMPLER_LEASE), self._new_lease(EVALUATOR_LEASE)

        # Sampling and scoring
        self._fingerprints = {scorer.name: scorer.fingerprint for scorer in config.scorers}
        self._results = ResultWriter(store, owner=self._owner, thread_pool=pool, attach=self._attach)
        self._sampler = self._new_sampler()
        self._feedback_requeue = FeedbackRequeue(
            store,
            self._eligibility,
            self._fingerprints,
            leader=self._sampler_lease,
            thread_pool=pool,
            lease_holder=None if settings.budget is None else (SAMPLER_LEASE, self._owner),
        )
        self._scoring = self._new_scoring_worker()

        # Alerts
        filters = channel_filters(settings, self._channels)
        self._evaluator = AlertEvaluator(
            store,
            settings,
            holder=(EVALUATOR_LEASE, self._owner),
            scorers=list(self._fingerprints),
            channels=filters,
            clock=clock,
        )
        self._dispatcher = self._new_dispatcher(filters)
        self._sinks = self._new_sink_dispatcher()

        # Maintenance
        self._queue_metrics = QueueMetricsJob(store, settings, leader=self._sampler_lease, thread_pool=pool)
        self._rollups = RollupJob(
            store, settings.breakdowns, leader=self._new_lease("roller"), thread_pool=pool, clock=clock
        )
        self._retention = RetentionJob(
            store,
            settings.retention,
            owner=self._owner,
            schedule=config.retention_schedule,
            clock=clock,
            archive=settings.archive,
        )

        self._calibration = CalibrationJob(
            store, config.scorers, self._calibrations, leader=self._sampler_lease, thread_pool=pool, clock=clock
        )

        self._anchors = self._new_anchor_job()

        self._jobs = {name: self._new_job(name, run) for name, run in self._reported_work().items()}
        """The jobs whose runs are reported, by name."""
        self._measure = self._new_job("measure", self._queue_metrics.run)
        self._calibrate = self._new_job("calibrate", self._calibration.run)
        self._watch_judge = self._new_job("anchors", self._anchors.run)
        self._heartbeat_job = self._new_job("heartbeat", self._send_heartbeat)
        self._heartbeat = self._new_heartbeat()
        self._loops = (
            asyncio.create_task(self._jobs["score"].run_whenever(self._scoring.wait_for_tasks)),
            asyncio.create_task(self._jobs["save"].run_whenever(self._results.wait_for_results)),
            asyncio.create_task(self._retention.run_forever(self._jobs[RETENTION_JOB])),
        )
        if config.scorers:
            self._heartbeat.start()

    def periodic_jobs(self) -> Mapping[str, PeriodicJob]:
        """Return the jobs that run at every poll interval, by name.

        If there are no scorers, nothing is sampled, because the next start may configure some. Evaluation runs even if
        there are no rules, because it removes the scores that are queued for the detectors.
        """
        always: dict[str, PeriodicJob] = {name: self._jobs[name].run for name in ("evaluate", "deliver", "rollup")}
        if not self._config.scorers:
            return always
        return (
            {"sample": self._jobs["sample"].run, "score": self._wake_up, "measure": self._measure.run}
            | {"calibrate": self._calibrate.run, "anchors": self._watch_judge.run}
            | always
        )

    @property
    def queue_metrics(self) -> BacklogState | None:
        """The last snapshot of the queue; None if another process is the leader. Thread-safe."""
        return self._queue_metrics.snapshot

    async def stop(self, deadline: float) -> bool:
        """Finish or release all work by ``deadline``, in event loop time; return whether no work was lost."""
        loop = asyncio.get_running_loop()
        self._sampler.stopping = self._feedback_requeue.stopping = self._scoring.stopping = True
        self._retention.stopping = self._rollups.stopping = self._calibration.stopping = True
        self._anchors.stop()
        self._config.cancel_judge_requests()
        finished = await self._scoring.stop(JUDGE_TIMEOUT_SHARE * (deadline - loop.time()))
        try:
            async with asyncio.timeout_at(deadline):
                saved = await self._save_and_release()
        except TimeoutError:
            saved = False
        for task in self._loops:
            task.cancel()
        await asyncio.gather(self._dispatcher.close(), self._sinks.close())
        self._thread_pool.close()
        self._retention.close()
        self._heartbeat.stop(0)
        ended = self._thread_pool.join(deadline - loop.time())
        return finished and saved and ended

    def status(self) -> MonitorStatus:
        """Return the status of all jobs. Thread-safe."""
        heartbeat = {"heartbeat": self._heartbeat_job.status()} if self._config.scorers else {}
        return MonitorStatus(
            running=True,
            jobs={name: job.status() for name, job in self._jobs.items()} | heartbeat,
            in_flight=self._scoring.in_flight,
            unsaved=len(self._results),
            judge_problem=self._scoring.problem,
            stuck_scorers=self._scoring.stuck_scorers,
            budget_problem=self._budget_problem,
            channel_problems=self._dispatcher.problems,
            sink_problems=self._sinks.problems,
        )

    async def _save_and_release(self) -> bool:
        """Save all results, release all tasks and leases, and close the clients. Return whether all of it succeeded."""

        async def release_tasks() -> None:
            queue = self._config.store.queue
            await self._thread_pool.run(self._heartbeat.stop, HEARTBEAT_STOP_TIMEOUT)
            await self._thread_pool.run(queue.release_tasks, self._owner)
            await self._thread_pool.run(partial(queue.release_reserved_tasks, self._fingerprints, stopping=self._owner))

        async def release_leases() -> None:
            own = (self._sampler_lease, self._evaluator_lease, self._retention.leader, self._rollups.leader)
            for lease in (*own, *self._anchors.leases.values(), *self._dispatcher.leases):
                await self._thread_pool.run(lease.release)

        releasing_tasks = self._new_job("release tasks", release_tasks)
        releasing_leases = self._new_job("release leases", release_leases)
        closing, draining = self._new_job("close", self._config.close), self._new_job("drain", self._drain)
        # First release what other processes wait for. A predicate that never returns then delays only the later steps.
        await self._jobs["score"].wait_until_idle()
        await self._jobs["save"].run()
        await releasing_tasks.run()
        for name in ("sample", "evaluate", RETENTION_JOB, "deliver", "rollup"):
            await self._jobs[name].wait_until_idle()
        await self._measure.wait_until_idle()
        await self._calibrate.wait_until_idle()
        await self._watch_judge.wait_until_idle()
        await asyncio.gather(releasing_leases.run(), closing.run(), draining.run())
        return not (len(self._results) or releasing_tasks.problem or releasing_leases.problem or closing.problem)

    def _send_heartbeat(self) -> None:
        config, settings = self._config, self._config.settings
        runs = {name: job.status().runs for name, job in self._jobs.items()}
        new_runs = {name: of_job for name, of_job in runs.items() if of_job and of_job != self._reported_runs.get(name)}
        intervals = dict.fromkeys(POLLED_JOBS, settings.poll_interval)
        intervals[RETENTION_JOB] = config.retention_schedule.interval.total_seconds()
        heartbeat = WorkerHeartbeat(
            id=self._owner,
            host=socket.gethostname(),
            pid=os.getpid(),
            service=settings.service,
            version=version("germane"),
            scorers={scorer.name: scorer.fingerprint for scorer in config.scorers},
            concurrency=max_concurrency(settings),
            in_flight=self._scoring.in_flight,
            problem=self._scoring.problem or self._budget_problem,
            settings=settings.shared(),
            jobs=[JobRuns(name=name, every=intervals.get(name), runs=of_job) for name, of_job in new_runs.items()],
        )
        held = self._scoring.held_task_ids() | {task.id for task in self._results.unsaved_tasks()}
        longest_delay = timedelta(seconds=config.backoff.longest_delay)
        config.store.workers.heartbeat(heartbeat, held, lease=self._lease, longest_wait=longest_delay)
        config.store.queue.release_reserved_tasks(self._fingerprints)
        self._reported_runs |= new_runs

    @property
    def _budget_problem(self) -> str | None:
        until = self._config.budget_exhausted_until()
        return None if until is None or until <= self._config.clock() else exhausted_message(until)

    async def _wake_up(self) -> None:
        now = self._config.clock()
        if now < self._last_wake_up:  # the clock was set back, so the leases must be renewed
            self._heartbeat.renew_now()
        self._last_wake_up = now
        self._scoring.wake()
        self._results.wake()

    async def _run_sampling(self) -> None:
        if await self._sampler.run(self._scoring.wake) + await self._feedback_requeue.run():
            self._scoring.wake()

    async def _run_evaluation(self) -> None:
        def evaluate() -> bool:
            """Evaluate the rules if this process is the leader. Return whether there are notifications to send."""
            if self._evaluator_lease.acquire():
                return self._evaluator.evaluate()
            self._evaluator.reset()
            return False

        if await self._thread_pool.run(evaluate):
            await self._jobs["deliver"].run()

    async def _wake_deliveries(self) -> None:
        await self._dispatcher.wake_due()
        await self._sinks.wake_due()

    async def _drain(self) -> None:
        """Send what is due. Sinks get little time, because another process or the next start continues."""
        await self._dispatcher.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SINK_DRAIN_TIMEOUT):
                await self._sinks.drain()

    def _attach(self, exchange: Exchange, scores: Sequence[Score]) -> None:
        for score in scores:
            self._failure_log.record_score(score)
        # Use an empty context, in which telemetry is not suppressed, because these spans are intended.
        Context().run(self._config.attach, exchange, scores)

    def _new_job(self, name: str, work: Callable[[], Awaitable[None] | None]) -> Job:
        config = self._config
        return Job(name, work, clock=config.clock, suppressed=config.suppressed, outage_log=self._outage_log)

    def _new_lease(self, name: str, ttl: timedelta | None = None) -> LeaderLease:
        default_ttl = timedelta(seconds=max(MIN_LEASE_TTL, 5 * self._config.settings.poll_interval))
        return LeaderLease(self._config.store, name, self._owner, ttl=ttl or default_ttl, clock=self._config.clock)

    def _reported_work(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {
            "sample": self._run_sampling,
            "score": self._scoring.claim_tasks,
            "save": self._results.save,
            "evaluate": self._run_evaluation,
            "deliver": self._wake_deliveries,
            "rollup": self._rollups.run,
            RETENTION_JOB: self._retention.run,
        }

    def _new_heartbeat(self) -> LeaseRenewal:
        def deregister() -> None:
            self._config.store.workers.deregister_worker(self._owner)

        return build_heartbeat(
            self._heartbeat_job, deregister=self._new_job("deregister", deregister), lease=self._lease
        )

    def _new_scoring_worker(self) -> ScoringWorker:
        config, settings = self._config, self._config.settings
        return ScoringWorker(
            config.store,
            config.scorers,
            self._results,
            limits=ScoringLimits(
                max_concurrency(settings), settings.judge_timeout, max_queue_wait(settings), lease=self._lease
            ),
            retry_timeout=timedelta(seconds=settings.retry_timeout),
            backoff=config.backoff,
            owner=self._owner,
            thread_pool=self._thread_pool,
            clock=config.clock,
            calibrations=self._calibrations,
            preferred=config.waiting_exchanges,
        )

    def _new_anchor_job(self) -> AnchorJob:
        config, settings = self._config, self._config.settings
        limits = ScoringLimits(1, settings.judge_timeout, max_queue_wait(settings))
        return AnchorJob(
            config.store,
            config.scorers,
            size=0 if settings.erase_after_scoring else settings.anchors,
            text_lifetime=timedelta(days=settings.retention.text_days),
            has_budget=settings.budget is not None,
            timeout=limits.scorer_timeout,
            retry_policy=RetryPolicy(
                timedelta(seconds=settings.retry_timeout), backoff=config.backoff, clock=config.clock
            ),
            # A request may take longer than the lease of other jobs, and no other process may send it again.
            new_lease=partial(self._new_lease, ttl=timedelta(seconds=MIN_LEASE_TTL + 2 * limits.scorer_timeout)),
            thread_pool=self._thread_pool,
            clock=config.clock,
        )

    def _new_dispatcher(self, filters: Mapping[str, Callable[[Alert], bool]]) -> NotificationDispatcher:
        config = self._config
        context = NotificationContext(
            store=config.store,
            owner=self._owner,
            threads=self._thread_pool,
            clock=config.clock,
            lease=self._lease,
            formats=message_formats(config.settings, self._channels),
        )
        return NotificationDispatcher(
            context, self._channels, filters, new_job=self._new_job, new_lease=self._new_lease
        )

    def _new_sink_dispatcher(self) -> Dispatcher:
        config, pool = self._config, self._thread_pool
        if not config.settings.sinks:
            targets: dict[str, SinkTarget] = {}
        else:
            sinks = build_sinks(config.settings)
            targets = {name: SinkTarget(sink, config.store, pool) for name, sink in sinks.items()}
        context = DeliveryContext(
            store=config.store, owner=self._owner, threads=pool, lease=self._lease, backoff=SINK_BACKOFF
        )
        return Dispatcher(context, targets, new_job=self._new_job, job_name="write to sink")

    def _new_sampler(self) -> Sampler:
        config, settings = self._config, self._config.settings
        pool = CandidatePool(
            config.store,
            budget=settings.budget,
            sample_rate=settings.sample_rate,
            default_cost=default_cost(sum(map(uses_coalescing_judge, config.scorers))),
            lease_holder=(SAMPLER_LEASE, self._owner),
        )
        proxy_scorer = build_proxy_scorer(settings, config.scorers)
        return Sampler(
            config.store,
            config.scorers,
            sample_rate=settings.sample_rate if settings.budget is None else None,
            eligibility=self._eligibility,
            pool=pool,
            score_proxies=proxy_scorer.score_sample if proxy_scorer else None,
            leader=self._sampler_lease,
            thread_pool=self._thread_pool,
            attach=self._attach,
            clock=config.clock,
            max_span_delay=timedelta(seconds=settings.max_span_delay),
        )
