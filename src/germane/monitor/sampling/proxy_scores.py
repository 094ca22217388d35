"""The free score that costs no judge: of a uniform part of what was captured, within a share of one core."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from germane.exchange import Exchange
from germane.monitor.loop.job import describe
from germane.scorers import LocalSimilarity, Scorer, asks_judge, is_local_installed
from germane.settings import Settings

TICKS: Final = 10.0
"""For how many ticks time that was not used is kept."""
LEAST: Final = 0.1
"""Of the time that has come since the last look, which may be used whatever was overspent before."""
FIRST_GUESS: Final = 0.015
"""Seconds of CPU for one exchange."""
WEIGHT: Final = 0.2
"""Of the newest measurement in what one is thought to take."""


class Allowance:
    """CPU time that comes in steadily, and is spent by halves: so that the next look, however soon, finds some too.

    The probability of being in the part follows from what was measured before and from how many wait, never from who
    they are: weighting by its inverse is unbiased. It is never 0.

    Args:
        share: of one core, above 0.
        tick: seconds between two looks. At most half of so long may be spent in one look.
        clock: seconds that never run backwards.
    """

    def __init__(self, share: float, *, tick: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._most = min(TICKS * share, 1.0) * tick
        self._credit = share * tick
        self._each = FIRST_GUESS
        self._clock = clock
        self._then = clock() - tick

    def probability(self, count: int) -> float:
        """Return how probable it is to be in the part, in (0, 1], for each of so many exchanges."""
        now = self._clock()
        came, self._then = self._share * (now - self._then), now
        self._credit = min(self._most, self._credit + came)
        affordable = max(self._credit / 2, LEAST * min(came, self._most), LEAST * self._each)
        return min(1.0, affordable / (self._each * max(count, 1)))

    def spend(self, seconds: float, count: int) -> None:
        """Note what so many exchanges took."""
        self._credit -= seconds
        if count:
            self._each = max((1 - WEIGHT) * self._each + WEIGHT * seconds / count, 1e-6)


_KEYED: Final = blake2b(digest_size=8, key=b"germane.proxy")
_NONE: Final = "there is no proxy beside the judge's scores; pip install 'germane[local]' for one, or set proxy_cpu = 0"

logger = logging.getLogger("germane.monitor")


class Proxied(NamedTuple):
    """What came of one exchange that could have a proxy."""

    value: float | None
    """Cosine of question and answer, from -1 to 1; None outside the part, and where the model gave none."""
    probability: float
    """Of being in the part, in (0, 1], known before."""


class Similarity(Protocol):
    """What makes proxies."""

    def takes(self, exchange: Exchange) -> bool:
        """Return whether it can make one of this exchange."""
        ...

    def of(self, exchanges: Sequence[Exchange]) -> list[float]:
        """Return one value per exchange. Blocks."""
        ...


class Proxy:
    """Chooses the part by a keyed hash of the exchange's id, which no draw depends on, and measures what it takes.

    Args:
        similarity: what makes the values.
        allowance: how large the part may be.
        cost: CPU seconds of the calling thread.
    """

    def __init__(
        self, similarity: Similarity, allowance: Allowance, *, cost: Callable[[], float] = time.thread_time
    ) -> None:
        self._similarity = similarity
        self._allowance = allowance
        self._cost = cost
        self._fails = False

    def of(self, exchanges: Sequence[Exchange]) -> Mapping[str, Proxied]:
        """Return by id what came of the exchanges that could have a proxy: whole answers to questions. Blocks.

        Never raises: where the model fails, that is said once, and there are no more proxies.
        """
        whole = [one for one in exchanges if one.status == "ok" and self._similarity.takes(one)]
        if self._fails or not whole:
            return {}
        probability = self._allowance.probability(len(whole))
        values = self._values([one for one in whole if ticket(one.id) <= probability])
        return {one.id: Proxied(values.get(one.id), probability) for one in whole}

    def _values(self, part: Sequence[Exchange]) -> Mapping[str, float]:
        if not part:
            return {}
        began = self._cost()
        try:
            values = self._similarity.of(part)
        except Exception as error:  # noqa: BLE001 - the border to the engine: decisions must go on without it
            self._fails = True
            logger.warning("there are no proxies from now on: %s", describe(error))
            return {}
        self._allowance.spend(self._cost() - began, len(part))
        return {one.id: value for one, value in zip(part, values, strict=True)}


def ticket(exchange_id: str) -> float:
    """Return a number in (0, 1] that says which part the exchange is in: its own, and independent of its draw."""
    keyed = _KEYED.copy()
    keyed.update(exchange_id.encode())
    return ((int.from_bytes(keyed.digest()) >> 11) + 1) / 2**53


def proxy_for(
    settings: Settings, scorers: Sequence[Scorer], *, installed: Callable[[], bool] = is_local_installed
) -> Proxy | None:
    """Return what makes proxies in this process; None where none are wanted, or nothing is saved by them.

    Beside scorers that ask no judge there is nothing to save. That the extra is missing is said.
    """
    if not settings.proxy_cpu or not any(map(asks_judge, scorers)):
        return None
    if not installed():
        logger.info(_NONE)
        return None
    return Proxy(LocalSimilarity(), Allowance(settings.proxy_cpu, tick=settings.tick))
