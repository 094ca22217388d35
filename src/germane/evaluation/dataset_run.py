"""Scoring of a data set on an engine: one score file per partition, in a folder with a manifest.

A partition is done when its score file has its final name: a complete file is renamed to it. An interrupted run
therefore continues where it stopped, and two processes that score the same partition write the same file. Files with a
temporary name belong to processes that were killed. They are removed at the start and at the end of a run.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from germane.errors import UsageError
from germane.evaluation.engines import Engine
from germane.evaluation.files import Record, iterate_records
from germane.evaluation.parquet import (
    RowGroup,
    ScoreFileWriter,
    list_files,
    list_row_groups,
    read_metadata,
    read_row_group,
    remove_partial_files,
)
from germane.evaluation.partitions import (
    default_partition_size,
    find_interruption,
    run_partitions,
    settings_for_workers,
    settings_of_worker,
)
from germane.evaluation.progress import ReportProgress, RunUsage, show_progress
from germane.evaluation.rows import ColumnMap, convert_records
from germane.evaluation.scoring import is_builtin, partition_concurrency, partition_scorer, scorer_names
from germane.evaluation.summary import (
    EvaluationCheck,
    FingerprintSums,
    RowScores,
    ScorerSummary,
    ScorerSums,
    SummarySums,
    check_thresholds,
)
from germane.logging_filters import suppressed_loggers
from germane.monitor import local_rate_limiter
from germane.scorers import build_scorers
from germane.settings import Settings
from germane.tracer import suppress_tracing

VERSION: Final = 1
"""Version of the manifest."""
MANIFEST: Final = "manifest.json"
CHUNK_ROWS: Final = 1000
"""Number of rows to score and write at a time, which limits memory."""
_SUMMARY_KEY: Final = "germane.summary"


@dataclass(frozen=True, slots=True)
class DatasetJob:
    """The data that all partitions of a data set share."""

    settings: Settings
    has_own_secrets: bool
    scorers: tuple[str, ...]
    columns: Mapping[str, str]
    output: Path


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """A partition: row groups of one Parquet file, which the process reads, or records that it receives."""

    number: int
    rows: int
    groups: tuple[RowGroup, ...] = ()
    records: tuple[Record, ...] = ()

    def iterate_records(self, columns: frozenset[str] | None) -> Iterator[Record]:
        """Yield the records, with only the given columns if they are read from a file."""
        yield from self.records
        for group in self.groups:
            yield from read_row_group(group, columns)


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """The summary and the usage of a partition."""

    sums: SummarySums
    usage: RunUsage


@dataclass(frozen=True, slots=True)
class DatasetResult:
    """The result of scoring a data set on an engine. The scores are in ``output``."""

    rows: int
    summaries: list[ScorerSummary]
    usage: RunUsage
    """Usage of this run, excluding partitions that were done before."""
    output: Path
    reused_parts: int
    """Number of partitions that were done before."""
    reused_rows: int = 0
    """Number of rows in these partitions. ``rows`` includes them."""

    def check(self, min_mean: float | None = None, min_coverage: float | None = None) -> EvaluationCheck:
        """Check each scorer's mean and coverage; see :meth:`germane.Evaluation.check`."""
        return check_thresholds(self.summaries, min_mean, min_coverage)


