"""Rescoring of stored answers on an engine, in partitions that are leased and recorded in the tracking database."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from typing import Any, Final, TypeVar
from uuid import uuid4

from germane.errors import DatabaseUnreachable, GermaneError, StorageError, error_location
from germane.evaluation.engines import Engine
from germane.evaluation.partitions import (
    Held,
    RunStopped,
    find_interruption,
    run_partitions,
    settings_for_workers,
    settings_of_worker,
)
from germane.evaluation.progress import RunUsage, show_progress
from germane.evaluation.scoring import is_final, partition_concurrency, partition_scorer
from germane.exchange import Exchange
from germane.logging_filters import suppressed_loggers
from germane.monitor import EligibilityChecker, shared_rate_limiter
from germane.score import Score, UnscoredReason
from germane.scorers import ScorerSet, apply_calibration, build_scorers
from germane.settings import Settings
from germane.storage import (
    CalibrationCache,
    HistoryItem,
    HistoryRun,
    LeaseRenewal,
    PartitionClaim,
    PartitionKey,
    ScoreCounts,
    TrackingStore,
)
from germane.tracer import suppress_tracing

LEASE: Final = timedelta(seconds=30)
"""Time after which other processes take over the partition of an unresponsive process."""
LOST_CHECK_INTERVAL: Final = 1.0
"""Seconds after which a process notices that it has lost its partition."""
MAX_WRITE_WAIT: Final = 60.0
"""Seconds for which a process keeps its scores while the database is unreachable."""
WRITE_RETRY_DELAY: Final = 1.0

logger = logging.getLogger("germane.evaluation")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RescoreJob:
    """The data that all partitions of a run share."""

    run_id: str
    driver: str
    """Id of the process that runs the partitions. The owners of its leases start with it."""
    settings: Settings
    has_own_secrets: bool
    """Whether each process takes the database's URL, the judge's URL and the API key from its own settings."""


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """A partition of a run."""

    number: int
    exchanges: int


@dataclass(frozen=True, slots=True)
class RescoreOutcome:
    """The counts of the scores that a process wrote for a partition, and their usage. Both are empty if the partition
    was already done.
    """

    counts: ScoreCounts
    usage: RunUsage


@dataclass(frozen=True, slots=True, repr=False)  # asyncio.run() formats the result when it restores signal handlers
class PartitionScores:
    """The scores of a partition."""

    results: Sequence[tuple[str, Score]]
    """Pairs of exchange id and score."""
    remaining: frozenset[tuple[str, str]]
    """Pairs of exchange id and scorer that could not be scored."""
    interruption: GermaneError | None
    """Why scores remain; None if none do."""
    usage: RunUsage


def run_rescoring(
    store: TrackingStore, run: HistoryRun, settings: Settings, engine: Engine, *, progress: bool | None = None
) -> tuple[HistoryRun, RunUsage]:
    """Score all open partitions of a run, and return the run and the usage of this call.

    If this function raises, the run can be continued by another call.

    Raises:
        PartitionFailed: A partition failed repeatedly.
        RunStopped: The budget is exhausted, or the judge rejects all requests.
        StorageError: The database is unreachable.
    """
    job = RescoreJob(run.id, uuid4().hex, settings_for_workers(settings, engine), engine.is_remote)
    parts = [PartitionPart(*item) for item in store.history.list_open_partitions(run.id).items()]
    started, usage, waiting = time.perf_counter(), RunUsage(), 0

    def release(part: PartitionPart) -> bool:
        try:
            return store.history.release_partition(PartitionKey(run.id, part.number), owner_prefix=job.driver)
        except StorageError:  # the lease expires
            return True

    total = sum(part.exchanges for part in parts)
    with show_progress(progress, total, noun="exchanges") as report_progress:

        def report(part: PartitionPart, outcome: RescoreOutcome) -> None:
            nonlocal usage, waiting
            usage, waiting = usage.plus(outcome.usage), waiting + outcome.counts.waiting
            report_progress(usage, part.exchanges)

        run_partitions(engine, rescore_partition, job, parts, on_done=report, on_lost=release)
    store.history.finish_run(run.id)
    finished = replace(store.history.get_run(run.id), waiting=waiting)
    return finished, replace(usage, seconds=time.perf_counter() - started)


def score_unstored(
    store: TrackingStore,
    settings: Settings,
    scorer: str,
    exchanges: Sequence[Exchange],
    *,
    progress: bool | None = None,
) -> tuple[list[Score], GermaneError | None]:
    """Score exchanges with one scorer, within the budget and the rate limits, without storing the scores.

    Returns:
        The scores, and why some exchanges had no chance to be scored: the budget is exhausted, a server rejects all
        requests, or the judge has not responded for a minute. None if all had one.

    Raises:
        GermaneError: None of the exchanges could be scored, for one of these reasons.
    """

    async def run() -> tuple[list[Score], GermaneError | None]:
        scorer_set = build_scorers(settings, [scorer], rate_limiter=shared_rate_limiter(settings, store))
        try:
            dataset = partition_scorer(scorer_set, settings)
            concurrency = partition_concurrency(scorer_set, settings.concurrency, len(exchanges))
            with show_progress(progress, len(exchanges)) as report:
                scored = await dataset.score_all(
                    exchanges, concurrency=concurrency, on_row_done=lambda: report(dataset.usage)
                )
            scores = [each[scorer] for each in scored]
            interruption = find_interruption(dataset, scorer_set, scores)
        finally:
            await scorer_set.aclose()
        if interruption is not None and all(score.value is None for score in scores):
            raise interruption
        return scores, interruption

    with suppress_tracing(), suppressed_loggers():
        return asyncio.run(run())


def rescore_partition(job: RescoreJob, part: PartitionPart) -> RescoreOutcome | Held:
    """Claim a partition, score its exchanges, and write the scores. Runs in a process of the engine.

    Raises:
        RunStopped: The budget is exhausted, or a server rejects all requests. The scores up to then are written.
        GermaneError: A judge has not responded for a minute. The scores up to then are written.
    """
    settings = settings_of_worker(job.settings, has_own_secrets=job.has_own_secrets)
    store = _open_store(settings.database, settings.erase_after_scoring, tuple(settings.sinks))
    owner = f"{job.driver}:{uuid4().hex}"
    claimed = store.history.claim_partition(PartitionKey(job.run_id, part.number), owner, lease=LEASE)
    if claimed is None:
        return RescoreOutcome(ScoreCounts(), RunUsage())
    if isinstance(claimed, timedelta):
        return Held(claimed.total_seconds())
    try:
        renew = partial(store.history.renew_partition, claimed, lease=LEASE)
        with LeaseRenewal(renew, lease=LEASE, name="germane-partition-lease") as renewal:
            loaded = store.history.load_items(claimed)
            waiting = sum(len(item.waiting) for item in loaded)
            items = [item for item in loaded if item.scorers]
            with suppress_tracing(), suppressed_loggers():
                scored = asyncio.run(_run_while_held(_score_items(store, settings, claimed, items), renewal))
            counts = _write(store, claimed, scored, budgeted=settings.budget is not None)
    except asyncio.CancelledError:  # another process has the partition, so these scores would be discarded
        return Held(0.0)
    except Exception as error:
        described = str(error) if isinstance(error, GermaneError) else error_location(error)
        with suppress(StorageError):  # the lease expires
            store.history.release_claim(claimed, error=described)
        raise
    if scored.interruption is not None:
        raise scored.interruption
    return Held(0.0) if counts is None else RescoreOutcome(counts + ScoreCounts(waiting=waiting), scored.usage)


async def _score_items(
    store: TrackingStore, settings: Settings, claimed: PartitionClaim, items: Sequence[HistoryItem]
) -> PartitionScores:
    """Score the exchanges of a partition. Stop the run if a scorer has another fingerprint than the run."""
    fingerprints = claimed.selection.scorers
    # Everything is built for one partition, so that the batches of texts, in which an embedder's rounding depends on
    # the other texts, are the same on every engine.
    scorer_set = build_scorers(settings, sorted(fingerprints), rate_limiter=shared_rate_limiter(settings, store))
    try:
        _check_fingerprints(scorer_set, fingerprints)
        scorer = partition_scorer(scorer_set, settings)
        skipped: dict[tuple[str, str], UnscoredReason] = {}
        if claimed.selection.everything:
            checker = EligibilityChecker(scorer_set.scorers, filters=settings.filters)
            for item in items:
                for name, reason in checker.check(item.exchange).skip_reasons.items():
                    skipped[item.exchange.id, name] = reason
        names = [tuple(name for name in item.scorers if (item.exchange.id, name) not in skipped) for item in items]
        scores = await scorer.score_all(
            [item.exchange for item in items],
            names=names,
            concurrency=partition_concurrency(scorer_set, settings.concurrency, len(items)),
        )
        calibrations = CalibrationCache(store)
        results = [
            (item.exchange.id, apply_calibration(score, calibrations))
            for item, each in zip(items, scores, strict=True)
            for score in each.values()
        ]
        interruption = find_interruption(scorer, scorer_set, [score for _, score in results])
        remaining = frozenset[tuple[str, str]]()
        if interruption is not None:  # scores that are not final stay open until the run is continued
            remaining = frozenset((key, score.scorer) for key, score in results if not is_final(score))
            results = [(key, score) for key, score in results if is_final(score)]
        for (exchange_id, name), reason in skipped.items():
            results.append((exchange_id, Score(scorer=name, fingerprint=fingerprints[name], reason=reason)))
        return PartitionScores(results, remaining, interruption, scorer.usage)
    finally:
        await scorer_set.aclose()


def _check_fingerprints(scorer_set: ScorerSet, fingerprints: Mapping[str, str]) -> None:
    for each in scorer_set.scorers:
        if each.fingerprint != fingerprints[each.name]:
            raise RunStopped(
                f"{each.name} has the fingerprint {each.fingerprint} in this process, but "
                f"{fingerprints[each.name]} in the run: use the same settings and the same version of germane, or "
                "start a new run"
            )


def _write(
    store: TrackingStore, claimed: PartitionClaim, scored: PartitionScores, *, budgeted: bool
) -> ScoreCounts | None:
    """Write the scores, and keep trying while the database is unreachable, because they may have been expensive."""
    deadline = time.monotonic() + MAX_WRITE_WAIT
    while True:
        try:
            return store.history.finish_partition(
                claimed, scored.results, remaining=scored.remaining, budgeted=budgeted
            )
        except DatabaseUnreachable:
            if time.monotonic() > deadline:
                raise
            time.sleep(WRITE_RETRY_DELAY)


async def _run_while_held(scoring: Coroutine[Any, Any, Result], renewal: LeaseRenewal) -> Result:
    """Run a coroutine, and cancel it when the lease is lost."""
    task = asyncio.ensure_future(scoring)
    try:
        while not task.done():
            if renewal.is_lost:
                task.cancel()
            await asyncio.wait({task}, timeout=LOST_CHECK_INTERVAL)
    finally:
        task.cancel()
    return await task


@cache
def _open_store(url: str, erase_after_scoring: bool, sinks: tuple[str, ...]) -> TrackingStore:  # noqa: FBT001 - a key of the cache
    """Open the database, once per process."""
    return TrackingStore(url, erase_after_scoring=erase_after_scoring, sinks=sinks)
