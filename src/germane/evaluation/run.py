"""The entry points for evaluating a data set: :func:`evaluate`, :func:`aevaluate` and :func:`evaluate_to_parquet`."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from germane.errors import UsageError
from germane.evaluation.cache import ScoreCache
from germane.evaluation.progress import show_progress
from germane.evaluation.result import Evaluation
from germane.evaluation.rows import read_rows
from germane.evaluation.scoring import MAX_JUDGE_WAIT, DatasetScorer, scorer_names
from germane.evaluation.summary import RowScores
from germane.logging_filters import suppressed_loggers
from germane.monitor import local_rate_limiter
from germane.scorers import apply_calibration, build_scorers, builtin_base, exchange_concurrency
from germane.settings import EvaluationSettingsArguments, load_settings, signature_with_settings
from germane.tracer import suppress_tracing

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from germane.calibration import Calibration
    from germane.evaluation.dataset_run import DatasetResult
    from germane.evaluation.engines import EngineName
    from germane.registry import ScoringFunction
    from germane.scorers import Scorer

    OneScorer = str | ScoringFunction | Scorer | type[Scorer]
    Scorers = OneScorer | Iterable[OneScorer]


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
        UsageError: an event loop is running, as in notebooks: use ``await germane.aevaluate(...)``. With gevent, it can
            be that of ``germane.start()`` or of an evaluation in another greenlet.
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
    library = threading.get_ident.__module__.partition(".")[0]
    if library in {"gevent", "eventlet"}:
        message = "allows one event loop at a time: evaluate one data set at a time, without germane.start()"
        raise UsageError(f"{library} {message}")
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
        cache: A file in which each score is stored as soon as it is computed. Later runs compute only the missing
            scores.
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
            scorer_names(scorer_set)
            # The other scorers have a judge and an embedder of the caller, whose usage is not part of the result.
            own = {id(scorer) for scorer in given or ()}
            builtin = [scorer for scorer in scorer_set.scorers if builtin_base(type(scorer)) is not None]
            dataset_scorer = DatasetScorer(
                scorer_set.scorers,
                meter=scorer_set.meter,
                metered=[scorer for scorer in builtin if id(scorer) not in own],
                cache=score_cache,
                retry_timeout=retry_timeout,
            )
            concurrency = loaded.concurrency
            if scorer_set.judge is not None:  # the judge limits its own requests
                concurrency = exchange_concurrency(concurrency)
            started = time.perf_counter()
            with show_progress(progress, len(dataset_rows)) as report_progress:
                scores = await dataset_scorer.score_all(
                    [row.exchange for row in dataset_rows],
                    concurrency=concurrency,
                    on_row_done=lambda: report_progress(dataset_scorer.usage),
                )
            usage = replace(dataset_scorer.usage, seconds=time.perf_counter() - started)
        finally:
            await scorer_set.aclose()

    # Calibrate at the end, so that cached scores do not depend on calibrations.
    calibrations = {(each.embedder, each.scorer): each for each in calibration}
    evaluated = (
        RowScores(
            row.exchange,
            {name: apply_calibration(score, calibrations) for name, score in row_scores.items()},
            row.location,
            row.has_id,
        )
        for row, row_scores in zip(dataset_rows, scores, strict=True)
    )
    return Evaluation(tuple(evaluated), usage)


def evaluate_to_parquet(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    scorers: str | Iterable[str] | None = None,
    *,
    engine: EngineName | Executor = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    partition_size: int | None = None,
    progress: bool | None = None,
    **settings: Unpack[EvaluationSettingsArguments],
) -> DatasetResult:
    """Score a data set of any size in other processes, and write the scores to a folder of Parquet files.

    Unlike :func:`evaluate`, this function never holds all rows or scores in memory: each process reads one partition at
    a time, a thousand rows of it at once, and writes one score file. Only a ``.json`` file is read as a whole. The
    summary is computed from running sums. If the run is interrupted, call the function again with the same arguments:
    partitions with a score file are not scored again.

    A script must call it under ``if __name__ == "__main__":``, because the processes import the script.

    Args:
        path: A file in a format that :func:`evaluate` accepts, or a folder of Parquet files. With a cluster, all of its
            processes need the same path.
        output: The folder for the score files. It is created if necessary. If it exists, it must be empty or belong to
            the same run.
        scorers: Names of scorers. Put your own scorers into a module that the ``imports`` setting names. Defaults to
            the ``scorers`` setting.
        engine: ``local`` for processes on this machine, ``dask``, ``ray``, or any executor, such as that of a Dask
            client. An executor is not shut down. The workers of a cluster, and of executors other than those of
            :mod:`concurrent.futures`, take the API key and the judge's URL from their own settings.
        workers: The number of processes to start. Defaults to the number of CPUs. With an executor, it is required: the
            number of functions that the executor runs at the same time.
        scheduler: The address of a running Dask scheduler or Ray cluster, whose workers are used.
        columns: A mapping of germane's column names to the data set's, such as ``{"question": "q"}``.
        limit: The number of rows to score, from the start of the data set. Defaults to all rows.
        partition_size: The number of rows in a partition, by default 1,000, or 500 if a scorer uses a judge. In Parquet
            files, a partition consists of whole row groups.
        progress: Whether to show progress on stderr. By default, it is shown only on a terminal and in a notebook.
        **settings: Any field of :class:`germane.Settings`, as for :func:`evaluate`. The processes share
            ``requests_per_minute`` and ``tokens_per_minute`` evenly.

    Returns:
        The summaries, the usage and the folder.

    Raises:
        UsageError: The data set is invalid, the folder belongs to another run, a scorer is not a name, the engine is
            not installed, or the arguments do not fit together.
        SettingsError: A setting is invalid or unknown, or no scorer can run with the settings.
        GermaneError: A partition failed repeatedly, or the judge rejects all requests.
    """
    from germane.evaluation.dataset_run import run_dataset
    from germane.evaluation.engines import open_engine

    names = None if scorers is None else [scorers] if isinstance(scorers, str) else list(scorers)
    for name in names or ():
        if not isinstance(name, str):
            raise UsageError(
                f"scorers must be names, not {name!r:.60}, because other processes create the scorers: name a module "
                "with your scorer in imports=[...]"
            )
    loaded = load_settings(**settings) if names is None else load_settings(scorers=names, **settings)
    opened = open_engine(engine, workers=workers, scheduler=scheduler)
    return run_dataset(
        Path(path),
        Path(output),
        loaded,
        opened,
        columns=columns,
        limit=limit,
        partition_size=partition_size,
        progress=progress,
    )


def _list_scorers(argument: str, scorers: Any) -> list[object] | None:
    """Return the scorers in an argument: a single one, an iterable, or None."""
    if scorers is None:
        return None
    if isinstance(scorers, Mapping):
        raise UsageError(
            f"{argument} must be a list, such as {list(scorers)!r:.100}, not {type(scorers).__name__}; "
            "pass options as scorer_options={'<name>': {...}}"
        )
    if isinstance(scorers, str) or callable(scorers) or hasattr(scorers, "score") or not isinstance(scorers, Iterable):
        return [scorers]
    # Reports list the scorers in this order, and the order of a set of names differs between processes.
    if not isinstance(scorers, (set, frozenset)):
        return list(scorers)
    return sorted(scorers, key=lambda each: str(getattr(each, "name", None) or getattr(each, "__name__", each)))


# Type checkers read Unpack[EvaluationSettingsArguments]; inspect and the tools that use it read __signature__.
evaluate.__signature__ = signature_with_settings(evaluate, EvaluationSettingsArguments)  # type: ignore[attr-defined]
aevaluate.__signature__ = signature_with_settings(aevaluate, EvaluationSettingsArguments)  # type: ignore[attr-defined]
evaluate_to_parquet.__signature__ = signature_with_settings(  # type: ignore[attr-defined]
    evaluate_to_parquet, EvaluationSettingsArguments
)
