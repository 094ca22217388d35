"""Rescoring on an engine, by the command itself instead of by workers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from germane import evaluation, sanitize
from germane.cli.core.command import wants_json
from germane.cli.core.forecast import forecast_rescoring, forecasts_as_json, print_forecasts
from germane.cli.core.output import print_json
from germane.errors import UsageError
from germane.records import select

if TYPE_CHECKING:
    from germane.cli.core.engines import EngineOptions
    from germane.settings import Settings
    from germane.storage import HistoryRun, HistorySelection, TrackingStore

SAMPLE_SIZE: Final = 20
"""Number of answers in the sample for estimating requests."""


def rescore_on_engine(
    store: TrackingStore,
    settings: Settings,
    selection: HistorySelection,
    options: EngineOptions,
    *,
    estimate: bool,
    confirmed: bool,
) -> None:
    """Score the selected answers on an engine, after the forecast has been confirmed.

    If an earlier run with the same selection is not finished, it is continued.
    """
    requested_at = selection.requested_at or datetime.now(UTC)
    earlier = next(
        (
            run
            for run in store.history.list_unfinished()
            if selection.is_same_request(run.selection, requested_at - (run.selection.requested_at or run.created_at))
        ),
        None,
    )
    if earlier is not None:
        continue_run(store, settings, earlier, options, estimate=estimate)
        return
    counts = store.history.count_pairs(selection)
    sample = store.answers.sample_exchanges(since=selection.since, limit=SAMPLE_SIZE) if counts else []
    forecasts = forecast_rescoring(settings, counts, dict.fromkeys(counts, sample))
    if not wants_json():
        click.echo("To rescore:" if counts else _explain_nothing(selection))
        print_forecasts(counts, forecasts)
        if counts and not (estimate or confirmed) and sys.stdin.isatty() and sys.stdout.isatty():
            click.confirm("Rescore these answers?", default=True, abort=True)
    if estimate or not counts:
        if wants_json():
            planned = forecasts_as_json(counts, forecasts, selection.scorers)
            print_json({"estimate": estimate, "scorers": planned, "run": None})
        return
    from germane.scorers import build_scorers

    partition_size = evaluation.default_partition_size(build_scorers(settings, sorted(selection.scorers)))
    run = store.history.create_run(selection, partition_size=partition_size)
    continue_run(store, settings, run, options, estimate=False)


def _explain_nothing(selection: HistorySelection) -> str:
    if selection.everything:
        return "Nothing to rescore: there are no answers in this window; choose a longer one with --since."
    if selection.below is not None or selection.failed is not None:
        return "Nothing to rescore: no result in this window matches; choose a longer one with --since."
    return (
        "Nothing to rescore: by default, only answers with a score or a failure of the scorer are chosen. Add --all "
        "for all answers, or choose a longer window with --since."
    )


def continue_run(
    store: TrackingStore, settings: Settings, run: HistoryRun, options: EngineOptions, *, estimate: bool
) -> None:
    """Score the open partitions of a run, and print the result. With ``estimate``, print its progress."""
    if estimate:
        _print_run(run, estimate=True)
        return
    if not wants_json():
        partitions = sanitize.count_noun(run.partitions, "partition")
        done = f", {run.done_partitions:,} of them done" if run.done_partitions else ""
        click.echo(f"Run {run.id}: {sanitize.count_noun(run.exchanges, 'answer')} in {partitions}{done}.")
    try:
        with options.open() as engine:
            finished, usage = evaluation.run_rescoring(store, run, settings, engine)
    except BaseException as error:
        if not isinstance(error, (UsageError, SystemExit)):
            click.echo(
                f"germane: the run is not finished; continue it with: germane rescore --resume {run.id}", err=True
            )
        raise
    if wants_json():
        _print_run(finished, estimate=False)
        return
    outcomes = [f"{finished.scored:,} scored", f"{finished.failed:,} failed", f"{finished.skipped:,} skipped"]
    if finished.waiting:
        outcomes.append(f"{finished.waiting:,} left to the workers")
    cost = "" if finished.cost is None else f", ${finished.cost:,.4f}"
    click.echo(f"{', '.join(outcomes)}{cost}, in {usage.seconds:,.1f} s.")


def find_run(store: TrackingStore, run_id: str) -> HistoryRun:
    """Return the run to continue.

    Raises:
        UsageError: All of its partitions are done.
    """
    run = store.history.get_run(run_id)
    if run.finished_at is not None:
        raise UsageError(f"run {run.id} finished at {run.finished_at:%Y-%m-%d %H:%M} UTC; nothing is left to do")
    return run


def current_fingerprints(settings: Settings, requested: Sequence[str]) -> dict[str, str]:
    """Return the fingerprints of the requested scorers, or of the configured ones, by name.

    Raises:
        SettingsError: A scorer is unknown or cannot run with the settings.
    """
    from germane.scorers import build_scorers

    scorers = build_scorers(settings, list(requested) or None).scorers
    if not scorers:
        raise UsageError("no scorer is configured: name one with --scorer")
    return {scorer.name: scorer.fingerprint for scorer in scorers}


def _print_run(run: HistoryRun, *, estimate: bool) -> None:
    if wants_json():
        content = {
            **select(run, "id", "exchanges", "partitions", "done_partitions", "scored", "failed", "skipped", "waiting"),
            "cost_usd": run.cost,
            "finished_at": run.finished_at,
        }
        print_json({"estimate": estimate, "scorers": [], "run": content})
    else:
        click.echo(
            f"Run {run.id} is not finished: {run.done_partitions:,} of {run.partitions:,} partitions are done. To "
            "continue it, omit --estimate."
        )
