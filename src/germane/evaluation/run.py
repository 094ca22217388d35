"""Scoring of a data set: rows in, an evaluation out."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from germane.errors import SettingsError, UsageError
from germane.evaluation.cache import ScoreCache
from germane.evaluation.progress import show_progress
from germane.evaluation.result import Evaluation
from germane.evaluation.rows import read_rows
from germane.evaluation.scoring import DatasetScorer, is_builtin
from germane.evaluation.summary import RowScores
from germane.logging_filters import suppressed_loggers
from germane.monitor import local_rate_limiter
from germane.scorers import apply_calibration, build_scorers, exchange_concurrency
from germane.settings import EvaluationSettingsArguments, load_settings, signature_with_settings
from germane.tracer import suppress_tracing

if TYPE_CHECKING:
    from germane.calibration import Calibration
    from germane.registry import ScoringFunction
    from germane.scorers import Scorer

    OneScorer = str | ScoringFunction | Scorer | type[Scorer]
    Scorers = OneScorer | Sequence[OneScorer]

MAX_JUDGE_WAIT = 60.0
"""Seconds to retry an unavailable judge. It is short, because someone may be waiting for the run."""


def evaluate(
    rows: Any,
    scorers: Scorers | None = None,
    *,
    metrics: Scorers | None = None,
    columns: Mapping[str, str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    limit: int | None = None,
    calibration: Iterable[Calibration] = (),
    **settings: Unpack[EvaluationSettingsArguments],
) -> Evaluation:
    """Score a data set; see :func:`aevaluate` for the arguments.

    Raises:
        UsageError: an event loop is running, as in notebooks: use ``await germane.aevaluate(...)``.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(
            aevaluate(
                rows,
                scorers,
                metrics=metrics,
                columns=columns,
                cache=cache,
                progress=progress,
                limit=limit,
                calibration=calibration,
                **settings,
            )
        )
    raise UsageError("an event loop is running: use 'await germane.aevaluate(...)'")


async def aevaluate(
    rows: Any,
    scorers: Scorers | None = None,
    *,
    metrics: Scorers | None = None,
    columns: Mapping[str, str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    limit: int | None = None,
    calibration: Iterable[Calibration] = (),
    **settings: Unpack[EvaluationSettingsArguments],
) -> Evaluation:
    """Score a data set.

    Args:
        rows: Mappings, a mapping of columns to lists, a pandas data frame, a Hugging Face data set, or a file name
            (JSONL, JSON, CSV, Parquet), with ``question`` or ``query``, ``answer`` and ``contexts``, or the Ragas
            column names. Contexts are a list, or a JSON list in a string. ``id``, ``history``, ``route`` and ``model``
            are used if present; other columns with plain values become attributes of the exchange.
        scorers: Names, functions of an exchange, scorers, or classes of scorers, which are built from the settings.
            Defaults to those in the settings. A single scorer needs no list.
        metrics: Another name for ``scorers``.
        columns: The data set's names for these columns, such as ``{"question": "q"}``.
        cache: File in which each score is stored immediately. A later run only computes missing scores.
        progress: Whether to show the progress on stderr. Defaults to true on a terminal and in a notebook.
        limit: Score only the first rows.
        calibration: Calibrations of cosine scores, such as ``germane.Store(url).labels.list_calibrations()``. If the
            embedder is the same, labels come from the calibrated value. Values do not change.
        **settings: Any field of :class:`germane.Settings`, such as ``judge``, ``embedder`` and ``concurrency``. An
            unavailable judge is retried for up to 60 s without any success, or for ``retry_timeout`` seconds if that
            is given here. From other sources, ``retry_timeout`` can only shorten the 60 s.

    Raises:
        UsageError: rows, columns or cache are invalid, an object is not a scorer, two scorers have the same name, or
            both ``scorers`` and ``metrics`` are given. All rows are read before the first one is scored.
        SettingsError: a setting is invalid or unknown, or nothing can be scored with the settings.
    """
    if scorers is not None and metrics is not None:
        raise UsageError("metrics is another name for scorers: pass one of them")
    scorers = metrics if scorers is None else scorers
    loaded = load_settings(**settings)
    retry_timeout = loaded.retry_timeout if "retry_timeout" in settings else min(MAX_JUDGE_WAIT, loaded.retry_timeout)
    dataset_rows = list(islice(read_rows(rows, columns), limit))
    given: Sequence[object] | None = None
    if scorers is not None:
        given = scorers if isinstance(scorers, Sequence) and not isinstance(scorers, str) else [scorers]

    with suppress_tracing(), suppressed_loggers(), nullcontext() if cache is None else ScoreCache(cache) as score_cache:
        scorer_set = build_scorers(loaded, given, rate_limiter=local_rate_limiter(loaded))
        try:
            names = [scorer.name for scorer in scorer_set.scorers]
            if not names:
                raise SettingsError(scorer_set.unavailable_reason or "name at least one scorer")
            if len(set(names)) < len(names):
                raise UsageError(f"each scorer needs a unique name: {', '.join(names)}")
            # Scorer objects that the caller passed have a judge and embedder of their own.
            own = {id(scorer) for scorer in given or ()}
            metered = [scorer for scorer in scorer_set.scorers if is_builtin(scorer) and id(scorer) not in own]
            dataset_scorer = DatasetScorer(
                scorer_set.scorers,
                meter=scorer_set.meter,
                metered=metered,
                cache=score_cache,
                retry_timeout=retry_timeout,
            )
            concurrency = loaded.concurrency
            if scorer_set.judge is not None:  # the judge limits its own requests
                concurrency = exchange_concurrency(concurrency)
            started = time.perf_counter()
            with show_progress(progress, len(dataset_rows)) as report_progress:
                scores = await dataset_scorer.score_all(
                    dataset_rows, concurrency=concurrency, on_row_done=lambda: report_progress(dataset_scorer.usage)
                )
            usage = replace(dataset_scorer.usage, seconds=time.perf_counter() - started)
        finally:
            await scorer_set.aclose()

    # At the end, so that cached scores do not depend on calibrations.
    calibrations = {(each.embedder, each.scorer): each for each in calibration}
    calibrated = [
        {name: apply_calibration(score, calibrations) for name, score in row_scores.items()} for row_scores in scores
    ]
    evaluated = (
        RowScores(row.exchange, row_scores, row.location)
        for row, row_scores in zip(dataset_rows, calibrated, strict=True)
    )
    return Evaluation(tuple(evaluated), usage)


# Type checkers read Unpack[EvaluationSettingsArguments]; inspect, and tools that use it, read __signature__.
evaluate.__signature__ = signature_with_settings(evaluate, EvaluationSettingsArguments)  # type: ignore[attr-defined]
aevaluate.__signature__ = signature_with_settings(aevaluate, EvaluationSettingsArguments)  # type: ignore[attr-defined]