def run_dataset(
    path: Path,
    output: Path,
    settings: Settings,
    engine: AbstractContextManager[Engine],
    *,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    partition_size: int | None = None,
    progress: bool | None = None,
) -> DatasetResult:
    """Score a data set with the scorers in the settings, and write the scores and a manifest to a folder.

    ``engine`` scores the partitions. It is opened and closed by this function. For the other arguments, see
    :func:`germane.evaluate_to_parquet`.

    Raises:
        UsageError: The data set is invalid, or the folder belongs to another run or is part of the data set.
        SettingsError: No scorer can run with the settings.
        PartitionFailed: A partition failed repeatedly. The run can be repeated.
    """
    scorers = build_scorers(settings)
    names = scorer_names(scorers)
    if path.is_dir() and output.resolve().is_relative_to(path.resolve()):
        raise UsageError(
            f"{output} is in the folder of the data set, {path}, so the scores would become part of the data set: "
            "choose another folder"
        )
    partition_size = partition_size or default_partition_size(scorers)
    _claim_folder(
        output,
        {
            "version": VERSION,
            "data_set": _describe_files(path),
            "columns": dict(columns or {}),
            "limit": limit,
            "partition_size": partition_size,
            "scorers": {scorer.name: scorer.fingerprint for scorer in scorers.scorers},
        },
    )
    try:
        with engine as opened:
            sent = _divide_rate_limits(settings_for_workers(settings, opened), opened.workers)
            job = DatasetJob(sent, opened.is_remote, names, dict(columns or {}), output.absolute())
            with show_progress(progress, count_rows(path, limit)) as report_progress:
                result = _score_parts(job, opened, list_parts(path, partition_size, limit), report_progress)
            return replace(result, output=output)
    finally:  # after the processes of a local engine have ended
        remove_partial_files(output)


def _score_parts(
    job: DatasetJob, engine: Engine, parts: Iterable[DatasetPart], report_progress: ReportProgress
) -> DatasetResult:
    """Score the partitions that have no score file, and return the result of all."""
    started, usage, reused, reused_rows = time.perf_counter(), RunUsage(), 0, 0
    done: dict[int, SummarySums] = {}

    def iterate_open_parts() -> Iterator[DatasetPart]:
        nonlocal reused, reused_rows
        for part in parts:
            if (sums := _read_sums(_part_file(job.output, part.number))) is None:
                yield part
            else:
                done[part.number] = sums
                reused, reused_rows = reused + 1, reused_rows + sums.rows
                report_progress(usage, part.rows)

    def report(part: DatasetPart, outcome: PartOutcome) -> None:
        nonlocal usage
        done[part.number], usage = outcome.sums, usage.plus(outcome.usage)
        report_progress(usage, part.rows)

    run_partitions(engine, score_part, job, iterate_open_parts(), on_done=report)
    sums = SummarySums()
    for number in sorted(done):  # in the same order on every engine, because rounding depends on it
        sums.merge(done[number])
    usage = replace(usage, seconds=time.perf_counter() - started)
    return DatasetResult(sums.rows, sums.summaries(), usage, job.output, reused, reused_rows)


def _divide_rate_limits(settings: Settings, workers: int) -> Settings:
    """Return the settings of one process, so that all processes together respect the rate limits."""
    limits = {name: getattr(settings, name) for name in ("requests_per_minute", "tokens_per_minute")}
    divided = {name: limit / workers for name, limit in limits.items() if limit is not None}
    return settings.model_copy(update=divided)


def list_parts(path: Path, partition_size: int, limit: int | None) -> Iterator[DatasetPart]:
    """Yield the partitions of a data set. Only one partition's records are in memory, or all those of a JSON list."""
    if _is_parquet(path) and limit is None:
        number, groups = 0, list[RowGroup]()
        for group in list_row_groups(path):
            rows = sum(each.rows for each in groups)
            if groups and (groups[0].file != group.file or rows + group.rows > partition_size):
                yield DatasetPart(number, rows, groups=tuple(groups))
                number, groups = number + 1, []
            groups.append(group)
        if groups:
            yield DatasetPart(number, sum(each.rows for each in groups), groups=tuple(groups))
        return
    records = islice(iterate_records(path), limit)
    number = 0
    while part := tuple(islice(records, partition_size)):
        yield DatasetPart(number, len(part), records=part)
        number += 1


