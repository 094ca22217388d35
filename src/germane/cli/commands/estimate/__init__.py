"""``germane estimate``: estimate requests, tokens and cost per day."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from germane import sanitize
from germane.cli.commands.estimate.forecast import SAMPLE_SIZE, EstimateBasis, load_basis
from germane.cli.core.output import EXIT_NOT_ENOUGH_DATA, as_json, database, print_json, print_table
from germane.cli.core.params import ColumnNames, FiniteRange
from germane.settings import LOCAL, Price, Settings, load_settings

if TYPE_CHECKING:
    from germane.cli.commands.estimate.forecast import ModelPrices, ScorerForecast

HEADINGS: Final = ("scorer", "requests", "input tokens", "output tokens", "embedded tokens", "USD")


@click.command("estimate")
@click.option("--per-day", type=FiniteRange(0), metavar="N", help="Exchanges per day. Defaults to the current traffic.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with rows to use as a sample instead of stored exchanges.",
)
@click.option("--columns", type=ColumnNames(), help="Names of the file's columns, such as question=q,answer=a.")
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Scorer to run. Repeatable.")
@click.option("--judge", metavar="MODEL", help="Judge model. Overrides the setting.")
@click.option("--embedder", metavar="MODEL", help="Embedding model. Overrides the setting.")
@click.option("--sample-rate", type=click.FloatRange(0, 1), help="Share of exchanges to score. Overrides the setting.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    per_day: float | None,
    file: Path | None,
    columns: dict[str, str] | None,
    scorers: tuple[str, ...],
    judge: str | None,
    embedder: str | None,
    sample_rate: float | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Estimate requests, tokens and cost per day.

    Runs the scorers on a sample of the stored exchanges with a simulated judge that only counts requests and tokens.
    Nothing is sent to any judge or embedder.
    """
    from germane.cli.commands.estimate.forecast import (
        describe_exceeded_limits,
        find_model_prices,
        forecast_usage,
        sum_forecasts,
    )

    options = {
        "scorers": scorers or None,
        "judge": judge,
        "embedder": embedder,
        "sample_rate": sample_rate,
        "database": database,
    }
    settings = load_settings(**{name: value for name, value in options.items() if value is not None})
    has_server = settings.has_server or judge is not None
    names, custom = _select_scorers(settings, has_server=has_server)
    basis = load_basis(settings, per_day=per_day, file=file, columns=columns)
    if basis is None:
        click.echo("there are no exchanges to base the estimate on; try: germane estimate --per-day 10000", err=True)
        if as_json:
            print_json({"error": "no exchanges"})
        context.exit(EXIT_NOT_ENOUGH_DATA)
    models = find_model_prices(settings, has_server=has_server)
    share = settings.sample_rate if settings.budget is None else 1.0  # a budget has no fixed rate
    forecasts = asyncio.run(
        forecast_usage(
            names,
            settings,
            models,
            sample=basis.sample,
            exchanges_per_day=basis.exchanges_per_day * share,
            usages=basis.usages,
        )
    )
    total = sum_forecasts(forecasts)
    notes = ["with a budget, the sample rate has no effect"] if settings.budget and sample_rate is not None else []
    notes += [*_describe_unknown_prices(models, forecasts), *describe_exceeded_limits(total, settings)]
    if custom:
        notes.append(f"custom scorers are not included: {', '.join(map(sanitize.line, custom))}")
    estimate = CostEstimate(sample_rate=share, basis=basis, models=models, scorers=forecasts, total=total, notes=notes)
    if as_json:
        print_json(estimate.as_dict())
    else:
        _print(estimate)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """Daily usage and cost, and the basis of the estimate."""

    sample_rate: float
    basis: EstimateBasis
    models: ModelPrices
    scorers: Sequence[ScorerForecast]
    total: ScorerForecast
    notes: Sequence[str]

    def as_dict(self) -> Mapping[str, Any]:
        """Return the estimate as a dict for JSON output."""
        from germane.scorers import price_list_date

        basis, models = self.basis, self.models
        return {
            "exchanges_per_day": basis.exchanges_per_day,
            "sample_rate": self.sample_rate,
            "scored_per_day": basis.exchanges_per_day * self.sample_rate,
            "traffic_source": basis.traffic_source,
            "sample": {"source": basis.sample_source, "exchanges": len(basis.sample), "max_exchanges": SAMPLE_SIZE},
            "judge": {"model": models.judge, "price": models.judge_price and models.judge_price.model_dump()},
            "embedder": {
                "model": models.embedder,
                "price": models.embedder_price and models.embedder_price.model_dump(),
            },
            "price_list_date": price_list_date().isoformat(),
            "scorers": list(map(asdict, self.scorers)),
            "total": {name: value for name, value in asdict(self.total).items() if name != "scorer"},
            "notes": list(self.notes),
        }


def _select_scorers(settings: Settings, *, has_server: bool) -> tuple[list[str], list[str]]:
    """Return the built-in scorers that the estimate covers, and the custom ones, which it does not.

    Raises:
        SettingsError: A scorer does not exist.
    """
    from germane.scorers import BUILTIN_SCORER_NAMES, build_scorers, default_scorer_names

    names = settings.scorers
    if names is None:
        names = ("answer_relevancy",) if has_server else default_scorer_names(settings) or ("answer_relevancy",)
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


def _print(estimate: CostEstimate) -> None:
    from germane.scorers import BYTES_PER_TOKEN, EXTRA_OUTPUT_TOKENS, OUTPUT_TOKEN_FACTOR, price_list_date

    basis, models = estimate.basis, estimate.models
    scored = f"{basis.exchanges_per_day * estimate.sample_rate:,.0f} scored (sample rate {estimate.sample_rate:g})"
    click.echo(f"{basis.exchanges_per_day:,.0f} exchanges per day ({basis.traffic_source}), {scored}.")
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
