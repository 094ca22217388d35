"""Rounds of anchors: the same answers scored once a day by each scorer that uses a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from germane import alerting
from germane.daemon_pool import DaemonThreadPool
from germane.exchange import Exchange
from germane.monitor.loop.leases import LeaderLease
from germane.monitor.scoring.failures import RetryPolicy, retry_after
from germane.score import Score, UnscoredReason
from germane.scorers import Scorer, is_rejected, is_retryable, run_scorer, uses_judge
from germane.storage import AnchorStatus, RoundCause, TrackingStore

CHECK_INTERVAL: Final = timedelta(minutes=1)
"""The interval between checks of whether a round is due or can go on, and the delay before the first check."""
ROUND_INTERVAL: Final = timedelta(days=1)
BASELINE_INTERVAL: Final = timedelta(hours=1)
"""The interval between rounds until the first baselines are complete. With a budget, these rounds are daily, too, so
that the daily cost stays the same."""
BUDGET_DELAY: Final = timedelta(minutes=10)
"""The delay after which a round goes on that the budget has stopped."""


class AnchorJob:
    """Scores the anchors of each scorer in daily rounds, in the process that holds the scorer's lease.

    An extra round starts at once when the judge's model has changed, and when an open drop alert began after the last
    round; at most one a day for each of these causes. Anchors are scored one after the other, through the same rate
    limiter and budget as answers. Every score is saved before the next request, so a round that was interrupted goes on
    where it stopped. ``timeout`` is the maximum number of seconds to score one anchor, and ``retry_policy`` decides for
    how long a round waits for a judge that does not respond.
    """

    def __init__(
        self,
        store: TrackingStore,
        scorers: Sequence[Scorer],
        *,
        size: int,
        text_lifetime: timedelta,
        has_budget: bool,
        timeout: float,
        retry_policy: RetryPolicy,
        new_lease: Callable[[str], LeaderLease],
        thread_pool: DaemonThreadPool,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._scorers = [scorer for scorer in scorers if size and uses_judge(scorer)]
        self.leases = {scorer.name: new_lease(f"anchors {scorer.name}") for scorer in self._scorers}
        self._size = size
        self._text_lifetime = text_lifetime
        self._baseline_interval = ROUND_INTERVAL if has_budget else BASELINE_INTERVAL
        self._timeout = timeout
        self._retry_policy = retry_policy
        self._threads = thread_pool
        self._clock = clock
        self._next_check = dict.fromkeys((scorer.name for scorer in self._scorers), clock() + CHECK_INTERVAL)
        self._stopping = False
        self._request: asyncio.Task[Score] | None = None

    async def run(self) -> None:
        """Start the rounds that are due, and score their anchors.

        Raises:
            StorageError: The database call failed.
        """
        for scorer in self._scorers:
            now, due = self._clock(), self._next_check[scorer.name]
            if self._stopping or now < due <= now + ROUND_INTERVAL:  # later ones are from before the clock was set back
                continue
            self._next_check[scorer.name] = now + CHECK_INTERVAL
            if await self._threads.run(self._prepare_round, scorer.name, now):
                await self._run_round(scorer)

    def stop(self) -> None:
        """Start no more requests, and cancel the one in flight. The round goes on after the next start."""
        self._stopping = True
        if self._request is not None:
            self._request.cancel()

    def _prepare_round(self, scorer: str, now: datetime) -> bool:
        """Replace anchors and start a round if one is due. Return whether there are anchors to score."""
        if not self.leases[scorer].acquire():
            return False
        anchors = self._store.anchors
        status = anchors.refill(scorer, self._size, text_lifetime=self._text_lifetime)
        cause = self._round_cause(scorer, status, now) if status.active else None
        if cause is not None:
            anchors.start_round(scorer, cause)
        return cause is not None or status.pending > 0

    def _round_cause(self, scorer: str, status: AnchorStatus, now: datetime) -> RoundCause | None:
        """Return why a round is due now; None if none is."""
        started_at, anchors = status.started_at, self._store.anchors
        interval = ROUND_INTERVAL if status.ready else self._baseline_interval
        if started_at is None or not timedelta() <= now - started_at < interval:
            return "daily"
        if status.pending:
            return None
        if status.fingerprint is not None and anchors.has_new_judge(scorer, status.fingerprint):
            cause: RoundCause = "judge_changed"
        elif any(
            alert.type == "drop" and alert.scorer == scorer and alerting.onset_bounds(alert)[1] > started_at
            for alert in self._store.alerts.list_open()
        ):
            cause = "drop"
        else:
            return None
        return None if anchors.count_rounds(scorer, cause, since=now - ROUND_INTERVAL) else cause

    async def _run_round(self, scorer: Scorer) -> None:
        """Score anchors until the round is complete, or has to wait for the judge or the budget."""
        anchors = self._store.anchors
        while await self._threads.run(self.leases[scorer.name].acquire) and not self._stopping:
            pending = await self._threads.run(anchors.next_pending, scorer.name)
            if pending is None:
                return
            self._request = asyncio.create_task(self._score(scorer, pending.exchange))
            await asyncio.wait([self._request])
            if self._request.cancelled() or (self._stopping and is_retryable(self._request.result())):
                return
            score = self._request.result()
            if score.reason is UnscoredReason.BUDGET:
                self._next_check[scorer.name] = self._clock() + BUDGET_DELAY
                return
            key = (scorer.name, pending.round)
            if is_rejected(score) or is_retryable(score):
                retry_at = self._retry_policy.next_retry_at(key, retry_after=retry_after(score))
                if retry_at is None:
                    self._retry_policy.forget_task(key)
                    await self._threads.run(anchors.close_round, scorer.name, str(score.reason))
                else:
                    self._next_check[scorer.name] = retry_at
                return
            self._retry_policy.forget_task(key)
            await self._threads.run(anchors.save_score, scorer.name, pending, score)

    async def _score(self, scorer: Scorer, exchange: Exchange) -> Score:
        try:
            async with asyncio.timeout(self._timeout):
                return await run_scorer(scorer, exchange, clock=self._clock)
        except TimeoutError:
            return Score(scorer=scorer.name, fingerprint=scorer.fingerprint, reason=UnscoredReason.JUDGE_TIMEOUT)
