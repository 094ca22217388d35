"""Throughput, CPU and requests of scoring versus a plain client: python benchmarks/scoring.py [EXCHANGES [ROUNDS]].

The monitor scores from SQLite and, with --postgresql URL, also from an empty PostgreSQL database, as in production: it
starts with waiting exchanges, and stops when the last score is written. A round should be long enough that starting and
stopping, which takes about half a second, has little effect. Labels are computed from similarities, so that each
exchange takes one judge request, as with the plain client. For each method, objects that exist before the measurement
are exempt from garbage collection, as after germane.start().
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import openai

from germane.exchange import Exchange, sampling_key_for
from germane.monitor import Monitor
from germane.scorers import build_scorers, exchange_concurrency, run_scorer
from germane.scorers.prompting.question_generator import generation_method
from germane.settings import Settings, load_settings
from germane.storage import TrackingStore
from germane.tracer import suppress_tracing

IN_FLIGHT = 64
"""Judge requests in flight."""
LATENCY, EMBEDDING_LATENCY = 0.2, 0.05
"""Latencies in seconds."""
LEAST_SHARE = 0.92
"""Minimum rate as a share of the plain client's rate."""
MOST_REQUESTS = 1.1
"""Maximum requests per exchange, including embeddings."""
ANSWER = """Orders can be returned within thirty days of delivery, number {number} as well. Print the label from your
account, pack the goods in their own box, and hand them in at any of the partner shops; there is no charge for returns
inside the country. The amount is refunded to the card within five working days after the parcel has arrived."""
Way = Callable[["Setting"], Coroutine[Any, Any, None]]


class Setting:
    """One round, with exchanges that no earlier round used, and the judge's URL."""

    def __init__(self, url: str, exchanges: list[Exchange], postgresql: str | None) -> None:
        self.exchanges = exchanges
        self.seconds = self.cpu_seconds = 0.0
        self.url = url
        self.postgresql = postgresql

    def settings(self, **more: Any) -> Settings:
        """Return settings for this judge."""
        given = {"base_url": self.url, "api_key": "none", "judge": "quick", "embedder": "quick-embedder"}
        options = {"answer_relevancy": {"label_from": "answer"}}
        given |= {"scorers": ["answer_relevancy"], "scorer_options": options, "concurrency": IN_FLIGHT}
        return load_settings(**given, proxy_cpu=0, **more)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the elapsed time and this process's CPU time inside the context."""
        gc.collect()
        gc.freeze()
        began, cpu_began = time.perf_counter(), time.process_time()
        yield
        self.seconds, self.cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began


def exchange(number: int) -> Exchange:
    """Return an exchange with unique texts."""
    return Exchange(
        id=f"{number:032x}", trace_id=f"{number:032x}", span_id=f"{number:016x}", service="benchmark", route="returns",
        question=f"How do I send back order {number}?", answer=ANSWER.format(number=number),
        started_at=datetime.now(UTC), sampling_key=sampling_key_for(f"{number:032x}"),
    )  # fmt: skip


async def bare(setting: Setting) -> None:
    """Send only the judge requests, with the openai client."""
    method, waiting = generation_method("instructions", votes=False), list(setting.exchanges)
    client = openai.AsyncOpenAI(api_key="none", base_url=setting.url, max_retries=1)

    async def work() -> None:
        while waiting:
            filled = method.one.fill(answer=waiting.pop().answer or "", fence="0f0f0f0f")
            await client.chat.completions.create(
                model="quick",
                messages=[{"role": message.role, "content": message.content} for message in filled],  # type: ignore[misc]  # plain
                n=3,
                temperature=method.temperature,
                max_tokens=method.max_tokens,
            )

    async with client:
        with setting.timed():
            await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def scorers(setting: Setting) -> None:
    """Score exchanges in memory."""
    scorer_set = build_scorers(setting.settings())
    (scorer,) = scorer_set.scorers
    waiting = list(setting.exchanges)

    async def work() -> None:
        while waiting:
            score = await run_scorer(scorer, waiting.pop())
            if score.value is None:
                raise RuntimeError(str(score))

    try:
        with setting.timed(), suppress_tracing():
            await asyncio.gather(*(work() for _ in range(exchange_concurrency(IN_FLIGHT))))
    finally:
        await scorer_set.aclose()


