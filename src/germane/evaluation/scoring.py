"""Concurrent scoring of rows, with retries. Identical rows are scored once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from germane import sanitize
from germane.delivery import Backoff
from germane.errors import SettingsError, UsageError
from germane.evaluation.cache import CacheKey, ScoreCache
from germane.evaluation.progress import RunUsage
from germane.exchange import Exchange
from germane.monitor import Admission, CircuitBreaker, retry_after
from germane.registry import BUILTIN_SCORER_NAMES
from germane.score import Score, UnscoredReason
from germane.scorers import exchange_concurrency, is_rejected, is_retryable, run_scorer

if TYPE_CHECKING:
    from germane.scorers import Scorer, ScorerSet, UsageMeter
    from germane.settings import Settings

MAX_JUDGE_WAIT: Final = 60.0
"""Maximum time for which requests to an unavailable judge are retried, in seconds. It is short, because a person may be
waiting."""
MAX_REJECTIONS: Final = 20
"""Number of consecutive rejections after which the run stops sending requests, because retries do not fix an invalid
key."""
FIRST_WAIT: Final = 1.0
"""Seconds before the first retry. The delay doubles with each further retry, up to :data:`MAX_WAIT`."""
MAX_WAIT: Final = 10.0
RATE_LIMIT_TIMEOUT_FACTOR: Final = 10
"""Factor for the retry timeout of rate-limited rows. It is greater than 1, because the judge still serves other
rows.
"""

log = logging.getLogger("germane.evaluation")
Scores = Mapping[str, Score]


class RetryingScorer:
    """Runs one scorer and retries failures that may be temporary.

    After several consecutive failures, the scorer pauses: one row probes the judge while the others wait. If the judge
    does not recover, the remaining rows fail with the same reason, without sending requests.
    """

    def __init__(
        self,
        scorer: Scorer,
        retry_timeout: float,
        *,
        first: float = FIRST_WAIT,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Retry until ``retry_timeout`` seconds pass without a success, for the first time after ``first`` seconds."""
        self._scorer = scorer
        self._retry_timeout = timedelta(seconds=retry_timeout)
        self._backoff = Backoff(initial=first, maximum=min(MAX_WAIT, retry_timeout), max_retry_after=retry_timeout)
        self._breaker = CircuitBreaker(scorer.name, backoff=self._backoff, clock=clock)
        self._clock = clock
        self._probe_lock = asyncio.Lock()
        self._failing_since: datetime | None = None
        self._rejections = 0
        self.final_failure: Score | None = None
        """The failure with which the scorer has stopped sending requests; None while it sends them."""

    async def score(self, exchange: Exchange) -> Score:
        """Return an exchange's score, after retries if necessary, or the final failure once the scorer has given up."""
        failing_since, attempts = None, 0
        while True:
            async with self._probe_lock:
                if self._breaker.is_rejecting and not self.final_failure:
                    await asyncio.sleep(self._breaker.retry_delay().total_seconds())
                if self.final_failure:
                    return self.final_failure
                if (admission := self._breaker.admit()) == "probe":
                    score = await self._run(exchange, admission)
            if admission != "probe":
                score = await self._run(exchange, admission)
            if self.final_failure or not _may_retry(score):
                return score
            attempts, failing_since = attempts + 1, failing_since or self._clock()
            wait = self._backoff.delay(attempts, retry_after=retry_after(score))
            is_rate_limited = score.reason is UnscoredReason.JUDGE_RATE_LIMITED
            retry_timeout = self._retry_timeout * (RATE_LIMIT_TIMEOUT_FACTOR if is_rate_limited else 1)
            if self._clock() + wait - failing_since >= retry_timeout:
                return score
            await asyncio.sleep(wait.total_seconds())

    async def _run(self, exchange: Exchange, admission: Admission) -> Score:
        score = await run_scorer(self._scorer, exchange)
        # A user-defined scorer may set a different name in its scores.
        score = replace(score, scorer=self._scorer.name)
        if is_rejected(score):
            self._breaker.cancel_admission(admission)
            self._rejections += 1
            if self._rejections >= MAX_REJECTIONS:
                model = "embedder" if score.reason is UnscoredReason.EMBEDDER_ERROR else "judge"
                self._give_up(score, f"the {model} rejected {MAX_REJECTIONS} requests in a row")
            return score
        if not _may_retry(score):
            self._breaker.record_score(score, admission)
            if score.state != "skipped":
                self._failing_since, self._rejections = None, 0
            return score
        # Read the clock before the breaker does, so that a pause that is exactly as long as the timeout counts as
        # exceeding it.
        failing_since = self._failing_since = self._failing_since or self._clock()
        self._breaker.record_score(score, admission)
        until = self._breaker.open_until
        if until is not None and until - failing_since >= self._retry_timeout:
            elapsed, wait = (self._clock() - failing_since).total_seconds(), (until - self._clock()).total_seconds()
            self._give_up(
                score,
                f"no score for {elapsed:.0f} s, and the next retry, in {wait:.0f} s, would exceed the limit of "
                f"{self._retry_timeout.total_seconds():g} s",
            )
        return score

    def _give_up(self, score: Score, why: str) -> None:
        if self.final_failure is None:
            last = sanitize.line(f"{score.reason}: {score.explanation}", 500)
            log.warning("%s has stopped sending requests: %s; last failure: %s", self._scorer.name, why, last)
            self.final_failure = Score(
                scorer=self._scorer.name,
                fingerprint=score.fingerprint,
                reason=score.reason,
                explanation=f"not sent: {why}; last failure: {last}",
                details=score.details,
            )


