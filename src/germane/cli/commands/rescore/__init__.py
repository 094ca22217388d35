"""``germane rescore``: score answers again, with the current judge or after an outage."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from germane import insights, storage
from germane.cli.commands.rescore.comparing import compare_judges
from germane.cli.commands.rescore.engine import (
    continue_run,
    current_fingerprints,
    find_run,
    rescore_on_engine,
)
from germane.cli.core.command import Command, wants_json
from germane.cli.core.engines import EngineOptions, engine_option, require_engine
from germane.cli.core.forecast import forecast_rescoring, forecasts_as_json, print_forecasts
from germane.cli.core.output import print_json
from germane.cli.core.params import SINCE
from germane.cli.core.store import load_command_settings, open_store
from germane.errors import UsageError
from germane.score import UnscoredReason

if TYPE_CHECKING:
    from germane.cli.core.forecast import ScorerForecast
    from germane.settings import Settings
    from germane.storage import AnswerFilter, TrackingStore

ANSWERS_PER_TRANSACTION: Final = 500
SAMPLE_SIZE: Final = 20
"""Maximum number of answers in the sample for estimating requests."""
COMPARED: Final = 200
"""Default number of answers for ``--compare``."""
ANY_REASON: Final = "any"
FAILURE_REASONS: Final = sorted(reason.value for reason in UnscoredReason if reason.state == "failed")
_OUTCOMES: Final = {
    "ready": "queued for scoring",
    "waiting": "already queued or in progress",
    "erased": "skipped: the text was erased",
    "not_sampled": "skipped: previously not selected by sampling or budget",
    "unknown": "skipped: deleted, or the scorer is unknown",
}


@click.command("rescore", cls=Command)
@click.option("--since", type=SINCE, default="24h", show_default=True, help="Only answers given since this time.")
@click.option("--route", help="Only this route.")
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Only this scorer. Repeatable.")
@click.option("--below", type=click.FloatRange(-1, 1), help="Only scores below this value.")
@click.option(
    "--failed",
    type=click.Choice([ANY_REASON, *FAILURE_REASONS]),
    is_flag=False,
    flag_value=ANY_REASON,
    help="Only failures, optionally only for this reason.",
    metavar="[REASON]",
)
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, help="Maximum number of scores."
)
@click.option("--all", "everything", is_flag=True, help="All answers, even without a score. Requires --engine.")
@engine_option
@click.option("--resume", metavar="RUN", help="Continue a run that did not finish.")
@click.option(
    "--compare", is_flag=True, help="Compare with the judge in --judge, on a random sample of --limit answers."
)
@click.option("--judge", metavar="MODEL", help="Another model on the judge's server, for --compare.")
@click.option("--estimate", is_flag=True, help="Only show what would be scored, and the estimated cost.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def command(
    context: click.Context,
    since: datetime,
    route: str | None,
    scorers: tuple[str, ...],
    below: float | None,
    failed: str | None,
    limit: int,
    everything: bool,  # noqa: FBT001
    engine: EngineOptions | None,
    resume: str | None,
    compare: bool,  # noqa: FBT001 - click passes it by name
    judge: str | None,
    estimate: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
) -> None:
    """Queue answers to be rescored, or rescore them on an engine.

    They are scored with the current judge and prompts. A score with the same fingerprint is kept until the new score
    replaces it. Scores with other fingerprints are kept. Workers score queued answers first, within the budget and the
    rate limits. Answers whose text was erased are skipped.

    With --engine, this command scores them itself, in partitions on many processes. It can score any number of answers,
    and continues where it stopped if it is interrupted.

    With --compare, another judge scores a random sample, and nothing is stored. The output shows by how much each route
    would move, whether both judges rank the answers alike, how well each agrees with labels, and what they cost.
    """
    is_limited = context.get_parameter_source("limit") is ParameterSource.COMMANDLINE
    if judge is not None or compare:
        if any((judge is None, not compare, estimate, everything, engine, resume, failed, below is not None)):
            raise click.UsageError(
                "--compare needs --judge, and takes only --since, --route, --scorer, --limit and --yes"
            )
        with open_store(check_names=False) as store:
            compare_judges(
                store,
                load_command_settings(),
                judge=judge or "",
                scorers=scorers,
                since=since,
                route=route,
                limit=limit if is_limited else COMPARED,
                confirmed=yes,
            )
        return
    now = datetime.now(UTC)  # before anything slow, because relative times were computed just before
    if (below is not None) + (failed is not None) + everything > 1:
        raise click.UsageError("--below, --failed and --all select different answers; use only one of them")
    if resume is not None:
        engine = engine or EngineOptions()
    if engine is None:
        require_engine(all=everything)
    elif is_limited:
        raise click.UsageError("--limit does not apply with --engine; choose a shorter window with --since")
    settings = load_command_settings()
    if engine is not None:
        with open_store(check_names=False) as store:
            if resume is not None:
                continue_run(store, settings, find_run(store, resume), engine, estimate=estimate)
                return
            selection = storage.HistorySelection(
                since=since,
                until=now,
                scorers=current_fingerprints(settings, scorers),
                route=route,
                below=below,
                failed=failed,
                everything=everything,
                requested_at=now,
            )
            rescore_on_engine(
                store,
                settings,
                selection,
                engine,
                estimate=estimate,
                confirmed=yes,
            )
        return
    scores = storage.AnswerFilter(since=since, route=route, below=below)
    failures = replace(scores, state="failed", reason=None if failed in {None, ANY_REASON} else failed)
    filters = [failures] if failed is not None else [scores] if below is not None else [scores, failures]
    with open_store() as store:
        plan = _create_plan(store, settings, filters, scorers, limit)
        _queue(store, settings, plan, estimate=estimate, confirmed=yes, by_value=below is not None)


def _queue(
    store: TrackingStore,
    settings: Settings,
    plan: RescorePlan,
    *,
    estimate: bool,
    confirmed: bool,
    by_value: bool,
) -> None:
    """Queue the planned answers, once a person at a terminal has confirmed the forecast, and print the result."""
    counts, samples = plan.counts, {}
    for name in counts:
        ids = [exchange_id for exchange_id, scorer in plan.pairs if scorer == name]
        spread = ids[:: max(1, len(ids) // SAMPLE_SIZE)][:SAMPLE_SIZE]
        samples[name] = list(store.answers.get_exchanges(spread).values())
    forecasts = forecast_rescoring(settings, counts, samples)
    if not wants_json():
        _print_plan(plan, forecasts, is_selected_by_value=by_value)
    is_interactive = not wants_json() and sys.stdin.isatty() and sys.stdout.isatty()
    if is_interactive and plan.pairs and not (estimate or confirmed):
        click.confirm("Rescore these answers?", default=True, abort=True)
    outcome = None
    if not estimate:
        outcome = storage.RescoreResult()
        for start in range(0, len(plan.pairs), ANSWERS_PER_TRANSACTION):
            pairs = plan.pairs[start : start + ANSWERS_PER_TRANSACTION]
            outcome += store.queue.rescore(pairs, plan.fingerprints, budgeted=settings.budget is not None)
    if wants_json():
        print_json(
            {
                "estimate": outcome is None,
                "answers": len(plan.pairs),
                "is_limited": plan.is_limited,
                "scorers": forecasts_as_json(counts, forecasts, plan.fingerprints),
                "outcome": outcome,
            }
        )
    elif outcome is not None:
        for name, count in asdict(outcome).items():
            if count:
                click.echo(f"{count:,} {_OUTCOMES[name]}")
        if outcome.ready and not plan.has_workers:
            click.echo("note: no process is scoring at the moment; start one with: germane worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class RescorePlan:
    """The answers and scorers to rescore."""

    pairs: Sequence[tuple[str, str]]
    """Pairs of exchange id and scorer."""
    fingerprints: Mapping[str, str]
    """Current fingerprints by scorer."""
    has_workers: bool
    """Whether the fingerprints come from running processes. Otherwise, they come from the settings."""
    is_limited: bool
    """Whether more scores match than ``--limit`` allows."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of answers by scorer."""
        return dict(sorted(Counter(scorer for _, scorer in self.pairs).items()))


