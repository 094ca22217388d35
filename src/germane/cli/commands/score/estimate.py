"""``germane score --estimate``: requests, tokens and cost of a data set, or of a day of the application's traffic."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from germane import evaluation, records, sanitize, storage
from germane.cli.core.command import wants_json
from germane.cli.core.forecast import TYPICAL_EXCHANGE, find_model_prices, forecast_usage, sum_forecasts
from germane.cli.core.output import EXIT_NOT_ENOUGH_DATA, print_json, print_table
from germane.errors import DatabaseNotMigrated, StorageError
from germane.phrasing import format_amount
from germane.registry import BUILTIN_SCORER_NAMES
from germane.settings import LOCAL, Price, Settings

if TYPE_CHECKING:
    from germane.cli.core.forecast import ModelPrices, ScorerForecast
    from germane.exchange import Exchange
    from germane.storage import ScorerUsage, TrackingStore

HEADINGS: Final = ("scorer", "requests", "input tokens", "output tokens", "embedded tokens", "USD")
MINUTES_PER_DAY: Final = 1_440
SAMPLE_SIZE: Final = 50
SAMPLED_FROM: Final = 10_000
"""The sample is drawn from about this many of the newest exchanges. Sampling millions would take too long."""
USAGE_WINDOW: Final = timedelta(days=7)
MIN_WINDOW: Final = timedelta(hours=1)
"""Minimum length of the history. Shorter histories count as one hour."""
_DAY: Final = timedelta(days=1)
_LAST_HOUR: Final = datetime(2026, 1, 1, 23, tzinfo=UTC)
"""The last hour of a day. In it, the whole daily budget is available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateBasis:
    """The data that an estimate is based on."""

    exchanges: float
    """Number of exchanges: of the file, or per day."""
    traffic_source: str
    """The source of ``exchanges``, in words."""
    sample: Sequence[Exchange]
    sample_source: Literal["store", "file", "typical"]
    is_daily: bool = True
    """Whether the estimate is for a day of traffic, of which the sample rate selects a share."""
    usages: Mapping[str, ScorerUsage] = field(default_factory=dict)
    """Judge usage of earlier scores, by scorer."""

    @property
    def sample_description(self) -> str:
        """The sample, in words."""
        if self.sample_source == "typical":
            return "one built-in typical exchange, which may be shorter or longer than yours"
        source = "stored exchanges" if self.sample_source == "store" else "exchanges from the file"
        return f"a sample of {len(self.sample)} {source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """Usage and cost, and the basis of the estimate."""

    sample_rate: float
    basis: EstimateBasis
    models: ModelPrices
    scorers: Sequence[ScorerForecast]
    total: ScorerForecast
    notes: Sequence[str]
    anchors: int
    """Number of answers that each scorer with a judge scores again every day; included in its usage."""

    def as_dict(self) -> Mapping[str, Any]:
        """Return the estimate as a dict for JSON output."""
        from germane.scorers import price_list_date

        basis, models = self.basis, self.models
        return {
            "exchanges": basis.exchanges,
            "is_daily": basis.is_daily,
            "sample_rate": self.sample_rate,
            "scored": basis.exchanges * self.sample_rate,
            "anchors": self.anchors,
            "traffic_source": basis.traffic_source,
            "sample": {"source": basis.sample_source, "exchanges": len(basis.sample), "max_exchanges": SAMPLE_SIZE},
            "judge": {"model": models.judge, "price": models.judge_price and models.judge_price.model_dump()},
            "embedder": {
                "model": models.embedder,
                "price": models.embedder_price and models.embedder_price.model_dump(),
            },
            "price_list_date": price_list_date().isoformat(),
            "scorers": self.scorers,
            "total": {name: value for name, value in records.encode(self.total).items() if name != "scorer"},
            "notes": self.notes,
        }


def print_estimate(settings: Settings, basis: EstimateBasis | None, *, has_judge: bool) -> int:
    """Run the scorers on the sample with a simulated judge that counts requests and tokens, and print the result.

    With ``has_judge``, the scorers run with a judge on a server even if the settings configure none. Returns the exit
    code.

    Returns:
        The exit code.
    """
    if basis is None:
        message = "there are no exchanges to base the estimate on; try: germane score --estimate --per-day 10000"
        click.echo(message, err=True)
        if wants_json():
            print_json({"error": "no exchanges"})
        return EXIT_NOT_ENOUGH_DATA
    has_server = settings.has_server or has_judge
    names, custom = _select_scorers(settings, has_server=has_server)
    models = find_model_prices(settings, has_server=has_server)
    share = settings.sample_rate if basis.is_daily and settings.budget is None else 1.0  # a budget has no fixed rate
    count = basis.exchanges * share
    anchors = settings.anchors if count and basis.is_daily and not settings.erase_after_scoring else 0
    forecasts = asyncio.run(
        forecast_usage(names, settings, models, sample=basis.sample, count=count, usages=basis.usages, anchors=anchors)
    )
    total = sum_forecasts(forecasts)
    notes = _describe_unknown_prices(models, forecasts)
    if basis.is_daily:
        notes += _describe_exceeded_limits(total, settings)
    if custom:
        notes.append(f"custom scorers are not included: {', '.join(map(sanitize.line, custom))}")
    estimate = CostEstimate(
        sample_rate=share,
        basis=basis,
        models=models,
        scorers=forecasts,
        total=total,
        notes=notes,
        anchors=anchors if total.requests else 0,
    )
    if wants_json():
        print_json(estimate.as_dict())
    else:
        _print(estimate)
    return 0


def load_basis(
    settings: Settings,
    *,
    per_day: float | None,
    file: Path | None,
    columns: Mapping[str, str] | None,
    limit: int | None,
) -> EstimateBasis | None:
    """Load the basis from the file, or from the database if no file is given.

    Returns:
        The basis, or None if there are no exchanges and ``per_day`` is not given.

    Raises:
        UsageError: The file cannot be read.
        StorageError: The database cannot be read, and ``per_day`` is not given.
    """
    typical = None
    if per_day is not None:
        typical = EstimateBasis(
            exchanges=per_day, traffic_source="as given", sample=[TYPICAL_EXCHANGE], sample_source="typical"
        )
    if file is not None:
        rows = evaluation.count_rows(file, limit)
        if not rows:
            return typical
        spread = islice(evaluation.read_rows(file, columns), 0, rows, -(-rows // SAMPLE_SIZE))
        return EstimateBasis(
            exchanges=rows if per_day is None else per_day,
            traffic_source=f"rows of {file.name}" if per_day is None else "as given",
            sample=[row.exchange for row in spread],
            sample_source="file",
            is_daily=per_day is not None,
        )
    store = storage.TrackingStore(settings.database)
    try:
        store.check()
        return _load_from_store(store, per_day) or typical
    except StorageError as error:
        if per_day is None and not isinstance(error, DatabaseNotMigrated):
            raise
        return typical
    finally:
        store.close()


def _load_from_store(store: TrackingStore, per_day: float | None) -> EstimateBasis | None:

    now = datetime.now(UTC)
    traffic = store.quota.load_traffic(since=now - _DAY)
    if traffic.first is None:
        return None
    has_older = bool(store.answers.list_exchanges(until=now - _DAY, limit=1))
    window = _DAY if has_older else max(now - traffic.first, MIN_WINDOW)
    newest = window * min(1.0, SAMPLED_FROM / traffic.exchanges)
    sample = store.answers.sample_exchanges(since=now - newest, limit=SAMPLE_SIZE)
    sample = sample or store.answers.sample_exchanges(since=now - _DAY, limit=SAMPLE_SIZE)
    usages = store.quota.judge_usage(since=now - USAGE_WINDOW)
    source = "as in the last 24 hours"
    if window != _DAY:
        hours = round(window / timedelta(hours=1))
        span = "the last hour" if hours == 1 else f"the last {hours} hours, since the first exchange"
        source = f"at the rate of {span}"
    return EstimateBasis(
        exchanges=traffic.exchanges * (_DAY / window) if per_day is None else per_day,
        traffic_source=source if per_day is None else "as given",
        sample=sample or [TYPICAL_EXCHANGE],  # all texts may have been erased
        sample_source="store" if sample else "typical",
        usages={usage.scorer: usage for usage in usages if usage.scorer in BUILTIN_SCORER_NAMES},
    )


def _select_scorers(settings: Settings, *, has_server: bool) -> tuple[list[str], list[str]]:
    """Return the built-in scorers that the estimate covers, and the custom ones, which it does not."""
    from germane.scorers import build_scorers, default_scorer_names

    names = settings.scorers
    if names is None:
        names = (not has_server and default_scorer_names(settings)) or ("answer_relevancy",)
    custom = [name for name in names if name not in BUILTIN_SCORER_NAMES]
    build_scorers(settings, custom)
    return [name for name in dict.fromkeys(names) if name in BUILTIN_SCORER_NAMES], custom


def _describe_unknown_prices(models: ModelPrices, forecasts: Sequence[ScorerForecast]) -> list[str]:
    is_missing = {
        models.judge: models.judge_price is None and any(forecast.requests for forecast in forecasts),
        models.embedder: models.embedder_price is None and any(forecast.embedded_tokens for forecast in forecasts),
    }
    return [
        f"the price of {sanitize.line(model)} is unknown. Set it in germane.toml, in USD per million tokens: "
        f'[prices."{sanitize.line(model)}"], then input = 0.15 and output = 0.60'
        for model, missing in is_missing.items()
        if missing
    ]


def _describe_exceeded_limits(total: ScorerForecast, settings: Settings) -> list[str]:
    """Describe by how much the forecast exceeds the budget and the rate limits."""
    notes = []
    tokens = total.input_tokens + total.output_tokens
    if settings.budget is not None:
        limit = storage.BudgetLimits.at(settings.budget, _LAST_HOUR)
        needs = {"requests": ("requests", total.requests), "tokens": ("tokens", tokens), "usd": ("USD", total.cost_usd)}
        for name, (unit, needed) in needs.items():
            if needed is not None and needed > (available := getattr(limit, name)):
                notes.append(
                    f"the budget of {format_amount(available)} {unit} per day covers {available / needed:.1%} of the "
                    f"forecast of {format_amount(needed)}; the remaining exchanges are not selected or are skipped"
                )
    for name, needed in (("requests_per_minute", total.requests), ("tokens_per_minute", tokens)):
        limit_per_minute = getattr(settings, name)
        if limit_per_minute is not None and needed > limit_per_minute * MINUTES_PER_DAY:
            notes.append(
                f"{name} = {limit_per_minute:g} allows {limit_per_minute * MINUTES_PER_DAY:,.0f} per day, but the "
                f"forecast is {needed:,.0f}; the backlog would grow. Raise the limit, or lower sample_rate"
            )
    return notes


def _print(estimate: CostEstimate) -> None:
    from germane.scorers import BYTES_PER_TOKEN, EXTRA_OUTPUT_TOKENS, OUTPUT_TOKEN_FACTOR, price_list_date

    basis, models = estimate.basis, estimate.models
    if basis.is_daily:
        scored = f"{basis.exchanges * estimate.sample_rate:,.0f} scored (sample rate {estimate.sample_rate:g})"
        click.echo(f"{basis.exchanges:,.0f} exchanges per day ({basis.traffic_source}), {scored}.")
    else:
        click.echo(f"{basis.exchanges:,.0f} {sanitize.line(basis.traffic_source)}.")
    click.echo(f"Based on {basis.sample_description}. No requests were sent.\n")
    rows = []
    for forecast in (*estimate.scorers, estimate.total):
        counts = (forecast.requests, forecast.input_tokens, forecast.output_tokens, forecast.embedded_tokens)
        cost = "unknown"
        if forecast.cost_usd is not None:
            cost = f"{forecast.cost_usd:.4f}" if 0 < forecast.cost_usd < 0.1 else f"{forecast.cost_usd:,.2f}"
        rows.append((sanitize.line(forecast.scorer, 40), *(f"{count:,.0f}" for count in counts), cost))
    print_table(HEADINGS, rows)
    click.echo(f"\njudge      {_format_price(models.judge, models.judge_price)}")
    click.echo(f"embedder   {_format_price(models.embedder, models.embedder_price)}\n")
    click.echo(f"Input tokens are estimated as bytes / {BYTES_PER_TOKEN}. List prices as of {price_list_date()}.")
    judged = [forecast for forecast in estimate.scorers if forecast.requests]
    measured = [forecast.scorer for forecast in judged if forecast.output_tokens_source == "measured"]
    assumed = [forecast.scorer for forecast in judged if forecast.output_tokens_source == "assumed"]
    if measured:
        scores = sum(basis.usages[name].scores for name in measured)
        click.echo(f"Output tokens for {', '.join(measured)}: the mean of {scores:,} scores from the last week.")
    if assumed:
        click.echo(
            f"Output tokens for {', '.join(assumed)} are estimated as {OUTPUT_TOKEN_FACTOR} times the shortest reply "
            f"plus {EXTRA_OUTPUT_TOKENS}. Reasoning models generate many more."
        )
    if estimate.anchors:
        times = "answers that each scorer with a judge scores again every day to watch the judge (see anchors)"
        click.echo(f"Included: {estimate.anchors} {times}.")
    click.echo("Not included: retries after failures, and savings from identical exchanges or requests.")
    for note in estimate.notes:
        click.echo(f"note: {note}")


def _format_price(model: str, price: Price | None) -> str:
    name = sanitize.line(model)
    if price is None:
        return f"{name}: price unknown"
    if model.startswith(f"{LOCAL}:"):
        return f"{name}: free"
    return f"{name}: ${price.input:g} input, ${price.output:g} output per million tokens"