class DatasetScorer:
    """Scores exchanges, and reuses scores from the current run and from the cache."""

    def __init__(
        self,
        scorers: Sequence[Scorer],
        *,
        meter: UsageMeter,
        metered: Sequence[Scorer],
        cache: ScoreCache | None,
        retry_timeout: float,
    ) -> None:
        """Retry for up to ``retry_timeout`` seconds. ``meter`` counts the usage of the scorers in ``metered``."""
        self.scorers = scorers
        self.meter = meter
        self.metered = {scorer.name for scorer in metered}
        self.cache = cache
        self._unmetered_usage = RunUsage()
        self._retrying = {scorer.name: RetryingScorer(scorer, retry_timeout) for scorer in scorers}
        self._results: dict[CacheKey, asyncio.Future[Score]] = {}

    @property
    def usage(self) -> RunUsage:
        """The usage of this run so far."""
        return self._unmetered_usage.plus_meter(self.meter)

    @property
    def final_failure(self) -> Score | None:
        """The failure with which a scorer has stopped sending requests; None if all scorers still send them."""
        return next(filter(None, (retrying.final_failure for retrying in self._retrying.values())), None)

    def forget_results(self) -> None:
        """Forget the scores of this run, so that memory does not grow. Later duplicates are scored again."""
        self._results.clear()

    async def score(self, exchange: Exchange, names: Collection[str] | None = None) -> Scores:
        """Score an exchange with all scorers, or with those in ``names``, and return its scores by scorer name."""
        chosen = [scorer for scorer in self.scorers if names is None or scorer.name in names]
        scores = await asyncio.gather(*(self._score(scorer, exchange) for scorer in chosen))
        return {score.scorer: score for score in scores}

    async def score_all(
        self,
        exchanges: Sequence[Exchange],
        *,
        concurrency: int,
        names: Sequence[Collection[str]] | None = None,
        on_row_done: Callable[[], None] = lambda: None,
    ) -> list[Scores]:
        """Score all exchanges, up to ``concurrency`` at a time, and return the scores of each in their order.

        Exchanges are started in order. If all of them are started at once, an embedder gets their texts in batches that
        do not depend on timing. ``names`` are the names of the scorers for each exchange, by default all.
        """
        scores: dict[int, Scores] = {}
        remaining = iter(enumerate(exchanges))

        async def work() -> None:
            for index, exchange in remaining:
                scores[index] = await self.score(exchange, None if names is None else names[index])
                on_row_done()

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(concurrency, len(exchanges))):
                workers.create_task(work())
        return [scores[index] for index in range(len(exchanges))]

    async def _score(self, scorer: Scorer, exchange: Exchange) -> Score:
        key = cache_key(scorer, exchange)
        if key in self._results:
            reused = await asyncio.shield(self._results[key])
            # A reused score caused no requests. Unknown usage stays None.
            return replace(
                reused,
                cost=None if reused.cost is None else 0.0,
                input_tokens=None if reused.input_tokens is None else 0,
                output_tokens=None if reused.output_tokens is None else 0,
            )
        future = self._results[key] = asyncio.get_running_loop().create_future()
        try:
            score = None if self.cache is None else self.cache.find_score(key)
            if score is None:
                score = await self._retrying[scorer.name].score(exchange)
                if scorer.name not in self.metered:
                    self._unmetered_usage = self._unmetered_usage.plus_score(score)
                if self.cache is not None:
                    self.cache.save_score(key, score)
            future.set_result(score)
        finally:
            future.cancel()  # on an error, cancel the rows that are still waiting
        return score


