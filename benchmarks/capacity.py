"""What to run for 1 to 10 million exchanges a day, and what it costs: python benchmarks/capacity.py [--judge M].

The first part measures, on a temporary PostgreSQL database, the CPU time that captures one exchange, the rate at which
one connection stores exchanges, and the bytes of a row with and without text; and it counts the judge's tokens per
score from the prompts. The second part simulates one day per size: arrivals with a daily pattern, the exchange limit of
each application process, the shares of the budget and the selection, all of them production code. Scores are synthetic.
It prints, per size and budget, the stored and scored exchanges, the processes, the database's growth, the judge's cost
and the half-widths of the 95% intervals of the routes' daily means. docs/capacity.md explains the arithmetic.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np
import psycopg
from common import create_database, postgresql
from intervals import weighted_sums
from numpy.typing import NDArray
from traffic import Instant, monitored

import germane
from germane.cli.core.forecast import TYPICAL_EXCHANGE, find_model_prices, forecast_usage
from germane.exchange import Context, Exchange, sampling_key_for
from germane.monitor.sampling.budget_allocation import DailyTraffic, ExchangeCost, allocate_interval, interval_length
from germane.monitor.sampling.priority_sampling import draw_priority_sample
from germane.settings import Budget, load_settings
from germane.statistics.estimate import estimate_mean
from germane.storage import RequestUsage, TrackingStore
from germane.storage.ingest.drop_counts import TrafficThinner

Floats = NDArray[np.float64]
DAY = datetime(2026, 3, 2, tzinfo=UTC)
ROWS = 20_000
ROUTES = 20
LIMIT = 500
"""Stored exchanges per minute of all application processes together."""
SCORER = "answer_relevancy"
PEAK = 1.5
"""Traffic in the busiest hour, relative to the mean."""
TEXT_DAYS = 14
# Measured elsewhere: docs/fleet.md, docs/receive.md.
WORKER_CPU = 0.004
"""Seconds of CPU time of a worker per scored exchange."""
RECEIVER_RATE = 612.0
"""Traces per second that one receiver recognizes and stores."""
CONCURRENCY, JUDGE_SECONDS = 64, 1.5
"""Concurrent judge requests per worker, and the assumed duration of one."""
UTILIZATION = 0.7
"""Share of a process's measured rate that is planned for."""


@dataclass(frozen=True)
class Size:
    """Traffic, and the processes that produce it."""

    exchanges: int
    applications: int


SIZES = (Size(1_000_000, 4), Size(3_000_000, 10), Size(10_000_000, 25))


@dataclass(frozen=True)
class Measured:
    """Costs of one exchange."""

    capture_seconds: float
    """CPU time in the application, including the background writer."""
    rows_per_second: float
    text_bytes: float
    """Bytes of a row and its indexes, with text."""
    bare_bytes: float
    """The same after the text was erased."""
    cost: ExchangeCost
    """Judge requests, tokens and dollars of a scored exchange."""


@dataclass(frozen=True)
class Outcome:
    """One simulated day."""

    stored: int
    scored: int
    usd: float
    scored_per_second: float
    """In the busiest hour."""
    half_widths: Sequence[float]
    """Half-widths of the routes' intervals, busiest route first; NaN with fewer than 20 scores."""
    overall: float


def typical(number: int, words: random.Random) -> Exchange:
    """Return an exchange as long as the typical one, of random words, so that databases cannot compress it away."""

    def text(length: int) -> str:
        found = ""
        while len(found) < length:
            found += f"{words.getrandbits(24):x} "
        return found[:length]

    trace_id = f"{words.getrandbits(128):032x}"
    return replace(
        TYPICAL_EXCHANGE,
        id=uuid4().hex,
        trace_id=trace_id,
        span_id=trace_id[:16],
        service="shop",
        route=f"route-{number % ROUTES}",
        question=text(len(TYPICAL_EXCHANGE.question or "")),
        answer=text(len(TYPICAL_EXCHANGE.answer or "")),
        contexts=tuple(Context(text(len(context.text))) for context in TYPICAL_EXCHANGE.contexts),
        started_at=datetime.now(UTC),
        sampling_key=sampling_key_for(trace_id),
    )


def measure_rows(url: str) -> tuple[float, float, float]:
    """Return stored rows per second, and bytes per exchange with text and after it was erased."""
    words = random.Random(1)
    exchanges = [typical(number, words) for number in range(ROWS)]
    settings = load_settings(database=url, service="shop", sample_rate=0.02, poll_interval=0.1, role="all")
    with closing(TrackingStore(url)) as store:
        store.migrate()
        empty = size_of(url)
        began = time.perf_counter()
        for first in range(0, ROWS, 500):
            store.exchanges.add(exchanges[first : first + 500])
        rate = ROWS / (time.perf_counter() - began)
        with monitored(store, Instant(), settings, partial(datetime.now, UTC)):
            while store.backlog.load_outstanding():
                time.sleep(0.1)
        full = size_of(url)
        store.retention.prune(texts_before=datetime.now(UTC) + timedelta(days=1))
        return rate, (full - empty) / ROWS, (size_of(url) - empty) / ROWS


