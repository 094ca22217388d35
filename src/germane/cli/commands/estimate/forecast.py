"""What scoring would take in a day: each scorer is run on a sample, with a judge that sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from germane.exchange import Context, Exchange
from germane.settings import DEFAULT_EMBEDDER, LOCAL, Price, Settings

if TYPE_CHECKING:
    from germane.storage import Usage

MILLION = 1_000_000
MINUTES = 1_440
"""Of a day."""
_LAST_HOUR = datetime(2026, 1, 1, 23, tzinfo=UTC)
"""Of any day: by then all that it may take may be spent."""
TYPICAL = Exchange(
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
"""Where no real exchange is known: a question of a sentence, an answer of five, four contexts of about 200 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What one scorer would take in a day."""

    scorer: str
    calls: float
    """Requests to the judge."""
    input_tokens: float
    output_tokens: float
    embedded_tokens: float
    dollars: float | None
    """None where the price of what it needs is not known."""
    output_from: Literal["measured", "assumed"]
    """Whether output tokens are the mean of earlier scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Who would be asked, at which price."""

    judge: str
    embedder: str
    judge_price: Price | None
    embedder_price: Price | None

    def dollars(self, input_tokens: float, output_tokens: float, embedded_tokens: float) -> float | None:
        """Return what that costs; None where a price that it takes is not known."""
        total = 0.0
        for price, read, written in (
            (self.judge_price, input_tokens, output_tokens),
            (self.embedder_price, embedded_tokens, 0.0),
        ):
            if price is None and read + written > 0:
                return None
            if price is not None:
                total += (price.input * read + price.output * written) / MILLION
        return total


def models_of(settings: Settings, *, at_server: bool) -> Models:
    """Return the models that the settings name; ``at_server`` says whether there will be a server for the judge."""
    from germane.scorers.judge.prices import Prices

    prices = Prices(settings.prices)
    judge = _named(settings.judge)
    embedder = _named(settings.embedder or (DEFAULT_EMBEDDER if at_server and settings.judge != LOCAL else LOCAL))
    return Models(judge=judge, embedder=embedder, judge_price=prices.of(judge), embedder_price=prices.of(embedder))


def _named(model: str) -> str:
    return f"{LOCAL}:embedded" if model == LOCAL else model


async def forecast(
    names: Iterable[str],
    settings: Settings,
    models: Models,
    *,
    sample: Sequence[Exchange],
    drawn: float,
    usages: Mapping[str, Usage],
) -> list[Forecast]:
    """Return what each scorer would take for ``drawn`` exchanges a day like those of the sample.

    Raises:
        SettingsError: there is no such scorer of germane's, or its options are wrong.
    """
    return [await _forecast(name, settings, models, sample, drawn, usages.get(name)) for name in names]


async def _forecast(
    name: str, settings: Settings, models: Models, sample: Sequence[Exchange], drawn: float, usage: Usage | None
) -> Forecast:
    from germane.scorers import run
    from germane.scorers.factory.dry_run import measuring

    scorer, measured = measuring(name, settings, judge=models.judge, embedder=models.embedder)
    await run(scorer, TYPICAL)  # what a process asks once, to know its judge, is no part of an exchange
    once, asked = replace(measured), 0
    for exchange in sample:
        before = measured.requests
        if exchange.status == "ok":  # half an answer is not scored
            await run(scorer, exchange)
        asked += measured.requests > before
    measured, times = measured.minus(once), drawn / max(1, len(sample))
    written = measured.output_tokens if usage is None else asked * usage.output_tokens
    read, embedded = measured.input_tokens * times, measured.embedded_tokens * times
    return Forecast(
        scorer=name,
        calls=measured.requests * times,
        input_tokens=read,
        output_tokens=written * times,
        embedded_tokens=embedded,
        dollars=models.dollars(read, written * times, embedded),
        output_from="assumed" if usage is None else "measured",
    )


def total(forecasts: Sequence[Forecast]) -> Forecast:
    """Return the sum; its dollars are None where those of one scorer are."""
    dollars = [each.dollars for each in forecasts]
    return Forecast(
        scorer="total",
        calls=sum(each.calls for each in forecasts),
        input_tokens=sum(each.input_tokens for each in forecasts),
        output_tokens=sum(each.output_tokens for each in forecasts),
        embedded_tokens=sum(each.embedded_tokens for each in forecasts),
        dollars=None if None in dollars else sum(each for each in dollars if each is not None),
        output_from="measured" if all(each.output_from == "measured" for each in forecasts) else "assumed",
    )


def over_budget(found: Forecast, settings: Settings) -> list[str]:
    """Return how much of that the budget pays for, where it is not all."""
    from germane.storage import allowed, amount

    if settings.budget is None:
        return []
    limit = allowed(settings.budget, _LAST_HOUR)
    wanted = {"calls": found.calls, "tokens": found.input_tokens + found.output_tokens, "usd": found.dollars}
    return [
        f"the budget is {amount(most)} {kind} a day: it pays for {most / needed:.1%} of these {amount(needed)}. "
        "The rest is not picked, or skipped"
        for kind, needed in wanted.items()
        if needed is not None and needed > (most := getattr(limit, kind))
    ]


def over_limits(found: Forecast, settings: Settings) -> list[str]:
    """Return which limits would let through less than that."""
    tokens = found.input_tokens + found.output_tokens
    limits = {"requests_per_minute": found.calls, "tokens_per_minute": tokens}
    return [
        f"{name} = {limit:g} lets through {limit * MINUTES:,.0f} a day: of {wanted:,.0f} the rest would wait, "
        "longer each day. Raise it, or lower rate"
        for name, wanted in limits.items()
        if (limit := getattr(settings, name)) is not None and wanted > limit * MINUTES
    ]
