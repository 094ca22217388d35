"""Proxy scores: free scores from a local model for a uniform sample of exchanges.

They use a limited share of one CPU core.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from germane.exchange import Exchange
from germane.installation import install_command
from germane.monitor.loop.job import describe_error
from germane.scorers import LocalSimilarity, Scorer, is_local_installed, uses_coalescing_judge
from germane.settings import Settings

MAX_SAVED_INTERVALS: Final = 10.0
"""The number of poll intervals for which unused CPU time is kept."""
MIN_SHARE: Final = 0.1
"""The share of newly accrued CPU time that may be used even if the CPU budget is overspent."""
INITIAL_SECONDS_PER_EXCHANGE: Final = 0.015
"""The assumed CPU seconds per exchange before the first measurement."""
SMOOTHING: Final = 0.2
"""The weight of the latest measurement in the moving average of CPU seconds per exchange."""

_SAMPLE_HASH: Final = blake2b(digest_size=8, key=b"germane.proxy")

logger = logging.getLogger("germane.monitor")


class CpuBudget:
    """CPU time that accrues steadily. Each call may use half of it, so that some always remains for the next call.

    The inclusion probability depends on earlier measurements and on the number of exchanges, never on their content, so
    estimates with inverse-probability weights are unbiased. The probability is never 0. ``share`` is that of one core,
    greater than 0. A call uses at most half of the time between calls, ``poll_interval``.
    """

    def __init__(self, share: float, *, poll_interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._max_credit = min(MAX_SAVED_INTERVALS * share, 1.0) * poll_interval
        self._credit = share * poll_interval
        self._seconds_per_exchange = INITIAL_SECONDS_PER_EXCHANGE
        self._clock = clock
        self._last_call = clock() - poll_interval

    def inclusion_probability(self, count: int) -> float:
        """Return the inclusion probability of each of ``count`` exchanges, in (0, 1]."""
        now = self._clock()
        accrued, self._last_call = self._share * (now - self._last_call), now
        self._credit = min(self._max_credit, self._credit + accrued)
        each = self._seconds_per_exchange
        affordable = max(self._credit / 2, MIN_SHARE * min(accrued, self._max_credit), MIN_SHARE * each)
        return min(1.0, affordable / (each * max(count, 1)))

    def record_usage(self, seconds: float, count: int) -> None:
        """Record the CPU time in seconds that ``count`` exchanges took."""
        self._credit -= seconds
        if count:
            average = (1 - SMOOTHING) * self._seconds_per_exchange + SMOOTHING * seconds / count
            self._seconds_per_exchange = max(average, 1e-6)


class ProxyScore(NamedTuple):
    """The proxy score of one eligible exchange."""

    value: float | None
    """Cosine similarity of question and answer, in [-1, 1]; None if the exchange was not sampled or the model
    failed.
    """
    probability: float
    """The inclusion probability, in (0, 1]."""


class ProxyModel(Protocol):
    """A local model that computes proxy scores."""

    def supports(self, exchange: Exchange) -> bool:
        """Return whether the model can score this exchange."""

    def compute(self, exchanges: Sequence[Exchange]) -> list[float]:
        """Return one value per exchange. Blocks."""


class ProxyScorer:
    """Computes proxy scores for a sample chosen by a keyed hash of the exchange id, and measures the CPU time used."""

    def __init__(
        self, model: ProxyModel, cpu_budget: CpuBudget, *, cpu_clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._model = model
        self._cpu_budget = cpu_budget
        self._cpu_clock = cpu_clock
        self._disabled = False

    def score_sample(self, exchanges: Sequence[Exchange]) -> Mapping[str, ProxyScore]:
        """Return a proxy score, by id, for each exchange that has a question and a complete answer. Blocks.

        Never raises. If the model fails, the failure is logged, and proxy scores are disabled.
        """
        eligible = [exchange for exchange in exchanges if exchange.status == "ok" and self._model.supports(exchange)]
        if self._disabled or not eligible:
            return {}
        probability = self._cpu_budget.inclusion_probability(len(eligible))
        sample = [exchange for exchange in eligible if proxy_uniform(exchange.id) <= probability]
        values: dict[str, float] = {}
        if sample:
            started = self._cpu_clock()
            try:
                scores = self._model.compute(sample)
            except Exception as error:  # noqa: BLE001 - sampling must continue without the model
                self._disabled = True
                logger.warning("proxy scores are disabled: %s", describe_error(error))
            else:
                self._cpu_budget.record_usage(self._cpu_clock() - started, len(sample))
                values = {exchange.id: value for exchange, value in zip(sample, scores, strict=True)}
        return {exchange.id: ProxyScore(values.get(exchange.id), probability) for exchange in eligible}


def proxy_uniform(exchange_id: str) -> float:
    """Return a number in (0, 1] from a keyed hash of the exchange id, independent of the exchange's sampling key."""
    keyed = _SAMPLE_HASH.copy()
    keyed.update(exchange_id.encode())
    return ((int.from_bytes(keyed.digest()) >> 11) + 1) / 2**53


def build_proxy_scorer(
    settings: Settings, scorers: Sequence[Scorer], *, installed: Callable[[], bool] = is_local_installed
) -> ProxyScorer | None:
    """Return this process's proxy scorer; None if it is not needed, disabled or not installed.

    Proxy scores are needed if a judge scores only some of the exchanges. The model uses about 190 MB of memory. If the
    ``local`` extra is needed but not installed, a message is logged.
    """
    scores_all = settings.budget is None and settings.sample_rate == 1
    if scores_all or not settings.proxy_cpu or not any(map(uses_coalescing_judge, scorers)):
        return None
    if not installed():
        logger.info("proxy scores need an extra; run %s, or disable them with proxy_cpu = 0", install_command("local"))
        return None
    return ProxyScorer(LocalSimilarity(), CpuBudget(settings.proxy_cpu, poll_interval=settings.poll_interval))