def _create_plan(
    store: TrackingStore,
    settings: Settings,
    filters: Sequence[AnswerFilter],
    requested: Sequence[str],
    limit: int,
) -> RescorePlan:
    """Select answers and scorers. A scorer that was requested must be running."""
    fingerprints = insights.available_scorers(store)
    has_workers = bool(fingerprints)
    if not has_workers:
        from germane.scorers import build_scorers

        fingerprints = {scorer.name: scorer.fingerprint for scorer in build_scorers(settings).scorers}
    if unknown := [name for name in requested if name not in fingerprints]:
        known = ", ".join(sorted(fingerprints)) or "none"
        raise UsageError(f"scorer {unknown[0]!r:.60} is not running; running: {known}")
    pairs: dict[tuple[str, str], None] = {}
    is_limited = False
    for pair in _iter_pairs(store, filters, list(requested) or sorted(fingerprints)):
        if len(pairs) == limit and pair not in pairs:
            is_limited = True
            break
        pairs[pair] = None
    return RescorePlan(pairs=list(pairs), fingerprints=fingerprints, has_workers=has_workers, is_limited=is_limited)


def _iter_pairs(
    store: TrackingStore, filters: Sequence[AnswerFilter], scorers: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield pairs of exchange id and scorer for the matching answers, newest first for each scorer."""
    for answer_filter in filters:
        for scorer in scorers:
            after, has_more = None, True
            while has_more:
                ids, after = store.answers.find_ids(replace(answer_filter, scorer=scorer), after=after)
                yield from ((id_, scorer) for id_ in ids)
                has_more = after is not None


def _print_plan(plan: RescorePlan, forecasts: Mapping[str, ScorerForecast], *, is_selected_by_value: bool) -> None:
    if not plan.pairs:
        click.echo(
            "Nothing to rescore: only answers with a score or a failure can be queued. Choose a longer window with "
            "--since, or score all answers with --all --engine local."
        )
        return
    answers = "answer" if len(plan.pairs) == 1 else "answers"
    click.echo(f"{'The newest ' if plan.is_limited else ''}{len(plan.pairs):,} {answers} to rescore:")
    print_forecasts(plan.counts, forecasts)
    if is_selected_by_value:
        click.echo(
            "note: rescoring only low scores raises the mean slightly, because some scores rise by chance (regression "
            "to the mean)"
        )