async def monitor(setting: Setting) -> None:
    """Score exchanges from an SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        await _monitor(setting, f"sqlite:///{folder}/germane.db")


async def monitor_on_postgresql(setting: Setting) -> None:
    """Score exchanges from a PostgreSQL database."""
    assert setting.postgresql is not None
    await _monitor(setting, setting.postgresql)


async def _monitor(setting: Setting, database: str) -> None:
    """Score exchanges from a database as in production, until the last row is written."""
    left, loop, written = iter(setting.exchanges[1:]), asyncio.get_running_loop(), asyncio.Event()

    def attach(*_: object) -> str:
        if next(left, None) is None:
            loop.call_soon_threadsafe(written.set)
        return "none"

    settings = setting.settings(database=database)
    with closing(TrackingStore(settings.database)) as store:
        store.migrate()
        store.exchanges.add(setting.exchanges)
        scorer_set = build_scorers(settings)
        background = Monitor(
            store, scorer_set.scorers, settings, attach=attach, suppressed=suppress_tracing, close=scorer_set.aclose
        )
        with setting.timed():
            background.start()
            await written.wait()
        background.stop()
        if store.answers.counts().scores < len(setting.exchanges):
            raise RuntimeError(str(store.answers.counts()))


WAYS: dict[str, Way] = {"plain client": bare, "scorers": scorers, "monitor": monitor}


@contextmanager
def judge() -> Iterator[str]:
    """Run the judge in a separate process and yield its URL."""
    server = Path(__file__).parent / "servers" / "quick_judge.py"
    command = [sys.executable, str(server), str(LATENCY), str(EMBEDDING_LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def asked(url: str) -> int:
    """Return the number of requests that the judge received, including embeddings."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts") as reply:
        return sum(json.load(reply).values())


def main() -> int:
    """Print rates, shares and requests; return 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exchanges", nargs="?", type=int, default=4000, help="exchanges per round; default: 4000")
    parser.add_argument("rounds", nargs="?", type=int, default=3, help="number of rounds; default: 3")
    parser.add_argument("--postgresql", metavar="URL", help="an empty database on which to measure the monitor as well")
    given = parser.parse_args()
    count, rounds = given.exchanges, given.rounds
    ways = WAYS | ({"monitor, PG": monitor_on_postgresql} if given.postgresql else {})
    rates: dict[str, list[float]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    requests: dict[str, list[float]] = {name: [] for name in ways}
    number = 0
    with judge() as url:
        for _ in range(rounds):
            for name, way in ways.items():
                setting = Setting(url, [exchange(number + place) for place in range(count)], given.postgresql)
                number += count
                before = asked(url)
                asyncio.run(way(setting))
                rates[name].append(count / setting.seconds)
                cpu[name].append(1e3 * setting.cpu_seconds / count)
                requests[name].append((asked(url) - before) / count)
    return report(rates, cpu, requests)


def report(rates: dict[str, list[float]], cpu: dict[str, list[float]], requests: dict[str, list[float]]) -> int:
    """Print one line per method with medians over the rounds."""
    missed = 0
    for name in rates:
        rate, per_exchange = statistics.median(rates[name]), statistics.median(requests[name])
        shares = [mine / its for mine, its in zip(rates[name], rates["plain client"], strict=True)]
        share = statistics.median(shares)
        missed += share < LEAST_SHARE or per_exchange > MOST_REQUESTS
        print(
            f"{name:12} {rate:6.1f} exchanges/s   share {share:.2f} (at least {LEAST_SHARE})   "
            f"CPU {statistics.median(cpu[name]):.2f} ms per exchange   "
            f"requests per exchange {per_exchange:.3f} (at most {MOST_REQUESTS})   rounds "
            + " ".join(f"{each:.2f}" for each in shares)
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
