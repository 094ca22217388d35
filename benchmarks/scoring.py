"""Throughput, CPU and requests of scoring versus a plain client: python benchmarks/scoring.py [EXCHANGES [ROUNDS]].

The monitor scores from SQLite and, with --postgresql URL, also from an empty PostgreSQL database, as in production: it
starts with waiting exchanges, and stops when the last score is written. A round should be long enough that starting and
stopping, which takes about half a second, has little effect. Labels are computed from similarities, so that each
exchange takes one judge request, as with the plain client. For each method, objects that exist before the measurement
are exempt from garbage collection, as after germane.start(). The monitor is measured without and with a sink, to which
it writes the scores. The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
from common import Goals, judge, judge_requests, new_exchange

from germane.exchange import Exchange
from germane.monitor import Monitor, MonitorConfig
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
LEAST_SHARE_WITH_SINK = 0.97
"""Minimum rate with a sink, as a share of the rate without one."""
MOST_REQUESTS = 1.1
"""Maximum requests per exchange, including embeddings."""


WITH_SINK = ", sink"


class Round:
    """Exchanges that no earlier round used, and what was measured."""

    def __init__(self, url: str, exchanges: list[Exchange], database: str, sinks: dict[str, Any]) -> None:
        self.exchanges, self.database, self.url, self.sinks = exchanges, database, url, sinks
        self.seconds = self.cpu_seconds = 0.0

    def settings(self, **more: Any) -> Settings:
        """Return settings for the judge."""
        return load_settings(
            base_url=self.url, api_key="none", judge="quick", embedder="quick-embedder", scorers=["answer_relevancy"],
            scorer_options={"answer_relevancy": {"label_from": "answer"}}, concurrency=IN_FLIGHT, proxy_cpu=0,
            sinks=self.sinks, **more,
        )  # fmt: skip

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the elapsed time and this process's CPU time inside the context."""
        gc.collect()
        gc.freeze()
        began, cpu_began = time.perf_counter(), time.process_time()
        yield
        self.seconds, self.cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began


async def bare(measured: Round) -> None:
    """Send only the judge requests, with the openai client."""
    method, waiting = generation_method("instructions", votes=False), list(measured.exchanges)
    client = openai.AsyncOpenAI(api_key="none", base_url=measured.url, max_retries=1)

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
        with measured.timed():
            await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def scorers(measured: Round) -> None:
    """Score exchanges in memory."""
    scorer_set = build_scorers(measured.settings())
    (scorer,) = scorer_set.scorers
    waiting = list(measured.exchanges)

    async def work() -> None:
        while waiting:
            score = await run_scorer(scorer, waiting.pop())
            if score.value is None:
                raise RuntimeError(str(score))

    try:
        with measured.timed(), suppress_tracing():
            await asyncio.gather(*(work() for _ in range(exchange_concurrency(IN_FLIGHT))))
    finally:
        await scorer_set.aclose()


async def monitor(measured: Round) -> None:
    """Score exchanges from a database as in production, until the last row is written."""
    left, loop, written = iter(measured.exchanges[1:]), asyncio.get_running_loop(), asyncio.Event()

    def attach(*_: object) -> str:
        if next(left, None) is None:
            loop.call_soon_threadsafe(written.set)
        return "none"

    settings = measured.settings(database=measured.database)
    with closing(TrackingStore(settings.database, sinks=list(settings.sinks))) as store:
        store.migrate()
        earlier = store.answers.counts().scores
        store.exchanges.add(measured.exchanges)
        scorer_set = build_scorers(settings)
        config = MonitorConfig(
            store, scorer_set.scorers, settings, attach=attach, suppressed=suppress_tracing, close=scorer_set.aclose
        )
        background = Monitor(config)
        with measured.timed():
            background.start()
            await written.wait()
        background.stop()
        if store.answers.counts().scores - earlier < len(measured.exchanges):
            raise RuntimeError(str(store.answers.counts()))


def accept_everything(port: Any) -> None:
    """Run a server that accepts all requests, and set its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.value = server.server_port
    server.serve_forever()


@contextmanager
def sink() -> Iterator[dict[str, Any]]:
    """Run the backend of a sink in a process of its own, and return the setting."""
    context = multiprocessing.get_context("spawn")
    port = context.Value("i", 0)
    process = context.Process(target=accept_everything, args=(port,), daemon=True)
    process.start()
    while not port.value:
        time.sleep(0.01)
    os.environ["BENCHMARK_SINK"] = f"http://127.0.0.1:{port.value}"
    yield {"bridge": {"type": "webhook", "url": "env:BENCHMARK_SINK"}}
    process.terminate()
    process.join()


def main() -> int:
    """Print rates, shares and requests; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("exchanges", nargs="?", type=int, default=4000, help="exchanges per round; default: 4000")
    parser.add_argument("rounds", nargs="?", type=int, default=3, help="number of rounds; default: 3")
    parser.add_argument("--postgresql", metavar="URL", help="an empty database on which to measure the monitor as well")
    given = parser.parse_args()
    ways = {"plain client": (bare, ""), "scorers": (scorers, "")}
    for name, database in (("monitor", "sqlite:///{folder}/germane.db"), ("monitor, PostgreSQL", given.postgresql)):
        if database:
            ways |= {name: (monitor, database), f"{name}{WITH_SINK}": (monitor, database)}
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with judge(LATENCY, EMBEDDING_LATENCY) as url, sink() as setting:
        for _ in range(given.rounds):
            for name, (way, database) in ways.items():
                with tempfile.TemporaryDirectory() as folder:
                    exchanges = [new_exchange(number) for number in range(given.exchanges)]
                    sinks = setting if name.endswith(WITH_SINK) else {}
                    measured = Round(url, exchanges, database.format(folder=folder), sinks)
                    before = sum(judge_requests(url).values())
                    asyncio.run(way(measured))
                requests = sum(judge_requests(url).values()) - before
                found[name, "rate"].append(given.exchanges / measured.seconds)
                found[name, "CPU"].append(1e3 * measured.cpu_seconds / given.exchanges)
                found[name, "requests"].append(requests / given.exchanges)
    goals = Goals(width=44)
    for name in ways:
        shares = [mine / its for mine, its in zip(found[name, "rate"], found["plain client", "rate"], strict=True)]
        goals.medians(f"{name}: rate", found[name, "rate"], "exchanges/s")
        goals.medians(f"{name}: share of the plain client's rate", shares, least=LEAST_SHARE)
        if name.endswith(WITH_SINK):
            without = found[name.removesuffix(WITH_SINK), "rate"]
            shares = [mine / its for mine, its in zip(found[name, "rate"], without, strict=True)]
            goals.medians(f"{name}: share of the rate without", shares, least=LEAST_SHARE_WITH_SINK)
        goals.medians(f"{name}: CPU time per exchange", found[name, "CPU"], "ms")
        goals.medians(f"{name}: requests per exchange", found[name, "requests"], most=MOST_REQUESTS)
    return goals.exit_code()


if __name__ == "__main__":
    sys.exit(main())