def scorer_names(scorer_set: ScorerSet) -> tuple[str, ...]:
    """Return the names of the scorers. Raise a settings error if there are none, or a usage error if two are equal."""
    names = tuple(scorer.name for scorer in scorer_set.scorers)
    if not names:
        raise SettingsError(scorer_set.unavailable_reason or "no scorers selected: pass at least one")
    if len(set(names)) < len(names):
        raise UsageError(f"each scorer needs a unique name: {', '.join(names)}")
    return names


def partition_scorer(scorer_set: ScorerSet, settings: Settings) -> DatasetScorer:
    """Return the scorer of a partition. It has no cache, because a partition's scores are written at once."""
    return DatasetScorer(
        scorer_set.scorers,
        meter=scorer_set.meter,
        metered=[each for each in scorer_set.scorers if is_builtin(each)],
        cache=None,
        retry_timeout=min(MAX_JUDGE_WAIT, settings.retry_timeout),
    )


def partition_concurrency(scorer_set: ScorerSet, concurrency: int, exchanges: int) -> int:
    """Return the number of exchanges of a partition to score at a time."""
    if scorer_set.judge is not None:  # the judge limits its own requests
        return exchange_concurrency(concurrency)
    # Without a judge, all exchanges of a partition fill the embedder's batches.
    return max(1, exchanges) if all(map(is_builtin, scorer_set.scorers)) else concurrency


def cache_key(scorer: Scorer, exchange: Exchange) -> CacheKey:
    """Return the cache key for an exchange's score.

    Built-in scorers read only the question, answer, contexts and history. User-defined scorers may read any field, such
    as a reference answer in another column, so their keys cover all fields except the exchange's id.

    Raises:
        UsageError: the scorer has no name or no fingerprint.
    """
    try:
        name, fingerprint = scorer.name, scorer.fingerprint
    except AttributeError as error:
        raise UsageError(
            f"a scorer needs the attributes name, fingerprint, requires and range, and the method score(exchange): "
            f"{error}"
        ) from None
    content: dict[str, Any] = {
        "question": exchange.question,
        "answer": exchange.answer,
        "contexts": [context.text for context in exchange.contexts],
        "history": [[message.role, message.content] for message in exchange.history],
    }
    if not is_builtin(scorer):
        content |= {
            "route": exchange.route,
            "model": exchange.model,
            "attributes": dict(exchange.attributes),
            "chunks": [[context.id, context.score] for context in exchange.contexts],
        }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return CacheKey(name, str(fingerprint), hashlib.sha256(canonical.encode()).hexdigest()[:32])


def is_builtin(scorer: Scorer) -> bool:
    """Return whether a scorer is built in."""
    return scorer.name in BUILTIN_SCORER_NAMES and type(scorer).__module__.startswith("germane.scorers.")


def is_final(score: Score) -> bool:
    """Return whether scoring the same exchange later would not help: it has a value, or its failure is its own."""
    return score.reason is not UnscoredReason.BUDGET and not is_rejected(score) and not is_retryable(score)


def _may_retry(score: Score) -> bool:
    """Return whether a retry may help. Rejected requests are not retried, even if the server sends ``Retry-After``."""
    return not is_rejected(score) and is_retryable(score)
