"""Daily requests, tokens and cost per scorer.

They are estimated by dry runs on sample exchanges, without sending requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from germane.errors import DatabaseNotMigrated, StorageError
from germane.exchange import Context, Exchange
from germane.phrasing import format_amount
from germane.settings import DEFAULT_EMBEDDER, LOCAL, Price, Settings

if TYPE_CHECKING:
    from germane.storage import ScorerUsage, TrackingStore

TOKENS_PER_PRICE: Final = 1_000_000
MINUTES_PER_DAY: Final = 1_440
_LAST_HOUR: Final = datetime(2026, 1, 1, 23, tzinfo=UTC)
"""The last hour of a day. In it, the whole daily budget is available."""
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
SAMPLE_SIZE: Final = 50
SAMPLED_FROM: Final = 10_000
"""The sample is drawn from about this many of the newest exchanges. Sampling millions would take too long."""
USAGE_WINDOW: Final = timedelta(days=7)
MIN_WINDOW: Final = timedelta(hours=1)
"""Minimum length of the history. Shorter histories count as one hour."""
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerForecast:
    """One scorer's estimated usage per day."""

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
    exchanges_per_day: float,
    usages: Mapping[str, ScorerUsage],
) -> list[ScorerForecast]:
    """Forecast each scorer's usage for ``exchanges_per_day`` exchanges like those in the sample.

    Raises:
        SettingsError: A scorer is not built in, or its options are invalid.
    """
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
        estimate, factor = estimate.since(initial), exchanges_per_day / max(1, len(sample))
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


def describe_exceeded_limits(total: ScorerForecast, settings: Settings) -> list[str]:
    """Describe by how much the forecast exceeds the budget and the rate limits."""
    from germane.storage import BudgetLimits

    notes = []
    tokens = total.input_tokens + total.output_tokens
    if settings.budget is not None:
        limit = BudgetLimits.at(settings.budget, _LAST_HOUR)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateBasis:
    """The data that an estimate is based on."""

    exchanges_per_day: float
    traffic_source: str
    """The source of ``exchanges_per_day``, in words."""
    sample: Sequence[Exchange]
    sample_source: Literal["store", "file", "typical"]
    usages: Mapping[str, ScorerUsage] = field(default_factory=dict)
    """Judge usage of earlier scores, by scorer."""

    @property
    def sample_description(self) -> str:
        """The sample, in words."""
        if self.sample_source == "typical":
            return "one built-in typical exchange, which may be shorter or longer than yours"
        source = "stored exchanges" if self.sample_source == "store" else "exchanges from the file"
        return f"a sample of {len(self.sample)} {source}"


def load_basis(
    settings: Settings, *, per_day: float | None, file: Path | None, columns: Mapping[str, str] | None
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
            exchanges_per_day=per_day, traffic_source="as given", sample=[TYPICAL_EXCHANGE], sample_source="typical"
        )
    if file is not None:
        from germane.evaluation import read_rows

        exchanges = [row.exchange for row in read_rows(file, columns)]
        if not exchanges:
            return typical
        return EstimateBasis(
            exchanges_per_day=len(exchanges) if per_day is None else per_day,
            traffic_source="assuming the file covers one day" if per_day is None else "as given",
            sample=exchanges[:: -(-len(exchanges) // SAMPLE_SIZE)],
            sample_source="file",
        )
    from germane.storage import TrackingStore

    store = TrackingStore(settings.database)
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
    from germane.scorers import BUILTIN_SCORER_NAMES

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
        exchanges_per_day=traffic.exchanges * (_DAY / window) if per_day is None else per_day,
        traffic_source=source if per_day is None else "as given",
        sample=sample or [TYPICAL_EXCHANGE],  # all texts may have been erased
        sample_source="store" if sample else "typical",
        usages={usage.scorer: usage for usage in usages if usage.scorer in BUILTIN_SCORER_NAMES},
    )
