"""The estimated requests and cost of rescoring, which are shown before anything is scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from germane import sanitize

if TYPE_CHECKING:
    from germane.cli.commands.estimate.forecast import ScorerForecast
    from germane.exchange import Exchange
    from germane.settings import Settings


def forecast_rescoring(
    settings: Settings, counts: Mapping[str, int], samples: Mapping[str, Sequence[Exchange]]
) -> dict[str, ScorerForecast]:
    """Estimate the usage of each built-in scorer, without sending requests.

    Args:
        settings: The settings.
        counts: Number of answers by scorer.
        samples: A few of the answers by scorer.
    """
    from germane.cli.commands.estimate.forecast import find_model_prices, forecast_usage
    from germane.scorers import BUILTIN_SCORER_NAMES

    models = find_model_prices(settings, has_server=settings.has_server)
    forecasts: dict[str, ScorerForecast] = {}
    for name in sorted(counts.keys() & set(BUILTIN_SCORER_NAMES)):
        [forecasts[name]] = asyncio.run(
            forecast_usage([name], settings, models, sample=samples[name], exchanges_per_day=counts[name], usages={})
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
