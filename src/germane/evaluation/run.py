"""Scoring a data set: rows in, an evaluation out."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from germane.errors import SettingsError, UsageError
from germane.evaluation.progress import progress as shown
from germane.evaluation.result import Evaluation, RowScores
from germane.evaluation.rows import Row, read_rows
from germane.evaluation.scoring import Bench, is_ours, score_all

if TYPE_CHECKING:
    from germane.calibration import Calibration
    from germane.evaluation.cache import Cache
    from germane.registry import ScoringFunction
    from germane.scorers import Pace, Scorer, Workbench
    from germane.settings import Settings

    OneScorer = str | ScoringFunction | Scorer
    Scorers = OneScorer | Sequence[OneScorer]

PATIENCE = 60.0
"""Seconds for which a judge that is away, slow or busy is waited for; somebody may be waiting for the run."""


def evaluate(rows: Any, scorers: Scorers | None = None, **options: Any) -> Evaluation:
    """Score a data set; see :func:`aevaluate`.

    Raises:
        UsageError: an event loop runs here already, in a notebook for one.
    """
    if _in_event_loop():
        raise UsageError("an event loop runs here: use 'await germane.aevaluate(...)'")
    return asyncio.run(aevaluate(rows, scorers, **options))


async def aevaluate(
    rows: Any,
    scorers: Scorers | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    limit: int | None = None,
    calibration: Iterable[Calibration] = (),
    **settings: Any,
) -> Evaluation:
    """Score a data set.

    Args:
        rows: Mappings, a pandas frame, a Hugging Face data set, or the name of a file (JSONL, JSON, CSV, Parquet), with
            ``question``, ``answer`` and ``contexts``; Ragas' names are taken too. Contexts are a list, or a JSON list
            in a string. ``id``, ``history``, ``route`` and ``model`` are used where they are there; other columns
            that hold plain values become attributes of the exchange.
        scorers: Names, functions of an exchange, or scorers of your own; by default those of the settings. One alone
            needs no list.
        columns: Your names for those columns, such as ``{"question": "q"}``.
        cache: A file that keeps each score as soon as it is there. Run again with it, only what is missing is asked.
        progress: Whether to show how far it is on stderr; by default on a terminal and in a notebook.
        limit: Score only that many rows, the first ones.
        calibration: Floors of cosines, such as ``germane.Store(url).calibrations()``: labels go by the calibrated value
            where the embedder is the same. Values stay as they are.
        **settings: Any of :class:`germane.settings.Settings`, such as ``judge``, ``embedder`` and ``concurrency``. A
            judge that is away, slow or busy is waited for up to 60 s without any success, or ``retry_for`` seconds
            where that is given here; elsewhere it can only shorten them.

    Raises:
        UsageError: rows, columns or cache cannot be used, something is no scorer, or two have one name. All rows are
            read before the first of them is scored.
        SettingsError: a setting is wrong or unknown, or nothing can be scored with these.
    """
    from germane.logging_filters import hushed
    from germane.settings import load
    from germane.tracer import suppressed

    loaded = load(**settings)
    read = list(islice(read_rows(rows, columns), limit))
    with suppressed(), hushed(), _opened(cache) as kept:
        workbench = _workbench(scorers, loaded)
        try:
            bench = Bench(
                _chosen(workbench),
                meter=workbench.meter,
                metered=_metered(workbench, scorers),
                cache=kept,
                patience=loaded.retry_for if "retry_for" in settings else min(PATIENCE, loaded.retry_for),
            )
            evaluation = await _run(read, bench, _at_once(workbench, loaded), progress)
            return _calibrated(evaluation, calibration)
        finally:
            await workbench.aclose()


async def _run(rows: Sequence[Row], bench: Bench, at_once: int, progress: bool | None) -> Evaluation:  # noqa: FBT001 - handed through
    started = time.perf_counter()
    with shown(progress, len(rows)) as tell:
        scores = await score_all(rows, bench, at_once=at_once, tell=lambda: tell(bench.spending))
    found = tuple(RowScores(row.exchange, each, row.place) for row, each in zip(rows, scores, strict=True))
    return Evaluation(found, replace(bench.spending, seconds=time.perf_counter() - started))


def _calibrated(evaluation: Evaluation, calibration: Iterable[Calibration]) -> Evaluation:
    """Label by the calibrated values; here at the end, so that a cache holds what does not depend on it."""
    from germane.scorers import relabelled

    floors = {(one.embedder, one.scorer): one for one in calibration}
    if not floors:
        return evaluation
    rows = [
        replace(row, scores={name: relabelled(score, floors) for name, score in row.scores.items()})
        for row in evaluation.rows
    ]
    return replace(evaluation, rows=tuple(rows))


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _opened(cache: str | os.PathLike[str] | None) -> Cache | nullcontext[None]:
    if cache is None:
        return nullcontext()
    from germane.evaluation.cache import Cache

    return Cache(cache)


def _workbench(scorers: Scorers | None, settings: Settings) -> Workbench:
    from germane.scorers import build

    return build(settings, None if scorers is None else _listed(scorers), pace=_pace(settings))


def _pace(settings: Settings) -> Pace | None:
    if settings.requests_per_minute is None and settings.tokens_per_minute is None:
        return None
    from germane.monitor import own_pace

    return own_pace(settings)


def _listed(scorers: Scorers) -> Sequence[OneScorer]:
    """Return a list of what may be one alone."""
    return scorers if isinstance(scorers, Sequence) and not isinstance(scorers, str) else [scorers]


def _metered(workbench: Workbench, scorers: Scorers | None) -> list[Scorer]:
    """Return the scorers whose judge and embedder are the workbench's; one that was given has its own."""
    given = [] if scorers is None else _listed(scorers)
    return [made for made in workbench.scorers if is_ours(made) and not any(made is one for one in given)]


def _at_once(workbench: Workbench, settings: Settings) -> int:
    """Return how many rows are at work; the judge itself lets no more requests pass than it may."""
    from germane.scorers import at_work

    return settings.concurrency if workbench.judge is None else at_work(settings.concurrency)


def _chosen(workbench: Workbench) -> Sequence[Scorer]:
    names = [scorer.name for scorer in workbench.scorers]
    if not names:
        raise SettingsError(workbench.problem or "name at least one scorer")
    if len(set(names)) < len(names):
        raise UsageError(f"each scorer needs a name of its own: {', '.join(names)}")
    return workbench.scorers