def size_of(url: str) -> int:
    """Return the size of a PostgreSQL database in bytes, without free space."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


def measure_capture(url: str) -> float:
    """Return the CPU time of this process per captured exchange, with the writer and without the handler."""

    @germane.observe
    def ask(question: str) -> str:  # noqa: ARG001 - germane captures it
        germane.add_contexts(contexts)
        return answer

    question, answer = TYPICAL_EXCHANGE.question or "", TYPICAL_EXCHANGE.answer or ""
    contexts = [context.text for context in TYPICAL_EXCHANGE.contexts]
    germane.start(database=url, role="capture", service="shop", max_exchanges_per_minute=1_000_000, queue_size=100_000)
    ask(question)
    began = time.process_time()
    for _ in range(ROWS // 4):
        ask(question)
    germane.stop(drain_timeout=60)
    return (time.process_time() - began) / (ROWS // 4)


def measure_judge(model: str) -> ExchangeCost:
    """Return the requests, tokens and dollars of one score, counted from the prompts.

    Budgets do not count embeddings, so they are left out.
    """
    settings = load_settings(judge=model, base_url="http://127.0.0.1:9/v1", api_key="none")
    models = find_model_prices(settings, has_server=True)
    forecasts = asyncio.run(forecast_usage([SCORER], settings, models, sample=[TYPICAL_EXCHANGE], count=1, usages={}))
    (found,) = forecasts
    usd = models.cost_usd(found.input_tokens, found.output_tokens, 0.0)
    assert usd is not None, f"the price of {model} is unknown"
    return ExchangeCost(found.requests, found.input_tokens + found.output_tokens, usd)


def profile() -> Floats:
    """Return the traffic of each hour, relative to the mean."""
    hours = 1 + (PEAK - 1) * np.cos(2 * np.pi * (np.arange(24) - 14) / 24)
    return hours / hours.mean()


def kept_shares(size: Size, chance: np.random.Generator) -> Floats:
    """Return the mean probability of being stored in each minute, from one application process's own limiter."""
    now = 0.0
    limiter = TrafficThinner(max(1, LIMIT // size.applications), clock=lambda: now)
    shares = np.ones(1440)
    for minute, per_minute in enumerate(np.repeat(profile(), 60) * size.exchanges / 1440 / size.applications):
        arrivals = np.sort(chance.uniform(0, 60, chance.poisson(per_minute)))
        probabilities = []
        for at in arrivals:
            now = minute * 60 + float(at)
            probabilities.append(limiter.next_probability())
        shares[minute] = np.mean(probabilities) if probabilities else 1.0
    return shares


def simulate(size: Size, usd: float, cost: ExchangeCost, shares: Floats, seed: int) -> Outcome:
    """Simulate a day: store, allocate the budget to intervals, select, and estimate the routes' means."""
    chance = np.random.default_rng(seed)
    traffic = np.repeat(profile(), 60) * size.exchanges / 1440
    popularity = 1 / np.arange(1, ROUTES + 1) ** 1.2
    popularity /= popularity.sum()
    means, zeros = chance.uniform(0.68, 0.9, ROUTES), chance.uniform(0.02, 0.13, ROUTES)
    budget, forecast = Budget(usd_per_day=usd), DailyTraffic(tuple(profile()))
    spent, stored, since, minute = RequestUsage(), 0, DAY, 0
    found: list[tuple[Floats, Floats, NDArray[np.int64]]] = []
    per_hour = np.zeros(24)
    while minute < 1440:
        length = interval_length(budget, cost, forecast, DAY + timedelta(minutes=minute)) // 60
        first, minute = minute, min(1440, minute + length)
        counts = [int(chance.binomial(chance.poisson(traffic[m]), shares[m])) for m in range(first, minute)]
        count, end = sum(counts), DAY + timedelta(minutes=minute)
        stored += count
        last_end = min(end, DAY + timedelta(hours=23, minutes=59))
        grant = allocate_interval(budget, spent, 0, cost, forecast, since=since, end=last_end)
        if grant.count < 1 or not count:
            continue
        since = end
        route = chance.choice(ROUTES, count, p=popularity)
        score = chance.beta(18 * means[route], 18 * (1 - means[route]))
        score = np.where(chance.random(count) < zeros[route], 0.0, score)
        proxy = np.clip(0.4 + 0.4 * score + chance.normal(0, 0.12, count), 0, 1)
        ids, tickets = [f"{minute}-{number}" for number in range(count)], 1 - chance.random(count)
        _, consecutive = np.unique(route, return_inverse=True)
        sample = draw_priority_sample(consecutive, proxy, tickets, ids, int(min(grant.count, count)))
        chosen, kept = sample.selected, np.repeat(shares[first:minute], counts)
        found.append((score[chosen], sample.probabilities * kept[chosen], route[chosen]))
        per_hour[min(23, (minute - 1) // 60)] += len(chosen)
        used = len(chosen)
        spent += RequestUsage(round(used * cost.requests), round(used * cost.tokens), used * cost.usd)
    scores, chances, routes = (np.concatenate(column) for column in zip(*found, strict=True))
    widths = [half_width(scores[routes == one], chances[routes == one]) for one in range(ROUTES)]
    busiest = float(per_hour.max()) / 3600
    return Outcome(stored, len(scores), spent.usd, busiest, widths, half_width(scores, chances))


def half_width(scores: Floats, probabilities: Floats) -> float:
    """Return half the width of the 95% interval of the weighted mean; NaN with fewer than 20 scores."""
    if len(scores) < 20:
        return float("nan")
    low, high = estimate_mean(weighted_sums(scores, 1 / probabilities)).interval or (0.0, float("nan"))
    return (high - low) / 2


def processes(size: Size, outcome: Outcome, cost: ExchangeCost) -> tuple[int, int]:
    """Return the number of workers and receivers for the busiest hour. There are at least two of each."""
    worker = min(CONCURRENCY / (cost.requests * JUDGE_SECONDS), 1 / WORKER_CPU)
    peak = PEAK * size.exchanges / 86_400
    needed = (outcome.scored_per_second / worker, peak / RECEIVER_RATE)
    workers, receivers = (max(2, int(np.ceil(rate / UTILIZATION))) for rate in needed)
    return workers, receivers


HEAD = (
    f"{'a day':>6} {'budget':>7} {'stored':>9} {'scored':>7} {'judge':>7} {'workers':>8} {'receivers':>10} "
    f"{'rows/s':>7} {'texts':>7} {'a month':>8} {'routes':>7} {'busiest':>8} {'median':>7} {'overall':>8}"
)


def line(size: Size, usd: float, outcome: Outcome, measured: Measured) -> str:
    """Return a row of the table."""
    workers, receivers = processes(size, outcome, measured.cost)
    texts = outcome.stored * TEXT_DAYS * (measured.text_bytes - measured.bare_bytes) / 1e9
    month = outcome.stored * 30 * measured.bare_bytes / 1e9
    known = sorted(width for width in outcome.half_widths if not np.isnan(width))
    median = known[len(known) // 2] if known else float("nan")
    return (
        f"{size.exchanges / 1e6:>5g}M {f'${usd:g}':>7} {outcome.stored:>9,} {outcome.scored:>7,} {outcome.usd:>7.2f} "
        f"{workers:>8} {receivers:>10} {outcome.stored / 86_400:>7.1f} {texts:>5.0f}GB {month:>6.1f}GB "
        f"{len(known):>4}/{ROUTES} {outcome.half_widths[0]:>8.3f} {median:>7.3f} {outcome.overall:>8.4f}"
    )


def main() -> None:
    """Measure, simulate, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default="gpt-4o-mini", help="a model with a known price")
    parser.add_argument("--usd", type=float, nargs="+", default=[2.0, 20.0], help="budgets per day")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="germane-capacity-") as folder, postgresql(Path(folder)) as server:
        url = create_database(server, "capacity")
        rate, text_bytes, bare_bytes = measure_rows(url)
        measured = Measured(measure_capture(url), rate, text_bytes, bare_bytes, measure_judge(given.judge))
    print(
        f"one exchange: {measured.capture_seconds * 1e6:.0f} us of CPU time to capture and write, "
        f"{measured.text_bytes:,.0f} bytes with text, {measured.bare_bytes:,.0f} without\n"
        f"one connection stores {measured.rows_per_second:,.0f} exchanges/s\n"
        f"one {SCORER} of {given.judge}: {measured.cost.requests:g} requests, {measured.cost.tokens:,.0f} tokens, "
        f"${1000 * measured.cost.usd:.4f} per 1,000\n\n{HEAD}"
    )
    for size in SIZES:
        shares = kept_shares(size, np.random.default_rng(given.seed))
        for usd in given.usd:
            print(line(size, usd, simulate(size, usd, measured.cost, shares, given.seed), measured), flush=True)


if __name__ == "__main__":
    main()