def count_rows(path: Path, limit: int | None = None) -> int:
    """Return the number of rows of a data set: from the metadata of Parquet files, or by reading other files."""
    if _is_parquet(path):
        rows = sum(group.rows for group in list_row_groups(path))
        return rows if limit is None else min(rows, limit)
    return sum(1 for _ in islice(iterate_records(path), limit))


def score_part(job: DatasetJob, part: DatasetPart) -> PartOutcome:
    """Score the rows of a partition, and write its score file. Runs in a process of the engine."""
    settings = settings_of_worker(job.settings, has_own_secrets=job.has_own_secrets)
    with suppress_tracing(), suppressed_loggers():
        return asyncio.run(_score_part(job, part, settings))


async def _score_part(job: DatasetJob, part: DatasetPart, settings: Settings) -> PartOutcome:
    scorer_set = build_scorers(settings, job.scorers, rate_limiter=local_rate_limiter(settings))
    try:
        are_builtin = all(map(is_builtin, scorer_set.scorers))
        scorer = partition_scorer(scorer_set, settings)
        own_columns = ColumnMap(job.columns).known
        # User-defined scorers may read the attributes, which are the other columns.
        rows = convert_records(part.iterate_records(own_columns if are_builtin else None), job.columns)
        sums = SummarySums()
        with ScoreFileWriter(_part_file(job.output, part.number)) as file:
            while chunk := list(islice(rows, CHUNK_ROWS)):
                scores = await scorer.score_all(
                    [row.exchange for row in chunk],
                    concurrency=partition_concurrency(scorer_set, settings.concurrency, len(chunk)),
                )
                if error := find_interruption(scorer, scorer_set, (one for each in scores for one in each.values())):
                    raise error
                for each in scores:
                    sums.add(each)
                file.write(
                    [
                        RowScores(row.exchange, each, row.location, row.has_id)
                        for row, each in zip(chunk, scores, strict=True)
                    ]
                )
                scorer.forget_results()
            content = {"rows": sums.rows, "scorers": {name: asdict(each) for name, each in sums.scorers.items()}}
            file.finish({_SUMMARY_KEY: json.dumps(content)})
        return PartOutcome(sums, scorer.usage)
    finally:
        await scorer_set.aclose()


def _is_parquet(path: Path) -> bool:
    return path.is_dir() or path.suffix.lower() == ".parquet"


def _part_file(output: Path, number: int) -> Path:
    return output / f"part-{number:06}.parquet"


def _describe_files(path: Path) -> list[list[Any]]:
    """Return the name, size and modification time of each file of a data set."""
    files = list_files(path) if _is_parquet(path) else [path]
    try:
        return [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _claim_folder(output: Path, manifest: dict[str, Any]) -> None:
    """Create the folder with its manifest, or check that it is the same, and remove partial files."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        file, temporary = output / MANIFEST, output / f".{MANIFEST}.tmp"
        if file.exists():
            if json.loads(file.read_text(encoding="utf-8")) != manifest:
                raise UsageError(
                    f"{output} contains the scores of another data set, or of other scorers or options: choose another "
                    "folder, or delete it"
                )
            remove_partial_files(output)
        elif any(path != temporary for path in output.iterdir()):
            raise UsageError(f"{output} is not empty: choose another folder")
        else:
            temporary.write_text(json.dumps(manifest), encoding="utf-8")
            temporary.replace(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"{output} cannot be used for scores: {error}; choose another folder") from None


def _read_sums(file: Path) -> SummarySums | None:
    """Return the sums of a finished score file; None if there is none."""
    if (content := read_metadata(file, _SUMMARY_KEY)) is None:
        return None
    sums, loaded = SummarySums(), json.loads(content)
    sums.rows = loaded["rows"]
    for name, each in loaded["scorers"].items():
        fingerprints = {key: FingerprintSums(**values) for key, values in each.pop("fingerprints").items()}
        sums.scorers[name] = ScorerSums(**each, fingerprints=fingerprints)
        sums.scorers[name].reasons = Counter(each["reasons"])
    return sums
