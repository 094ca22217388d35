"""The entry points for evaluating a data set: :func:`evaluate` and :func:`aevaluate`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from germane.errors import SettingsError, UsageError
from germane.evaluation.cache import ScoreCache
from germane.evaluation.progress import show_progress
from germane.evaluation.result import Evaluation
from germane.evaluation.rows import read_rows
from germane.evaluation.scoring import DatasetScorer
from germane.evaluation.summary import RowScores
from germane.logging_filters import suppressed_loggers
from germane.monitor import local_rate_limiter
from germane.scorers import apply_calibration, build_scorers, builtin_base, exchange_concurrency
from germane.settings import EvaluationSettingsArguments, load_settings, signature_with_settings
from germane.tracer import suppress_tracing

if TYPE_CHECKING:
    from germane.calibration import Calibration
    from germane.registry import ScoringFunction
    from germane.scorers import Scorer

    OneScorer = str | ScoringFunction | Scorer | type[Scorer]
    Scorers = OneScorer | Iterable[OneScorer]

MAX_JUDGE_WAIT = 60.0
"""Maximum retry time for an unavailable judge, in seconds. It is short, because a person may be waiting."""


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
        rows: A list of mappings, a mapping of column names to lists, arrays or series, a pandas data frame, a Hugging
            Face data set, or a file name (JSONL, JSON, CSV, TSV, Parquet). The columns are ``question`` or ``query``,
            ``answer`` and ``contexts``, or the Ragas column names. Contexts are a list, or a JSON list in a string.
            The columns ``id``, ``history``, ``route`` and ``model`` are optional. Other columns with scalar values
            become attributes of the exchange.
        scorers: One scorer, or several in a list or another iterable: names, scoring functions, scorer objects, or
            scorer classes. Built-in classes and their subclasses are instantiated from the settings, others without
            arguments. Defaults to the ``scorers`` setting.
        metrics: An alias for ``scorers``.
        columns: A mapping of germane's column names to the data set's, such as ``{"question": "q"}``.
        cache: A file that stores each score as soon as it is computed. Later runs compute only the missing scores.
        progress: Whether to show progress on stderr. By default, it is shown only on a terminal and in a notebook.
        limit: The number of rows to score, from the start of the data set. Defaults to all rows.
        calibration: Calibrations of cosine scores, such as ``germane.Store(url).labels.list_calibrations()``. Scores
            from a calibrated embedder are labeled by their calibrated values; the scores themselves do not change.
        **settings: Any field of :class:`germane.Settings`, such as ``judge``, ``embedder`` and ``concurrency``. If
            the judge is unavailable, requests are retried until 60 s have passed without a success, or
            ``retry_timeout`` seconds if you pass that argument. A ``retry_timeout`` from another source, such as an
            environment variable, can only shorten the 60 s.

    Returns:
        The evaluation, with the scores of each row.

    Raises:
        UsageError: ``rows``, ``columns`` or ``cache`` is invalid, an object is not a scorer, two scorers have the same
            name, or both ``scorers`` and ``metrics`` are given. All rows are read before the first one is scored.
        SettingsError: a setting is invalid or unknown, or no scorer can run with the settings.
    """
    if scorers is not None and metrics is not None:
        raise UsageError("metrics is an alias for scorers: pass only one of them")
    given = _list_scorers("scorers", scorers) if metrics is None else _list_scorers("metrics", metrics)
    loaded = load_settings(**settings)
    retry_timeout = loaded.retry_timeout if "retry_timeout" in settings else min(MAX_JUDGE_WAIT, loaded.retry_timeout)
    dataset_rows = list(islice(read_rows(rows, columns), limit))
    with suppress_tracing(), suppressed_loggers(), nullcontext() if cache is None else ScoreCache(cache) as score_cache:
        scorer_set = build_scorers(loaded, given, rate_limiter=local_rate_limiter(loaded))
        try:
            names = [scorer.name for scorer in scorer_set.scorers]
            if not names:
                raise SettingsError(scorer_set.unavailable_reason or "no scorers selected: pass at least one")
            if len(set(names)) < len(names):
                raise UsageError(f"each scorer needs a unique name: {', '.join(names)}")
            # Scorer objects passed by the caller have their own judge and embedder.
            own = {id(scorer) for scorer in given or ()}
            metered = [
                scorer
                for scorer in scorer_set.scorers
                if builtin_base(type(scorer)) is not None and id(scorer) not in own
            ]
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

    # Calibrate at the end, so that cached scores do not depend on calibrations.
    calibrations = {(each.embedder, each.scorer): each for each in calibration}
    calibrated = [
        {name: apply_calibration(score, calibrations) for name, score in row_scores.items()} for row_scores in scores
    ]
    evaluated = (
        RowScores(row.exchange, row_scores, row.location)
        for row, row_scores in zip(dataset_rows, calibrated, strict=True)
    )
    return Evaluation(tuple(evaluated), usage)


def _list_scorers(argument: str, scorers: Any) -> list[object] | None:
    """Return the scorers in an argument, which is a single scorer or an iterable of scorers; None if it is None."""
    if scorers is None:
        return None
    if isinstance(scorers, Mapping):
        raise UsageError(
            f"{argument} is a {type(scorers).__name__}: pass a list, such as {argument}={list(scorers)!r:.100}, and "
            "options as scorer_options={'<name>': {...}}"
        )
    if isinstance(scorers, str) or callable(scorers) or hasattr(scorers, "score") or not isinstance(scorers, Iterable):
        return [scorers]
    # The order of a set of names differs between processes, and reports would list the scorers in that order.
    return sorted(scorers, key=_scorer_name) if isinstance(scorers, (set, frozenset)) else list(scorers)


def _scorer_name(scorer: object) -> str:
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", scorer))


# Type checkers read Unpack[EvaluationSettingsArguments]; inspect and the tools that use it read __signature__.
evaluate.__signature__ = signature_with_settings(evaluate, EvaluationSettingsArguments)  # type: ignore[attr-defined]
aevaluate.__signature__ = signature_with_settings(aevaluate, EvaluationSettingsArguments)  # type: ignore[attr-defined]
