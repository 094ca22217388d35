"""Forecasts of requests, tokens and cost per scorer, by dry runs on sample exchanges, without sending requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from germane import sanitize
from germane.exchange import Context, Exchange
from germane.registry import BUILTIN_SCORER_NAMES
from germane.settings import DEFAULT_EMBEDDER, LOCAL, Price, Settings

if TYPE_CHECKING:
    from germane.storage import ScorerUsage

TOKENS_PER_PRICE: Final = 1_000_000
TYPICAL_EXCHANGE: Final = Exchange(
    id="0" * 32,
    trace_id="0" * 32,
    span_id="0" * 16,
    service="estimate",
    route="estimate",
    question="How long can I return a lamp that I bought online, and who pays for sending it back?",
    answer="You can return the lamp within 30 days of delivery, in its packaging and unused. "
    "Sending it back is free: print the label from your account under Orders, put it on the parcel, and hand it in "
    "at any post office. We refund the price within five working days of the parcel's arrival. "
    "If the lamp arrived damaged, write to us first, and we send you another one at once.",
    contexts=tuple(
        Context(f"Section {number}. " + "What we sell can be returned under the conditions that are listed here. " * 12)
        for number in range(1, 5)
    ),
    started_at=datetime(2026, 1, 1, tzinfo=UTC),
)
"""A substitute for real exchanges: a one-sentence question, a five-sentence answer, and four contexts of 200 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerForecast:
    """One scorer's estimated usage."""

    scorer: str
    requests: float
    """Requests to the judge."""
    input_tokens: float
    output_tokens: float
    embedded_tokens: float
    cost_usd: float | None
    """None if a price is unknown."""
    output_tokens_source: Literal["measured", "assumed"]
    """Whether output tokens are measured (the mean of earlier scores) or assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrices:
    """The judge model and the embedding model, with their prices. An unknown price is None."""

    judge: str
    embedder: str
    judge_price: Price | None
    embedder_price: Price | None

    def cost_usd(self, input_tokens: float, output_tokens: float, embedded_tokens: float) -> float | None:
        """Return the cost of the tokens in USD, or None if a required price is unknown."""
        total = 0.0
        for price, tokens_in, tokens_out in (
            (self.judge_price, input_tokens, output_tokens),
            (self.embedder_price, embedded_tokens, 0.0),
        ):
            if price is None and tokens_in + tokens_out > 0:
                return None
            if price is not None:
                total += (price.input * tokens_in + price.output * tokens_out) / TOKENS_PER_PRICE
        return total


def find_model_prices(settings: Settings, *, has_server: bool) -> ModelPrices:
    """Return the configured models and their prices. ``has_server`` states whether the judge runs on a server."""
    from germane.scorers import PriceList

    prices = PriceList(settings.prices)
    default_embedder = DEFAULT_EMBEDDER if has_server and settings.judge != LOCAL else LOCAL
    judge, embedder = (
        f"{LOCAL}:embedded" if model == LOCAL else model
        for model in (settings.judge, settings.embedder or default_embedder)
    )
    return ModelPrices(
        judge=judge,
        embedder=embedder,
        judge_price=prices.find_price(judge),
        embedder_price=prices.find_price(embedder),
    )


async def forecast_usage(
    names: Iterable[str],
    settings: Settings,
    models: ModelPrices,
    *,
    sample: Sequence[Exchange],
    count: float,
    usages: Mapping[str, ScorerUsage],
    anchors: int = 0,
) -> list[ScorerForecast]:
    """Forecast each built-in scorer's usage for ``count`` exchanges, and for ``anchors`` more if it uses a judge."""
    from germane.scorers import build_dry_run_scorer, run_scorer

    forecasts = []
    for name in names:
        usage = usages.get(name)
        scorer, estimate = build_dry_run_scorer(name, settings, judge=models.judge, embedder=models.embedder)
        # A process sends some requests only once, to probe its judge. They are not part of the usage per exchange.
        await run_scorer(scorer, TYPICAL_EXCHANGE)
        initial, judged = replace(estimate), 0
        for exchange in sample:
            requests_before = estimate.requests
            if exchange.status == "ok":  # incomplete answers are not scored
                await run_scorer(scorer, exchange)
            judged += estimate.requests > requests_before
        estimate, factor = estimate.since(initial), (count + (anchors if judged else 0)) / max(1, len(sample))
        input_tokens, embedded_tokens = estimate.input_tokens * factor, estimate.embedded_tokens * factor
        output_tokens = (estimate.output_tokens if usage is None else judged * usage.output_tokens) * factor
        forecasts.append(
            ScorerForecast(
                scorer=name,
                requests=estimate.requests * factor,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                embedded_tokens=embedded_tokens,
                cost_usd=models.cost_usd(input_tokens, output_tokens, embedded_tokens),
                output_tokens_source="assumed" if usage is None else "measured",
            )
        )
    return forecasts


def sum_forecasts(forecasts: Sequence[ScorerForecast]) -> ScorerForecast:
    """Return the total of the forecasts. Its cost is None if the cost of any scorer is unknown."""
    costs = [forecast.cost_usd for forecast in forecasts]
    is_measured = all(forecast.output_tokens_source == "measured" for forecast in forecasts)
    return ScorerForecast(
        scorer="total",
        requests=sum(forecast.requests for forecast in forecasts),
        input_tokens=sum(forecast.input_tokens for forecast in forecasts),
        output_tokens=sum(forecast.output_tokens for forecast in forecasts),
        embedded_tokens=sum(forecast.embedded_tokens for forecast in forecasts),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        output_tokens_source="measured" if is_measured else "assumed",
    )


def forecast_rescoring(
    settings: Settings, counts: Mapping[str, int], samples: Mapping[str, Sequence[Exchange]]
) -> dict[str, ScorerForecast]:
    """Estimate the usage of each built-in scorer, without sending requests.

    ``counts`` has the number of answers by scorer, and ``samples`` a few of them.
    """

    models = find_model_prices(settings, has_server=settings.has_server)
    forecasts: dict[str, ScorerForecast] = {}
    for name in sorted(counts.keys() & set(BUILTIN_SCORER_NAMES)):
        [forecasts[name]] = asyncio.run(
            forecast_usage([name], settings, models, sample=samples[name], count=counts[name], usages={})
        )
    return forecasts


def print_forecasts(
    counts: Mapping[str, int], forecasts: Mapping[str, ScorerForecast], *, noun: str = "answer"
) -> None:
    """Print one line per scorer."""
    for name, count in counts.items():
        usage = ", your own scorer: its requests and cost are not known"
        if name in forecasts:
            cost = forecasts[name].cost_usd
            usage = f", about {sanitize.count_noun(round(forecasts[name].requests), 'request')}"
            usage += "" if cost is None else f", about ${cost:,.4f}"
        click.echo(f"  {sanitize.line(name, 40)}: {sanitize.count_noun(count, noun)}{usage}")


def forecasts_as_json(
    counts: Mapping[str, int], forecasts: Mapping[str, ScorerForecast], fingerprints: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return one object per scorer."""
    return [
        {
            "scorer": name,
            "fingerprint": fingerprints[name],
            "answers": count,
            "requests": forecasts[name].requests if name in forecasts else None,
            "cost_usd": forecasts[name].cost_usd if name in forecasts else None,
        }
        for name, count in counts.items()
    ]
