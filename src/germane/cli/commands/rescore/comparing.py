"""Comparison of another judge with the current one, on a random sample of scored answers. Nothing is stored."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Final

import click

from germane import evaluation, records, sanitize
from germane.cli.commands.calibrate.agreement import (
    LabeledAnswer,
    MetricAgreement,
    load_feedback_labels,
    measure_agreement,
)
from germane.cli.core.command import wants_json
from germane.cli.core.forecast import forecast_rescoring, print_forecasts
from germane.cli.core.output import print_json, print_table
from germane.errors import UsageError
from germane.insights import choose_scorer
from germane.score import MIN_SAMPLES
from germane.statistics import JudgeShift
from germane.storage import LabelPopulation

if TYPE_CHECKING:
    from germane.agreement import BootstrapInterval
    from germane.exchange import Exchange
    from germane.score import Score
    from germane.settings import Settings
    from germane.storage import TrackingStore

HEADINGS: Final = ("route", "n", "now", "new", "new minus now", "95% interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteShift:
    """The scores of both judges on one route."""

    route: str
    n: int
    now: float
    """Mean score by the current judge."""
    new: float
    shift: JudgeShift | None
    """New minus current score of the same answers; None with fewer than 20 answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeComparison:
    """Scores of the same answers by the current judge and by another one."""

    scorer: str
    judge: str
    """Model of the other judge."""
    answers: int
    """Number of answers in the random sample that both judges have scored."""
    failed: int
    """Number of answers that the other judge could not score."""
    shift: JudgeShift | None
    """By how much the other judge would move the mean of all answers; None with fewer than 20 answers."""
    routes: Sequence[RouteShift]
    """Most answers first."""
    rank_correlation: BootstrapInterval | None
    """Spearman's rank correlation of both judges' scores; None with fewer than 20 answers or if a judge's are equal."""
    agreement: Sequence[MetricAgreement]
    """Agreement with human labels, of the current and the other judge on the same answers; empty without labels."""
    cost_per_thousand: tuple[float | None, float | None]
    """Cost of a thousand scores in US dollars, by the current and the other judge; None if unknown."""
    stopped: str | None = None
    """Why some of the answers had no chance to be scored; None if all had one."""


def compare_judges(
    store: TrackingStore,
    settings: Settings,
    *,
    judge: str,
    scorers: Sequence[str],
    since: datetime,
    route: str | None,
    limit: int,
    confirmed: bool,
) -> None:
    """Score a random sample of answers with another judge, and up to the same number of labeled answers.

    Raises:
        UsageError: Several scorers are requested, or no answer has been scored.
        GermaneError: No answer had a chance to be scored.
    """
    if len(scorers) > 1:
        raise UsageError("--compare compares two judges of one scorer: pass --scorer once")
    newest = [summary for summary in store.trends.summary(since=since, histograms=False) if summary.newest]
    scorer = scorers[0] if scorers else choose_scorer(newest)
    population = LabelPopulation(since=since, until=store.now(), scorer=scorer or "", route=route)
    sample = store.draws.sample(population, limit)
    if scorer is None or not sample:
        raise UsageError("no answer with its text has been scored in this window: choose a longer one with --since")
    labeled = [answer for answer in load_feedback_labels(store) if answer.exchange.answer is not None][:limit]
    exchanges = {one.id: one for one in [*(one for one, _ in sample), *(answer.exchange for answer in labeled)]}
    now = _newest_scores(store, scorer, list(exchanges))
    chosen = [exchange for id_, exchange in exchanges.items() if id_ in now]
    Random(0).shuffle(chosen)  # if the budget runs out, those that were scored are a random part
    other = settings.model_copy(update={"judge": judge})
    _confirm(other, scorer, chosen, confirmed=confirmed)
    scores, interruption = evaluation.score_unstored(store, other, scorer, chosen)
    new = {exchange.id: score for exchange, score in zip(chosen, scores, strict=True)}
    comparison = _compare(scorer, judge, sample, labeled, now, new)
    comparison = replace(comparison, stopped=str(interruption) if interruption else None)
    if wants_json():
        print_json(records.encode(comparison))
    else:
        _print(comparison)


def _newest_scores(store: TrackingStore, scorer: str, ids: Sequence[str]) -> dict[str, Score]:
    """Return each exchange's newest score by a scorer, by the exchange's id."""
    found: dict[str, Score] = {}
    for id_, scores in store.answers.get_scores(ids).items():
        for score in scores:
            if score.scorer == scorer and score.value is not None:
                found[id_] = score
    return found


def _confirm(settings: Settings, scorer: str, chosen: Sequence[Exchange], *, confirmed: bool) -> None:
    """Print the forecast, and ask a person at a terminal to confirm it."""
    if wants_json():
        return
    counts = {scorer: len(chosen)}
    click.echo(f"To score with {sanitize.line(settings.judge, 60)}, without storing the scores:")
    print_forecasts(counts, forecast_rescoring(settings, counts, {scorer: chosen[:20]}))
    if not confirmed and sys.stdin.isatty() and sys.stdout.isatty():
        click.confirm("Compare the judges?", default=True, abort=True)


def _compare(
    scorer: str,
    judge: str,
    sample: Sequence[tuple[Exchange, float]],
    labeled: Sequence[LabeledAnswer],
    now: Mapping[str, Score],
    new: Mapping[str, Score],
) -> JudgeComparison:
    import numpy as np

    from germane.agreement import bootstrap_interval, spearman
    from germane.statistics import weighted_shift

    pairs = [
        (exchange.route, old.value, other.value, 1 / probability)
        for exchange, probability in sample
        if (old := now.get(exchange.id)) is not None and old.value is not None
        if (other := new[exchange.id]).value is not None
    ]
    routes = [route for route, *_ in pairs]
    before, after, weights = np.array([rest for _, *rest in pairs], dtype=np.float64).reshape(-1, 3).T

    def measure(chosen: np.ndarray) -> JudgeShift | None:
        differences = after[chosen] - before[chosen]
        return weighted_shift(differences, weights[chosen]) if len(differences) >= MIN_SAMPLES else None

    def of_route(route: str) -> RouteShift:
        chosen = np.array([name == route for name in routes])
        means = (float(np.average(values[chosen], weights=weights[chosen])) for values in (before, after))
        return RouteShift(route=route, n=int(chosen.sum()), now=next(means), new=next(means), shift=measure(chosen))

    common = [id_ for id_ in now if new[id_].value is not None]
    has_ranks = len(pairs) >= MIN_SAMPLES and min(np.ptp(before), np.ptp(after)) > 0
    ranks = bootstrap_interval(spearman, range(len(pairs)), labels=before, scores=after) if has_ranks else None
    return JudgeComparison(
        scorer=scorer,
        judge=judge,
        answers=len(pairs),
        failed=sum(score.value is None for score in new.values()),
        shift=measure(np.ones(len(pairs), dtype=np.bool_)),
        routes=sorted(map(of_route, sorted(set(routes))), key=lambda one: -one.n),
        rank_correlation=ranks,
        # Fingerprints of the current judge may differ, such as after a change of the prompt.
        agreement=[one for scores in (now, new) for one in _agreement(labeled, {id_: scores[id_] for id_ in common})],
        cost_per_thousand=(_cost(now.values()), _cost(new.values())),
    )


def _agreement(labeled: Iterable[LabeledAnswer], scores: Mapping[str, Score]) -> list[MetricAgreement]:
    """Return the agreement of one judge with labels, as if all of its scores had one fingerprint."""
    answers = [
        replace(answer, scores=(replace(scores[answer.exchange.id], fingerprint=""),))
        for answer in labeled
        if answer.exchange.id in scores
    ]
    return measure_agreement(answers)[:1]


def _cost(scores: Iterable[Score]) -> float | None:
    costs = [score.cost for score in scores if score.cost is not None]
    return 1000 * fmean(costs) if costs else None


def _print(found: JudgeComparison) -> None:
    rows = [
        (
            sanitize.line(one.route, 40),
            f"{one.n}",
            f"{one.now:z.2f}",
            f"{one.new:z.2f}",
            *(("-", f"n={one.n}, need {MIN_SAMPLES}") if one.shift is None else _shift_cells(one.shift)),
        )
        for one in found.routes
    ]
    click.echo(f"\n{found.scorer} of the same {sanitize.count_noun(found.answers, 'answer')}, drawn at random:")
    print_table(HEADINGS, rows)
    if found.shift is None:
        click.echo(f"\nNot enough data (n={found.answers}, need {MIN_SAMPLES}).")
    else:
        size, interval = _shift_cells(found.shift)
        click.echo(f"\nSwitching would move the trend by {size} (95% interval {interval}).")
    if found.stopped is not None:
        click.echo(f"Stopped early: {sanitize.line(found.stopped, 200)}.")
    if found.failed:
        click.echo(f"{sanitize.count_noun(found.failed, 'answer')} could not be scored by the new judge.")
    if found.rank_correlation is not None:
        one = found.rank_correlation
        click.echo(f"Rank correlation of both judges: {one.value:z.2f} ({one.low:z.2f} to {one.high:z.2f}).")
    if not found.agreement:
        click.echo("Agreement with people: no labels yet. Draw answers to label with: germane labels draw")
    for name, agreement in zip(("current judge", "new judge"), found.agreement, strict=False):
        with_labels = (
            "too few labels, or equal labels or scores"
            if agreement.spearman is None
            else (
                f"rank correlation {agreement.spearman.value:z.2f} "
                f"({agreement.spearman.low:z.2f} to {agreement.spearman.high:z.2f})"
            )
        )
        click.echo(f"Agreement of the {name} with people on {agreement.n} answers: {with_labels}.")
    prices = ["unknown" if cost is None else f"${cost:,.2f}" for cost in found.cost_per_thousand]
    click.echo(f"Cost of a thousand scores: {prices[0]} now, {prices[1]} with the new judge.")


def _shift_cells(shift: JudgeShift) -> tuple[str, str]:
    return f"{shift.size:+z.2f}", f"{shift.interval[0]:+z.2f} to {shift.interval[1]:+z.2f}"
